"""The forms of a benchmark on the rows that all of them share: scores, chance, spread, and what explains the spread."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cultureval.metrics.statistics import TINY, Floats, holm
from cultureval.reports.reconcile.forms import FACTORS, MICRO, Form, Plan, published_score, too_few
from cultureval.runs.files import read_details
from cultureval.runs.frame import COLUMNS, NAMED, Parts, leaf
from cultureval.runs.loading import Run
from cultureval.runs.pairs import Pair, pair
from cultureval.runs.scores import Score, mean
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    import pandas

RENUMBERED = "row:"  # begins the places of rows that are counted after some were left out


class Measured(NamedTuple):
    """A form on the shared rows; all numbers are shares.

    Attributes:
        score: By the form's average, micro or macro; None where no row has a score.
        other: The score by the other average.
        chance: The score that guessing gives, by the form's average; nan where the number of options is unknown.
        unread: Share of replies without a readable answer; None for log-likelihoods.
        published: The published score of a model of this name, and its source.
    """

    form: Form
    score: Score | None
    other: Score | None
    chance: float
    unread: float | None
    published: tuple[float, str] | None

    @property
    def mark(self) -> str:
        """`at chance` or `below chance` if the 95% interval says so; else ""."""
        score = self.score
        if score is None or score.low is None or score.high is None or not score.low <= self.chance:
            return ""
        return "at chance" if score.high >= self.chance else "below chance"


class Gap(NamedTuple):
    """The difference of two forms over all shared rows, with its p-value by Holm among those of all pairs."""

    higher: str
    lower: str
    pair: Pair
    p_holm: float


class Effect(NamedTuple):
    """A division of the forms by what they differ in.

    Attributes:
        factors: The factors that divide the forms in this way.
        high: The value of the forms with the highest mean; `low`: with the lowest.
        share: Share of the variance between forms that it explains, adjusted for the number of its parts.
        pair: The difference of both means on the same rows.
    """

    factors: list[str]
    high: str
    low: str
    share: float
    pair: Pair


class Reconciled(NamedTuple):
    """A benchmark.

    Attributes:
        forms: Those that were run.
        gaps: Of each two forms, the largest first.
        effects: The one that explains most first; [] if no factor has one value in several forms and another elsewhere.
        items: Names of the shared rows: task and item of the first form.
        right: [rows, forms] the rows' scores; nan: no score.
        not_run: Form -> reason.
    """

    benchmark: str
    forms: list[Measured]
    gaps: list[Gap]
    effects: list[Effect]
    items: list[str]
    right: Floats
    not_run: dict[Form, str]


def reconcile(run: Run, plan: Plan) -> Reconciled:
    """The forms of a benchmark in a finished run, on the rows that all of them share.

    Raises:
        CulturevalError: Fewer than two forms were run on the same rows.
    """
    tables, not_run = _shared_rows({form: _rows_of(run, form, tasks) for form, tasks in plan.tasks.items()})
    not_run = plan.not_run | not_run
    if len(tables) < 2:
        raise CulturevalError(too_few(plan.benchmark, not_run))
    first = next(iter(tables))
    task_of, whole = plan.tasks[first], dict.fromkeys(plan.tasks[first], next(iter(plan.tasks[first].values())))
    metric = _metric(run, whole[next(iter(whole))], first.metric)
    micro, macro = (_frame(tables, names, metric) for names in (whole, task_of))
    scores = [mean(frame, _parts(frame)) for frame in (micro, macro)]
    guess = _guesses(list(tables.values()))
    chances = guess.mean(), guess.groupby(level="subset").mean().mean()
    forms = []
    for form, table in tables.items():
        order = [0, 1] if form.average == MICRO else [1, 0]
        own, other = (scores[at].get(form.form) for at in order)
        unread = float(table["unread"].mean()) if form.unread else None
        published = published_score(form, run.model, next(iter(plan.tasks[form].values())))
        forms.append(Measured(form, own, other, float(chances[order[0]]), unread, published))
    right = np.column_stack([table["num"] / table["den"] for table in tables.values()])
    effects = _effects(micro, list(tables), right)
    return Reconciled(plan.benchmark, forms, _gaps(micro), effects, list(tables[first]["item"]), right, not_run)


def _rows_of(run: Run, form: Form, tasks: Mapping[str, str]) -> "pandas.DataFrame":
    """The rows of a form by subset and number in the source: item, cluster, num, den, reason, unread, options."""
    import pandas

    parts = [
        pandas.DataFrame(columns=["subset", "number", "item", "cluster", "num", "den", "reason", "unread", "options"])
    ]
    for subset, task in tasks.items():
        if task not in run.details or task in run.unverified:
            continue
        details = read_details(run.details[task], ["doc.specific.source_row", "doc.choices"])
        places = [str(place) for place in leaf(details, "doc.specific.source_row").to_pylist()]
        of_task = run.items[(run.items["task"] == task).to_numpy()]
        scored = of_task[(of_task["metric"] == _metric(run, task, form.metric)).to_numpy()]
        unread = of_task["num"][(of_task["metric"] == form.unread).to_numpy()].to_numpy()
        part = scored[["item", "cluster", "num", "den", "reason"]].reset_index(drop=True)
        part = part.astype({name: str for name in ("item", "cluster", "reason")})
        part["item"] = f"{task} " + part["item"]
        numbers = [None if place.startswith(RENUMBERED) else place.rpartition(":")[2] for place in places]
        options = [len(choices) for choices in leaf(details, "doc.choices").to_pylist()]
        parts.append(
            part.assign(subset=subset, number=numbers, unread=unread if form.unread else np.nan, options=options)
        )
    table = pandas.concat(parts, ignore_index=True).dropna(subset="number").set_index(["subset", "number"])
    return table[~table.index.duplicated(keep=False)].astype({"num": float, "den": float, "unread": float})


def _metric(run: Run, task: str, name: str) -> str:
    """The metric of a task with this name, also where LightEval adds its parameters after a colon."""
    return next((known for known in run.scores[task] if known.partition(":")[0] == name), name)


def _shared_rows(
    tables: Mapping[Form, "pandas.DataFrame"],
) -> tuple[dict[Form, "pandas.DataFrame"], dict[Form, str]]:
    """The forms' rows that all of them share, in one order; and why forms are left out."""
    kept: dict[Form, pandas.DataFrame] = {}
    left_out = {}
    for form, table in tables.items():
        first = next(iter(kept.values()), table).index
        if not len(first.intersection(table.index)):
            left_out[form] = "its rows were left out of the run, or cannot be matched with those of the other forms."
        else:
            kept[form] = table
    shared = (
        reduce(lambda one, other: one.intersection(other), [table.index for table in kept.values()]) if kept else ()
    )
    return ({form: table.loc[shared] for form, table in kept.items()} if len(shared) else {}), left_out


