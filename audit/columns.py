"""Which columns of a row hold the question, its options and its gold: found by their names, or given by a person."""

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from cultureval.audit.items import GoldProblem
from cultureval.prompts.cells import comparable, is_empty
from cultureval.prompts.options import label_index, split_label
from cultureval.runtime.errors import CulturevalError, did_you_mean

ALIASES: dict[str, tuple[str, ...]] = {
    "question": ("question", "Question", "question_text", "Question Text", "السؤال", "Question - Arabic", "query"),
    "context": ("context", "Context", "passage", "Passage", "paragraph", "النص"),
    "options": ("options", "choices", "Options", "Choices", "الخيارات", "answers_list", "candidates", "endings"),
    "answer": ("answer", "Answer", "correct_answer", "Correct Answer", "correct_choice", "label", "الإجابة"),
    "answers": (
        "answers",
        "correct_answers",
        "Correct Answers",
        "correct_choices",
        "labels",
        "gold",
        "answer",
        "Answer",
    ),
}
NAMES = ("question", "context", "options", "gold", "image")
QUESTIONS = (
    *ALIASES["question"],
    "question_stem",
    "first_statement",
    "Question with Bias",
    "statement",
    "prompt",
    "sentence",
)
CONTEXTS = (*ALIASES["context"], "flores_passage", "article", "support")
GOLDS = (
    "Answer Key",
    "answer_key",
    "answerKey",
    "gold_index",
    "index",
    "gold",
    "self_answer",
    *ALIASES["answer"],
    *ALIASES["answers"],
    *("correct_answer_num", "cop", "correct_option", "correct_index", "answer_index", "answer_idx"),
)
DISTRACTORS = ("correct_answer", "distractor1", "distractor2", "distractor3")  # SciQ: the gold is one of the options
FAMILIES: tuple[tuple[str, ...], ...] = (
    tuple(f"Option {number}" for number in range(1, 10)),
    tuple(f"Option {letter}" for letter in "ABCDEFGH"),
    tuple(f"option{number}" for number in range(0, 10)),
    tuple(f"option_{letter}" for letter in "abcdefgh"),
    *(
        tuple(f"{name}{number}" for number in range(0, 10))
        for name in ("choice", "sol", "ending", "answer", "mc_answer")
    ),
    *(tuple(f"{name}_{number}" for number in range(0, 10)) for name in ("option", "choice")),
    tuple(f"answer{letter}" for letter in "ABCDEFGH"),
    tuple("ABCDEFGH"),
    tuple("abcdefgh"),
    tuple(f"op{letter}" for letter in "abcdefgh"),
    ("أ", "ا", "ب", "ج", "د", "هـ", "ه"),
    DISTRACTORS,
)
# What is asked in layouts in which `question` is missing or says only how: XCOPA, PIQA, HellaSwag.
ASKED_BESIDE = {"choice1": "premise", "sol1": "goal", "endings": "ctx", "ending0": "sent1"}
FEWEST = 10  # rows below which a column tells nothing
LONGEST_LIST = 100_000  # characters of a list as Python writes it
SHOWN_COLUMNS = 20
_WHOLE = re.compile(r"[+-]?\d{1,9}(?:\.0+)?")
_NUMBER = re.compile(r"[-+−]?[0-9]+(?:[.,٫][0-9]+)?")
_DIGITS = str.maketrans("٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹", "0123456789" * 2)


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table of questions.

    Attributes:
        question: Column of the question.
        context: Column of its passage; "" without one.
        options: Columns of the options, or the one column that lists them; () for free answers.
        gold: Column of the right answer, by label, by index or by text; "" without one.
        image: Column of the image; "" without one.
        first: What the index of the first option is, 0 or 1.
        indexed: Whether a number of the gold is an index also where it is the text of an option.
    """

    question: str = ""
    context: str = ""
    options: tuple[str, ...] = ()
    gold: str = ""
    image: str = ""
    first: int = 0
    indexed: bool = False

    def __str__(self) -> str:
        """`question=Q, options=A+B, gold=answer (indices from 1)`, and what there is none of."""
        named = {name: getattr(self, name) for name in NAMES} | {"options": "+".join(self.options)}
        named["gold"] += f" (indices from {self.first})" if self.indexed else ""
        there = ", ".join(f"{name}={column}" for name, column in named.items() if column)
        lacking = " and ".join(f"no {name}" for name in ("options", "gold") if not named[name])
        return f"{there}; {lacking}" if lacking else there


def columns_given(text: str) -> Columns:
    """The columns of `question=Q,options=A+B+C+D,gold=answer,context=passage`.

    Raises:
        CulturevalError: A part is unknown or given twice, or there is no question.
    """
    given: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if name not in NAMES or not sign or not value or name in given:
            near = did_you_mean(name, NAMES) if name not in NAMES else ""
            raise CulturevalError(
                f"--columns {part.strip()!r}: give {', '.join(NAMES)}, each once, as NAME=COLUMN.{near}"
            )
        given[name] = value
    if "question" not in given:
        raise CulturevalError("--columns names no question: give question=COLUMN.")
    options = tuple(name.strip() for name in given.pop("options", "").split("+") if name.strip())
    return Columns(**given, options=options)


def columns_found(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """The columns of rows by the names that data sets use; `question` is "" where none is known."""
    names = dict.fromkeys(str(name) for row in rows[:50] for name in row)

    def first(known: Iterable[str]) -> str:
        return next((name for name in known if name in names), "")

    families = [tuple(name for name in family if name in names) for family in FAMILIES]
    listed = first(ALIASES["options"])
    options = (listed,) if listed else next((family for family in families if len(family) > 1), ())
    beside = [asked for option, asked in ASKED_BESIDE.items() if option in options and asked in names]
    question = first((*beside, *QUESTIONS))
    among = DISTRACTORS[0] if options == DISTRACTORS else ""
    gold = among or first(name for name in GOLDS if name not in (question, *options))
    found = Columns(question, first(CONTEXTS), options, gold, first(("image", "image_path", "image_file")))
    return with_indices(rows, found)


def require_columns(columns: Columns, row: Mapping[str, Any], where: str) -> None:
    """Checks that the first row has the columns; the error lists those there are."""
    names = [str(name) for name in row]
    for name in (columns.question, columns.context, *columns.options, columns.gold, columns.image):
        if name and name not in row:
            shown = ", ".join(names[:SHOWN_COLUMNS])
            raise CulturevalError(f"{where} has no column {name!r}.{did_you_mean(name, names)} It has {shown}.")
    if not columns.question:
        shown = ", ".join(names[:SHOWN_COLUMNS])
        raise CulturevalError(
            f"{where}: which column is the question? Its columns are {shown}. Give --columns question=..."
        )


def require_sense(rows: Sequence[Mapping[str, Any]], columns: Columns, where: str) -> None:
    """Checks that columns that were found by their names are not a guess by which most rows would be discarded.

    Raises:
        CulturevalError: There are no options where golds look like their places, no options or no gold where other
            columns look like them, or most rows ask the same.
    """
    if len(rows) < FEWEST:
        return
    golds = [row.get(columns.gold) for row in rows] if columns.gold and not columns.options else []
    kinds = {_seen(gold) for gold in golds if not is_empty(gold)}
    places = all(label_index(gold) is not None or (whole_number(gold) is not None and len(gold) < 3) for gold in kinds)
    why = ""
    if kinds and places and len(kinds) < len(rows) / 2:
        why = f"no column of options is known, and the golds ({', '.join(sorted(kinds)[:5])}) look like places of some"
    if not columns.gold and (like := _like_golds(rows, columns) if columns.options else _like_options(rows, columns)):
        why = f"{', '.join(like)} look like its {'gold' if columns.options else 'options'}"
    asked = {(_seen(row.get(columns.question)), *map(_seen, options_in(row, columns))) for row in rows}
    contexts = {_seen(row.get(columns.context)) for row in rows} if columns.context else {""}
    if not why and len(asked) * len(contexts) < len(rows) / 2:
        why = f"{len(rows)} rows would be {len(asked)} questions"
    if why:
        names = ", ".join([str(name) for name in rows[0]][:SHOWN_COLUMNS])
        raise CulturevalError(
            f"{where} would be read as {columns}: {why}. Its columns are {names}: say which are meant, as in --columns "
            "question=Q,options=A+B+C,gold=G."
        )


def _others(rows: Sequence[Mapping[str, Any]], columns: Columns) -> dict[str, list[Any]]:
    """The columns that are not read, with their filled cells."""
    used = {columns.question, columns.context, columns.image, columns.gold, *columns.options}
    names = [str(name) for name in rows[0] if name not in used]
    return {name: [row[name] for row in rows if not is_empty(row.get(name))] for name in names}


def _like_options(rows: Sequence[Mapping[str, Any]], columns: Columns) -> list[str]:
    """Unread columns that may hold options: one of lists, or three or more that a last number or letter counts."""
    others = _others(rows, columns)
    counted: dict[str, list[str]] = {}
    for name, cells in others.items():
        lists = [next(iter(cell.values()), None) if isinstance(cell, Mapping) else cell for cell in cells]
        if lists and all(isinstance(one, list) and len(one) > 1 for one in lists):
            return [name]
        if (
            len(cells) == len(rows)
            and all(isinstance(cell, str) for cell in cells)
            and name[-1:] in "0123456789abcdefABCDEF"
        ):
            counted.setdefault(name[:-1], []).append(name)
    return next((some for some in counted.values() if len(some) > 2), [])


def _like_golds(rows: Sequence[Mapping[str, Any]], columns: Columns) -> list[str]:
    """The unread columns of several values that name an option in each row, by its label, its place or its text."""
    found = []
    for name, cells in _others(rows, columns).items():
        if len(cells) == len(rows) and len(set(map(_seen, cells))) > 1:
            guess = with_indices(rows, replace(columns, gold=name))
            options = (["" if is_empty(one) else str(one) for one in options_in(row, columns)] for row in rows)
            golds = (gold_of(*one, guess.first, guess.indexed) for one in zip(cells, options, strict=True))
            if all(len(places) == 1 for places, _ in golds):
                found.append(name)
    return found


def with_indices(rows: Sequence[Mapping[str, Any]], columns: Columns) -> Columns:
    """The columns with what whole numbers of the gold mean: indices, if fewer are out of range than are no option.

    Indices begin with 1 where more golds are the number of options than are 0.
    """
    numbers = [(one, whole_number(one), options) for one, options in _numbers(rows, columns)]
    first = int(sum(index == len(options) for _, index, options in numbers) > sum(not index for _, index, _ in numbers))
    no_texts = sum(set(map(_seen, options)).isdisjoint(_forms(one)) for one, _, options in numbers)
    out_of_range = sum(not first <= (index or 0) < first + len(options) for _, index, options in numbers)
    return replace(columns, first=first, indexed=out_of_range < no_texts)


def _numbers(rows: Sequence[Mapping[str, Any]], columns: Columns) -> list[tuple[Any, list[Any]]]:
    """The whole numbers among the golds of rows, each with the options of its row."""
    own = [(row.get(columns.gold), options_in(row, columns)) for row in rows]
    return [
        (one, options)
        for gold, options in own
        if options
        for one in _answers(gold, [_seen(option) for option in options])
        if whole_number(one) is not None
    ]


def options_in(row: Mapping[str, Any], columns: Columns) -> list[Any]:
    """The cells of the options as they stand; empty cells after the last filled one are options that are not there."""
    if len(columns.options) == 1:
        cell = row.get(columns.options[0])
        cells = _listed_options(cell)
    else:
        cells = [row.get(name) for name in columns.options]
        while cells and is_empty(cells[-1]):
            cells.pop()
    return cells


def _listed_options(cell: Any) -> list[Any]:
    """The options of a list, an object (`{"A": ..}`, `{"text": [..]}`) or the text of either; [] of any other cell."""
    if isinstance(cell, str) and cell.strip().startswith(("[", "{")):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                cell = ast.literal_eval(cell.strip()[:LONGEST_LIST])
    if isinstance(cell, Mapping):
        texts = cell.get("text", list(cell.values()))
        cell = texts if isinstance(texts, list | tuple) else list(cell.values())
    return list(cell) if isinstance(cell, list | tuple) else []


def gold_of(
    answer: Any, options: Sequence[str], first: int = 0, indexed: bool = False
) -> tuple[tuple[int, ...], GoldProblem]:
    """The positions that a gold cell names, and what is wrong with it.

    Args:
        answer: The cell: labels, indices or texts, one or a list.
        options: The options' texts; an empty one stands for an empty cell.
        first: What the index of the first option is.
        indexed: Whether a number is an index also where it is the text of an option.

    Returns:
        (positions from 0, problem): () with a problem.
    """
    seen = [_seen(option) for option in options]
    answers = _answers(answer, seen)
    if not answers or any(is_empty(one) for one in answers):
        return (), "missing"
    positions: list[int] = []
    for one in answers:
        position = _position(one, seen, first, indexed)
        if position is None:
            return (), "not_in_options"
        if not 0 <= position < len(options) or not seen[position]:
            return (), "out_of_range"
        positions.append(position)
    return tuple(sorted(set(positions))), ""


def _answers(cell: Any, seen: Sequence[str]) -> list[Any]:
    """The answers of a gold cell: one, a list, the text of one (not where options are such texts), or an object."""
    if isinstance(cell, Mapping):
        cell = next((cell[name] for name in ("arabic_answer_key", "label", "index", "text") if name in cell), None)
    if isinstance(cell, str) and cell.strip().startswith("[") and not any(one.startswith("[") for one in seen):
        cell = _listed_options(cell) or cell
    return list(cell) if isinstance(cell, list | tuple) else [cell]


def _position(answer: Any, seen: Sequence[str], first: int, indexed: bool) -> int | None:
    """The position that one answer names, perhaps outside the options; None where it names none.

    Where golds are texts, a number that is none of the row's numbers is a wrong text, not an index.
    """
    text = _seen(answer)
    label = label_index(text) if isinstance(answer, str) else None
    if label is not None and (text not in seen or label < len(seen)):
        return label
    number = whole_number(answer)
    same = next((form for form in _forms(answer) if form in seen), None)
    if same is not None and not (indexed and number is not None):
        return seen.index(same)
    if number is not None and (indexed or not all(map(_NUMBER.fullmatch, seen))):
        return number - first
    named, rest = split_label(text)
    if named is not None and rest in seen:
        return seen.index(rest)
    return None


def _forms(answer: Any) -> list[str]:
    """How an option may write an answer: as it stands, and a whole number without and with decimals (2, 2.0)."""
    number = whole_number(answer)
    return [_seen(answer), *([] if number is None else [str(number), f"{number}.0"])]


def _seen(value: Any) -> str:
    """A cell as golds and options are compared: Arabic and Persian digits are those of ASCII."""
    return comparable(str(value)).translate(_DIGITS)


def whole_number(value: Any) -> int | None:
    """The whole number that a cell is: an integer, 2.0, or the text of one in any script's digits; else None."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, str):
        text = comparable(value)
        return int(float(text)) if _WHOLE.fullmatch(text) else None
    return int(value) if float(value).is_integer() else None
