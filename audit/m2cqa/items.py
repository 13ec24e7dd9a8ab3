"""What the steps of the curation pass on: an item with what is known of it, and why others were rejected."""

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cultureval.judge_prompts.replies import JudgeReplyError
from cultureval.metrics.judges.asking import ModelReply
from cultureval.runtime.reasoning import split_reasoning

REPO = "QCRI/M2CQA"  # of the data set that is made, below a data root
LANGUAGES = {
    "en": "English",
    "msa": "Modern Standard Arabic",
    "ajp": "Levantine Arabic",
    "arz": "Egyptian Arabic",
}
LONGEST_REPLY = 20_000  # characters
LONGEST_TEXT = 1_000  # characters of a question, an option or a statement


@dataclass(frozen=True)
class ChoiceQuestion:
    """A multiple-choice question with three options in one variety; its answer is a place from 0."""

    question: str
    options: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class Statements:
    """The true statement and the two counterfactual ones of an item in one variety."""

    q_plus: str
    q_minus: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """All three, the true one first."""
        return self.q_plus, *self.q_minus


@dataclass(frozen=True)
class Item:
    """One image and what the steps have made of it.

    Attributes:
        id: Unique; from the metadata, or the name of the image's file.
        image: Name in the store of images.
        about: country, category, subcategory, description, url, licence and file, "" where unknown.
        questions: Variety -> its question; from the step `mcq` on.
        notes: rationale, cognitive_focus, semantic_focus, and what the image-blind models answered.
        statements: Variety -> its statements; from the step `statements` on.
    """

    id: str
    image: str
    about: Mapping[str, str]
    questions: Mapping[str, ChoiceQuestion] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    statements: Mapping[str, Statements] = field(default_factory=dict)

    def with_(self, **changes: Any) -> "Item":
        """The item with other attributes; notes are joined."""
        notes = {**self.notes, **changes.pop("notes", {})}
        return replace(self, notes=notes, **changes)


@dataclass(frozen=True)
class Rejected:
    """An item that is left out, with a clause.

    Attributes:
        reason: A word (`near_duplicate`, `answered_blind`), with its variety before a colon where it has one.
    """

    id: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Outcome:
    """What a step makes of the items, in the order of the images.

    Attributes:
        waiting: Why some items could not be asked about; "" where all were. Such an outcome is not final.
    """

    kept: tuple[Item, ...]
    rejected: tuple[Rejected, ...] = ()
    waiting: str = ""


class Unfit(JudgeReplyError):
    """A reply that can be read, and breaks a rule of the construction: `reason`, a word of `Rejected`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


def rejection(item: str, reply: ModelReply, variety: str = "") -> Rejected:
    """Why an item without a value is left out: the rule that the last reply breaks, else the outcome."""
    reason, colon, detail = reply.problem.partition(": ")
    named = bool(colon) and reason.replace("_", "").isalpha() and reason.islower()
    word, clause = (reason, detail) if reply.outcome == "malformed" and named else (reply.outcome, reply.problem)
    return Rejected(item, f"{variety}:{word}" if variety else word, clause)


def json_object(text: str) -> dict[str, Any]:
    """The JSON object of a reply, passing over reasoning, text and code fences around it; Unfit where there is none."""
    text = split_reasoning(text)[0]
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1]) if len(text) <= LONGEST_REPLY else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unfit("unreadable_reply", "it is no JSON object")
    return found


def share_of_arabic(text: str) -> float:
    """Share of a text's letters that are Arabic; 1 for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    arabic = sum(unicodedata.name(letter, "").startswith("ARABIC") for letter in letters)
    return arabic / len(letters) if letters else 1.0


def text_of(found: Mapping[str, Any], name: str) -> str:
    """A text of a reply's object, as of `clean_text`."""
    return clean_text(found.get(name), name)


def clean_text(value: Any, name: str) -> str:
    """A value that must be a text, with single spaces and no control characters; Unfit if it is none, or too long."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    plain = all(letter.isprintable() or letter in "\u200c\u200d" for letter in text)
    if not text or len(text) > LONGEST_TEXT or not plain or text[0] in "=+-@":  # formulas in the sheet for people
        raise Unfit("unreadable_reply", f"{name} is missing, too long, or no plain text")
    return text


def texts_of(found: Mapping[str, Any], name: str, count: int) -> tuple[str, ...]:
    """A list of so many texts of a reply's object; Unfit if it is none."""
    values = found.get(name)
    if not isinstance(values, list) or len(values) != count:
        raise Unfit("unreadable_reply", f"{name} is no list of {count} texts")
    return tuple(clean_text(value, name) for value in values)
