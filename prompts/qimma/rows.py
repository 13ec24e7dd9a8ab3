"""QIMMA: from a row of any of its sources to one schema, that of QIMMA's curated copies, and to Docs.

A prepared row holds `prompt`, `choices` and `index` as QIMMA's own data sets do (spec: QIMMA repository, prompt
functions), and the `labels` that are scored, so that one prompt function serves every copy of a benchmark.
Rows of original sources get their prompt from our templates, which are not QIMMA's wording (the paper's Figure 4 is an
image). Each function here is named after the source whose rows it reads; the columns are those of the source.

As in QIMMA's own task code, the query is the row's `prompt`; there is no instruction and no system prompt.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

from cultureval.prompts.cells import (
    column_name,
    comparable,
    has_column,
    is_empty,
    optional_text,
    readable,
    several,
    text_cell,
    text_list,
)
from cultureval.prompts.choices import choice_row, cluster_of
from cultureval.prompts.gold_numbers import meaning_of
from cultureval.prompts.labelled_options import (
    Label,
    LabelledOptions,
    in_order_of_labels,
    options_of_cell,
    own_labels,
    read_label,
)
from cultureval.prompts.option_labels import gold_position, label_index, labels_for
from cultureval.prompts.preparation import Preparation, PreparedRow, Row, make_doc
from cultureval.prompts.templates import load_template, render
from cultureval.runtime.doc_fields import DocSpecific, fields_of
from cultureval.runtime.errors import BadRow

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


# Names of the columns of ArabLegalQA's sources, which are not documented; the first one present is read.
LEGAL_QUESTION = ("questions", "question", "Question", "query")
LEGAL_ANSWER = ("ground_truths", "ground_truth", "answer", "Answer", "answers")
LEGAL_CONTEXT = ("context", "contexts", "Context")
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
        verdict: Once judged, the outcomes on `base` and `plus` inputs, and the `reason` with the failing input.
    """

    task_id: str
    dataset: Literal["humaneval", "mbpp"]
    problem: str
    verdict: NotRequired[dict[str, str]]


def curated_choice(row: Row, preparation: Preparation) -> PreparedRow:
    """QIMMA's curated multiple-choice row: its own prompt, option texts, the index of the gold."""
    prepared = curated_multi_select(row, preparation)
    if len(prepared["index"]) > 1:
        raise BadRow("index", prepared["index"], "names several options of a question with one right answer")
    return prepared


def curated_multi_select(row: Row, preparation: Preparation) -> PreparedRow:
    """QIMMA's curated multi-select row: as `curated_choice`, with one or several indices of the gold."""
    options = several(text_list(row[column_name(row, "choices")], "choices"), "choices")
    return {
        "prompt": _prompt_cell(row),
        "choices": options,
        "labels": labels_for(len(options)),
        "index": _indices(row[column_name(row, "index")], len(options)),
        "cluster": cluster_of(optional_text(row, "context")),
    }


def curated_answer(row: Row, preparation: Preparation) -> PreparedRow:
    """QIMMA's curated question-answering row: its own prompt and one or several reference answers."""
    column = "choices" if has_column(row, "choices") else column_name(row, "answer")
    answers = row[column]
    references = text_list(answers if isinstance(answers, list) else [answers], column)
    return _answer_row(_prompt_cell(row), references, optional_text(row, "context"))


def aradice(row: Row, preparation: Preparation) -> PreparedRow:
    """AraDiCE-Culture: the first option is always the right one, so options are shuffled by a hash of the question."""
    question = text_cell(row, "Question")
    options = several([text_cell(row, f"Option {letter}") for letter in "ABC"], "Option A, Option B, Option C")
    kept = preparation.options.suite.get("shuffle") == "off"
    order = list(range(len(options))) if kept else _shuffled(question, len(options))
    shuffled = [options[position] for position in order]
    return choice_row(preparation.template, question, shuffled, [order.index(0)]) | {"permutation": order}


