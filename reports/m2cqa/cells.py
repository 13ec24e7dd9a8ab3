"""Cells of M2CQA in saved runs (a model with one prompt in one variety), and whether they are comparable."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.reports.saved_results import SavedTask, find_saved_tasks, names_of_runs
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.m2cqa.benchmarks import PROMPTS, VARIETIES

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

    from cultureval.metrics.m2cqa.statement_items import Statement

FIELDS = ("country", "category")
DATA = ("source", "revision", "rows hash", "limit")
PROMPTING = ("prompt", "task version", "image placement", "system prompt")


@dataclass(frozen=True)
class CellVerdicts:
    """One model's verdicts on one task.

    Attributes:
        model: Name of the model in the tables.
        prompt: Key of `PROMPTS`.
        variety: Key of `VARIETIES`.
        ids: Items, sorted.
        verdicts: [N, 3] "true", "false" or "invalid", Q+ first, in the order of `ids`.
        fields: "country" and "category", where the data have them -> [N] the items' values, "" where unknown.
        signature: Everything that the scores depend on besides the model, by the names in `DATA` and `PROMPTING`.
    """

    model: str
    prompt: str
    variety: str
    ids: tuple[str, ...]
    verdicts: "np.ndarray"
    fields: dict[str, list[str]] = field(default_factory=dict)
    signature: dict[str, Any] = field(default_factory=dict)

    def on(self, ids: Sequence[str]) -> tuple["np.ndarray", "np.ndarray"]:
        """The correct verdicts (`right_judgements`) of some items, in the given order."""
        from cultureval.metrics.m2cqa.statement_items import right_judgements

        place = {item: number for number, item in enumerate(self.ids)}
        return right_judgements(self.verdicts[[place[item] for item in ids]])


def read_cells(paths: Sequence[Path], profile: str) -> list[CellVerdicts]:
    """The cells of saved runs, in the order of models, prompts and varieties.

    Args:
        paths: Output folders or results files.
        profile: Profile of the verdicts: strict, tolerant, lenient or organisers.

    Raises:
        CulturevalError: There are none, or the details are not of our M2CQA tasks.
    """
    saved = [task for task in find_saved_tasks(paths) if task.task.startswith("m2cqa:")]
    if not saved:
        raise CulturevalError(
            f"{', '.join(map(str, paths))}: no run of an m2cqa task. Run `cultureval eval ... m2cqa`."
        )
    names = names_of_runs(saved)
    cells = [_read_cell(task, names[task.root, task.model], profile) for task in saved]
    order = list(PROMPTS), list(VARIETIES)
    return sorted(cells, key=lambda cell: (cell.model, order[0].index(cell.prompt), order[1].index(cell.variety)))


def mismatches(cells: Sequence[CellVerdicts]) -> list[str]:
    """Why cells are not comparable, one sentence for each pair of cells; [] if they are.

    Cells of one variety must have the same data; cells of one prompt and variety also the same prompt settings.
    """
    found = []
    for first, second in combinations(cells, 2):
        if first.variety == second.variety and (first.model == second.model or first.prompt == second.prompt):
            names = DATA + (PROMPTING if first.prompt == second.prompt else ())
            differing = [
                f"{name} ({_value(first, name)} / {_value(second, name)})"
                for name in names
                if _differ(first, second, name)
            ]
            if differing:
                found.append(f"{_title(first)} and {_title(second)} differ in {', '.join(differing)}.")
    return found


def _differ(first: CellVerdicts, second: CellVerdicts, name: str) -> bool:
    return name not in first.signature or first.signature[name] != second.signature.get(name)


def _value(cell: CellVerdicts, name: str) -> str:
    return str(cell.signature.get(name, "not known"))


def _title(cell: CellVerdicts) -> str:
    return f"{cell.model} {cell.prompt}_{cell.variety}"


def _read_cell(task: SavedTask, model: str, profile: str) -> CellVerdicts:
    from cultureval.metrics.m2cqa.statement_items import item_verdicts

    prompt, _, variety = task.task.removeprefix("m2cqa:").partition("|")[0].rpartition("_")
    if prompt not in PROMPTS or variety not in VARIETIES:
        raise CulturevalError(f"{task.file}: {task.task!r} is not a task of M2CQA.")
    table = task.table()
    try:
        statements, rows_of_task = _statements(table, profile)
        fields = _fields(table)
    except (KeyError, ValueError, TypeError) as error:
        raise CulturevalError(f"{task.file} has no verdicts of M2CQA ({error}). Run the task again.") from error
    try:
        ids, verdicts = item_verdicts(statements, rows_of_task)
    except CulturevalError as error:
        raise CulturevalError(f"{task.file}: {error}") from error
    order = sorted(range(len(ids)), key=ids.__getitem__)
    sorted_ids = tuple(ids[place] for place in order)
    values = {name: [of_item.get(item, "") for item in sorted_ids] for name, of_item in fields.items()}
    return CellVerdicts(model, prompt, variety, sorted_ids, verdicts[order], values, _signature(task))


def _statements(table: "pyarrow.Table", profile: str) -> tuple[list["Statement"], int]:
    """The statements of a task's details, and their number in the task."""
    import pyarrow.compute

    from cultureval.metrics.m2cqa.statement_items import PROFILES, Statement

    (verdict,) = (name for name, kept in PROFILES.items() if kept == profile)
    places = [("doc", ["specific", name]) for name in ("item_id", "role", "rows_of_task")] + [("metric", [verdict])]
    columns = [pyarrow.compute.struct_field(table[name], path).to_pylist() for name, path in places]
    statements = [Statement(item, role, word) for item, role, _, word in zip(*columns, strict=True)]
    return statements, max(columns[2], default=0)


def _fields(table: "pyarrow.Table") -> dict[str, dict[str, str]]:
    """Country and category of the items, where the details hold them."""
    specific = table["doc"].combine_chunks().field("specific")
    known = [name for name in FIELDS if specific.type.get_field_index(name) >= 0]
    items = specific.field("item_id").to_pylist()
    found = {name: dict(zip(items, specific.field(name).to_pylist(), strict=True)) for name in known}
    return {name: values for name, values in found.items() if any(values.values())}


def _signature(task: SavedTask) -> dict[str, Any]:
    results = task.results()
    report = ((results.get("config_tasks") or {}).get(task.task) or {}).get("rows_report")
    general = results.get("config_general") or {}
    if not report:
        return {}
    model = general.get("model_config") or {}
    return {
        "source": report.get("source"),
        "revision": report.get("revision"),
        "rows hash": report.get("fingerprint"),
        "limit": general.get("max_samples"),
        "prompt": report.get("prompt"),
        "task version": (results.get("versions") or {}).get(task.task),
        "image placement": model.get("image_placement", "not stated"),
        "system prompt": model.get("system_prompt"),
    }
