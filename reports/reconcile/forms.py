"""Forms of a benchmark: how a board asks and scores its rows, as `forms.csv` says, and which can be run here."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cultureval.runs.table import published, published_model, published_rows
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, did_you_mean
from cultureval.tasks.catalogue import all_tasks, known_task, name_and_shots
from cultureval.tasks.options import read_data_options
from cultureval.tasks.reading import report_of, require_examples
from cultureval.tasks.selection import tasks_named
from cultureval.tasks.suite import SCORE

FORMS = Path(__file__).with_name("forms.csv")
PUBLISHED = Path(__file__).with_name("published.csv")
FACTORS = ("labels", "alphabet", "language", "context", "shots", "scoring", "normalisation", "template")  # may differ
Form = Mapping[str, str]  # a row of `forms.csv`, whose comments explain the columns


class Plan(NamedTuple):
    """The forms of a benchmark that can be run.

    Attributes:
        forms: By their names.
        tasks: Form -> subset -> its task with `|k`.
        not_run: Form -> why it is not run.
    """

    benchmark: str
    forms: dict[str, Form]
    tasks: dict[str, dict[str, str]]
    not_run: dict[str, str]

    def require_two(self, run: Mapping[str, object], not_run: Mapping[str, str]) -> None:
        """Raises a CulturevalError with the reasons where fewer than two forms are run."""
        if len(run) < 2:
            reasons = "".join(f"\n  {form}: {reason}" for form, reason in not_run.items())
            raise CulturevalError(f"{self.benchmark}: fewer than two forms can be compared.{reasons}")


def plans_of(names: Sequence[str], generated: bool) -> list[Plan]:
    """The plans of the named benchmarks, or of all with data, under the current settings.

    Args:
        names: In any case; [] for all.
        generated: Whether forms that generate replies are run too.

    Raises:
        CulturevalError: A benchmark is unknown; or a named one, or every one, has fewer than two forms to run.
    """
    known: dict[str, list[Form]] = {}
    for form in published_rows(FORMS):
        known.setdefault(form["benchmark"], []).append(form)
    spelled = {name.casefold(): name for name in known}
    if unknown := [name for name in names if name.casefold() not in spelled]:
        near, listed = did_you_mean(unknown[0], known), ", ".join(known)
        raise CulturevalError(f"No forms of {unknown[0]!r} are known.{near} Those of {listed} are.")
    asked = dict.fromkeys(spelled[name.casefold()] for name in names) or known
    plans = [_plan(benchmark, known[benchmark], generated) for benchmark in asked]
    ready = [plan for plan in plans if len(plan.tasks) > 1]
    for plan in plans if names or not ready else ():
        plan.require_two(plan.tasks, plan.not_run)
    return ready


def _plan(benchmark: str, forms: Sequence[Form], generated: bool) -> Plan:
    plan, named = Plan(benchmark, {form["form"]: form for form in forms}, {}, {}), cache(tasks_named)
    for name, form in plan.forms.items():
        if form["scoring"] == "generated" and not generated:
            plan.not_run[name] = "it generates replies: add --generated."
            continue
        try:
            plan.tasks[name] = {
                subset: f"{task}|{shots or all_tasks()[task].shots}"
                for bare, shots in map(name_and_shots, form["tasks"].split())
                for task in named(bare)
                if (subset := _subset(form, task)) is not None
            }
            _require_rows(list(plan.tasks[name].values()))
        except CulturevalError as error:
            plan.tasks.pop(name, None)
            plan.not_run[name] = str(error)
    return plan


def _subset(form: Form, task: str) -> str | None:
    """The subset of a task in letters and digits, alike in all forms; None if the task is not of the benchmark."""
    found = re.search(f"{form['subset']}$", task)
    return "".join(filter(str.isalnum, found[1].casefold())) if found else None


def _require_rows(tasks: Sequence[str]) -> None:
    """Raises a CulturevalError if no task has rows, or one too few examples or a row that cannot be read."""
    absent: list[SourceUnavailable] = []
    for task in tasks:
        known, shots = all_tasks()[name_and_shots(task)[0]], int(name_and_shots(task)[1])
        try:
            require_examples(known.task, shots, report_of(known, shots, read_data_options()))
        except SourceUnavailable as error:
            absent.append(error)
    if len(absent) == len(tasks) and absent:
        raise absent[0]


def published_score(form: Form, model: str, task: str) -> tuple[float, str] | None:
    """The published score of a model of this name in a form, in percent, with its source; None without one.

    Args:
        task: One of the form's tasks, whose suite may have a paper's table.
    """
    for row in published_rows(PUBLISHED):
        same = all(row[name] == form[name] for name in ("benchmark", "form"))
        if same and published_model(model, [row["model"]]):
            return float(row["score"]), row["source"]
    known = known_task(task)
    tables = published(known.suite) if known and form["boards"] else {}
    for table in tables.get(published_model(model, tables) or "", ()):
        cell = table.cells.get((form["benchmark"], SCORE))
        if cell and cell.value is not None:
            return cell.value, f"{table.name}'s paper"
    return None
