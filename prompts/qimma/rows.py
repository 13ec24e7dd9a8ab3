"""QIMMA: from a row of any of its sources to the schema of QIMMA's curated copies, and to Docs.

A prepared row has `prompt`, `choices` and `index` as QIMMA's own data sets (spec: QIMMA repository, prompt functions),
and the scored `labels`; one prompt function serves every copy of a benchmark. Rows of original sources get their prompt
from our templates, which are not QIMMA's wording (the paper's Figure 4 is an image). Each function has the name of its
source.

As in QIMMA's own task code, the query is the row's `prompt`; there is no instruction and no system prompt.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

from cultureval.prompts.cells import cell, is_empty, nullable_text, optional_text, text_cell, text_list
from cultureval.prompts.choices import choice_row, cluster_of
from cultureval.prompts.options import (
    LABELS,
    checked_positions,
    gold_position,
    label_index,
    lettered_columns,
    listed_options,
    options_in_text,
    split_label,
)
from cultureval.prompts.preparation import Preparation, PreparedRow, Row, make_doc
from cultureval.prompts.templates import load_template, render
from cultureval.runtime.doc_fields import DocSpecific, fields_of
from cultureval.runtime.errors import BadRow

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


# An option's line in a curated prompt.
_LISTED = re.compile(r"^[ \t(\[]*(\w{1,2})[ \t]*[.):\-–][ \t]*(.*\S)[ \t]*$", re.MULTILINE)
COUNTRIES = {
    "Egypt": "مصر",
    "Morocco": "المغرب",
    "Algeria": "الجزائر",
    "Libya": "ليبيا",
    "Sudan": "السودان",
    "Tunisia": "تونس",
    "Jordan": "الأردن",
    "Lebanon": "لبنان",
    "Syria": "سوريا",
    "Palestine": "فلسطين",
    "Yemen": "اليمن",
    "UAE": "الإمارات",
    "KSA": "السعودية",
}
REGIONS = {"Gulf": "الخليج", "Levant": "الشام", "North Africa": "شمال أفريقيا", "Nile Valley": "وادي النيل"}


class GoldExplanation(TypedDict):
    """A verse and its explanation."""

    verse: str
    explanation: str


class PoemSpecific(DocSpecific):
    """A poem to be explained.

    Attributes:
        gold_explanations: Its verses with their explanations, in order.
    """

    gold_explanations: list[GoldExplanation]


class CodeSpecific(DocSpecific):
    """A code problem.

    Attributes:
        task_id: EvalPlus's id, as in "HumanEval/0".
        dataset: EvalPlus's name of the data set.
        problem: Name of the full problem in the store of problems.
        verdict: After judging, the outcomes on `base` and `plus` inputs, and the `reason` with the failing input.
    """

    task_id: str
    dataset: Literal["humaneval", "mbpp"]
    problem: str
    verdict: NotRequired[dict[str, str]]


def curated_choice(row: Row, preparation: Preparation) -> PreparedRow:
    """QIMMA's curated multiple-choice row: its own prompt, option texts, the index of the gold from 0.

    Raises:
        BadRow: An index is wrong, or an option has another label in the prompt than the scored one.
    """
    return _curated(row, [cell(row, "index")])


def curated_multi_select(row: Row, preparation: Preparation) -> PreparedRow:
    """QIMMA's curated multi-select row: as `curated_choice`, with a list of indices."""
    index = cell(row, "index")
    return _curated(row, index if isinstance(index, list) else [index])


