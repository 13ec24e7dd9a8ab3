"""What a task wants of a model beyond the fields of LightEval's Doc: it says so in `doc.specific`.

- `stop_in_chat: false`: stop strings hold for plain prompts only. LightEval's own backends drop them wherever a chat
  template is used; tasks that were published with those backends ask for it, so that chat answers end by themselves.
- `chat_query: TEXT`: what the turn says where a chat template is used, in place of `doc.query`, which is then worded
  for plain prompts; few-shot examples have theirs.
- `plain_query: TEXT`: the other way round, for tasks whose query is worded for chats, as other backends ask it.
- `answer_prefix`: how the answer begins where it can be begun for the model: behind a rendered chat template that opens
  no reasoning. `prefixed_stops` are the stop strings then.
- `thinking: false`: a chat template that can is told not to open reasoning. Servers have no common field for this: give
  theirs in the settings (`extra_body`).
"""

import copy

from lighteval.tasks.requests import Doc

from cultureval.runtime.doc_specific import GenerationHints, specific_of


def stop_strings(doc: Doc, chat: bool, prefixed: bool = False) -> list[str]:
    """The task's stop strings for a prompt with or without a chat template, or whose answer is begun already."""
    if prefixed:
        return list(_hints(doc).get("prefixed_stops") or [])
    if chat and _hints(doc).get("stop_in_chat") is False:
        return []
    return [stop for stop in doc.stop_sequences or [] if stop]


def chat_turns(doc: Doc) -> Doc:
    """The doc as a chat asks it: its query and those of its examples replaced where they have a wording for chats."""
    wanted = _hints(doc).get("chat_query")
    if wanted is None:
        return doc
    turns = copy.copy(doc)
    turns.query, turns.fewshot_samples = wanted, [chat_turns(example) for example in doc.fewshot_samples]
    return turns


def may_think(doc: Doc) -> bool:
    """Whether the chat template may open reasoning before the answer."""
    return _hints(doc).get("thinking") is not False


def worded_plainly(doc: Doc) -> Doc:
    """The doc as models without a chat template read it."""
    query = _hints(doc).get("plain_query")
    if query is None:
        return doc
    plain = copy.copy(doc)
    plain.query = query
    return plain


def answer_prefix(doc: Doc) -> str:
    """How the answer begins where it can be begun for the model; mostly with nothing."""
    return _hints(doc).get("answer_prefix") or ""


def _hints(doc: Doc) -> GenerationHints:
    return specific_of(doc)
