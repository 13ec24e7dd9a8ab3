"""The forms of a benchmark on the rows that all of them share: scores, chance, spread, and what explains the spread."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cultureval.metrics.statistics import TINY, Floats, holm
from cultureval.reports.reconcile.forms import FACTORS, Form, Plan, published_score
from cultureval.runs.files import read_details
from cultureval.runs.frame import COLUMNS, NAMED
from cultureval.runs.loading import Run
from cultureval.runs.pairs import Pair, pair
from cultureval.runs.scores import Score, mean

if TYPE_CHECKING:
    import pandas

FIELDS = ["item", "cluster", "score", "unread", "options"]
GUESS = ""  # stands for a model that guesses


def reconcile(run: Run, plan: Plan) -> dict[str, Any]:
    """The forms of a benchmark in a finished run, on the rows that all of them share. All scores are shares.

    Returns:
        `benchmark`; `rows`, their number; `forms`, each with its columns of `forms.csv` and the fields of `_measured`;
        `differences` of each two forms, the largest first, with p-values by Holm among all pairs; `factors`, those
        first that explain most (`_factors`); `items`, the rows on which forms differ most first; `not_run`: form ->
        reason.

    Raises:
        CulturevalError: Fewer than two forms were run on the same rows.
    """
    tables = _shared({name: _rows_of(run, plan.forms[name], tasks) for name, tasks in plan.tasks.items()})
    not_run = plan.not_run | dict.fromkeys(plan.tasks.keys() - tables.keys(), "no row of all forms was run.")
    plan.require_two(tables, not_run)
    (first, table), forms = next(iter(tables.items())), [plan.forms[name] for name in tables]
    own, subsets = plan.tasks[first], table.index.get_level_values("subset")  # its tasks give the metric's range
    metric = _metric(run, own[subsets[0]], plan.forms[first]["metric"])
    whole = _rows(tables, [own[subsets[0]]] * len(table), metric)
    columns = {name: table["score"].to_numpy() for name, table in tables.items()}
    rows = {"micro": whole, "macro": _rows(tables, [own[subset] for subset in subsets], metric)}
    scores = {name: _scores(rows[name], columns | {GUESS: _guesses(tables)}) for name in rows}
    return {
        "benchmark": plan.benchmark,
        "rows": len(table),
        "forms": [_measured(run, plan, form, scores, tables[form["form"]]["unread"]) for form in forms],
        "differences": _differences(whole, columns),
        "factors": _factors(whole, forms, np.column_stack(list(columns.values()))),
        "items": _items(list(table["item"]), columns),
        "not_run": not_run,
    }


def _measured(
    run: Run, plan: Plan, form: Form, scores: Mapping[str, Mapping[str, Score]], unread: "pandas.Series"
) -> dict[str, Any]:
    """A form with its score, by its average (None where no row has a score) and by the other one; chance; `mark`.

    The mark is `at chance` or `below chance` if the 95% interval says so. `unread` is the share of replies without a
    readable answer. The published score of a model of this name is in percent.
    """
    name, average = form["form"], form["average"]
    (other,) = (found.get(name) for of, found in scores.items() if of != average)
    score, guess = scores[average].get(name), scores[average].get(GUESS)
    chance = guess.value if guess else None
    mark = ""
    if score and chance is not None and score.low is not None and score.high is not None and score.low <= chance:
        mark = "at chance" if score.high >= chance else "below chance"
    published, source = published_score(form, run.model, next(iter(plan.tasks[name].values()))) or (None, "")
    return {
        **form,
        **{field: score and getattr(score, field) for field in ("value", "error", "low", "high", "n", "asked")},
        "other_average": other and other.value,
        "chance": chance,
        "mark": mark,
        "unread": float(unread.mean()) if form["unread"] else None,
        "published": published,
        "source": source,
    }


def _rows_of(run: Run, form: Form, tasks: Mapping[str, str]) -> "pandas.DataFrame":
    """The rows of a form that the data name once: `FIELDS` by subset and place in the source."""
    import pandas

    parts = [pandas.DataFrame(columns=["subset", "place", *FIELDS])]
    for subset, task in tasks.items():
        if task not in run.details or task in run.unverified:
            continue
        source = run.record.tasks[task].source
        docs = read_details(run.details[task], ["doc.specific.source_row", "doc.choices"])["doc"].to_pylist()
        of_task = run.items[(run.items["task"] == task).to_numpy()]
        scored = of_task[(of_task["metric"] == _metric(run, task, form["metric"])).to_numpy()]
        unread = of_task["num"][(of_task["metric"] == form["unread"]).to_numpy()].to_numpy()
        fields = {
            "subset": subset,
            "place": [f"{source} {doc['specific']['source_row']}" for doc in docs],
            "item": [f"{task}, {item}" for item in scored["item"]],
            "cluster": scored["cluster"].to_numpy(),
            "score": (scored["num"] / scored["den"]).to_numpy(),
            "unread": unread if form["unread"] else np.nan,
            "options": [len(doc["choices"]) for doc in docs],
        }
        parts.append(pandas.DataFrame(fields).astype({"cluster": object}))
    table = pandas.concat(parts[1:] or parts, ignore_index=True).set_index(["subset", "place"])
    return table[~table.index.duplicated(keep=False)]


def _metric(run: Run, task: str, name: str) -> str:
    """The metric of a task with this name, also where LightEval adds its parameters after a colon."""
    return next((known for known in run.scores[task] if known.partition(":")[0] == name), name)


def _shared(tables: Mapping[str, "pandas.DataFrame"]) -> dict[str, "pandas.DataFrame"]:
    """The rows that all forms share, in one order; forms without a row of the first form are left out."""
    first = next((table.index for table in tables.values() if len(table)), None)
    kept = {name: table for name, table in tables.items() if first is not None and table.index.isin(first).any()}
    shared = reduce(lambda one, two: one.intersection(two), [table.index for table in kept.values()]) if kept else ()
    return {name: table.loc[shared] for name, table in kept.items() if len(shared)}


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


def _scores(rows: "pandas.DataFrame", columns: Mapping[str, Floats]) -> dict[str, Score]:
    """The mean of the rows' tasks, of each column of scores."""
    tasks = rows["task"].unique()
    return mean(_frame(rows, columns), {(task, rows["metric"][0]): 1 / len(tasks) for task in tasks})


