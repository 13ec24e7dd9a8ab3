"""From SOURCE, a task, a group, a suite or data by path, to audited items."""

import os
from collections.abc import Iterator, Mapping, Sequence
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
# The question alone in the rows of tasks, where their prompts hold options too.
QUESTIONS = ("question", "Question", "question_text", "first_statement", "Question - Arabic", "Question with Bias")
CONTEXTS = ("context", "Context", "passage")
KNOWN = {
    "question": ("question", "Question"),
    "options": ("options", "choices"),
    "gold": ("answer", "gold", "label"),
    "context": ("context", "passage"),
    "image": ("image",),
}  # columns of data by path that are found without --columns
Columns = Mapping[str, str]  # a part of `KNOWN` -> its column; options joined by "+"; first: index of the first option


def read_columns(text: str) -> Columns:
    """The columns of `question=Q,options=A+B+C+D,gold=answer,first=1`; CulturevalError where a part is wrong."""
    names = (*KNOWN, "first")
    columns: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in names or not value or name in columns or (name == "first" and value not in ("0", "1")):
            known = "question, options, gold, context, image=COLUMN, first=0 or 1"
            raise CulturevalError(f"--columns {part.strip()!r}: write {known}.")
        columns[name] = value
    if "question" not in columns:
        raise CulturevalError("--columns names no question: add question=COLUMN.")
    return columns


def read_items(names: Sequence[str], options: DataOptions, columns: Columns | None = None) -> list[AuditItem]:
    """The items of sources, few-shot examples among them; a row that several tasks read is one item.

    Args:
        names: Tasks, groups, suites, or paths of files and folders of data.
        columns: The columns of data by path; None: those of `KNOWN`.

    Raises:
        CulturevalError: A name is unknown, there are no data, or columns are given and no path.
    """
    quiet_libraries()
    items: dict[tuple[str, str, str], AuditItem] = {}
    paths: dict[str, Path] = {}
    by_path = {name for name in names if name not in {*all_suites(), *groups(), *all_tasks()} and _is_path(name)}
    if columns and not by_path:
        raise CulturevalError(f"--columns is for files of data, and {', '.join(names)} names none: leave it out.")
    for name in names:
        if name not in by_path:
            found = _items_of_tasks(name, options)
        else:
            path = Path(name).expanduser().resolve()
            if (other := paths.setdefault(path.name, path)) != path:
                raise CulturevalError(f"{other} and {path} have one name in manifests: rename one of them.")
            found = _items_by_path(path, columns)
        for item in found:
            items.setdefault((item.source, item.row, item.split), item)
    if not items:
        raise CulturevalError(f"{', '.join(names)}: there are no rows.")
    return list(items.values())


def sampled_items(items: Sequence[AuditItem], sample: int | None) -> list[AuditItem]:
    """A random sample of each subset's items, the same each time; None: all."""
    grouped: dict[tuple[str, str], list[AuditItem]] = {}
    for item in items:
        grouped.setdefault((item.source, item.subset), []).append(item)
    return [
        some[place]
        for name, some in grouped.items()
        for place in sampled_rows([item.row for item in some], "/".join(name), sample, 0)
    ]


def _is_path(name: str) -> bool:
    if os.path.exists(os.path.expanduser(name)):
        return True
    if os.sep in name or format_of(Path(name)) or name.startswith((".", "~")):
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
    shared |= {"task": task.task, "benchmark": task.benchmark}
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
    for file in files:
        below = relative_path(file, folder)
        shared = {"source": path.name, "benchmark": path.name, "revision": "local", "subset": below.partition(".")[0]}
        split = "few_shot" if holds_examples(file.relative_to(folder)) else "test"
        rows = read_rows(file)
        used = _columns_of(rows, columns, str(file)) if rows else {}
        for number, row in enumerate(rows):
            place = {"row": f"{below}:{number}", "hash": row_hash(row, folder), "split": split}
            yield AuditItem(**shared, **place, **_parts_of(row, used, folder, f"{file}, row {number + 1}"))


