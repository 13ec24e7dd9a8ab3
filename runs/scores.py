"""Statistics of the frame: scores with their errors, averages, differences and ranks.

All standard errors are by the jackknife over clusters. Let v be the score of G clusters, and v_g the score without
cluster g. The influence of the cluster is sqrt((G - 1) / G) (v - v_g), and the squared error is the sum of squared
influences. For a mean of items this is sd(ddof=1) / sqrt(n), for clustered means CR3 (Cameron and Miller, J. Human
Resources 50, 2015); it also holds for ratios and corpus scores. Influences of a cluster on several tasks are summed
before they are squared, so tasks that share images or requests vary together.
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
        value: In the metric's unit.
        error: Its standard error; None where it cannot be estimated (a single cluster, no details).
        n: Items with a score.
        asked: Items with or without a score.
        low: Lower end of the 95% confidence interval, within the metric's range; None without an error.
        high: Its upper end.
    """

    value: float
    error: float | None
    n: int
    asked: int
    low: float | None = None
    high: float | None = None

    def times(self, scale: float) -> "Score":
        """The score in another unit, for example percent."""
        numbers = (self.value, self.error, self.low, self.high)
        value, error, low, high = (None if number is None else scale * number for number in numbers)
        return Score(value or 0.0, error, self.n, self.asked, low, high)


class Influence(NamedTuple):
    """A score of a run with the influence of each cluster.

    Attributes:
        value: The score.
        error: Its standard error; nan where it cannot be estimated.
        df: Degrees of freedom of the error.
        clusters: [G] ids of clusters, the same in all scores of a frame.
        add: [G] influences; the squared error is their sum of squares.
        sums: [G, P] shares of the score: (num, den), or the statistics of a corpus score.
    """

    value: float
    error: float
    df: float
    clusters: NDArray[np.int64]
    add: Floats
    sums: Floats


def influences(items: "pandas.DataFrame", alike: bool = True) -> dict[Place, Influence]:
    """The scores of a frame, with influences.

    Args:
        alike: If all clusters have the same score: True makes the error unknown, or Wilson's at an end of the range 0
            to 1; False makes it 0, as differences need.

    Returns:
        By run, task and metric; absent without a scored item.
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
    cells = np.split(np.arange(len(first)), starts[1:])  # a single empty one without scores
    for number, (place, of_score) in enumerate(zip(places, cells, strict=False)):
        function, sums = of_sums(*place[1:]), ratios[of_score]
        if function:
            rows = np.flatnonzero(group == number)
            statistics = np.stack(scored["sums"].iloc[rows].to_list())
            sums = np.zeros((len(of_score), statistics.shape[1]))
            np.add.at(sums, cell[rows] - of_score[0], statistics)
        value, add = jackknife(sums, function)
        if alike:
            add = at_ends(value, add, sorted(ends(*place[1:])) == sorted(SHARE))
        error = math.sqrt(float(np.square(add).sum()))
        found[place] = Influence(value, error, len(of_score) - 1, cluster[first[of_score]], add, sums)
    return found


def average(found: Sequence[Influence], weights: Sequence[float]) -> Influence:
    """The weighted average of scores of a run, with Satterthwaite's degrees of freedom and empty `sums`."""
    weight = np.array(weights) / math.fsum(weights)
    squares = (weight * np.array([score.error for score in found])) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        df = float(squares.sum() ** 2 / (squares**2 / np.array([score.df for score in found])).sum())
    clusters, place = np.unique(np.concatenate([score.clusters for score in found]), return_inverse=True)
    adds = np.concatenate([share * score.add for share, score in zip(weight, found, strict=True)])
    add: Floats = np.asarray(np.bincount(place, adds), np.float64)
    error = math.sqrt(float(np.square(add).sum()))
    value = math.fsum(share * score.value for share, score in zip(weight, found, strict=True))
    return Influence(value, error if error >= TINY else math.nan, df, clusters, add, np.empty((len(add), 0)))


def task_scores(items: "pandas.DataFrame") -> dict[Place, Score]:
    """The score of each run, task and metric with a scored item."""
    counts = counts_of(items, SCORE)
    return {
        place: score_of(influence, counts[place], ends(*place[1:])) for place, influence in influences(items).items()
    }


def mean(items: "pandas.DataFrame", parts: Parts) -> dict[str, Score]:
    """The weighted average of scores, by run; tasks that share clusters vary together.

    Args:
        items: The frame, of one run or of several.
        parts: The scores; their metrics have one range.

    Returns:
        By run; absent for a run without a score of a part. The error is None where the error of a part is unknown.
    """
    chosen = items_of(items, parts)
    found, counts, limits = influences(chosen), counts_of(chosen, ["run"]), ends(*next(iter(parts)))
    return {
        run: score_of(average(scores, list(parts.values())), counts[run], limits)
        for run, scores in complete(found, parts).items()
    }


