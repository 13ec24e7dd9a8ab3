"""From SOURCE, a task, a group, a suite or data by path, to audited items."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.audit.items import AuditItem
from cultureval.prompts.cells import comparable, image_cell, is_empty
from cultureval.prompts.options import label_index
from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.data.row_files import PlacedRow, files_matching, format_of, holds_examples, read_rows
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import BadRow, CulturevalError, SourceUnavailable, did_you_mean
from cultureval.tasks.catalogue import all_suites, all_tasks, groups
from cultureval.tasks.manifest import relative_path, row_hash, row_name
from cultureval.tasks.options import with_defaults
from cultureval.tasks.reading import find_subset, tried_rows
from cultureval.tasks.running import quiet_libraries
from cultureval.tasks.selection import sampled_rows, tasks_named
from cultureval.tasks.suite import Task

ANSWERS = ("references", "answers", "answer")  # of prepared rows of free answers
TEXTS = ("question", "prompt", "statement")
NAMES = ("question", "options", "gold", "context", "image", "first")
# The question alone in the rows of tasks, where their prompts hold options too.
QUESTIONS = ("question", "Question", "question_text", "first_statement", "Question - Arabic", "Question with Bias")
CONTEXTS = ("context", "Context", "passage")
KNOWN = {
    "question": ("question", "Question"),
    "options": ("options", "choices"),
    "gold": ("answer", "gold", "label"),
    "context": ("context", "passage"),
    "image": ("image",),
}  # the ten names that are found without --columns


@dataclass(frozen=True)
class Columns:
    """The columns of data by path.

    Attributes:
        question: Column of the question.
        options: Columns of the options, or the one column that lists them; () for free answers.
        gold: Column of the right answer: a letter, the text of an option, or an index; "" without one.
        context: Column of its passage; "" without one.
        image: Column of the image; "" without one.
        first: The index of the first option, "0" or "1"; "" where golds are no indices.
    """

    question: str
    options: tuple[str, ...] = ()
    gold: str = ""
    context: str = ""
    image: str = ""
    first: str = ""


def columns_given(text: str) -> Columns:
    """The columns of `question=Q,options=A+B+C+D,gold=answer,first=1`; CulturevalError where a part is wrong."""
    given: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in NAMES or not value or name in given or (name == "first" and value not in ("0", "1")):
            near = did_you_mean(name, NAMES) if name not in NAMES else ""
            raise CulturevalError(
                f"--columns {part.strip()!r}: give question, options, gold, context, image=COLUMN, first=0 or 1.{near}"
            )
        given[name] = value
    if "question" not in given:
        raise CulturevalError("--columns names no question: give question=COLUMN.")
    options = tuple(filter(None, (name.strip() for name in given.pop("options", "").split("+"))))
    return Columns(**given, options=options)


def read_items(names: Sequence[str], options: DataOptions, columns: Columns | None = None) -> list[AuditItem]:
    """The items of sources, few-shot examples among them; a row that several tasks read is one item.

    Args:
        names: Tasks, groups, suites, or paths of files and folders of data.
        columns: The columns of data by path; None: `KNOWN` ones.

    Raises:
        CulturevalError: A name is unknown, or there are no data.
    """
    quiet_libraries()
    items: dict[tuple[str, str, str], AuditItem] = {}
    given: dict[str, Path] = {}
    for name in names:
        path = Path(name).expanduser()
        if by_path := _is_path(name, path):
            resolved = path.resolve()
            if (other := given.setdefault(resolved.name, resolved)) != resolved:
                raise CulturevalError(f"{other} and {resolved} have one name in manifests: rename one of them.")
        for item in _items_by_path(path, columns) if by_path else _items_of_tasks(name, options):
            items.setdefault((item.source, item.row, item.split), item)
    if not items:
        raise CulturevalError(f"{', '.join(names)}: there are no rows.")
    return list(items.values())


def sampled_items(items: Sequence[AuditItem], sample: int | None, seed: int) -> list[AuditItem]:
    """A random sample of each subset's items, the same for the same seed; None: all."""
    grouped: dict[tuple[str, str], list[AuditItem]] = {}
    for item in items:
        grouped.setdefault((item.source, item.subset), []).append(item)
    return [
        some[place]
        for name, some in grouped.items()
        for place in sampled_rows([item.row for item in some], "/".join(name), sample, seed)
    ]


