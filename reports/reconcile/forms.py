"""Forms of a benchmark: how a board asks and scores its rows, as `forms.csv` says, and which can be run here."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cultureval.runs.table import published, published_model, published_rows
from cultureval.runtime.errors import CulturevalError, SourceUnavailable, did_you_mean
from cultureval.tasks.catalogue import all_tasks, known_task, name_and_shots
from cultureval.tasks.options import read_data_options
from cultureval.tasks.reading import prepare_subset
from cultureval.tasks.selection import tasks_named
from cultureval.tasks.suite import SCORE

FORMS = Path(__file__).with_name("forms.csv")
PUBLISHED = Path(__file__).with_name("published.csv")
FACTORS = {  # in which forms differ, as a sentence names them
    "labels": "letters or texts",
    "alphabet": "the alphabet of the labels",
    "language": "the language of the instruction",
    "context": "the context",
    "shots": "the number of examples",
    "scoring": "log-likelihoods or replies",
    "normalisation": "the normalisation",
    "template": "the template",
}
GENERATED = "generated"
MICRO = "micro"


@dataclass(frozen=True)
class Form:
    """A way to ask and score a benchmark; a row of `forms.csv`, whose comments explain the columns."""

    benchmark: str
    form: str
    tasks: str
    subset: str
    metric: str
    unread: str
    average: str
    labels: str
    alphabet: str
    language: str
    context: str
    shots: str
    scoring: str
    normalisation: str
    template: str
    boards: str


class Plan(NamedTuple):
    """The forms of a benchmark that can be run.

    Attributes:
        tasks: Form -> subset -> its task with `|k`; all forms have the same subsets.
        names: What is evaluated: groups, or tasks with `|k`.
        not_run: Form -> why it cannot be run.
    """

    benchmark: str
    tasks: dict[Form, dict[str, str]]
    names: list[str]
    not_run: dict[Form, str]


@cache
def all_forms() -> tuple[Form, ...]:
    """The forms of all benchmarks, in the order of the file."""
    return tuple(Form(**{field.name: row[field.name] for field in fields(Form)}) for row in published_rows(FORMS))


def benchmarks_named(names: Sequence[str]) -> list[str]:
    """The benchmarks of these names, in any case; all benchmarks for no name.

    Raises:
        CulturevalError: A benchmark is unknown.
    """
    known = {form.benchmark.casefold(): form.benchmark for form in all_forms()}
    for name in names:
        if name.casefold() not in known:
            near, listed = did_you_mean(name, known.values()), ", ".join(known.values())
            raise CulturevalError(f"No forms of {name!r} are known.{near} Those of {listed} are.")
    return list(dict.fromkeys(known[name.casefold()] for name in names)) or list(known.values())


def plans_of(names: Sequence[str], generated: bool) -> list[Plan]:
    """The plans of the named benchmarks, or of all with data; arguments as of `benchmarks_named` and `plan_of`.

    Raises:
        CulturevalError: A named benchmark, or every one, has fewer than two forms that can be run.
    """
    plans = [plan_of(benchmark, generated) for benchmark in benchmarks_named(names)]
    lacking = [plan for plan in plans if len(plan.tasks) < 2 or not plan.names]
    if lacking and (names or len(lacking) == len(plans)):
        raise CulturevalError(too_few(lacking[0].benchmark, lacking[0].not_run))
    return [plan for plan in plans if plan not in lacking]


def too_few(benchmark: str, not_run: Mapping[Form, str]) -> str:
    """The sentence that refuses a benchmark, with the reason of each form that is not run."""
    reasons = "".join(f"\n  {form.form}: {reason}" for form, reason in not_run.items())
    return f"{benchmark}: fewer than two forms can be compared.{reasons}"


def plan_of(benchmark: str, generated: bool) -> Plan:
    """The forms of a benchmark that can be run with the current settings, on the subsets that all of them have.

    Args:
        generated: Whether forms that generate replies are run too.
    """
    found: dict[Form, dict[str, str]] = {}
    not_run: dict[Form, str] = {}
    named = cache(tasks_named)  # forms that differ in their metric have the same tasks
    for form in (form for form in all_forms() if form.benchmark == benchmark):
        if form.scoring == GENERATED and not generated:
            not_run[form] = "it generates replies: add --generated."
            continue
        try:
            found[form] = _tasks_of(form, named)
        except CulturevalError as error:
            not_run[form] = str(error)
    shared = set.intersection(*map(set, found.values())) if found else set()
    tasks = {form: {name: own[name] for name in own if name in shared} for form, own in found.items()}
    names = [name for form, own in found.items() for name in _names(form, own, shared)]
    return Plan(benchmark, tasks, list(dict.fromkeys(names)), not_run)


def _tasks_of(form: Form, named: Callable[[str], list[str]]) -> dict[str, str]:
    """Subset -> task with `|k`, for the subsets of a form with rows.

    Raises:
        SourceUnavailable: No subset has rows.
        CulturevalError: A harness is not installed, does not know the task, or it cannot be asked here.
    """
    found, missing = {}, SourceUnavailable(f"{form.tasks}: no task is one of {form.benchmark}.")
    for name in form.tasks.split():
        bare, shots = name_and_shots(name)
        try:
            members = named(bare)
        except SourceUnavailable as error:
            missing, members = error, []
        for task in members:
            subset = re.search(f"{form.subset}$", task)
            try:
                if subset and not all_tasks()[task].kind.load:
                    prepare_subset(all_tasks()[task], read_data_options())
            except SourceUnavailable as error:
                missing, subset = error, None
            if subset:
                key = "".join(filter(str.isalnum, subset[1].casefold()))
                found[key] = f"{task}|{int(shots or all_tasks()[task].shots)}"
    if not found:
        raise missing
    return found


def _names(form: Form, tasks: dict[str, str], shared: set[str]) -> list[str]:
    """What is evaluated of a form: its groups, which load faster than many tasks, unless some subsets are not shared."""
    of_harness = all(all_tasks()[name_and_shots(task)[0]].kind.load for task in tasks.values())
    if of_harness and tasks.keys() == shared:
        return form.tasks.split()
    return [tasks[subset] for subset in tasks if subset in shared]


def published_score(form: Form, model: str, task: str) -> tuple[float, str] | None:
    """The published score of a model of this name in a form, in percent, with its source; None without one.

    Args:
        task: One of the form's tasks, whose suite may have a paper's table.
    """
    rows = [row for row in published_rows(PUBLISHED) if (row["benchmark"], row["form"]) == (form.benchmark, form.form)]
    if name := published_model(model, [row["model"] for row in rows]):
        row = next(row for row in rows if row["model"] == name)
        return float(row["score"]), row["source"]
    known = known_task(task)
    tables = published(known.suite) if known and form.boards else {}
    for table in tables.get(published_model(model, tables) or "", ()):
        cell = table.cells.get((form.benchmark, SCORE))
        if cell and cell.value is not None:
            return cell.value, f"{table.name}'s paper"
    return None
