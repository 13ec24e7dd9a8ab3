"""M2CQA and AynVQA in a leaderboard: a table a prompt, metrics by variety, as in M2CQA's paper (Tables 2 and 10).

Ours: the mean of CFHR over varieties, by which models are ranked; AynVQA's organisers rank by instability.
"""

from cultureval.metrics.m2cqa.names import AYNVQA_JOINT, CONTRASTIVE_INSTABILITY, JOINT_ACC
from cultureval.reports.m2cqa import aynvqa
from cultureval.reports.m2cqa.headline import COLUMNS, PUBLISHED, VARIETIES, headline
from cultureval.reports.published import published_rows
from cultureval.reports.run_record import Run
from cultureval.reports.standings import LOWER, Column, Standing, flattened, ranked_by
from cultureval.reports.summary import Cell
from cultureval.tasks.m2cqa.benchmarks import PROMPTS

TABLE = "M2CQA, "
LABELS = VARIETIES | {"dialect": "Dialect"}


def standings(run: Run) -> list[Standing]:
    """A row in the table of each prompt of M2CQA."""
    found = []
    for table in headline(run):
        row = flattened(table)
        prompt = row.table.removeprefix(TABLE)
        tasks = {VARIETIES[one.subset]: one.task for one in run.tasks_of("m2cqa") if one.domain == prompt}
        found.append(ranked_by(row, COLUMNS["cfhr"], tasks, "cfhr"))
    return found


def aynvqa_standings(run: Run) -> list[Standing]:
    """A row in AynVQA's table of forms, one in that of the joint form."""
    found = []
    for row in map(flattened, aynvqa.headline(run)):
        joint = any(column.name == aynvqa.JOINT_COLUMNS[JOINT_ACC] for column in row.cells)
        metric = JOINT_ACC if joint else CONTRASTIVE_INSTABILITY
        records = [one for one in run.tasks_of("aynvqa") if (one.group == AYNVQA_JOINT) == joint]
        tasks = {aynvqa.label(one): one.task for one in records}
        found.append(ranked_by(row, (aynvqa.COLUMNS | aynvqa.JOINT_COLUMNS)[metric], tasks, metric))
    return found


def published_standings() -> dict[str, list[Standing]]:
    """Model -> a row in the table of each prompt; the columns are those of the summary."""
    cells: dict[tuple[str, str], dict[Column, Cell | str | None]] = {}
    for row in published_rows(PUBLISHED):
        found = cells.setdefault((row["model"], row["prompt"]), {})
        for metric, name in COLUMNS.items():
            if row.get(metric):
                found[Column(name, LABELS[row["variety"]], name.startswith(LOWER))] = Cell(float(row[metric]))
    standings: dict[str, list[Standing]] = {}
    for (model, prompt), numbers in cells.items():
        standings.setdefault(model, []).append(Standing(f"{TABLE}{PROMPTS[prompt]}", numbers))
    return standings
