"""What a task wants of a model beyond the fields of LightEval's Doc: it says so in `doc.specific`.

- `stop_in_chat: false`: stop strings hold for plain prompts only. LightEval's own backends drop them wherever a chat
  template is used; tasks that were published with those backends ask for it, so that chat answers end by themselves.
- `thinking: false`: a chat template that can is told not to open a thought. Servers have no common field for this: give
  theirs in the settings (`extra_body`).
"""

from typing import Any

from lighteval.tasks.requests import Doc


def stop_strings(doc: Doc, chat: bool) -> list[str]:
    """The task's stop strings for a prompt with or without a chat template."""
    if chat and _wish(doc, "stop_in_chat") is False:
        return []
    return [stop for stop in doc.stop_sequences or [] if stop]


def may_think(doc: Doc) -> bool:
    """Whether the chat template may open a thought before the answer."""
    return _wish(doc, "thinking") is not False


def _wish(doc: Doc, name: str) -> Any:
    return (doc.specific or {}).get(name)