def _curated(row: Row, index: list[Any]) -> PreparedRow:
    options, prompt = text_list(cell(row, "choices"), "choices", fewest=2), _prompt_cell(row)
    listed = [(label_index(label), label.isascii(), text) for label, text in _LISTED.findall(prompt)]
    for place, option in enumerate(options):
        shown = [(index, latin) for index, latin, text in listed if text == option]
        if shown and (place, False) not in shown:
            raise BadRow("prompt", prompt, f"lists the option {option!r} under another label than {LABELS[place]}")
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in index):
        raise BadRow("index", row["index"], "is not a whole number, counted from 0")
    return {
        "prompt": prompt,
        "choices": options,
        "labels": list(LABELS[: len(options)]),
        "index": checked_positions(index, len(options), row["index"], "index"),
        "cluster": cluster_of(optional_text(row, "context")),
    }


def curated_answer(row: Row, preparation: Preparation) -> PreparedRow:
    """QIMMA's curated question-answering row: its own prompt, and one reference answer or a list of them."""
    answers = cell(row, "choices")
    references = text_list(answers if isinstance(answers, list) else [answers], "choices")
    return _answer_row(_prompt_cell(row), references, optional_text(row, "context"))


def _prompt_cell(row: Row) -> str:
    """The curated prompt, unchanged, since white space affects the score."""
    text_cell(row, "prompt")
    return str(row["prompt"])


def aradice(row: Row, preparation: Preparation) -> PreparedRow:
    """AraDiCE-Culture: its first option is always right, so options are shuffled by a hash of the question."""
    question = text_cell(row, "Question")
    options = [text_cell(row, f"Option {letter}") for letter in "ABC"]
    unshuffled = preparation.options.suite.get("shuffle") == "off"
    order = list(range(len(options))) if unshuffled else _shuffled(question, len(options))
    shuffled = [options[position] for position in order]
    return choice_row(preparation.template, question, shuffled, [order.index(0)]) | {"permutation": order}


def _shuffled(question: str, count: int) -> list[int]:
    """A permutation that depends only on the question's text."""
    keys = [hashlib.sha256(f"{question}\x1f{position}".encode()).digest() for position in range(count)]
    return sorted(range(count), key=keys.__getitem__)


def arabculture(row: Row, preparation: Preparation) -> PreparedRow:
    """ArabCulture with its authors' own Arabic prompt (lm-evaluation-harness, arab_culture)."""
    options, answer_key = _object(row, "options"), _object(row, "answer_key")
    texts = text_list(options.get("text"), "options.text", fewest=2)
    keys = text_list(options.get("arabic_keys"), "options.arabic_keys")
    if [label_index(key) for key in keys] != list(range(len(texts))):
        raise BadRow("options.arabic_keys", keys, f"does not label the {len(texts)} options أ ب ج in this order")
    gold = gold_position(answer_key.get("arabic_answer_key"), len(texts), "answer_key.arabic_answer_key")
    prompt = render(
        preparation.template,
        country=_translated(row, "country", COUNTRIES),
        region=_translated(row, "region", REGIONS),
        first_statement=text_cell(row, "first_statement"),
        options="\n".join(f"{key}. {text}" for key, text in zip(keys, texts, strict=True)),
    )
    labels = load_template(preparation.template).scored_labels(len(texts))
    return {"prompt": prompt, "choices": texts, "labels": labels, "index": [gold], "cluster": ""}


def _object(row: Row, column: str) -> Mapping[str, Any]:
    value = cell(row, column)
    if not isinstance(value, Mapping):
        raise BadRow(column, value, "is not an object")
    return value


def _translated(row: Row, column: str, names: Mapping[str, str]) -> str:
    name = text_cell(row, column)
    if name not in names:
        raise BadRow(column, name, f"is not one of {', '.join(names)}")
    return names[name]


def palmx(row: Row, preparation: Preparation) -> PreparedRow:
    """PalmX: `A` to `D`, and `answer`, a letter."""
    options, gold = lettered_columns(row, "ABCD", "answer")
    return choice_row(preparation.template, text_cell(row, "question"), options, [gold])