def _is_path(name: str, path: Path) -> bool:
    if name in {*all_suites(), *groups(), *all_tasks()}:
        return False
    try:
        if path.exists():
            return True
    except OSError:  # longer than a path may be
        return False
    if os.sep in name or format_of(path) or name.startswith((".", "~")):
        raise CulturevalError(f"{name}: no such file or folder.")
    return False


def _items_of_tasks(name: str, options: DataOptions) -> Iterator[AuditItem]:
    missing: list[CulturevalError] = []
    tasks = tasks_named(name)
    for task in tasks:
        try:
            yield from items_of_task(all_tasks()[task], options)
        except SourceUnavailable as error:
            missing.append(error)
    if len(missing) == len(tasks):
        raise missing[0]


def items_of_task(task: Task, options: DataOptions) -> Iterator[AuditItem]:
    """The items of a task's data, examples first; CulturevalError if there are none, or a source lacks a column."""
    options = with_defaults(options)
    found = find_subset(task, options)
    shared = {"source": found.source.repo, "revision": found.revision, "subset": task.subset}
    shared |= {"task": task.task, "benchmark": task.benchmark, "language": task.language}
    for files, split in ((found.few_shot_files, "few_shot"), (found.files, "test")):
        for placed, outcome in tried_rows(task, found, files, options) if files else ():
            if outcome is not None:
                name = row_name(placed, files, found.folder)
                place = {"row": name, "hash": row_hash(placed.row, found.folder), "split": split}
                yield AuditItem(**shared, **place, **_as_read(placed, outcome))


def _as_read(placed: PlacedRow, outcome: list[PreparedRow] | BadRow) -> dict[str, Any]:
    """What a task's reader makes of a row; of a row that it refuses, why."""
    if isinstance(outcome, BadRow):
        refused = f"column {outcome.column!r} {outcome.reason}"
        return {"form": "qa", "question": _first_text(placed.row, QUESTIONS), "refused": refused}
    first = outcome[0] if outcome else {}
    context = first["prompt"] if "round" in first else _first_text(placed.row, CONTEXTS)
    read: dict[str, Any] = {"image": str(first.get("image", "")), "images": bool(first.get("image"))}
    read |= {"shuffled": "permutation" in first, "context": context}
    asked = next((name for name in QUESTIONS if name in placed.row), "")
    question = _text(placed.row[asked]) if asked else _first_text(first, TEXTS)
    if "labels" in first:
        options, gold = tuple(first["choices"]), tuple(first["index"])
        return read | {"form": "mcq", "question": question, "options": options, "gold": gold}
    answers = _answers(first)
    if len(outcome) > 1:  # statements or questions on one image
        pairs = [(_first_text(one, ("statement", *TEXTS)), " / ".join(_answers(one))) for one in outcome]
        question = "\n".join(dict.fromkeys(text for text, _ in pairs))
        answers = tuple(f"{text}: {answer}" for text, answer in dict.fromkeys(pairs) if answer)
    return read | {"form": "qa", "question": question, "answers": answers}


def _answers(prepared: Mapping[str, Any]) -> tuple[str, ...]:
    right = next((prepared[name] for name in ("index", "correct", "gold") if name in prepared), [])
    if prepared.get("choices") and isinstance(right, int | list):
        places = right if isinstance(right, list) else [right]
        return tuple(str(prepared["choices"][place]).strip() for place in places)
    if "box" in prepared:
        return ("x, y, width, height: " + ", ".join(f"{number:g}" for number in prepared["box"]),)
    if "role" in prepared:
        return (str(prepared["role"] == "q_plus"),)
    value = next((prepared[name] for name in ANSWERS if prepared.get(name)), ())
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