def complete(found: dict[Place, Influence], parts: Parts) -> dict[str, list[Influence]]:
    """The scores of an average in the order of `parts`, by run, for runs that have all."""
    runs = dict.fromkeys(run for run, _, _ in found)
    return {run: [found[run, *part] for part in parts] for run in runs if all((run, *part) in found for part in parts)}


def counts_of(items: "pandas.DataFrame", by: list[str]) -> dict[tuple[str, ...] | str, tuple[int, int]]:
    """Number of items with a score, and of all items, by the columns `by`; items with weight 0 do not count.

    Without the metric in `by`, an item with scores by several metrics counts once.
    """
    applies = items[(items["den"] > 0).to_numpy()]
    if "metric" not in by and applies["metric"].nunique() > 1:
        item = applies.groupby([*by, "task", "item"], observed=True, sort=False).ngroup().to_numpy()
        known = np.bincount(item, applies["num"].notna()) > 0
        applies = applies.iloc[np.unique(item, return_index=True)[1]].assign(num=np.where(known, 0.0, np.nan))
    counted = applies.groupby(by, observed=True, sort=False)["num"].agg(["count", "size"])
    return {place: (int(n), int(size)) for place, n, size in counted.itertuples(name=None)}


def score_of(found: Influence, counts: tuple[int, int], limits: tuple[float, float]) -> Score:
    """A score with its interval.

    Args:
        counts: Number of items with a score, and of all items.
        limits: The range of the metrics.
    """
    if math.isnan(found.error):
        return Score(found.value, None, *counts)
    low, high = sorted(limits)
    return Score(found.value, found.error, *counts, *interval(found.value, found.error, low, high, found.df))


def interval(
    value: float, error: float, low: float = -math.inf, high: float = math.inf, df: float = math.inf
) -> tuple[float, float]:
    """The 95% confidence interval of a score from its standard error.

    In a finite range it is Wilson's (1927), for the number of trials with this error, which holds near the ends too.
    Otherwise it is Student's, cut at a finite end.

    Args:
        low: The least possible score; nan: unknown.
        high: The largest possible score.
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
    """The index of each row's (task, metric) pair, and the pairs."""
    place = frame.groupby(["task", "metric"], observed=True, sort=False).ngroup().to_numpy().astype(np.int64)
    first = np.unique(place, return_index=True)[1]
    return place, list(frame.iloc[first][["task", "metric"]].astype(object).itertuples(index=False, name=None))


def items_of(items: "pandas.DataFrame", parts: Parts) -> "pandas.DataFrame":
    """The rows of the scores in `parts`."""
    place, places = places_of(items)
    return items[np.array([pair in parts for pair in places], bool)[place]]


def fill(items: "pandas.DataFrame") -> "pandas.DataFrame":
    """Fills missing scores: each counts as the worst score of the metric's declared range.

    Missing are rows without a score, and items that only another run has. Metrics without a finite worst score, and
    corpus scores with missing items, are left out, so that they have no rank.
    """
    full = _with_missing_items(items)
    place, places = places_of(full)
    worst = np.array([np.nan if of_sums(*pair) else ends(*pair)[0] for pair in places], np.float64)
    missing = full["num"].isna().to_numpy()
    with np.errstate(invalid="ignore"):
        num = np.where(missing, worst[place] * full["den"].to_numpy(), full["num"])
    unknown = np.bincount(place, ~np.isfinite(num), len(places)) > 0
    full = full.assign(num=num, reason="")[COLUMNS]
    return full[~unknown[place]] if unknown.any() else full


def _with_missing_items(items: "pandas.DataFrame") -> "pandas.DataFrame":
    """A frame with further rows (num is nan) for items that a run does not have, in scores that it has."""
    import pandas

    place, places = places_of(items)
    item = items.groupby(["task", "metric", "item"], observed=True, sort=False).ngroup().to_numpy()
    run = pandas.factorize(items["run"])[0]
    first, count = np.unique(item, return_index=True)[1], int(item.max(initial=-1)) + 1
    taken = np.unique(run * len(places) + place)  # the scores that each run has
    order = np.argsort(place[first], kind="stable")
    of_place = np.split(order, np.cumsum(np.bincount(place[first], minlength=len(places)))[:-1])
    wanted = [score // len(places) * count + of_place[score % len(places)] for score in taken]
    missing = np.setdiff1d(np.concatenate([*wanted, np.empty(0, np.int64)]), run * count + item)
    if not len(missing):
        return items
    most = np.zeros(count)
    np.maximum.at(most, item, items["den"].to_numpy())
    names = items["run"].iloc[np.unique(run, return_index=True)[1]]
    added = items.iloc[first[missing % count]].assign(
        run=names.iloc[missing // count].to_numpy(), num=np.nan, den=most[missing % count], sums=None
    )
    return pandas.concat([items, added.astype(items.dtypes.to_dict())], ignore_index=True)
