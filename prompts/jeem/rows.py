"""JEEM: from a row (an image, its captions, its five questions and answers) to prepared rows, and to Docs.

Paper: arXiv 2503.21910, section 3 (captions in MSA and dialect, questions and answers in dialect) and Appendix B (the
answer "Cannot tell from the picture"). JEEM is gated, so its column names are guesses: `image_id`, `country`, `image`,
`caption_msa`, `caption_dialect`, `questions` and `answers` (two lists); `--columns` gives others.
The paper prints no prompt for models: those in `templates/` are ours, and no native speaker has reviewed them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cultureval.prompts.cells import cell, image_cell, text_cell, text_list
from cultureval.prompts.preparation import Preparation, PreparedRow, Row, make_doc
from cultureval.prompts.templates import render
from cultureval.runtime.doc_fields import DocSpecific, JudgeRequest, fields_of
from cultureval.runtime.errors import BadRow

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


_ARABIC_LETTER = re.compile("[\u0620-\u064a\u066e-\u06d3]")
_CANNOT_TELL = ("cannot tell", "cannot tell from the picture")
CAPTION_TEMPLATES = ("jeem_caption_image_reference", "jeem_caption_reference")
MSA_TEMPLATES = ("jeem_caption_image_reference_msa", "jeem_caption_reference_msa")
VQA_TEMPLATES = ("jeem_vqa",)


class CaptionSpecific(DocSpecific):
    """A caption of an image.

    Attributes:
        country: Two-letter code of the image's country.
        variety: "MSA" or the dialect requested for the caption.
        shared: Whether the image was captioned in every country.
        reference_set: Name of all the variety's reference captions in the text store (for CIDEr).
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
        label: Its name in the cell `country`, which may have its code instead.
        unknown: The wording of "cannot tell" in our prompt for questions, in the country's dialect.
    """

    name: str
    label: str
    unknown: str


COUNTRIES = {
    "JO": Country("Jordan", "Jordan", "مش مبين من الصورة"),
    "AE": Country("the United Arab Emirates", "Emirates", "مب مبين من الصورة"),
    "EG": Country("Egypt", "Egypt", "مش باينة من الصورة"),
    "MA": Country("Morocco", "Morocco", "ما باينش من التصويرة"),
}


def country_of(row: Row) -> str:
    """The code of a row's country; BadRow if the cell `country` has none of the four."""
    name = text_cell(row, "country")
    code = next((code for code, country in COUNTRIES.items() if name in (code, country.label)), None)
    if code is None:
        labels = ", ".join(f"{country.label} ({code})" for code, country in COUNTRIES.items())
        raise BadRow("country", name, f"is not one of {labels}")
    return code


def caption(row: Row, preparation: Preparation, column: str) -> PreparedRow:
    """A row's caption in MSA (column `caption_msa`) or in its country's dialect (`caption_dialect`)."""
    item, references = _item(row, preparation), [arabic_cell(row, column)]
    variety = "MSA" if column == "caption_msa" else item["country"]
    return item | {"variety": variety, "prompt": render(preparation.template), "references": references}


def questions(row: Row, preparation: Preparation) -> list[PreparedRow]:
    """A prepared row for each of a row's questions.

    If the annotator could not tell, the reference is our prompt's wording of "cannot tell" in the dialect.
    """
    item = _item(row, preparation)
    return [
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
        for number, (question, answer) in enumerate(question_pairs(row))
    ]


def arabic_cell(row: Row, column: str) -> str:
    """The text of a cell in Arabic script; metrics are meaningless for references in another script."""
    text = text_cell(row, column)
    if not _ARABIC_LETTER.search(text):
        raise BadRow(column, text, "holds no Arabic letter")
    return text


def question_pairs(row: Row) -> list[tuple[str, str]]:
    """A row's questions with their answers, from the lists `questions` and `answers`.

    Raises:
        BadRow: Lists of different lengths, an empty or unreadable entry.
    """
    asked, answered = (text_list(cell(row, name), name) for name in ("questions", "answers"))
    if len(asked) != len(answered):
        raise BadRow("answers", row["answers"], f"holds {len(answered)} answers to {len(asked)} questions")
    return list(zip(asked, answered, strict=True))


def reference_answer(answer: str, country: str) -> str:
    """The reference: the answer, or our prompt's wording of "cannot tell" in the country's dialect."""
    return COUNTRIES[country].unknown if cannot_tell(answer) else answer


def cannot_tell(answer: str) -> bool:
    """Whether an answer is the annotators' option "Cannot tell from the picture" (Appendix B.3), punctuation aside."""
    return " ".join(re.findall("[a-z]+", answer.casefold())) in _CANNOT_TELL


def _item(row: Row, preparation: Preparation) -> PreparedRow:
    """Fields of both captions and questions; `tasks.jeem` adds the fields with `__` to the row."""
    image = image_cell(row, "image", preparation.folder)
    return {
        "country": country_of(row),
        "image": image,
        "image_id": text_cell(row, "image_id"),
        "shared": row["__shared"],
        "reference_set": row["__reference_set"],
        "cluster": image,
    }


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
    """Doc of a question; the judge gets the same reference as the metrics."""
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