def arabculture(row: Row, preparation: Preparation) -> PreparedRow:
    """ArabCulture with its authors' own Arabic prompt (lm-evaluation-harness, arab_culture)."""
    options, answer_key = _object(row, "options"), _object(row, "answer_key")
    texts = several(text_list(options.get("text"), "options.text"), "options.text")
    given = text_list(options.get("arabic_keys"), "options.arabic_keys")
    if len(given) != len(texts):
        raise BadRow("options.arabic_keys", given, f"does not label the {len(texts)} options")
    ordinals = [label_index(key) for key in given]
    if set(ordinals) != set(range(len(texts))):
        raise BadRow("options.arabic_keys", given, "holds labels that are not أ ب ج, each once")
    order = [ordinals.index(position) for position in range(len(texts))]
    texts, keys = [texts[position] for position in order], [given[position] for position in order]
    gold = gold_position(answer_key.get("arabic_answer_key", ""), texts, "answer_key.arabic_answer_key")
    prompt = render(
        preparation.template,
        country=_translated(row, "country", COUNTRIES),
        region=_translated(row, "region", REGIONS),
        first_statement=text_cell(row, "first_statement"),
        options="\n".join(f"{key}. {text}" for key, text in zip(keys, texts, strict=True)),
    )
    labels = load_template(preparation.template).scored_labels(len(texts))
    return {"prompt": prompt, "choices": texts, "labels": labels, "index": [gold], "cluster": ""}


def lettered_columns(row: Row, preparation: Preparation) -> PreparedRow:
    """PalmX and AraTrust: one column an option (A, B, ...), the answer a Latin or Arabic letter."""
    columns = [letter for letter in "ABCDE" if letter in row]
    if not columns and has_column(row, "options"):
        return option_list(row, preparation)
    return _choice_from_columns(row, preparation, columns, "answer")


def arabicmmlu(row: Row, preparation: Preparation) -> PreparedRow:
    """ArabicMMLU: `Option 1` to `Option 5` and `Answer Key`; a passage in `Context` makes it MCQ-C."""
    columns = [f"Option {number}" for number in range(1, 6) if f"Option {number}" in row]
    return _choice_from_columns(row, preparation, columns, "Answer Key")


def medarabench(row: Row, preparation: Preparation) -> PreparedRow:
    """MedAraBench: `Option A` to `Option F` and `Correct Answer`, a letter of either case.

    In 64 published rows each option begins with its own column's letter or number (`A. `, `1. `), which is taken off.
    """
    cells = {letter: optional_text(row, f"Option {letter}") for letter in "ABCDEF"}
    options = {letter: text for letter, text in cells.items() if text is not None}
    labels = [
        re.match(rf"(?:{letter}|{'ABCDEF'.index(letter) + 1})\s*[.)](?!\d)\s*(?=\S)", text)
        for letter, text in options.items()
    ]
    texts = list(options.values())
    if all(labels):
        texts = [text[label.end() :] for text, label in zip(texts, labels, strict=True) if label]
    gold = text_cell(row, "Correct Answer").upper()
    if gold not in options:
        raise BadRow("Correct Answer", row["Correct Answer"], f"is not one of the letters {' '.join(options)}")
    texts, index = several(texts, "Option A to Option F"), [list(options).index(gold)]
    return choice_row(preparation.template, text_cell(row, "Question"), texts, index)


def gat(row: Row, preparation: Preparation) -> PreparedRow:
    """GAT (GATmath, GATLc): columns are not documented, so options may be in A.., Option A.., or in one list."""
    for columns in (list("ABCDE"), [f"Option {letter}" for letter in "ABCDE"], [f"Option {n}" for n in range(1, 6)]):
        present = [column for column in columns if column in row]
        if present:
            return _choice_from_columns(row, preparation, present, "answer")
    return option_list(row, preparation)


def option_list(row: Row, preparation: Preparation) -> PreparedRow:
    """3LM's NativeQA and SyntheticQA: all options in one cell (list, text of a list, or `أ) .. ب) ..`)."""
    column = column_name(row, "options")
    options = options_of_cell(row[column], column)
    answer_column = "self_answer" if "self_answer" in row else column_name(row, "answer")
    gold = options.gold(_present(row, answer_column), answer_column)
    context = optional_text(row, "context")
    return choice_row(preparation.template, text_cell(row, "question"), options.texts, [gold], context)


def mizanqa(row: Row, preparation: Preparation) -> PreparedRow:
    """MizanQA: two or more options, one or several of them correct; columns by aliases, as none is documented."""
    column = column_name(row, "options")
    options = options_of_cell(row[column], column)
    answer_column = column_name(row, "answers")
    golds = options.golds(_present(row, answer_column), answer_column)
    return choice_row(preparation.template, text_cell(row, "question"), options.texts, golds)


