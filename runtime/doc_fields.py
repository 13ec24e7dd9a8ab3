"""The types of `Doc.specific`: fields that Docs of every suite may hold beyond those of LightEval's Doc.

Each suite adds what only its own metrics and reports read, in `prompts/<suite>/rows.py`. Everything is JSON-like:
LightEval's details keep it and saved runs give it back.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, Required, TypeVar, get_args

from typing_extensions import TypedDict

Parity = Literal["paper", "sound"]
PAPER, SOUND = PARITIES = get_args(Parity)
FIRST_TOKEN = "first token"  # what stands for these of scores by the first token of a reply (`scoring: first_token`)


class GenerationHints(TypedDict, total=False):
    """How a task wants its answers generated; `runtime/generation_hints.py` says how each hint is followed."""

    stop_in_chat: bool  # False where stop strings apply to plain prompts only
    chat_query: str  # the user turn under a chat template, where `Doc.query` is worded for plain prompts
    server_query: str  # the user turn of a server's chat, where it is worded for servers
    plain_query: str  # the prompt without a chat template, where `Doc.query` is worded for chats
    answer_prefix: str  # the beginning of the answer, for backends that can prefill it
    prefixed_stops: list[str]  # the stop strings of a prefilled answer
    thinking: bool  # whether the chat template should turn reasoning on or off
    end_logprob: bool  # whether the end-of-text token is also scored after each choice
    parity: Parity  # "paper" where prompt and choices become the tokens of `lighteval vllm` (`models/tokens.py`)


class JudgeRequest(TypedDict):
    """What judges are asked about the answer: the names of templates and the texts of their slots."""

    templates: list[str]
    slots: dict[str, str | None]


class DocSpecific(GenerationHints, total=False):
    """What the Docs of every suite may hold."""

    source_row: Required[str]  # `file:number` of the source's row
    form: Required[str]  # the copy of the data, "curated" or "original"
    cluster: str  # items of one cluster share a passage, an image or a poem; standard errors are clustered by it
    judge: JudgeRequest
    finish_reasons: list[str | None]  # why a server ended each of its answers; models of servers add it
    refusals: list[str | None]  # what a server said instead of each answer, likewise


class _HasSpecific(Protocol):
    @property
    def specific(self) -> dict[str, Any] | None: ...


Specific = TypeVar("Specific", bound=DocSpecific)


def fields_of(row: Mapping[str, Any], kind: type[Specific]) -> dict[str, Any]:
    """The fields of a TypedDict that a prepared row holds, in the type's order."""
    return {name: row[name] for name in kind.__annotations__ if name in row}


def specific_of(doc: _HasSpecific | Mapping[str, Any]) -> Any:
    """`specific` of a Doc, or of a Doc in saved details; empty where there is none. Annotate its type at the call."""
    return (doc.get("specific") if isinstance(doc, Mapping) else doc.specific) or {}