def _difference(rows: "pandas.DataFrame", high: Floats, low: Floats) -> Pair | None:
    """The difference of two lists of scores of the rows."""
    frame = _frame(rows, {"high": high, "low": low})
    return pair(frame, "high", "low", {(rows["task"][0], rows["metric"][0]): 1.0})


def _guesses(tables: Mapping[str, "pandas.DataFrame"]) -> Floats:
    """1/k of each row with k options; nan if no form has the options."""
    options = [table["options"].to_numpy() for table in tables.values() if (table["options"] > 1).all()]
    return 1 / options[0] if options else np.full(len(next(iter(tables.values()))), np.nan)


def _differences(rows: "pandas.DataFrame", columns: Mapping[str, Floats]) -> list[dict[str, Any]]:
    found = []
    for pair_of_forms in combinations(columns, 2):
        low, high = sorted(pair_of_forms, key=lambda name: float(np.nansum(columns[name])))
        if difference := _difference(rows, columns[high], columns[low]):
            found.append({"higher": high, "lower": low, **difference._asdict()})
    for record, p_holm in zip(found, holm([record["p"] for record in found]), strict=True):
        record["p_holm"] = p_holm
    return sorted(found, key=lambda record: -record["difference"])


def _factors(rows: "pandas.DataFrame", forms: Sequence[Form], right: Floats) -> list[dict[str, Any]]:
    """What divides the forms into fewer parts than forms: the difference of the parts with highest and lowest mean.

    Args:
        right: [rows, forms] scores.

    Returns:
        For each division `factors`, `share` (of the variance between forms that it explains, adjusted for the number
        of its parts), `higher` and `lower` (values of the first factor), and the fields of `Pair`.
    """
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
        difference = _difference(rows, *(right[:, part_of == part].mean(axis=1) for part in (high, low)))
        names = {"higher": forms[high][factors[0]], "lower": forms[low][factors[0]]}
        found.append({"factors": factors, "share": share, **names, **(difference._asdict() if difference else {})})
    return sorted(found, key=lambda record: -round(record["share"], 9))  # equal ones in the order of `FACTORS`


def _items(names: Sequence[str], columns: Mapping[str, Floats]) -> list[dict[str, Any]]:
    """The rows on which forms differ, those first on which they differ most: `item`, and each form's score."""
    spread = np.nanstd(np.column_stack(list(columns.values())), axis=1)
    order = [row for row in np.argsort(-spread, kind="stable") if spread[row] > 0]
    return [{"item": names[row]} | {name: float(scores[row]) for name, scores in columns.items()} for row in order]
