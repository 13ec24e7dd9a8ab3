"""The forms of a benchmark on the rows that all of them share: scores, chance, spread, and what explains the spread."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cultureval.metrics.statistics import TINY, Floats, holm
from cultureval.reports.reconcile.forms import FACTORS, Form, Plan, published_score
from cultureval.runs.files import read_details
from cultureval.runs.frame import COLUMNS, NAMED, leaf
from cultureval.runs.loading import Run
from cultureval.runs.pairs import Pair, pair
from cultureval.runs.scores import Score, mean

if TYPE_CHECKING:
    import pandas

FIELDS = ["item", "cluster", "score", "unread", "options"]


class Measured(NamedTuple):
    """A form on the shared rows; all numbers are shares but the published one, in percent.

    Attributes:
        score: By the form's average, micro or macro; None where no row has a score. `other`: by the other average.
        chance: The score that guessing gives; nan where the number of options is unknown.
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
    """A difference on the same rows, of two forms or of the means of two parts of the forms.

    Attributes:
        higher: A form, or what the forms of a part have in common (a value of `factors`); so is `lower`.
        pair: The difference, over all rows.
        p_holm: Of two forms: the p-value by Holm among those of all pairs.
        factors: Of parts: the factors that divide the forms in this way.
        share: Of parts: share of the variance between forms that they explain, adjusted for their number.
    """

    higher: str
    lower: str
    pair: Pair
    p_holm: float | None = None
    factors: tuple[str, ...] = ()
    share: float | None = None


class Reconciled(NamedTuple):
    """A benchmark.

    Attributes:
        gaps: Of each two forms, the largest first.
        factors: Of parts of the forms, those first that explain most; [] where every factor divides them one by one.
        items: Names of the shared rows: task and item of the first form.
        right: [rows, forms] the rows' scores; nan: no score.
        not_run: Form -> reason.
    """

    benchmark: str
    forms: list[Measured]
    gaps: list[Gap]
    factors: list[Gap]
    items: list[str]
    right: Floats
    not_run: dict[str, str]


def reconcile(run: Run, plan: Plan) -> Reconciled:
    """The forms of a benchmark in a finished run, on the rows that all of them share.

    Raises:
        CulturevalError: Fewer than two forms were run on the same rows.
    """
    tables, lost = _shared({name: _rows_of(run, plan.forms[name], tasks) for name, tasks in plan.tasks.items()})
    plan.require_two(tables, not_run := plan.not_run | lost)
    right = np.column_stack([table["score"] for table in tables.values()])
    own = plan.tasks[next(iter(tables))]  # the first form's tasks stand for all, with the range of their metric
    metric = _metric(run, next(iter(own.values())), plan.forms[next(iter(tables))]["metric"])
    subsets = next(iter(tables.values())).index.get_level_values("subset")
    macro = _rows(tables, [own[subset] for subset in subsets], metric)
    micro = _rows(tables, [own[subsets[0]]] * len(subsets), metric)
    scores = {name: _scores(rows, tables, right) for name, rows in (("micro", micro), ("macro", macro))}
    guess = _guesses(list(tables.values()))
    chance = {"micro": guess.mean(), "macro": guess.groupby(level="subset").mean().mean()}
    forms = []
    for name, table in tables.items():
        form = plan.forms[name]
        average, other = ("micro", "macro") if form["average"] == "micro" else ("macro", "micro")
        unread = float(table["unread"].mean()) if form["unread"] else None
        found = published_score(form, run.model, next(iter(plan.tasks[name].values())))
        forms.append(Measured(form, scores[average].get(name), scores[other].get(name), chance[average], unread, found))
    used = [measured.form for measured in forms]
    items = list(next(iter(tables.values()))["item"])
    return Reconciled(
        plan.benchmark, forms, _gaps(micro, used, right), _factors(micro, used, right), items, right, not_run
    )


def _rows_of(run: Run, form: Form, tasks: Mapping[str, str]) -> "pandas.DataFrame":
    """The rows of a form that the data name once: `FIELDS` by subset and place in the source."""
    import pandas

    parts = [pandas.DataFrame(columns=["subset", "place", *FIELDS])]
    for subset, task in tasks.items():
        if task not in run.details or task in run.unverified:
            continue
        details = read_details(run.details[task], ["doc.specific.source_row", "doc.choices"])
        of_task = run.items[(run.items["task"] == task).to_numpy()]
        scored = of_task[(of_task["metric"] == _metric(run, task, form["metric"])).to_numpy()]
        unread = of_task["num"][(of_task["metric"] == form["unread"]).to_numpy()]
        fields = {
            "subset": subset,
            "place": leaf(details, "doc.specific.source_row").to_pylist(),
            "item": [f"{task}, {item}" for item in scored["item"]],
            "cluster": scored["cluster"].to_numpy(),
            "score": (scored["num"] / scored["den"]).to_numpy(),
            "unread": unread.to_numpy() if form["unread"] else np.nan,
            "options": [len(choices) for choices in leaf(details, "doc.choices").to_pylist()],
        }
        parts.append(pandas.DataFrame(fields).astype({"cluster": object}))
    table = pandas.concat(parts[1:] or parts, ignore_index=True).set_index(["subset", "place"])
    return table[~table.index.duplicated(keep=False)]


