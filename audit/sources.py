"""From SOURCE, a task, a group, a suite or data by path, to audited items."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.audit.columns import (
    Columns,
    columns_found,
    gold_of,
    options_in,
    require_columns,
    require_sense,
    with_indices,
)
from cultureval.audit.items import AuditItem
from cultureval.prompts.cells import image_cell, is_empty
from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.data.row_files import (
    PlacedRow,
    files_matching,
    format_of,
    holds_examples,
    read_rows,
)
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import BadRow, CulturevalError, SourceUnavailable
from cultureval.runtime.printing import print_note
from cultureval.tasks.catalogue import all_suites, all_tasks, groups
from cultureval.tasks.manifest import relative_path, row_hash, row_name
from cultureval.tasks.options import with_defaults
from cultureval.tasks.reading import find_subset, tried_rows
from cultureval.tasks.running import quiet_libraries
from cultureval.tasks.selection import sampled_rows, tasks_named
from cultureval.tasks.suite import Task

ANSWERS = ("references", "answers", "answer")  # of prepared rows of free answers
TEXTS = ("question", "prompt", "statement")


def read_items(names: Sequence[str], options: DataOptions, columns: Columns | None = None) -> list[AuditItem]:
    """The items of sources, few-shot examples among them; a row that several tasks read is one item.

    Args:
        names: Tasks, groups, suites, or paths of files and folders of data.
        columns: The columns of data by path; None: found by their names.

    Raises:
        CulturevalError: A name is unknown, or there are no data.
    """
    quiet_libraries()
    items: dict[tuple[str, str, str], AuditItem] = {}
    given: dict[str, Path] = {}
    for name in names:
        path = Path(name).expanduser()
        if by_path := _is_path(name, path):
            _require_own_name(path.resolve(), given)
        found = _items_by_path(path, columns) if by_path else _items_of_tasks(name, options)
        for item in found:
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
    try:
        if path.exists():
            if name not in {*all_suites(), *groups(), *all_tasks()}:
                return True
            print_note(f"{name} is read as the task, group or suite; ./{name} is the path.")
            return False
    except OSError:  # longer than a path may be
        return False
    if os.sep in name or format_of(path) or name.startswith((".", "~")):
        raise CulturevalError(f"{name}: no such file or folder.")
    return False


def _require_own_name(path: Path, given: dict[str, Path]) -> None:
    """Data by path are known by their last name, in manifests too: rows of one would be taken for the other's."""
    if (other := given.setdefault(path.name, path)) != path:
        raise CulturevalError(f"{other} and {path} have one name, by which manifests know them: rename one of them.")


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
    source = found.source
    shared = {"source": source.repo, "revision": found.revision, "subset": task.subset, "folder": found.folder}
    shared |= {"task": task.task, "benchmark": task.benchmark, "language": task.language, "copy": source.form}
    for files, few_shot in ((found.few_shot_files, True), (found.files, False)):
        rows = [one for one in tried_rows(task, found, files, options) if one[1] is not None]
        columns = columns_found([placed.row for placed, _ in rows])
        for placed, outcome in rows:
            name = row_name(placed, files, found.folder)
            yield _item(shared, name, placed.row, columns, few_shot, **_as_read(placed, outcome, columns))


def _as_read(placed: PlacedRow, outcome: list[PreparedRow] | BadRow | None, columns: Columns) -> dict[str, Any]:
    """What a task's reader makes of a row, for `_item`; of one that it refuses why, which then stands as it is."""
    if isinstance(outcome, BadRow):
        return {"refused": f"column {outcome.column!r} {outcome.reason}", "source_row": placed.name}
    prepared = outcome or []
    first = prepared[0] if prepared else {}
    question, answers = _text(placed.row.get(columns.question)) or _first_text(first, TEXTS), _answers(first)
    if len(prepared) > 1:  # statements or questions on one image
        pairs = [(_first_text(one, ("statement", *TEXTS)), " / ".join(_answers(one))) for one in prepared]
        question = "\n".join(dict.fromkeys(text for text, _ in pairs))
        answers = tuple(f"{text}: {answer}" for text, answer in dict.fromkeys(pairs) if answer)
    labelled = "labels" in first
    dialogue = {"context": first["prompt"]} if "round" in first else {}  # caption and earlier rounds
    read = {"form": "mcq", "options": tuple(first["choices"]), "gold": tuple(first["index"])} if labelled else {}
    read = read or {"form": "qa", "options": (), "gold": (), "answers": answers}
    read |= {"image": str(first.get("image", "")), "images": bool(first.get("image")), **dialogue}
    read |= {"shuffled": "permutation" in first, "gold_problem": "", "source_row": placed.name, "question": question}
    return read