def medarabiq_choice(row: Row, preparation: Preparation) -> PreparedRow:
    """MedArabiQ's multiple-choice files: labelled lines below the question, and an answer whose label decides.

    In 28 of the 300 published rows the text after the answer's label is not quite that of the option.
    """
    names = ("Question with Bias", "Question - Arabic", "Question")
    column = column_name(row, names)
    question, options = _options_below(text_cell(row, column), column)
    answer_column = column_name(row, ("Answer - Arabic", "Answer"))
    gold = read_label(text_cell(row, answer_column))
    if 0 not in options:
        raise BadRow(column, row[column], "has no line of its own for the option أ")
    if gold is None or gold.script != "arabic" or gold.ordinal not in options:
        raise BadRow(answer_column, row[answer_column], "begins with no label of the options")
    texts = several(list(options.values()), column)
    return choice_row(preparation.template, question, texts, [list(options).index(gold.ordinal)])


def medarabiq_answer(row: Row, preparation: Preparation) -> PreparedRow:
    """MedArabiQ's free-answer files: patients' questions, and blanks without choices."""
    modified = "Modified question description" in row
    question = text_cell(row, "Modified question description" if modified else "Question - Arabic")
    answer = text_cell(row, "Unmodified answer" if modified else "Answer - Arabic")
    return _answer_row(render(preparation.template, question=question), [answer], None)


def arablegalqa(row: Row, preparation: Preparation) -> PreparedRow:
    """ArabLegalEval's questions with one passage each, under that benchmark's own Arabic prompt."""
    column = column_name(row, LEGAL_CONTEXT)
    passages = text_list(_as_list(row[column]), column)
    context = "\n\n".join(passages)
    prompt = render(preparation.template, question=text_cell(row, LEGAL_QUESTION), context=context)
    answer_column = column_name(row, LEGAL_ANSWER)
    return _answer_row(prompt, text_list(_as_list(row[answer_column]), answer_column), context)


def fannorflop(row: Row, preparation: Preparation) -> PreparedRow:
    """FannOrFlop: a poem; the gold is its list of {verse, explanation}."""
    gold = row[column_name(row, "explanation")]
    if not isinstance(gold, list) or not gold:
        raise BadRow("explanation", gold, "is not a non-empty list of verses and explanations")
    pairs = []
    for pair in gold:
        if not isinstance(pair, dict):
            raise BadRow("explanation", pair, "is not an object with verse and explanation")
        pairs.append(
            {key: "" if is_empty(pair.get(key)) else readable(pair[key], key) for key in ("verse", "explanation")}
        )
    if not any(pair["explanation"] for pair in pairs):
        raise BadRow("explanation", gold, "explains no verse")
    prompt = render(
        preparation.template,
        title=optional_text(row, "title") or "",
        author=optional_text(row, "author") or "",
        verses=_verses(row[column_name(row, "poem_verses")]),
    )
    return {"prompt": prompt, "choices": [], "gold_explanations": pairs, "cluster": ""}


def _object(row: Row, column: str) -> Mapping[str, Any]:
    value = row[column_name(row, column)]
    if not isinstance(value, Mapping):
        raise BadRow(column, value, "is not an object")
    return value


def _prompt_cell(row: Row) -> str:
    """The curated prompt, unchanged: its white space is QIMMA's and affects the score."""
    text_cell(row, "prompt")
    return str(row["prompt"])


def _indices(value: Any, count: int) -> list[int]:
    given = [_integer(position, value) for position in _as_list(value)]
    firsts = [meaning_of(number, value, count, None, "index", 0) for number in given]
    positions = [number - (first == 1) for number, first in zip(given, firsts, strict=True)]
    for position in positions:
        if not 0 <= position < count:
            raise BadRow("index", value, f"points outside the {count} options")
    if not positions or len(set(positions)) < len(positions):
        raise BadRow("index", value, "names no option, or a duplicated one")
    return sorted(positions)


