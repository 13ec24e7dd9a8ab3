"""The types of `Doc.specific`: fields of Docs of all suites beside the fields of LightEval's Doc.

A suite declares further fields for its own metrics and reports in `prompts/<suite>/rows.py`. All values are JSON-like,
so that LightEval's details keep them.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, Required, TypeVar, get_args

from typing_extensions import TypedDict

Parity = Literal["paper", "sound"]
PAPER, SOUND = PARITIES = get_args(Parity)
FIRST_TOKEN = "first token"  # in place of a parity, where the first token of a reply is scored (`scoring: first_token`)
REASONED = "reasoned"  # likewise, where the model reasons before its choices are scored (`scoring: reasoned`)
GENERATED_LABEL = "reasoned, generated label"  # likewise, where a server without log-probabilities does


class GenerationHints(TypedDict, total=False):
    """How a task wants its answers generated; `runtime/generation_hints.py` reads these hints."""

    stop_in_chat: bool  # False where stop strings apply to plain prompts only
    chat_query: str  # the user turn under a chat template, where `Doc.query` is worded for plain prompts
    server_query: str  # the user turn of a server's chat, where it is worded for servers
    plain_query: str  # the prompt without a chat template, where `Doc.query` is worded for chats
    answer_prefix: str  # the beginning of the answer, for backends that can prefill it
    prefixed_stops: list[str]  # the stop strings of a prefilled answer
    thinking: bool  # whether the chat template should turn reasoning on or off
    end_logprob: bool  # whether the end-of-text token is also scored after each choice
    verbatim: bool  # whether the prompt is sent as it is, without a chat template: another harness has made it
    contexts: list[str]  # the prompt of each choice, where they differ
    parity: Parity  # "paper" where prompt and choices become the tokens of `lighteval vllm` (`models/tokens.py`)


class JudgeRequest(TypedDict):
    """What judges see: the names of templates and the texts of their slots."""

    templates: list[str]
    slots: dict[str, str | None]


class DocSpecific(GenerationHints, total=False):
    """Fields of Docs of all suites."""

    source_row: Required[str]  # `file:number` of the source's row
    form: Required[str]  # the copy of the data, "curated" or "original"
    cluster: str  # items of one cluster share a passage, an image or a poem; standard errors are clustered by it
    judge: JudgeRequest
    finish_reasons: list[str | None]  # why a server ended each answer; models on servers add it
    refusals: list[str | None]  # the refusal of a server in place of each answer; likewise


class _HasSpecific(Protocol):
    @property
    def specific(self) -> dict[str, Any] | None: ...


Specific = TypeVar("Specific", bound=DocSpecific)


def fields_of(row: Mapping[str, Any], kind: type[Specific]) -> dict[str, Any]:
    """The fields of a TypedDict that a prepared row holds, in the type's order."""
    return {name: row[name] for name in kind.__annotations__ if name in row}


def specific_of(doc: _HasSpecific | Mapping[str, Any]) -> Any:
    """`specific` of a Doc, or of a Doc in saved details; {} where there is none. Annotate its type at the call."""
    return (doc.get("specific") if isinstance(doc, Mapping) else doc.specific) or {}