def _answers(prepared: Mapping[str, Any]) -> tuple[str, ...]:
    right = next((prepared[name] for name in ("index", "correct", "gold") if name in prepared), [])
    if prepared.get("choices") and isinstance(right, int | list):
        return tuple(
            str(prepared["choices"][place]).strip() for place in (right if isinstance(right, list) else [right])
        )
    if "box" in prepared:
        return ("x, y, width, height: " + ", ".join(f"{number:g}" for number in prepared["box"]),)
    if "role" in prepared:
        return (str(prepared["role"] == "q_plus"),)
    for name in ANSWERS:
        value = prepared.get(name)
        if value:
            return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
    return ()


def _first_text(row: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((row[name].strip() for name in names if isinstance(row.get(name), str) and row[name].strip()), "")


def _items_by_path(path: Path, columns: Columns | None) -> Iterator[AuditItem]:
    folder = path if path.is_dir() else path.parent
    files = files_matching(path, ["*"]) if path.is_dir() else [path]
    files = [file for file in files if not any(part.startswith(".") for part in file.relative_to(folder).parts)]
    if not files:
        raise CulturevalError(f"{path} holds no data file (.csv, .tsv, .json, .jsonl, .parquet, .arrow).")
    name = path.resolve().name
    told: set[str] = set()
    for file in files:
        rows = read_rows(file)
        used = with_indices(rows, columns) if columns else columns_found(rows)
        if rows:
            require_columns(used, rows[0], str(file))
        if not columns:
            require_sense(rows, used, str(file))
        if rows and (not columns or used.indexed) and str(used) not in told:
            told.add(str(used))
            print_note(f"{file} is read as {used}{'' if columns else '; --columns names others'}.")
        below = relative_path(file, folder)
        shared = {"source": name, "revision": "local", "subset": below.partition(".")[0], "folder": folder}
        few_shot = holds_examples(file.relative_to(folder))
        for number, row in enumerate(rows):
            yield _item(shared | {"benchmark": name}, f"{below}:{number}", row, used, few_shot)


def _item(
    shared: Mapping[str, Any], name: str, row: Mapping[str, Any], columns: Columns, few_shot: bool, **read: Any
) -> AuditItem:
    """An item with what its subset's items share and what was read of its row; the rest as it stands in the columns."""
    values: dict[str, Any] = {"question": _text(row.get(columns.question)), "form": "mcq" if columns.options else "qa"}
    values["context"] = _text(row.get(columns.context)) if columns.context else ""
    if "options" not in read and columns.options:
        options = tuple(map(_text, options_in(row, columns)))
        gold, problem = (
            gold_of(row.get(columns.gold), options, columns.first, columns.indexed) if columns.gold else ((), "")
        )
        values |= {"options": options, "gold": gold, "gold_problem": problem}
        values["shuffled"] = columns.gold in columns.options  # such options have no order of their own
    elif "options" not in read:
        answer = row.get(columns.gold) if columns.gold else None
        answers = answer if isinstance(answer, list | tuple) else [answer]
        values["answers"] = tuple(_text(one) for one in answers if not is_empty(one))
        values["gold_problem"] = "missing" if columns.gold and not values["answers"] else ""
    if "image" not in read and columns.image and not is_empty(row.get(columns.image)):
        values |= _image(row, columns.image, shared["folder"])
    values |= {"split": "few_shot" if few_shot else "test", "hash": row_hash(row, shared["folder"])}
    return AuditItem(**shared, row=name, raw=row, cells=_cells(row, columns), **(values | read))


def _image(row: Mapping[str, Any], column: str, folder: Path) -> dict[str, Any]:
    try:
        return {"images": True, "image": image_cell(row, column, folder)}
    except BadRow as error:
        return {"images": True, "image": _text(row[column]), "image_problem": error.reason}


def _cells(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    named = {name: getattr(columns, name) for name in ("question", "context", "gold") if getattr(columns, name)}
    cells = {name: row.get(column) for name, column in named.items()}
    options = options_in(row, columns)
    return cells | {f"option {place}": cell for place, cell in enumerate(options, start=1)}


def _text(cell: Any) -> str:
    """A cell as text; what is neither text nor a number is shown as Python shows it."""
    if is_empty(cell):
        return ""
    if isinstance(cell, Mapping) and {"bytes", "path"} & set(cell):
        return str(cell.get("path") or "")
    return str(cell).strip()