def _integer(position: Any, value: Any) -> int:
    """An index: an integer, also as a fraction (1.0, from a column with gaps) or as text."""
    if is_empty(position):
        raise BadRow("index", value, "is null or empty")
    whole = isinstance(position, float) and position.is_integer()
    whole = whole or (isinstance(position, str) and re.fullmatch(r"\s*-?\d+(\.0+)?\s*", position) is not None)
    if not whole and (isinstance(position, bool) or not isinstance(position, int)):
        raise BadRow("index", value, "is not an integer")
    return int(float(position)) if isinstance(position, str) else int(position)


def _choice_from_columns(row: Row, preparation: Preparation, columns: list[str], answer: str) -> PreparedRow:
    """A choice row with one column per option; empty columns are absent options."""
    cells = [optional_text(row, column) for column in columns]
    places = [place for place, cell in enumerate(cells) if cell is not None]
    options = [cell for cell in cells if cell is not None]
    answer_column = column_name(row, answer)
    given, names = _present(row, answer_column), ", ".join(columns)
    labels = own_labels(options, names, places)
    if labels and [label.ordinal for label in labels] != places:
        ordered = in_order_of_labels(labels, names)
        position, options = _gold_by_labels(given, labels, ordered, answer_column), ordered.texts
    else:
        options = several([label.text for label in labels] if labels else options, names)
        texts = dict(zip(places, options, strict=True))
        gold = gold_position(given, [texts.get(place, "") for place in range(places[-1] + 1)], answer_column)
        if gold not in texts:
            raise BadRow(answer_column, given, f"points at the empty column {columns[gold]!r}")
        position = places.index(gold)
    context = optional_text(row, "context")
    return choice_row(preparation.template, text_cell(row, "question"), options, [position], context)


def _gold_by_labels(given: Any, labels: list[Label], ordered: LabelledOptions, column: str) -> int:
    """The gold where the options' labels and their columns differ: a letter must be in the labels' script."""
    letter = comparable(given) if isinstance(given, str) else ""
    script = "latin" if letter.isascii() else "arabic"
    if label_index(letter) is not None and {label.script for label in labels} != {script}:
        raise BadRow(
            column, given, "may be a column or a label, and the options' labels are not those of their columns"
        )
    return ordered.gold(given, column)


def _answer_row(prompt: str, references: list[str], context: str | None) -> PreparedRow:
    return {
        "prompt": prompt,
        "choices": references,
        "index": list(range(len(references))),
        "cluster": cluster_of(context),
    }


def _present(row: Row, column: str) -> Any:
    if is_empty(row[column]):
        raise BadRow(column, row[column], "is null or empty")
    return row[column]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _shuffled(question: str, count: int) -> list[int]:
    """A permutation that depends only on the question's text, not on the row's position or the platform."""
    keys = [hashlib.sha256(f"{question}\x1f{position}".encode()).digest() for position in range(count)]
    return sorted(range(count), key=keys.__getitem__)


def _translated(row: Row, column: str, names: Mapping[str, str]) -> str:
    name = text_cell(row, column)
    if name not in names:
        raise BadRow(column, name, f"is not one of {', '.join(names)}")
    return names[name]


def _options_below(text: str, column: str) -> tuple[str, dict[int, str]]:
    """A question and the labelled lines below it, by the places of their labels.

    A line without a label goes on with the option before it; a row may leave a label out (`أ ب ج هـ`).
    """
    question: list[str] = []
    options: dict[int, str] = {}
    for line in text.splitlines():
        label = read_label(line) if question else None
        if label and label.script == "arabic":
            if label.ordinal <= max(options, default=-1):
                raise BadRow(column, text, "has option lines that are not in the order of their labels")
            options[label.ordinal] = label.text
        elif options:
            options[max(options)] = f"{options[max(options)]} {line.strip()}".strip()
        else:
            question.append(line)
    if len(options) < 2:
        raise BadRow(column, text, "has no option lines `أ. ..`, `ب. ..` below its question")
    return "\n".join(question).strip(), options


def _verses(cell: Any) -> str:
    if isinstance(cell, list):
        return "\n".join(text_list(cell, "poem_verses"))
    if is_empty(cell):
        raise BadRow("poem_verses", cell, "is null or empty")
    return readable(cell, "poem_verses")


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a question-answering row; its choices are the reference answers.

    The stop string (a newline) does not apply to chat prompts: LightEval's backends, which QIMMA used, drop stop
    strings there.
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