def _first_text(row: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((row[name].strip() for name in names if isinstance(row.get(name), str) and row[name].strip()), "")


def _items_by_path(path: Path, columns: Columns | None) -> Iterator[AuditItem]:
    folder = path if path.is_dir() else path.parent
    files = files_matching(path, ["*"]) if path.is_dir() else [path]
    files = [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]
    if not files:
        raise CulturevalError(f"{path} holds no data file (.csv, .tsv, .json, .jsonl, .parquet, .arrow).")
    name = path.resolve().name
    for file in files:
        below = relative_path(file, folder)
        shared = {"source": name, "benchmark": name, "revision": "local", "subset": below.partition(".")[0]}
        split = "few_shot" if holds_examples(file.relative_to(folder)) else "test"
        rows = read_rows(file)
        used = _columns_of(rows[0], columns, str(file)) if rows else None
        for number, row in enumerate(rows):
            place = {"row": f"{below}:{number}", "hash": row_hash(row, folder), "split": split}
            yield AuditItem(**shared, **place, **_as_given(row, used, folder, f"{file}, row {number + 1}"))


def _columns_of(row: Mapping[str, Any], given: Columns | None, where: str) -> Columns:
    """The columns of a file by its first row: those given, which must all be there, or known names."""
    names = list(map(str, row))
    if given:
        for name in filter(None, (given.question, *given.options, given.gold, given.context, given.image)):
            if name not in row:
                near = did_you_mean(name, names)
                raise CulturevalError(f"{where} has no column {name!r}.{near} It has {', '.join(names[:20])}.")
        return given
    found = {part: next((name for name in known if name in row), "") for part, known in KNOWN.items()}
    listed = found.pop("options")
    if not found["question"] or (not listed and not found["gold"]):
        raise CulturevalError(
            f"{where}: which columns are the question, its options and its gold? They are {', '.join(names[:20])}. "
            "Give --columns question=Q,options=A+B+C+D,gold=G."
        )
    return Columns(**found, options=(listed,) if listed else ())


def _as_given(row: Mapping[str, Any], columns: Columns, folder: Path, where: str) -> dict[str, Any]:
    """The parts of an item that stand in the columns of a row; `where` names it in errors."""
    values: dict[str, Any] = {"question": _text(row.get(columns.question)), "context": _text(row.get(columns.context))}
    gold = row.get(columns.gold) if columns.gold else None
    if columns.options:
        options = _options(row, columns, where)
        places, problem = gold_places(gold, options, columns.first, where) if columns.gold else ((), "")
        values |= {"form": "mcq", "options": options, "gold": places, "gold_problem": problem}
    else:
        answers = gold if isinstance(gold, list | tuple) else [gold]
        values |= {"form": "qa", "answers": tuple(_text(one) for one in answers if not is_empty(one))}
        values["gold_problem"] = "is null or empty" if columns.gold and not values["answers"] else ""
    if columns.image and not is_empty(row.get(columns.image)):
        try:
            values |= {"images": True, "image": image_cell(row, columns.image, folder)}
        except BadRow as error:
            values |= {"images": True, "image": _text(row[columns.image]), "image_problem": error.reason}
    return values


def _options(row: Mapping[str, Any], columns: Columns, where: str) -> tuple[str, ...]:
    """The options' texts; empty cells of columns after the last filled one are options that are not there."""
    if len(columns.options) > 1:
        cells = [row.get(name) for name in columns.options]
        while cells and is_empty(cells[-1]):
            cells.pop()
        return tuple(map(_text, cells))
    listed = row.get(columns.options[0])
    if not isinstance(listed, list | tuple):
        raise CulturevalError(f"{where}: {columns.options[0]!r} is no list: name a column an option, options=A+B+C+D.")
    return tuple(map(_text, listed))


def gold_places(gold: Any, options: Sequence[str], first: str, where: str) -> tuple[tuple[int, ...], str]:
    """The positions from 0 that a gold cell names, and why it names none, as a clause.

    Args:
        gold: A letter, the text of an option, an index, or a list of these.
        first: The index of the first option; "" where golds are no indices.

    Raises:
        CulturevalError: The gold is a number, and `first` does not say what the first option's is.
    """
    texts, places = list(map(comparable, options)), []
    for one in gold if isinstance(gold, list | tuple) else [gold]:
        if is_empty(one):
            return (), "is null or empty"
        text = comparable(str(one))
        number, label = text.removesuffix(".0"), label_index(text)
        if number.isdecimal() and not first and text not in texts:
            raise CulturevalError(f"{where}: the gold {text} is a number: give --columns ...,first=0 or first=1.")
        if number.isdecimal() and first:
            place = int(number) - int(first)
        elif text in texts:
            place = texts.index(text)
        elif label is None:
            return (), f"{text[:60]!r} is the text of no option"
        else:
            place = label
        if not 0 <= place < len(options) or not texts[place]:
            return (), f"{text[:40]!r} is none of the {len(options)} options"
        places.append(place)
    return (tuple(sorted(set(places))), "") if places else ((), "is null or empty")


def _text(cell: Any) -> str:
    """A cell as text; what is neither text nor a number is shown as Python shows it."""
    if is_empty(cell):
        return ""
    if isinstance(cell, Mapping) and {"bytes", "path"} & set(cell):
        return str(cell.get("path") or "")
    return str(cell).strip()
