"""The types of `Doc.specific`: what every suite's Docs may hold beyond the fields of LightEval's Doc.

Each suite adds what only its own metrics and reports read, in `prompts/<suite>/specific.py`. Everything is JSON-like:
LightEval's details keep it and saved runs give it back.
"""

from collections.abc import Mapping
from typing import Any, Protocol, Required, TypeVar

from typing_extensions import TypedDict


class GenerationHints(TypedDict, total=False):
    """What a task asks of a model; `models/generation/hints.py` says how each is followed.

    Attributes:
        stop_in_chat: False where stop strings hold for plain prompts only.
        chat_query: The turn's text under a chat template, where `Doc.query` is worded for plain prompts.
        plain_query: The other way round, where `Doc.query` is worded for chats.
        answer_prefix: How the answer begins, where it can be begun for the model.
        prefixed_stops: The stop strings after such a beginning.
        thinking: False where a chat template should open no reasoning.
        end_logprob: Whether the end of the text is scored after each choice, too.
    """

    stop_in_chat: bool
    chat_query: str
    plain_query: str
    answer_prefix: str
    prefixed_stops: list[str]
    thinking: bool
    end_logprob: bool


class JudgeRequest(TypedDict):
    """What judges are asked about the answer: names of templates, and the texts of their slots."""

    templates: list[str]
    slots: dict[str, str | None]


class DocSpecific(GenerationHints, total=False):
    """What the Docs of every suite may hold.

    Attributes:
        source_row: `file:number` of the source's row.
        form: The copy of the data, "curated" or "original".
        cluster: Items of one cluster share a passage, an image or a poem; standard errors are clustered by it.
        judge: What judges are asked about the answer.
    """

    source_row: Required[str]
    form: Required[str]
    cluster: str
    judge: JudgeRequest


class _HasSpecific(Protocol):
    @property
    def specific(self) -> dict[str, Any] | None: ...


Specific = TypeVar("Specific", bound=DocSpecific)


def fields_of(row: Mapping[str, Any], kind: type[Specific]) -> dict[str, Any]:
    """The fields of that type which a prepared row holds, in the type's order."""
    return {name: row[name] for name in kind.__annotations__ if name in row}


def specific_of(doc: _HasSpecific | Mapping[str, Any]) -> Any:
    """`specific` of a Doc, or of a Doc in saved details, empty where there is none; name its type where it is used."""
    return (doc.get("specific") if isinstance(doc, Mapping) else doc.specific) or {}