def aratrust(row: Row, preparation: Preparation) -> PreparedRow:
    """AraTrust: `A` to `C`, texts that begin with `أ) ` to `ج) ` (one may be empty), and `Answer`, a letter."""
    options, gold = lettered_columns(row, "ABC", "Answer", labelled=True)
    return choice_row(preparation.template, text_cell(row, "Question"), options, [gold])


def arabicmmlu(row: Row, preparation: Preparation) -> PreparedRow:
    """ArabicMMLU: `Option 1` to `Option 5` and `Answer Key`; a passage in `Context` makes it MCQ-C."""
    options, gold = lettered_columns(row, [f"Option {number}" for number in range(1, 6)], "Answer Key")
    question, context = text_cell(row, "Question"), nullable_text(row, "Context")
    return choice_row(preparation.template, question, options, [gold], context)


def medarabench(row: Row, preparation: Preparation) -> PreparedRow:
    """MedAraBench: `Option A` to `Option F` and `Correct Answer`, a letter of either case.

    In 64 published rows each option begins with its column's letter or number (`A. `, `1. `), which is removed.
    """
    columns = [f"Option {letter}" for letter in "ABCDEF"]
    options, gold = lettered_columns(row, columns, "Correct Answer")
    filled = [place for place, column in enumerate(columns) if not is_empty(row[column])]
    labels = [
        re.match(rf"(?:{'ABCDEF'[place]}|{place + 1})\s*[.)](?!\d)\s*(?=\S)", text)
        for place, text in zip(filled, options, strict=True)
    ]
    if all(labels):
        options = [text[label.end() :] for text, label in zip(options, labels, strict=True) if label]
    return choice_row(preparation.template, text_cell(row, "Question"), options, [gold])


def gat(row: Row, preparation: Preparation, passages: bool = False) -> PreparedRow:
    """GAT: `question`, `A` to `D`, `answer`, a letter; the subset Reading also `context`. The names are guesses."""
    options, gold = lettered_columns(row, "ABCD", "answer")
    context = nullable_text(row, "context") if passages else None
    return choice_row(preparation.template, text_cell(row, "question"), options, [gold], context)


def nativeqa(row: Row, preparation: Preparation) -> PreparedRow:
    """3LM's NativeQA: `choices` is a list of options `(أ) text`, or its Python text; `correct_choice` is a label."""
    labels, texts = listed_options(cell(row, "choices"), "choices")
    answer = text_cell(row, "correct_choice").strip("(). ")
    if answer not in labels:
        raise BadRow("correct_choice", row["correct_choice"], f"is not one of the labels {' '.join(labels)}")
    return choice_row(preparation.template, text_cell(row, "question_text"), texts, [labels.index(answer)])


def syntheticqa(row: Row, preparation: Preparation) -> PreparedRow:
    """3LM's SyntheticQA: `choices` is one text, `أ) .. ب) ..`, perhaps alone in a list; `self_answer` is a letter."""
    texts = options_in_text(cell(row, "choices"), "choices")
    gold = gold_position(text_cell(row, "self_answer"), len(texts), "self_answer")
    return choice_row(preparation.template, text_cell(row, "question"), texts, [gold])


def mizanqa(row: Row, preparation: Preparation) -> PreparedRow:
    """MizanQA: `question`, `options`, a list, and `answers`, a list of letters. The names are guesses."""
    options, answers = text_list(cell(row, "options"), "options", fewest=2), cell(row, "answers")
    places = [gold_position(letter, len(options), "answers") for letter in text_list(answers, "answers")]
    golds = checked_positions(places, len(options), answers, "answers")
    return choice_row(preparation.template, text_cell(row, "question"), options, golds)


