"""What the frame says: scores with their errors, averages, differences and ranks.

One formula of errors. With v the score of G clusters and v_g that without cluster g, the cluster adds
sqrt((G - 1) / G) (v - v_g), and the squared error is the sum of squares: the jackknife over clusters. It is
sd(ddof=1) / sqrt(n) for a mean of items alone, CR3 for clustered means (Cameron and Miller, J. Human Resources 50,
2015), and right for ratios and corpus scores. What a cluster adds to the scores of several tasks is summed before it is
squared, so tasks that share images or requests vary together.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cultureval.metrics.declared import SHARE
from cultureval.metrics.proportions import NORMAL_95
from cultureval.runs.frame import COLUMNS, SCORE, ends, of_sums

if TYPE_CHECKING:
    import pandas

Floats = NDArray[np.float64]
Parts = Mapping[tuple[str, str], float]  # (task with `|k`, metric) -> weight; the weights of an average sum to 1
TINY = 1e-12


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


def influence(items: "pandas.DataFrame", at_ends: bool = True) -> "pandas.DataFrame":
    """The score of each run, task and metric, and what each cluster adds to its error.

    Where all clusters score alike, their error is unknown (nan). Where that score is an end of the range 0 to 1, it is
    Wilson's for so many clusters.

    Args:
        items: The frame.
        at_ends: Whether clusters that all score alike get that error; else they add nothing, as in a difference.

    Returns:
        One row a cluster that counts: run, task, metric, cluster, its num and den, `add`; and `value`, `error` and
        `clusters` of the whole score.
    """
    import pandas

    counts = (items["num"].notna() & (items["den"] > 0)).to_numpy()
    scored = items if counts.all() else items[counts]
    places = scored[["task", "metric"]].drop_duplicates()
    corpus = {place: found for place in places.itertuples(index=False, name=None) if (found := of_sums(*place))}
    if not corpus:
        return _with_errors(_ratios(scored), at_ends)
    is_corpus = pandas.MultiIndex.from_frame(scored[["task", "metric"]]).isin(list(corpus))
    found = [_ratios(scored[~is_corpus])]
    for (_, task, metric), rows in scored[is_corpus].groupby(SCORE, observed=True, sort=False):
        found.append(_corpus_score(rows, corpus[task, metric]))
    return _with_errors(pandas.concat(found, ignore_index=True), at_ends)


def _ratios(scored: "pandas.DataFrame") -> "pandas.DataFrame":
    """Clusters of means and ratios, without errors."""
    group = scored.groupby(SCORE, observed=True, sort=False).ngroup().to_numpy()
    cluster = scored["cluster"].astype("category").cat.codes.to_numpy().astype(np.int64)
    _, first, cell = np.unique(group * (cluster.max(initial=0) + 1) + cluster, return_index=True, return_inverse=True)
    group = group[first].astype(np.int64)
    del cluster  # of many runs each array is of megabytes
    num, den = (np.bincount(cell, scored[name], len(first)) for name in ("num", "den"))
    del cell
    size, all_num, all_den = np.bincount(group), np.bincount(group, num), np.bincount(group, den)
    value = (all_num / all_den)[group]
    rest = all_den[group] - den
    rest = np.where((size[group] < 2) | (rest <= TINY), np.nan, rest)
    add = np.sqrt((size - 1) / size)[group] * (num - value * den) / rest
    found = scored.iloc[first][[*SCORE, "cluster"]]
    return found.assign(num=num, den=den, value=value, add=add, clusters=size[group].astype(int))


def _corpus_score(rows: "pandas.DataFrame", function: Callable[[Floats], Floats]) -> "pandas.DataFrame":
    """Clusters of one corpus score, without errors; `num` is what a cluster adds."""
    found = rows.drop_duplicates("cluster")[[*SCORE, "cluster"]]
    place = {name: at for at, name in enumerate(found["cluster"])}
    sums = np.stack(rows["sums"].to_list())
    of_cluster = np.zeros((len(place), sums.shape[1]))
    np.add.at(of_cluster, [place[name] for name in rows["cluster"]], sums)
    total, size = of_cluster.sum(axis=0), len(place)
    value = float(function(total))
    add = np.sqrt((size - 1) / size) * (value - function(total - of_cluster)) if size > 1 else np.full(size, np.nan)
    return found.assign(num=add, den=1.0, value=value, add=add, clusters=size)


def _with_errors(found: "pandas.DataFrame", at_ends: bool) -> "pandas.DataFrame":
    group = found.groupby(SCORE, observed=True, sort=False).ngroup().to_numpy()
    value, add, size = (found[name].to_numpy(np.float64) for name in ("value", "add", "clusters"))
    flat = np.sqrt(np.bincount(group, add**2))[group] < TINY
    at_end = np.zeros(len(found), bool)
    if at_ends and flat.any():
        limits = found.loc[flat, ["task", "metric"]]
        known = {place: ends(*place) for place in limits.drop_duplicates().itertuples(index=False, name=None)}
        shares = [sorted(known[place]) == sorted(SHARE) for place in limits.itertuples(index=False, name=None)]
        at_end[flat] = np.array(shares) & (np.minimum(np.abs(value[flat]), np.abs(1 - value[flat])) < TINY)
    wilson = NORMAL_95 / (size + NORMAL_95**2) / 2 / np.sqrt(size)
    alike = np.where(at_end, wilson, np.nan) if at_ends else np.zeros(len(found))
    add = np.where(flat & (size > 1), alike, add)
    return found.assign(add=add, error=np.sqrt(np.bincount(group, add**2))[group])


def task_scores(
    items: "pandas.DataFrame", found: "pandas.DataFrame | None" = None
) -> dict[tuple[str, str, str], Score]:
    """The score of each run, task and metric that has one: by (run, task with `|k`, metric).

    Args:
        items: The frame.
        found: `influence` of it, where that is known.
    """
    found = influence(items) if found is None else found
    counts = counts_of(items, SCORE)
    scores = {}
    for row in found.drop_duplicates(SCORE).itertuples(index=False):
        n, asked = counts[row.run, row.task, row.metric]
        scores[row.run, row.task, row.metric] = _score(
            row.value, row.error, n, asked, row.clusters - 1, ends(row.task, row.metric)
        )
    return scores


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


def _score(value: float, error: float, n: int, asked: int, df: float, limits: tuple[float, float]) -> Score:
    if math.isnan(error):
        return Score(float(value), None, n, asked)
    low, high = interval(value, error, *sorted(limits), df)
    return Score(float(value), float(error), n, asked, low, high)


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


def mean(items: "pandas.DataFrame", parts: Parts) -> dict[str, Score]:
    """The weighted average of some scores of each run; tasks that share clusters vary together.

    Args:
        items: The frame, of one run or of several.
        parts: The scores; their metrics have one range.

    Returns:
        By run; a run that lacks a part has no average. Its error is None where that of a part is unknown.
    """
    chosen = items_of(items, parts)
    counts, limits = counts_of(chosen, ["run"]), ends(*next(iter(parts)))
    table, _ = average(influence(chosen), parts)
    return {
        row.Index: _score(row.value, row.error, *counts[row.Index], row.df, limits)
        for row in table[table["value"].notna()].itertuples()
    }


class Influence(NamedTuple):
    """What the clusters of one score add to its error: `influence` as arrays.

    Attributes:
        value: The score; `error` its standard error, nan where it is not known.
        clusters: Numbers of the clusters [G], the same in all tasks.
        add: What each adds [G].
    """

    value: float
    error: float
    clusters: NDArray[np.int64]
    add: Floats


def influences(found: "pandas.DataFrame") -> dict[tuple[str, str], Influence]:
    """`influence` of one run, by task and metric."""
    import pandas

    clusters, adds = pandas.factorize(found["cluster"])[0], found["add"].to_numpy()
    values, errors = found["value"].to_numpy(), found["error"].to_numpy()
    places = found.groupby(["task", "metric"], observed=True, sort=False).indices
    return {
        (str(task), str(metric)): Influence(values[rows[0]], errors[rows[0]], clusters[rows], adds[rows])
        for (task, metric), rows in places.items()
    }


def weighted_mean(
    found: Sequence[Influence], weights: Sequence[float], counts: tuple[int, int], limits: tuple[float, float]
) -> Score:
    """The weighted average of scores of one run, as `mean` has it.

    Args:
        counts: Items with a score, and items asked.
        limits: The range of the metrics.
    """
    weight = np.array(weights) / math.fsum(weights)
    squares = (weight * np.array([one.error for one in found])) ** 2
    sizes = np.array([len(one.add) for one in found])
    with np.errstate(divide="ignore", invalid="ignore"):  # Satterthwaite's degrees of freedom
        df = float(squares.sum() ** 2 / (squares**2 / (sizes - 1)).sum())
    clusters = np.unique(np.concatenate([one.clusters for one in found]), return_inverse=True)[1]
    add = np.concatenate([share * one.add for share, one in zip(weight, found, strict=True)])
    error = math.sqrt(float((np.bincount(clusters, add) ** 2).sum()))
    value = math.fsum(share * one.value for share, one in zip(weight, found, strict=True))
    return _score(value, error if error >= TINY else math.nan, *counts, df, limits)


def average(found: "pandas.DataFrame", parts: Parts) -> tuple["pandas.DataFrame", "pandas.DataFrame"]:
    """The averages of runs, and the influences on them.

    Args:
        found: `influence` of the scores in `parts`.

    Returns:
        By run: value (nan where a part is missing), error, df (Satterthwaite's); and the influences, with `add` times
        the weight of its score, and `weight`.
    """
    import pandas

    place, places = places_of(found)
    weights = np.array([parts.get(one, np.nan) for one in places], np.float64)
    weight = weights[place] / math.fsum(parts.values())
    found = found.assign(add=found["add"] * weight, weight=weight)
    scores = found.drop_duplicates(SCORE)
    run, runs = pandas.factorize(scores["run"].astype(object))
    squares = (scores["weight"] * scores["error"]).to_numpy() ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.bincount(run, squares) ** 2 / np.bincount(run, squares**2 / (scores["clusters"] - 1).to_numpy())
    value = np.bincount(run, scores["weight"] * scores["value"])
    value[np.bincount(run) < len(parts)] = np.nan
    error = np.sqrt((wide(found, "add", ["cluster"], list(runs)) ** 2).sum(axis=0))
    error[error < TINY] = np.nan
    return pandas.DataFrame({"value": value, "error": error, "df": df}, index=runs), found


def wide(found: "pandas.DataFrame", column: str, rows: list[str], runs: list[str]) -> Floats:
    """[rows, runs] the sums of a column by some names and by run; 0 where there is nothing."""
    import pandas

    row = found.groupby(rows, observed=True, sort=True).ngroup().to_numpy()
    cell = row * len(runs) + pandas.Index(runs).get_indexer(found["run"].astype(object))
    return np.bincount(cell, found[column], (row.max(initial=-1) + 1) * len(runs)).reshape(-1, len(runs))


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