def _metric(run: Run, task: str, name: str) -> str:
    """The metric of a task with this name, also where LightEval adds its parameters after a colon."""
    return next((known for known in run.scores[task] if known.partition(":")[0] == name), name)


def _shared(tables: Mapping[str, "pandas.DataFrame"]) -> tuple[dict[str, "pandas.DataFrame"], dict[str, str]]:
    """The rows that all forms share, in one order; and why forms are left out."""
    first = next((table.index for table in tables.values() if len(table)), None)
    kept = {name: table for name, table in tables.items() if first is not None and table.index.isin(first).any()}
    left_out = dict.fromkeys(
        tables.keys() - kept.keys(), "its rows were left out, or have no counterpart in other forms."
    )
    shared = reduce(lambda one, two: one.intersection(two), [table.index for table in kept.values()]) if kept else ()
    return {name: table.loc[shared] for name, table in kept.items() if len(shared)}, left_out


def _rows(tables: Mapping[str, "pandas.DataFrame"], tasks: Sequence[str], metric: str) -> "pandas.DataFrame":
    """The frame of the shared rows without scores, in the clusters of the form that joins most rows."""
    import pandas

    clusters = min((table["cluster"] for table in tables.values()), key=lambda names: names.nunique())
    fields = {"task": tasks, "metric": metric, "item": [" ".join(place) for place in clusters.index], "sums": None}
    return pandas.DataFrame(fields | {"cluster": clusters.to_numpy(), "num": np.nan, "den": 1.0, "reason": ""})


def _frame(rows: "pandas.DataFrame", scores: Mapping[str, Floats]) -> "pandas.DataFrame":
    """The frame of runs with these scores of the rows."""
    import pandas

    frames = [rows.assign(run=name, num=values) for name, values in scores.items()]
    return pandas.concat(frames, ignore_index=True)[COLUMNS].astype(dict.fromkeys(NAMED, "category"))


def _scores(rows: "pandas.DataFrame", names: Mapping[str, object], right: Floats) -> dict[str, Score]:
    """The mean of the rows' tasks, by form."""
    tasks, metric = list(dict.fromkeys(rows["task"])), rows["metric"][0]
    parts = {(task, metric): 1 / len(tasks) for task in tasks}
    return mean(_frame(rows, dict(zip(names, right.T, strict=True))), parts)


def _difference(rows: "pandas.DataFrame", high: Floats, low: Floats) -> Pair | None:
    """The difference of two lists of scores of the rows."""
    place = (rows["task"][0], rows["metric"][0])
    return pair(_frame(rows, {"high": high, "low": low}), "high", "low", {place: 1.0})


def _guesses(tables: Sequence["pandas.DataFrame"]) -> "pandas.Series":
    """1/k of each row with k options; nan if no form has the options."""
    known = next((table["options"] for table in tables if (table["options"] > 1).all()), None)
    return tables[0]["score"] * np.nan if known is None else 1 / known.astype(float)


def _gaps(rows: "pandas.DataFrame", forms: Sequence[Form], right: Floats) -> list[Gap]:
    found = []
    for one, two in combinations(range(len(forms)), 2):
        high, low = (one, two) if np.nansum(right[:, one] - right[:, two]) >= 0 else (two, one)
        if difference := _difference(rows, right[:, high], right[:, low]):
            found.append(Gap(forms[high]["form"], forms[low]["form"], difference))
    adjusted = holm([gap.pair.p for gap in found])
    gaps = [gap._replace(p_holm=p_holm) for gap, p_holm in zip(found, adjusted, strict=True)]
    return sorted(gaps, key=lambda gap: -gap.pair.difference)


def _factors(rows: "pandas.DataFrame", forms: Sequence[Form], right: Floats) -> list[Gap]:
    """The differences of the highest and the lowest part, for each division into fewer parts than forms."""
    divisions: dict[tuple[int, ...], list[str]] = {}
    for factor in FACTORS:
        values = [form[factor] for form in forms]
        if 1 < len({*values}) < len(forms):
            divisions.setdefault(tuple(map(values.index, values)), []).append(factor)
    scores, found = np.nanmean(right, axis=0), []
    total = float(np.square(scores - scores.mean()).sum())
    for division, factors in divisions.items() if total > TINY else ():
        part_of = np.array(division)
        means = {part: float(scores[part_of == part].mean()) for part in division}
        within = float(np.square(scores - [means[part] for part in division]).sum())
        share = 1 - within / total * (len(forms) - 1) / (len(forms) - len(means))
        high, low = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        values = [right[:, part_of == part].mean(axis=1) for part in (high, low)]
        if difference := _difference(rows, *values):
            names = (forms[part][factors[0]] for part in (high, low))
            found.append(Gap(*names, difference, None, tuple(factors), share))
    return sorted(found, key=lambda gap: -(gap.share or 0.0))
