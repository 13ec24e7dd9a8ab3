"""What the frame says: scores with their errors, averages, differences and ranks.

One formula of errors. With v the score of G clusters and v_g that without cluster g, the cluster adds
sqrt((G - 1) / G) (v - v_g), and the squared error is the sum of squares: the jackknife over clusters. It is
sd(ddof=1) / sqrt(n) for a mean of items alone, CR3 for clustered means (Cameron and Miller, J. Human Resources 50,
2015), and right for ratios and corpus scores. What a cluster adds to the scores of several tasks is summed before it is
squared, so tasks that share images or requests vary together.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.declared import SHARE
from cultureval.metrics.statistics import NORMAL_95, TINY, Floats, at_ends, jackknife
from cultureval.runs.frame import COLUMNS, SCORE, Parts, ends, of_sums

if TYPE_CHECKING:
    import pandas

Place = tuple[str, str, str]  # run, task with `|k`, metric


class Score(NamedTuple):
    """A score.

    Attributes:
        value: In the metric's own unit.
        error: Its standard error; None where the items do not tell it (a single cluster, no details).
        n: Items that it is of: those that have a score and count.
        asked: Items that it should be of: also those without a score.
        low: Lower end of the 95% interval, within the metric's declared range; None without an error.
        high: Its upper end.
    """

    value: float
    error: float | None
    n: int
    asked: int
    low: float | None = None
    high: float | None = None

    def times(self, scale: float) -> "Score":
        """The same in another unit, such as percent."""
        numbers = (self.value, self.error, self.low, self.high)
        value, error, low, high = (None if one is None else scale * one for one in numbers)
        return Score(value or 0.0, error, self.n, self.asked, low, high)


class Influence(NamedTuple):
    """A score of one run, and what its clusters add to it and to its error.

    Attributes:
        value: The score.
        error: Its standard error; nan where the clusters do not tell it.
        df: Degrees of freedom of the error.
        clusters: [G] their numbers, the same in all scores of a frame.
        add: [G] to the error: its square is the sum of squares.
        sums: [G, P] to the score: (num, den), or the statistics of a corpus score.
    """

    value: float
    error: float
    df: float
    clusters: NDArray[np.int64]
    add: Floats
    sums: Floats


def influences(items: "pandas.DataFrame", alike: bool = True) -> dict[Place, Influence]:
    """The scores of a frame.

    Args:
        alike: Whether clusters that all score alike have an unknown error, or Wilson's where that score is an end of
            the range 0 to 1; else they add nothing, as in a difference.

    Returns:
        By run, task and metric; those without a scored item are absent.
    """
    counts = (items["num"].notna() & (items["den"] > 0)).to_numpy()
    scored = items if counts.all() else items[counts]
    group = scored.groupby(SCORE, observed=True, sort=False).ngroup().to_numpy()
    cluster = scored["cluster"].astype("category").cat.codes.to_numpy().astype(np.int64)
    _, first, cell = np.unique(group * (cluster.max(initial=0) + 1) + cluster, return_index=True, return_inverse=True)
    ratios: Floats = np.stack([np.bincount(cell, scored[name], len(first)) for name in ("num", "den")], axis=1)
    starts = np.flatnonzero(np.diff(group[first], prepend=-1))
    places = scored.iloc[first[starts]][SCORE].itertuples(index=False, name=None)
    found: dict[Place, Influence] = {}
    cells = np.split(np.arange(len(first)), starts[1:])  # one, empty, where there is no score
    for number, (place, own) in enumerate(zip(places, cells, strict=False)):
        function, sums = of_sums(*place[1:]), ratios[own]
        if function:
            rows = np.flatnonzero(group == number)
            statistics = np.stack(scored["sums"].iloc[rows].to_list())
            sums = np.zeros((len(own), statistics.shape[1]))
            np.add.at(sums, cell[rows] - own[0], statistics)
        value, add = jackknife(sums, function)
        if alike:
            add = at_ends(value, add, sorted(ends(*place[1:])) == sorted(SHARE))
        error = math.sqrt(float(np.square(add).sum()))
        found[place] = Influence(value, error, len(own) - 1, cluster[first[own]], add, sums)
    return found


def average(found: Sequence[Influence], weights: Sequence[float]) -> Influence:
    """The weighted average of scores of one run; its degrees of freedom are Satterthwaite's, its `sums` empty."""
    weight = np.array(weights) / math.fsum(weights)
    squares = (weight * np.array([one.error for one in found])) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        df = float(squares.sum() ** 2 / (squares**2 / np.array([one.df for one in found])).sum())
    clusters, place = np.unique(np.concatenate([one.clusters for one in found]), return_inverse=True)
    adds = np.concatenate([share * one.add for share, one in zip(weight, found, strict=True)])
    add: Floats = np.asarray(np.bincount(place, adds), np.float64)
    error = math.sqrt(float(np.square(add).sum()))
    value = math.fsum(share * one.value for share, one in zip(weight, found, strict=True))
    return Influence(value, error if error >= TINY else math.nan, df, clusters, add, np.empty((len(add), 0)))


