"""The rows of AL-QASIDA's paper in a leaderboard: ADI2 of requests, spBLEU of translations (from its repository)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cultureval.reports.alqasida.headline import (
    DIRECTIONS,
    KINDS,
    PUBLISHED,
    TRANSLATIONS,
    direction_of_task,
    headline,
)
from cultureval.reports.published import published_rows
from cultureval.reports.run_record import Run
from cultureval.reports.standings import Column, Standing, flattened
from cultureval.reports.summary import Cell
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.suite import Task

SUITE = "alqasida"
MAIN = Column(KINDS["mono"], "Average")


def standings(run: Run, suite: str = SUITE) -> list[Standing]:
    """A row in the table of requests, one in that of translations, one in that of each judge.

    Args:
        run: With one number of few-shot examples.
        suite: `alqasida`, or `alqasida_dev` for the development sets.
    """
    found = [flattened(table) for table in headline(run, suite)]
    sets = [record for record in run.tasks_of(suite) if record.group == f"{suite}_mono"]
    parts = {(record.task, "adi2"): 1 / len(sets) for record in sets}
    rows = [replace(row, main=MAIN, parts=parts) if MAIN in row.cells else replace(row, main=None) for row in found]
    return [row for row in rows if row.cells]


development_standings = partial(standings, suite="alqasida_dev")


def published_standings() -> dict[str, list[Standing]]:
    """Model -> its row; means are over the sets that the paper lists, the average only over all of them."""
    found = {}
    for row in published_rows(PUBLISHED):
        cells: dict[Column, Cell | str | None] = {}
        for kind, name in KINDS.items():
            sets = [task for task in all_tasks().values() if task.group == f"{SUITE}_{kind}"]
            known = [task for task in sets if row.get(task.task)]
            parts = {_dialect(task): [one for one in known if _dialect(one) == _dialect(task)] for task in known}
            parts |= {task.benchmark: [one for one in known if one.benchmark == task.benchmark] for task in known}
            parts |= {"Average": known} if len(known) == len(sets) else {}
            cells |= {Column(name, label): _mean(row, tasks) for label, tasks in parts.items()}
        found[row["model"]] = [Standing("AL-QASIDA, requests", cells), Standing(TRANSLATIONS, _translations(row))]
    return found


def _translations(row: dict[str, str]) -> dict[Column, Cell | str | None]:
    """SpBLEU by direction and corpus; the paper has no gain over the source."""
    cells: dict[Column, Cell | str | None] = {}
    for direction, label in DIRECTIONS.items():
        known = [task for task in all_tasks().values() if row.get(task.task) and direction_of_task(task) == direction]
        for corpus in dict.fromkeys(task.benchmark for task in known):
            cells[Column(corpus, label)] = _mean(row, [task for task in known if task.benchmark == corpus])
    return cells


def _dialect(task: Task) -> str:
    return task.subset.partition("_")[2]


def _mean(row: dict[str, str], tasks: Sequence[Task]) -> Cell:
    return Cell(sum(float(row[task.task]) for task in tasks) / len(tasks), digits=1)
