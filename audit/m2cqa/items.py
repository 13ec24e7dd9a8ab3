"""Items of a curation with their questions and statements, rejected items, and the JSON replies of models."""

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from cultureval.judge_prompts.replies import JudgeReplyError
from cultureval.metrics.judges.asking import ModelReply
from cultureval.runtime.errors import wrong_settings
from cultureval.runtime.reasoning import split_reasoning

REPO = "QCRI/M2CQA"  # of the data set that is made, below a data root
LANGUAGES = {"en": "English", "msa": "Modern Standard Arabic", "ajp": "Levantine Arabic", "arz": "Egyptian Arabic"}
LONGEST_TEXT = 1_000  # characters of a question, an option or a statement


@dataclass(frozen=True)
class ChoiceQuestion:
    """A multiple-choice question with three options in one variety; its answer is a position from 0."""

    question: str
    options: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class Statements:
    """The true statement and the two counterfactual statements of an item in one variety."""

    q_plus: str
    q_minus: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """All three, the true statement first."""
        return self.q_plus, *self.q_minus


@dataclass(frozen=True)
class Item:
    """An image and what the steps have made of it.

    Attributes:
        id: Unique; from the metadata, or the name of the image's file.
        image: Name in the store of images.
        about: country, category, subcategory, description, url and licence, "" where unknown.
        questions: Variety -> its question.
        statements: Variety -> its statements.
    """

    id: str
    image: str
    about: Mapping[str, str]
    questions: Mapping[str, ChoiceQuestion] = field(default_factory=dict)
    statements: Mapping[str, Statements] = field(default_factory=dict)


@dataclass(frozen=True)
class Rejected:
    """A rejected item; its reason is a word (`near_duplicate`, `msa:not_arabic`), its detail a clause."""

    id: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Outcome:
    """The items that a step keeps and rejects, in the order of the images."""

    kept: tuple[Item, ...]
    rejected: tuple[Rejected, ...] = ()


class Unfit(JudgeReplyError):
    """A reply that breaks a rule of the construction; the message is `reason: detail` as in `Rejected`."""


def outcome_of(
    items: Sequence[Item], replies: Mapping[str, ModelReply], add: Callable[[Item, Any], Item], variety: str = ""
) -> Outcome:
    """Adds what was read from each item's reply; items whose reply was not read are rejected."""
    kept, rejected = [], []
    for item in items:
        reply = replies[item.id]
        if reply.value is not None:
            kept.append(add(item, reply.value))
            continue
        rule, _, detail = reply.problem.partition(": ")
        reason, detail = (rule, detail) if reply.outcome == "malformed" else (reply.outcome, reply.problem)
        rejected.append(Rejected(item.id, f"{variety}:{reason}" if variety else reason, detail))
    return Outcome(tuple(kept), tuple(rejected))


def _plain_text(value: Any) -> str:
    """A text with single spaces; ValueError if it is empty, too long or has control characters."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not 0 < len(text) <= LONGEST_TEXT or not all(one.isprintable() or one in "\u200c\u200d" for one in text):
        raise ValueError("it is missing, too long, or no plain text")
    return text


Text = Annotated[str, BeforeValidator(_plain_text)]
Form = TypeVar("Form", bound=BaseModel)


class QuestionReply(BaseModel):
    """The writer's JSON for a question; the paper's prompt asks for further fields, which nothing uses."""

    question_en: Text
    options_en: tuple[Text, Text, Text]
    correct_answer_en: Text


class TranslationReply(BaseModel):
    """A translator's JSON."""

    question: Text
    options: tuple[Text, Text, Text]


class StatementsReply(BaseModel):
    """The writer's JSON for the statements of a question."""

    Q_plus: Text
    Q_minus: tuple[Text, Text]


def read_json(form: type[Form], text: str, wrapper: str = "") -> Form:
    """Reads the JSON object of a reply, which may have reasoning, text and code fences around it.

    Args:
        wrapper: A key that may hold the object.

    Raises:
        Unfit: The reply has no such object (`unreadable_reply`).
    """
    text = split_reasoning(text)[0]
    try:
        found = json.loads(text[text.find("{") : text.rfind("}") + 1])
        return form.model_validate(found.get(wrapper, found) if isinstance(found, dict) else found)
    except ValidationError as error:
        raise Unfit(f"unreadable_reply: {wrong_settings(error)}") from None
    except (ValueError, RecursionError):
        raise Unfit("unreadable_reply: it is no JSON object") from None


def share_of_arabic(text: str) -> float:
    """Share of a text's letters that are Arabic; 1 for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    arabic = sum(unicodedata.name(letter, "").startswith("ARABIC") for letter in letters)
    return arabic / len(letters) if letters else 1.0