def task_scores(items: "pandas.DataFrame") -> dict[Place, Score]:
    """The score of each run, task and metric that has one."""
    counts = counts_of(items, SCORE)
    return {place: score_of(one, counts[place], ends(*place[1:])) for place, one in influences(items).items()}


def mean(items: "pandas.DataFrame", parts: Parts) -> dict[str, Score]:
    """The weighted average of some scores of each run; tasks that share clusters vary together.

    Args:
        items: The frame, of one run or of several.
        parts: The scores; their metrics have one range.

    Returns:
        By run; a run that lacks a part has no average. Its error is None where that of a part is unknown.
    """
    chosen = items_of(items, parts)
    found, counts, limits = influences(chosen), counts_of(chosen, ["run"]), ends(*next(iter(parts)))
    return {
        run: score_of(average(own, list(parts.values())), counts[run], limits)
        for run, own in complete(found, parts).items()
    }


def complete(found: dict[Place, Influence], parts: Parts) -> dict[str, list[Influence]]:
    """The scores of an average of each run that has all of them, in the order of `parts`."""
    runs = dict.fromkeys(run for run, _, _ in found)
    return {run: [found[run, *part] for part in parts] for run in runs if all((run, *part) in found for part in parts)}


def counts_of(items: "pandas.DataFrame", by: list[str]) -> dict[tuple[str, ...] | str, tuple[int, int]]:
    """By some columns the items that have a score and count, and those that should: a ratio does not count all.

    Where these do not have the metric, an item with scores by several metrics counts once.
    """
    applies = items[(items["den"] > 0).to_numpy()]
    if "metric" not in by and applies["metric"].nunique() > 1:
        one = applies.groupby([*by, "task", "item"], observed=True, sort=False).ngroup().to_numpy()
        known = np.bincount(one, applies["num"].notna()) > 0
        applies = applies.iloc[np.unique(one, return_index=True)[1]].assign(num=np.where(known, 0.0, np.nan))
    counted = applies.groupby(by, observed=True, sort=False)["num"].agg(["count", "size"])
    return {place: (int(n), int(size)) for place, n, size in counted.itertuples(name=None)}


def score_of(found: Influence, counts: tuple[int, int], limits: tuple[float, float]) -> Score:
    """A score with its interval.

    Args:
        counts: Items with a score, and items asked.
        limits: The range of its metrics.
    """
    if math.isnan(found.error):
        return Score(found.value, None, *counts)
    low, high = sorted(limits)
    return Score(found.value, found.error, *counts, *interval(found.value, found.error, low, high, found.df))