def _frame(tables: Mapping[Form, "pandas.DataFrame"], task_of: Mapping[str, str], metric: str) -> "pandas.DataFrame":
    """The frame of all forms as runs: equal rows have equal names, and the clusters of the form that joins most."""
    import pandas

    clusters = min((table["cluster"] for table in tables.values()), key=lambda names: names.nunique())
    frames = [
        table[["num", "den", "reason"]].assign(
            run=form.form,
            task=[task_of[subset] for subset, _ in table.index],
            metric=metric,
            item=[" ".join(place) for place in table.index],
            cluster=clusters,
            sums=None,
        )
        for form, table in tables.items()
    ]
    return pandas.concat(frames, ignore_index=True)[COLUMNS].astype(dict.fromkeys(NAMED, "category"))


def _parts(frame: "pandas.DataFrame") -> Parts:
    """The scores of a frame with equal weights."""
    metric, tasks = frame["metric"].iloc[0], list(frame["task"].cat.categories)
    return {(task, metric): 1 / len(tasks) for task in tasks}


def _guesses(tables: Sequence["pandas.DataFrame"]) -> "pandas.Series":
    """1/k of each row with k options; nan if no form has the options."""
    known = [table["options"].astype(float) for table in tables if (table["options"] > 1).all()]
    return 1 / known[0] if known else tables[0]["num"] * np.nan


def _gaps(frame: "pandas.DataFrame") -> list[Gap]:
    """The differences of each two forms, the largest first."""
    found = []
    for pair_of_forms in combinations(frame["run"].unique(), 2):
        for higher, lower in (pair_of_forms, pair_of_forms[::-1]):
            difference = pair(frame, higher, lower, _parts(frame))
            if difference and difference.difference >= 0:
                found.append((higher, lower, difference))
                break
    adjusted = holm([difference.p for *_, difference in found])
    gaps = [Gap(*gap, p_holm) for gap, p_holm in zip(found, adjusted, strict=True)]
    return sorted(gaps, key=lambda gap: -gap.pair.difference)


def _effects(frame: "pandas.DataFrame", forms: Sequence[Form], right: Floats) -> list[Effect]:
    """The divisions of the forms into fewer parts than forms, the one that explains most first.

    Args:
        right: As of `Reconciled`.
    """
    divisions: dict[tuple[int, ...], list[str]] = {}
    for factor in FACTORS:
        values = [getattr(form, factor) for form in forms]
        if 1 < len({*values}) < len(forms):
            divisions.setdefault(tuple(map(values.index, values)), []).append(factor)
    scores = np.nanmean(right, axis=0)
    total = float(np.square(scores - scores.mean()).sum())
    found = []
    for division, factors in divisions.items() if total > TINY else ():
        part_of = np.array(division)
        means = {part: float(scores[part_of == part].mean()) for part in division}
        within = float(np.square(scores - [means[part] for part in division]).sum())
        share = 1 - within / total * (len(forms) - 1) / (len(forms) - len(means))
        ends = [max(means, key=means.__getitem__), min(means, key=means.__getitem__)]
        high, low = (getattr(forms[part], factors[0]) for part in ends)
        values = [right[:, part_of == part].mean(axis=1) for part in ends]
        if difference := _difference(frame, values):
            found.append(Effect(factors, high, low, share, difference))
    return sorted(found, key=lambda effect: -effect.share)


def _difference(frame: "pandas.DataFrame", values: Sequence[Floats]) -> Pair | None:
    """The difference of two lists of values of the rows of a frame."""
    import pandas

    rows = frame[(frame["run"] == frame["run"].iloc[0]).to_numpy()]
    two = [
        rows.assign(run=name, num=of_rows * rows["den"].to_numpy()) for name, of_rows in zip("ab", values, strict=True)
    ]
    both = pandas.concat(two, ignore_index=True).astype({"run": "category"})
    return pair(both, "a", "b", _parts(frame))
