"""M2CQA's table of a run, as the paper's Table 2: prompts by varieties, CFHR beside what it must be read with.

Paper: arXiv 2602.05437, Tables 2 and 10; shares between 0 and 1, as there. A low CFHR with a low accuracy on Q+ is
rejection, not grounding. Ours: the standard errors and the share of invalid outputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cultureval.metrics.m2cqa.names import INVALID_RATE, PROFILE_NAMES
from cultureval.reports.paper_numbers import published_rows, published_rows_of
from cultureval.runs.means import Estimate, as_written, estimate, mean_of
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.table import Cell, Column, Row, SuiteTable, cell_of, table_of_cells, with_mean_of_rows
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.m2cqa.benchmarks import PROMPTS

PUBLISHED = Path(__file__).with_name("published.csv")
COLUMNS = {"cfhr": "CFHR", "q_plus_acc": "Q+", "f1": "F1", "invalid_rate": "invalid"}
HEADER = tuple(Column(name, lower=name in ("CFHR", "invalid")) for name in COLUMNS.values())
UNIT = "0 to 1; n: items of three statements"
VARIETIES = {"en": "English", "msa": "MSA", "ajp": "Levantine", "arz": "Egyptian"}
DIALECT = ("ajp", "arz")  # the paper's Dialect is the mean of their metrics
GAP = 0.02  # between profiles, from which the summary names them
MOST = 3  # tasks that a note names


def tables(run: Run) -> list[SuiteTable]:
    """A table for each prompt: its varieties, and the paper's Dialect where both dialects were run."""
    prompts: dict[tuple[str, int], dict[str, TaskRecord]] = {}
    order = list(all_tasks())
    for record in sorted(run.tasks_of("m2cqa"), key=lambda record: order.index(record.task.partition("|")[0])):
        prompts.setdefault((record.domain, record.shots), {})[record.subset] = record
    judged = [record for records in prompts.values() for record in records.values()]
    notes = profile_notes(run, judged, COLUMNS)
    found = []
    for number, ((prompt, _), records) in enumerate(prompts.items()):
        name, last = f"M2CQA, {prompt}", number == len(prompts) - 1
        rows, heading = _rows(run, records), name if number else ""  # the unit is said once
        table = SuiteTable(name, UNIT, ("Variety", *HEADER), rows, notes if last else (), heading)
        tasks = {VARIETIES[variety]: one.task for variety, one in records.items()}
        found.append(with_mean_of_rows(run, table, COLUMNS["cfhr"], tasks, "cfhr"))  # ours: the paper ranks by none
    return found


def published_cells(model: str, prompt: str) -> dict[str, dict[str, float]]:
    """Variety -> metric -> the paper's number for a model's name under a prompt (`tf`); {} where it lists none."""
    found = [row for row in published_rows_of(PUBLISHED, model) if row["prompt"] == prompt]
    return {row["variety"]: {metric: float(row[metric]) for metric in COLUMNS if row.get(metric)} for row in found}


def _rows(run: Run, records: dict[str, TaskRecord]) -> Sequence[Row]:
    first = next(iter(records.values())).task.partition("|")[0]
    published = published_cells(run.model, first.partition(":")[2].rpartition("_")[0])
    cells = {
        variety: {metric: estimate(run, records[variety], metric) for metric in COLUMNS}
        for variety in VARIETIES
        if variety in records
    }
    rows = [_row(VARIETIES[variety], found, published.get(variety, {})) for variety, found in cells.items()]
    if all(variety in cells for variety in DIALECT):
        parts = {metric: [cells[variety][metric] for variety in DIALECT] for metric in COLUMNS}
        dialect = records[DIALECT[0]]
        mean = f"{all_tasks()[dialect.task.partition('|')[0]].mean}|{dialect.shots}"
        # The items are the same in both dialects. Where one has no CFHR, neither has their mean.
        means = {
            metric: None
            if None in found
            else as_written(run, mean, metric, mean_of([one for one in found if one], same_items=True))
            for metric, found in parts.items()
        }
        rows.append(_row("Dialect", means, published.get("dialect", {})))
    return rows


def _row(label: str, found: dict[str, Estimate | None], published: dict[str, float]) -> Row:
    cells = [cell_of(found[metric], published.get(metric), digits=3, published_digits=2) for metric in COLUMNS]
    asked = max((one.n or 0 for one in found.values() if one), default=0)  # accuracies are of all items
    return Row(label, [replace(cell, asked=asked or None) for cell in cells])


def published_tables() -> dict[str, list[SuiteTable]]:
    """Model -> a row in the table of each prompt; the columns are those of the summary."""
    columns = dict(zip(COLUMNS, HEADER, strict=True))
    labels = VARIETIES | {"dialect": "Dialect"}
    cells: dict[tuple[str, str], dict[Column, Cell]] = {}
    for row in published_rows(PUBLISHED):
        found = cells.setdefault((row["model"], row["prompt"]), {})
        for metric, column in columns.items():
            if row.get(metric):
                found[replace(column, above=labels[row["variety"]])] = Cell(float(row[metric]))
    models: dict[str, list[SuiteTable]] = {}
    for (model, prompt), numbers in cells.items():
        models.setdefault(model, []).append(table_of_cells(f"M2CQA, {PROMPTS[prompt]}", numbers))
    return models


def profile_notes(run: Run, records: Sequence[TaskRecord], columns: Mapping[str, str]) -> list[str]:
    """A line that names the tasks whose headline, or share of invalid outputs, depends on how outputs are read.

    Args:
        columns: Metric -> its column in the table, the headline first.
    """
    gaps = {}
    for record in records:
        task = record.task.partition("|")[0]
        for metric in (next(iter(columns)), INVALID_RATE):
            if task not in gaps and (gap := _widest_gap(run, record.task, metric)):
                gaps[task] = f"{task} {columns[metric]} {gap}"
    shown = [*gaps.values()][:MOST] + ([f"{len(gaps) - MOST} more"] if len(gaps) > MOST else [])
    return [f"Parsing profiles differ, so output formats matter: {'; '.join(shown)}."] if gaps else []


def _widest_gap(run: Run, task: str, metric: str) -> str | None:
    """A score and that of the profile farthest from it: `0.400, lenient 0.500`; None where none is far from it."""
    value = run.value(task, metric)
    found = {profile: run.value(task, f"{metric}_{profile}") for profile in PROFILE_NAMES}
    known = {profile: other for profile, other in found.items() if other is not None}
    if value is None or not known:
        return None
    profile = max(known, key=lambda one: abs(known[one] - value))
    return f"{value:.3f}, {profile} {known[profile]:.3f}" if abs(known[profile] - value) > GAP else None