def _columns_of(rows: Sequence[Mapping[str, Any]], columns: Columns | None, where: str) -> Columns:
    """The columns of a file by its first row: those of --columns, which must all be there, or known names."""
    row, names = rows[0], list(map(str, rows[0]))
    if columns:
        for name in (name for part in KNOWN for name in columns.get(part, "").split("+") if name):
            if name not in row:
                near = did_you_mean(name, names)
                raise CulturevalError(f"{where} has no column {name!r}.{near} It has {', '.join(names[:20])}.")
        return columns
    found = {part: name for part, known in KNOWN.items() for name in reversed(known) if name in row}
    if "question" not in found or not {"options", "gold"} & {*found}:
        raise CulturevalError(
            f"{where}: which columns are the question, its options and its gold? They are {', '.join(names[:20])}. "
            "Write --columns question=Q,options=A+B+C+D,gold=G."
        )
    golds = [str(row[found["gold"]]) for row in rows if not is_empty(row.get(found["gold"]))] if "gold" in found else []
    if "options" not in found and golds and all(map(_is_label, golds)):
        raise CulturevalError(
            f"{where}: the golds are letters or numbers, and no column is named options. The columns are "
            f"{', '.join(names[:20])}. Write --columns question={found['question']},options=A+B+C+D,"
            f"gold={found['gold']}; leave options out if answers are free."
        )
    return found


def _is_label(gold: str) -> bool:
    return comparable(gold).removesuffix(".0").isdecimal() or label_index(comparable(gold)) is not None


def _parts_of(row: Mapping[str, Any], columns: Columns, folder: Path, where: str) -> dict[str, Any]:
    """The parts of an item that stand in the columns of a row; `where` names it in errors."""
    cells = {part: row.get(name) for part, name in columns.items() if part not in ("options", "first")}
    values: dict[str, Any] = {name: _text(cells.get(name)) for name in ("question", "context")}
    gold = cells.get("gold")
    if "options" in columns:
        options = _options(row, columns["options"].split("+"), where)
        known = gold_places(gold, options, columns.get("first", ""), where) if "gold" in columns else ((), "")
        values |= {"form": "mcq", "options": options, "gold": known[0], "gold_problem": known[1]}
    else:
        answers = gold if isinstance(gold, list | tuple) else [gold]
        values |= {"form": "qa", "answers": tuple(_text(answer) for answer in answers if not is_empty(answer))}
        values["gold_problem"] = "is null or empty" if "gold" in columns and not values["answers"] else ""
    if not is_empty(cells.get("image")):
        try:
            values |= {"images": True, "image": image_cell(row, columns["image"], folder)}
        except BadRow as error:
            values |= {"images": True, "image": _text(cells["image"]), "image_problem": error.reason}
    return values


def _options(row: Mapping[str, Any], columns: Sequence[str], where: str) -> tuple[str, ...]:
    """The options' texts; empty cells of columns after the last filled one are options that are not there."""
    listed = row.get(columns[0])
    if len(columns) > 1:
        listed = [row.get(name) for name in columns]
        while listed and is_empty(listed[-1]):
            listed.pop()
    if not isinstance(listed, list | tuple):
        raise CulturevalError(f"{where}: {columns[0]!r} is no list: name a column an option, options=A+B+C+D.")
    return tuple(map(_text, listed))


def gold_places(gold: Any, options: Sequence[str], first: str, where: str) -> tuple[tuple[int, ...], str]:
    """The positions from 0 that a gold cell names, and why it names none, as a clause.

    Args:
        gold: A letter, the text of an option, an index, or a list of these.
        first: The index of the first option; "" where golds are no indices.

    Raises:
        CulturevalError: The gold is a number, and `first` does not say the index of the first option.
    """
    texts, places = list(map(comparable, options)), set()
    for cell in gold if isinstance(gold, list | tuple) and gold else [gold]:
        if is_empty(cell) or isinstance(cell, list | tuple):
            return (), "is null or empty"
        text = comparable(str(cell))
        number = text.removesuffix(".0")
        if number.isdecimal() and first:
            place = int(number) - int(first)
        elif text in texts:
            place = texts.index(text)
        elif number.isdecimal():
            raise CulturevalError(f"{where}: the gold {text} is a number: write --columns ...,first=0 or first=1.")
        elif (label := label_index(text)) is not None:
            place = label
        else:
            return (), f"{text[:60]!r} is the text of no option"
        if not 0 <= place < len(options) or not texts[place]:
            return (), f"{text[:40]!r} is none of the {len(options)} options"
        places.add(place)
    return tuple(sorted(places)), ""


def _text(cell: Any) -> str:
    """A cell as text; what is neither text nor a number is shown as Python shows it."""
    if is_empty(cell):
        return ""
    if isinstance(cell, Mapping) and {"bytes", "path"} & set(cell):
        return str(cell.get("path") or "")
    return str(cell).strip()
