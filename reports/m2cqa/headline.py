"""M2CQA's table of a run, as the paper's Table 2: prompts by varieties, CFHR beside what it must be read with.

Paper: arXiv 2602.05437, Tables 2 and 10; shares between 0 and 1, as there. A low CFHR with a low accuracy on Q+ is
rejection, not grounding. Ours: the standard errors and the share of invalid outputs.
"""

from collections.abc import Sequence
from pathlib import Path

from cultureval.reports.estimates import Estimate, as_written, mean_of
from cultureval.reports.m2cqa.profiles import profile_notes, statement_estimate
from cultureval.reports.published import published_rows_of
from cultureval.reports.run_record import Run, TaskRecord
from cultureval.reports.summary import Row, SummaryTable, cell_of
from cultureval.tasks.catalogue import all_tasks

PUBLISHED = Path(__file__).with_name("published.csv")
COLUMNS = {"cfhr": "CFHR", "q_plus_acc": "Q+", "f1": "F1", "invalid_rate": "invalid"}
VARIETIES = {"en": "English", "msa": "MSA", "ajp": "Levantine", "arz": "Egyptian"}
DIALECT = ("ajp", "arz")  # the paper's Dialect is the mean of their metrics


def headline(run: Run) -> list[SummaryTable]:
    """A table for each prompt: its varieties, and the paper's Dialect where both dialects were run."""
    prompts: dict[tuple[str, int], dict[str, TaskRecord]] = {}
    order = list(all_tasks())
    for record in sorted(run.tasks_of("m2cqa"), key=lambda record: order.index(record.task.partition("|")[0])):
        prompts.setdefault((record.domain, record.shots), {})[record.subset] = record
    judged = [record for records in prompts.values() for record in records.values()]
    notes = profile_notes(run, judged, COLUMNS)
    lower = "CFHR (lower is better), accuracy on Q+, F1, invalid"
    return [
        SummaryTable(
            f"M2CQA, {prompt}" + ("" if number else f": {lower}"),
            ("Variety", *COLUMNS.values()),
            _rows(run, records),
            notes if number == len(prompts) - 1 else (),
        )
        for number, ((prompt, _), records) in enumerate(prompts.items())
    ]


def published_cells(model: str, prompt: str) -> dict[str, dict[str, float]]:
    """Variety -> metric -> the paper's number for a model of this name under a prompt; {} where it lists none.

    Args:
        model: A run's model.
        prompt: As in tasks: `tf`, `answer_reason`, `reason_first`.
    """
    found = [row for row in published_rows_of(PUBLISHED, model) if row["prompt"] == prompt]
    return {row["variety"]: {metric: float(row[metric]) for metric in COLUMNS if row.get(metric)} for row in found}


def _rows(run: Run, records: dict[str, TaskRecord]) -> Sequence[Row]:
    first = next(iter(records.values())).task.partition("|")[0]
    published = published_cells(run.model, first.partition(":")[2].rpartition("_")[0])
    cells = {
        variety: {metric: statement_estimate(run, records[variety], metric) for metric in COLUMNS}
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
    return Row(label, cells)
