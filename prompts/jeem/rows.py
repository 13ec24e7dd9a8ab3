"""JEEM: from a row (an image, its captions, its five questions and answers) to prepared rows, and to Docs.

Paper: arXiv 2503.21910, section 3 (captions in MSA and dialect, questions and answers in dialect) and Appendix B (the
answer "Cannot tell from the picture"). JEEM is gated, so its column names and how it stores that answer are guesses:
the names below and three layouts of the questions are read, anything else is an error that lists the columns
found. The paper prints no prompt for models: those in `templates/` are ours, and no native speaker has reviewed them.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.prompts.cells import (
    Column,
    column_name,
    has_column,
    image_bytes,
    image_cell,
    is_empty,
    optional_text,
    readable,
    text_cell,
)
from cultureval.prompts.preparation import Preparation, PreparedRow, Row, make_doc
from cultureval.prompts.templates import render
from cultureval.runtime.doc_fields import DocSpecific, JudgeRequest, fields_of
from cultureval.runtime.errors import BadRow, MissingColumn

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


NUMBERED = re.compile(r"(question|answer|q|a)_?(\d+)", re.IGNORECASE)
_ARABIC_LETTER = re.compile("[\u0620-\u064a\u066e-\u06d3]")
_CANNOT_TELL = re.compile(
    r"can ?not tell( from the (picture|image|photo))?|can't tell( from the (picture|image|photo))?"
)
IMAGE = ("image", "Image", "img", "picture", "image_path", "file_name")
IMAGE_ID = ("image_id", "img_id", "id", "image_name", "image_url", "url")
COUNTRY = ("country", "Country", "dialect", "Dialect", "variety", "region", "lang", "language")
CAPTION_MSA = ("caption_msa", "msa_caption", "MSA_caption", "msa", "MSA", "caption_MSA", "description_msa")
CAPTION_DIALECT = (
    *("caption_dialect", "caption_da", "da_caption", "dialect_caption", "caption_DA", "da", "DA"),
    *("description_da", "description_dialect", "caption"),
)
QUESTIONS = ("questions", "Questions", "qa_questions", "vqa_questions")
ANSWERS = ("answers", "Answers", "qa_answers", "vqa_answers")
PAIRS = ("qa", "qa_pairs", "question_answers", "questions_answers", "vqa", "QA")
CAPTION_TEMPLATES = ("jeem_caption_image_reference", "jeem_caption_reference")
MSA_TEMPLATES = ("jeem_caption_image_reference_msa", "jeem_caption_reference_msa")
VQA_TEMPLATES = ("jeem_vqa",)


class CaptionSpecific(DocSpecific):
    """A caption of an image.

    Attributes:
        country: Two-letter code of the image's country.
        variety: "MSA" or the dialect requested for the caption.
        shared: Whether the image was captioned in every country.
        reference_set: Name, in the store of texts, of all reference captions of the variety (CIDEr's statistics).
    """

    country: str
    variety: str
    image_id: str
    shared: bool
    reference_set: str


class QuestionSpecific(CaptionSpecific):
    """A question on an image, with the annotators' answer.

    Attributes:
        question_number: Its position among the image's questions.
        answerable: Whether the annotators could tell the answer from the image.
    """

    question: str
    question_number: int
    answer: str
    answerable: bool


@dataclass(frozen=True)
class Country:
    """One of JEEM's four countries.

    Attributes:
        name: Its name in the judge prompts.
        spellings: Lower-case names in cells, files and folders.
        unknown: The wording of "cannot tell" in our prompt for questions, in the country's dialect.
    """

    name: str
    spellings: tuple[str, ...]
    unknown: str


COUNTRIES = {
    "JO": Country("Jordan", ("jo", "jor", "jordan", "jordanian", "levantine", "الأردن"), "مش مبين من الصورة"),
    "AE": Country(
        "the United Arab Emirates",
        ("ae", "uae", "emirates", "emirati", "united arab emirates", "gulf", "الإمارات"),
        "مب مبين من الصورة",
    ),
    "EG": Country("Egypt", ("eg", "egy", "egypt", "egyptian", "مصر"), "مش باينة من الصورة"),
    "MA": Country("Morocco", ("ma", "morocco", "moroccan", "maghrebi", "المغرب"), "ما باينش من التصويرة"),
}


def country_of(row: Row, place: Sequence[str] = ()) -> str | None:
    """The code of a row's country: its cell, else the first name of a country among the parts of its file's path."""
    named = [str(row[column_name(row, COUNTRY)])] if has_column(row, COUNTRY) else []
    parts = [part for text in place for part in (text, *re.split(r"[^\w]|_", text))]
    for text in (*named, *parts):
        for code, country in COUNTRIES.items():
            if text.strip().lower() in country.spellings:
                return code
    return None


def image_keys(row: Row, folder: Path) -> set[str]:
    """The keys that identify an image across countries: the hash of its bytes, and its id.

    An id of digits only is not used, as each country may count its own images. The hash is missing where the cell
    holds no readable image: preparing that row raises the error.
    """
    keys = set()
    if has_column(row, IMAGE_ID):
        name = str(row[column_name(row, IMAGE_ID)])
        keys |= {name} if not name.isdigit() and not is_empty(name) else set()
    try:
        content = image_bytes(row[column_name(row, IMAGE)], folder)
    except (MissingColumn, ValueError, OSError):
        return keys
    return keys | {hashlib.sha256(content).hexdigest()}


def msa_caption(row: Row, preparation: Preparation) -> PreparedRow:
    """A row's MSA caption."""
    return _item(row, preparation) | {
        "variety": "MSA",
        "prompt": render(preparation.template),
        "references": [arabic_cell(row, CAPTION_MSA)],
    }


def dialect_caption(row: Row, preparation: Preparation) -> PreparedRow:
    """A row's caption in its country's dialect."""
    item = _item(row, preparation)
    references = [arabic_cell(row, CAPTION_DIALECT)]
    return item | {"variety": item["country"], "prompt": render(preparation.template), "references": references}


def questions(row: Row, preparation: Preparation) -> list[PreparedRow]:
    """A row's questions, one prepared row each.

    Where the annotator could not tell, the reference is our prompt's wording of that in the dialect.
    """
    item = _item(row, preparation)
    prepared = []
    for number, (question, answer) in enumerate(question_pairs(row)):
        prepared.append(
            item
            | {
                "variety": item["country"],
                "prompt": render(preparation.template, question=question),
                "question": question,
                "question_number": number,
                "answer": answer,
                "answerable": not cannot_tell(answer),
                "references": [reference_answer(answer, item["country"])],
            }
        )
    return prepared


def arabic_cell(row: Row, column: Column) -> str:
    """The text of a cell that must hold Arabic: a reference in another script would make every metric meaningless."""
    text = text_cell(row, column)
    if not _ARABIC_LETTER.search(text):
        raise BadRow(column_name(row, column), text, "holds no Arabic letter")
    return text


def question_pairs(row: Row) -> list[tuple[str, str]]:
    """A row's questions with their answers: two lists, one list of pairs, or numbered columns (question_1, answer_1).

    Raises:
        MissingColumn: The row has none of the layouts.
        BadRow: Lists of different lengths, an empty or unreadable entry.
    """
    if has_column(row, QUESTIONS):
        names = [column_name(row, QUESTIONS), column_name(row, ANSWERS)]
        asked, answered = (_list_cell(row[name], name) for name in names)
        if len(asked) != len(answered):
            raise BadRow(names[1], row[names[1]], f"holds {len(answered)} answers to {len(asked)} questions")
        pairs = list(zip(asked, answered, strict=True))
    elif has_column(row, PAIRS):
        names = [column_name(row, PAIRS)] * 2
        pairs = [_pair(entry, names[0]) for entry in _list_cell(row[names[0]], names[0])]
    else:
        names = ["question_1, question_2, ...", "answer_1, answer_2, ..."]
        pairs = _numbered_pairs(row)
    return [(_text(question, names[0]), _text(answer, names[1])) for question, answer in pairs]


def reference_answer(answer: str, country: str) -> str:
    """The reference: the answer, or our prompt's wording of "cannot tell" in the country's dialect."""
    return COUNTRIES[country].unknown if cannot_tell(answer) else answer


def cannot_tell(answer: str) -> bool:
    """Whether an answer is the annotators' option "Cannot tell from the picture" (Appendix B.3), in any spelling."""
    plain = unicodedata.normalize("NFKC", answer).casefold().replace("\u2019", "'")
    return bool(_CANNOT_TELL.fullmatch(re.sub(r"[^a-z' ]", "", plain).strip()))


def _item(row: Row, preparation: Preparation) -> PreparedRow:
    """Fields that captions and questions of a row share; names with `__` are added when the row is read."""
    country = row.get("__country")
    if country is None:
        column = column_name(row, COUNTRY)
        raise BadRow(column, row[column], "names none of JEEM's countries (Jordan, Emirates, Egypt, Morocco)")
    image = image_cell(row, IMAGE, preparation.folder)
    return {
        "country": country,
        "image": image,
        "image_id": optional_text(row, IMAGE_ID) or image.partition(".")[0],
        "shared": row["__shared"],
        "reference_set": row["__reference_set"],
        "cluster": image,
    }


def _list_cell(value: Any, column: str) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise BadRow(column, value, "is not a list") from None
    if isinstance(value, Mapping):  # parquet stores a list of records as a record of lists
        names, lists = list(value), [list(column) for column in value.values()]
        value = [dict(zip(names, cells, strict=True)) for cells in zip(*lists, strict=True)]
    if not isinstance(value, list) or not value:
        raise BadRow(column, value, "is not a non-empty list")
    return value


def _pair(entry: Any, column: str) -> tuple[Any, Any]:
    if isinstance(entry, Mapping):
        try:
            return entry[column_name(entry, "question")], entry[column_name(entry, "answer")]
        except MissingColumn as error:
            raise BadRow(column, entry, "holds an entry without question and answer") from error
    if isinstance(entry, list) and len(entry) == 2:
        return entry[0], entry[1]
    raise BadRow(column, entry, "holds an entry that is not a pair of question and answer")


def _numbered_pairs(row: Row) -> list[tuple[Any, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        if (match := NUMBERED.fullmatch(str(name))) and not is_empty(value):
            found.setdefault(match[2], {})[match[1][0].lower()] = value
    if not found:
        column_name(row, QUESTIONS)
    for number, pair in found.items():
        if len(pair) < 2:
            raise BadRow(f"question_{number}, answer_{number}", list(pair.values()), "is an incomplete pair")
    return [(found[number]["q"], found[number]["a"]) for number in sorted(found, key=int)]


def _text(value: Any, column: str) -> str:
    if is_empty(value):
        raise BadRow(column, value, "has an empty entry")
    return readable(value, column)


def caption_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a caption; its choice is the reference caption.

    The judge metrics read `specific["judge"]`: templates, and the texts of their slots.
    """
    slots: dict[str, str | None] = {
        "country": COUNTRIES[row["country"]].name,
        "reference": row["references"][0],
    }
    if row["variety"] == "MSA":
        slots["caption_msa"] = row["references"][0]  # topics are labelled by it
    templates = MSA_TEMPLATES if row["variety"] == "MSA" else CAPTION_TEMPLATES
    judge: JudgeRequest = {"templates": list(templates), "slots": slots}
    return _doc(row, task_name, CaptionSpecific(**fields_of(row, CaptionSpecific), judge=judge))


def question_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question; the judge's reference is the model's: where people could not tell, that in their dialect."""
    slots: dict[str, str | None] = {
        "country": COUNTRIES[row["country"]].name,
        "question": row["question"],
        "reference": row["references"][0],
    }
    judge: JudgeRequest = {"templates": list(VQA_TEMPLATES), "slots": slots}
    return _doc(row, task_name, QuestionSpecific(**fields_of(row, QuestionSpecific), judge=judge))


def _doc(row: Mapping[str, Any], task_name: str | None, specific: CaptionSpecific) -> "Doc":
    references = list(row["references"])
    return make_doc(row, task_name, references, list(range(len(references))), specific)