def medarabiq_choice(row: Row, preparation: Preparation, question: str, answer: str) -> PreparedRow:
    """MedArabiQ's multiple-choice files: labelled lines below the question, and an answer with a label.

    Only the label counts: in 28 of the 300 published rows the text after it differs slightly from the option.

    Args:
        question: Name of the file's column of questions.
        answer: Name of its column of answers.
    """
    asked, options = _options_below(text_cell(row, question), question)
    label = split_label(text_cell(row, answer))[0]
    if 0 not in options:
        raise BadRow(question, row[question], "has no line of its own for the option أ")
    if label not in options:
        raise BadRow(answer, row[answer], "begins with no label of the options")
    texts = text_list(list(options.values()), question, fewest=2)
    return choice_row(preparation.template, asked, texts, [list(options).index(label)])


def _options_below(text: str, column: str) -> tuple[str, dict[int, str]]:
    """A question, and position -> text of the labelled lines below it.

    A line without a label continues the option before it; a label may be missing (`أ ب ج هـ`).
    """
    question: list[str] = []
    options: dict[int, str] = {}
    for line in text.splitlines():
        place, rest = split_label(line) if question else (None, line)
        if place is not None and not line.strip("([ ")[0].isascii():
            if place <= max(options, default=-1):
                raise BadRow(column, text, "has option lines that are not in the order of their labels")
            options[place] = rest
        elif options:
            options[max(options)] = f"{options[max(options)]} {line.strip()}".strip()
        else:
            question.append(line)
    if len(options) < 2:
        raise BadRow(column, text, "has no option lines `أ. ..`, `ب. ..` below its question")
    return "\n".join(question).strip(), options


def medarabiq_answer(row: Row, preparation: Preparation, question: str, answer: str) -> PreparedRow:
    """MedArabiQ's free-answer files: patients' questions, and blanks without choices; `Args` as `medarabiq_choice`."""
    prompt = render(preparation.template, question=text_cell(row, question))
    return _answer_row(prompt, [text_cell(row, answer)], None)


def arablegalqa(row: Row, preparation: Preparation) -> PreparedRow:
    """ArabLegalEval's questions with one passage each, under that benchmark's own Arabic prompt."""
    context = text_cell(row, "Context")
    prompt = render(preparation.template, question=text_cell(row, "Question"), context=context)
    return _answer_row(prompt, [text_cell(row, "Answer")], context)


def _answer_row(prompt: str, references: list[str], context: str | None) -> PreparedRow:
    index = list(range(len(references)))
    return {"prompt": prompt, "choices": references, "index": index, "cluster": cluster_of(context)}


def fannorflop(row: Row, preparation: Preparation) -> PreparedRow:
    """FannOrFlop: a poem; the gold is its list of {verse, explanation}."""
    gold = cell(row, "explanation")
    if not isinstance(gold, list) or not gold or not all(isinstance(pair, Mapping) for pair in gold):
        raise BadRow("explanation", gold, "is not a list of objects with verse and explanation")
    pairs = [{name: nullable_text(pair, name) or "" for name in ("verse", "explanation")} for pair in gold]
    if not any(pair["explanation"] for pair in pairs):
        raise BadRow("explanation", gold, "explains no verse")
    prompt = render(
        preparation.template,
        title=nullable_text(row, "title") or "",
        author=nullable_text(row, "author") or "",
        verses=text_cell(row, "poem_verses"),
    )
    return {"prompt": prompt, "choices": [], "gold_explanations": pairs, "cluster": ""}


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question-answering row; its choices are the reference answers.

    The stop string (a newline) does not apply to chat prompts, as in LightEval's backends, which QIMMA used.
    """
    references = list(row["choices"])
    specific = DocSpecific(**fields_of(row, DocSpecific), stop_in_chat=False)
    return make_doc(row, task_name, references, list(range(len(references))), specific)


def poem_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a FannOrFlop poem; the gold verses and explanations are in `specific["gold_explanations"]`.

    Models generate no reasoning (paper, section 5.2.1).
    """
    specific = PoemSpecific(**fields_of(row, PoemSpecific), thinking=False)
    gold = " ".join(pair["explanation"] for pair in specific["gold_explanations"])
    return make_doc(row, task_name, [gold], 0, specific)