def interval(
    value: float, error: float, low: float = -math.inf, high: float = math.inf, df: float = math.inf
) -> tuple[float, float]:
    """The 95% interval of a score from its standard error.

    Between two finite ends it is Wilson's (1927) of the trials that have this error, which holds near the ends too;
    else Student's, cut at the one end that there is.

    Args:
        low: The least score that there can be; nan: unknown.
        high: The largest.
        df: Degrees of freedom of the error: clusters - 1.
    """
    from scipy.special import stdtrit

    low, high = (-math.inf if math.isnan(low) else low), (math.inf if math.isnan(high) else high)
    quantile = float(stdtrit(df, 0.975)) if math.isfinite(df) and df > 0 else NORMAL_95
    if not (math.isfinite(low) and math.isfinite(high) and low <= value <= high) or error <= 0:
        return max(low, value - quantile * error), min(high, value + quantile * error)
    share, error, square = (value - low) / (high - low), error / (high - low), quantile**2
    trials = max(share * (1 - share) / error**2, quantile / (2 * error) - square, 1e-9)
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    reach = quantile * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2)) / (1 + square / trials)
    first, last = max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))
    return low + (high - low) * first, low + (high - low) * last


def places_of(frame: "pandas.DataFrame") -> tuple[NDArray[np.int64], list[tuple[str, str]]]:
    """The (task, metric) pairs of a frame: the number of each row's pair, and the pairs."""
    place = frame.groupby(["task", "metric"], observed=True, sort=False).ngroup().to_numpy().astype(np.int64)
    first = np.unique(place, return_index=True)[1]
    return place, list(frame.iloc[first][["task", "metric"]].astype(object).itertuples(index=False, name=None))


def items_of(items: "pandas.DataFrame", parts: Parts) -> "pandas.DataFrame":
    """The items of some scores."""
    place, places = places_of(items)
    return items[np.array([one in parts for one in places], bool)[place]]


def fill(items: "pandas.DataFrame") -> "pandas.DataFrame":
    """THE rule of what is missing: it counts as the worst score of the metric's declared range.

    Missing are rows without a score, and items that another run has and this one lacks. Metrics without a finite worst
    value, and corpus scores with something missing, are left out: they have no rank.
    """
    full = _with_missing_items(items)
    place, places = places_of(full)
    worst = np.array([np.nan if of_sums(*one) else ends(*one)[0] for one in places], np.float64)
    lacking = full["num"].isna().to_numpy()
    with np.errstate(invalid="ignore"):
        num = np.where(lacking, worst[place] * full["den"].to_numpy(), full["num"])
    unknown = np.bincount(place, ~np.isfinite(num), len(places)) > 0
    full = full.assign(num=num, reason="")[COLUMNS]
    return full[~unknown[place]] if unknown.any() else full


def _with_missing_items(items: "pandas.DataFrame") -> "pandas.DataFrame":
    """A frame, and the items that a run lacks and another has in a score of both, without a score (num is nan)."""
    import pandas

    place, places = places_of(items)
    item = items.groupby(["task", "metric", "item"], observed=True, sort=False).ngroup().to_numpy()
    run = pandas.factorize(items["run"])[0]
    first, count = np.unique(item, return_index=True)[1], int(item.max(initial=-1)) + 1
    taken = np.unique(run * len(places) + place)  # the scores that each run has
    order = np.argsort(place[first], kind="stable")
    of_place = np.split(order, np.cumsum(np.bincount(place[first], minlength=len(places)))[:-1])
    wanted = [one // len(places) * count + of_place[one % len(places)] for one in taken]
    lacking = np.setdiff1d(np.concatenate([*wanted, np.empty(0, np.int64)]), run * count + item)
    if not len(lacking):
        return items
    most = np.zeros(count)
    np.maximum.at(most, item, items["den"].to_numpy())
    names = items["run"].iloc[np.unique(run, return_index=True)[1]]
    added = items.iloc[first[lacking % count]].assign(
        run=names.iloc[lacking // count].to_numpy(), num=np.nan, den=most[lacking % count], sums=None
    )
    return pandas.concat([items, added.astype(items.dtypes.to_dict())], ignore_index=True)
