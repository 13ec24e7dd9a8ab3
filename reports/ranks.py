"""Ranks of models that say what the data cannot tell: rank intervals, ties for the top, neighbours told apart.

Pure functions on item scores. All models are compared on the same items: a resample draws the items (or their
clusters) of each subset once, for all models, so that what is hard for every model cancels in differences.

>>> table = SubsetScores(scores, clusters)  # [items, models]
>>> ranking = rank_models(("a", "b", "c"), resample([table]))
>>> ranking.rows[0].low, ranking.rows[0].high, ranking.rows[0].tied_for_top, ranking.sentence()

Rank intervals are those of Mogstad, Romano, Shaikh and Wilhelm (Review of Economic Studies 91, 2024): a model's rank is
at least 1 + the number of models that are better for sure, and at most M - the number that are worse for sure, where
"for sure" is by the bootstrap of the largest studentised difference of any two models. So all intervals hold together,
and so does the set of models whose interval reaches 1: it has all that are best, with the chance that is said. The
percentiles of resampled ranks are no such thing: models that are equally good would get intervals that leave out their
own rank.

A model cannot gain by leaving items out: what it has no score for counts as wrong (the caller fills it in). Of all
that such items could have been (`SubsetScores.spans`), that is taken by which it is better than others least easily,
and others better than it most easily: of a difference's variance, its degrees of freedom, and the clusters that differ.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cultureval.metrics.paired_tests import PairedSubset, ScoreOfSums
from cultureval.metrics.resampling import (
    AverageDraws,
    cluster_names,
    cluster_sums,
    drawn_counts,
    drawn_together,
    numbers_of,
)

ITERATIONS = 2000
LEVEL = 0.95
TINY = 1e-10  # differences below it are rounding
DRAWN = 2.0  # times what items without a score could change of a variance: draws know variances to a few percent
Floats = NDArray[np.float64]
_Part = tuple[float, Floats, Floats, ScoreOfSums | None]  # a subset's share, its sums by cluster, totals, score
_Table = tuple[Floats, Floats, list[Hashable]]  # what `_checked` returns
_Unscored = tuple[NDArray[np.int64], Floats, Floats]


@dataclass(frozen=True)
class SubsetScores:
    """The scores of M models on the N items of one subset.

    Attributes:
        scores: [N, M] finite item scores, or the numerators of a ratio of sums; with `score` [N, M, P], whose sums over
            items give it.
        clusters: [N] what an item shares with others, of this subset or another (an image, a request that is asked in
            several dialects); None, or None for an item: nothing.
        totals: [N, M] or [N] denominators of a ratio of sums (for CFHR: Q+ was correct); None: 1 for every item, so
            that the score is the mean.
        weight: Of the subset in the average, relative to the others'.
        score: The score of sums [..., P], such as a corpus score of counts; None: a mean, or a ratio to `totals`.
        spans: [N, M] what the best score would add to the numerator (less than 0 where lower is better) of an item that
            a model has no score for, filled in with the worst; infinite where nothing bounds it; 0 of others; None:
            every model has all scores.
    """

    scores: ArrayLike
    clusters: Sequence[Hashable] | None = None
    totals: ArrayLike | None = None
    weight: float = 1.0
    score: ScoreOfSums | None = None
    spans: ArrayLike | None = None

    def pair(self, first: int, second: int) -> PairedSubset:
        """Two of the models, for `compare_paired`."""
        scores, totals, _ = _checked(self)
        if self.score is not None:
            return PairedSubset(scores[:, first], scores[:, second], self.score, self.clusters, self.weight)
        totals = np.broadcast_to(totals, scores.shape)
        sides = [np.column_stack([scores[:, model], totals[:, model]]) for model in (first, second)]
        return PairedSubset(*sides, clusters=self.clusters, weight=self.weight)


@dataclass(frozen=True)
class Resamples:
    """The average scores of M models, in the sample and in B resamples of its items.

    Attributes:
        values: [M] in the sample.
        draws: [B, M] in the resamples, their spread corrected for the number of clusters.
        seed: Of the draws.
        freedom: Degrees of freedom of differences of models.
        lacking: [M] whether a model has no score for some items. What these could have been counts against it in the
            following, of whether the model of a row is better than that of a column.
        differing: [M, M] clusters on which the two differ: the fewest by what the row's model lacks, and the most by
            what the column's lacks.
        unsure: [M, M] what is added to the variance of their difference: likewise the most, and the least.
        freedoms: [M, M] degrees of freedom of their difference: likewise the least, and the most.
        unbounded: [M] whether nothing bounds what a model lacks: it is better than none for sure.
    """

    values: Floats
    draws: Floats
    seed: int
    freedom: float
    lacking: NDArray[np.bool_]
    differing: NDArray[np.int64]
    unsure: Floats
    freedoms: Floats
    unbounded: NDArray[np.bool_]


@dataclass(frozen=True)
class RankRow:
    """A model's place.

    Attributes:
        model: Its name.
        score: Its average score.
        stderr: The standard error of that score.
        rank: By the score, from 1; equal scores have the same rank.
        low: The best rank that the data allow.
        high: The worst.
        apart_from_next: Whether the data tell it from the model of the next row; None in the last row.
    """

    model: str
    score: float
    stderr: float
    rank: int
    low: int
    high: int
    apart_from_next: bool | None

    @property
    def tied_for_top(self) -> bool:
        """Whether no model is better for sure."""
        return self.low == 1


@dataclass(frozen=True)
class Ranking:
    """The models of a column, the best first.

    Attributes:
        rows: One a model.
        level: Confidence of each interval.
        iterations: Resamples.
        seed: Of the resamples.
    """

    rows: tuple[RankRow, ...]
    level: float
    iterations: int
    seed: int

    @property
    def neighbours(self) -> int:
        """Pairs of neighbouring rows."""
        return max(len(self.rows) - 1, 0)

    @property
    def told_apart(self) -> int:
        """Pairs of neighbouring rows that the data tell apart."""
        return sum(row.apart_from_next is True for row in self.rows)

    @property
    def share_told_apart(self) -> float | None:
        """`told_apart` of `neighbours`; None for a single model."""
        return self.told_apart / self.neighbours if self.neighbours else None

    @property
    def is_one_on_top(self) -> bool:
        """Whether the best model is the best for sure, and no other can be."""
        first, *others = self.rows
        return first.high == 1 and not any(row.tied_for_top for row in others)

    def sentence(self) -> str:
        """What a reader of the table must know, in one sentence."""
        if not self.neighbours:
            return "A single model has no rank."
        top = sum(row.tied_for_top for row in self.rows)
        sure = self.is_one_on_top
        alone = f"{self.rows[0].model} alone is at the top" if sure else "no model is alone at the top for sure"
        tied = f"{top} models are tied for the top" if top > 1 else alone
        return (
            f"The data tell {self.told_apart} of {self.neighbours} neighbouring ranks apart "
            f"({self.share_told_apart:.0%}), and {tied}: {100 * self.level:.0f}% rank intervals for all together, "
            f"paired bootstrap of items within subsets, {self.iterations} resamples, seed {self.seed}."
        )


def resample(subsets: Sequence[SubsetScores], iterations: int = ITERATIONS, seed: int = 0) -> Resamples:
    """The weighted average of subsets' scores for all models, and the same in resamples of their items.

    Items are drawn within subsets, whole clusters at a time; subsets that share clusters are drawn together. Deviations
    from the sample are enlarged by sqrt(G / (G - 1)) for the G clusters that are drawn together, since a bootstrap's
    spread is too small by that factor.

    Args:
        subsets: At least one; the same M models in the same order in each.
        iterations: B, at least 2.
        seed: Of the draws, which depend on nothing else but the numbers of clusters.

    Returns:
        The averages; nan where a ratio's denominators are all 0.

    Raises:
        ValueError: There is no subset or item, shapes differ, a score is not finite, weights are not positive, or a
            subset has a single item or cluster, of which nobody knows how much it varies.
    """
    tables = [_checked(subset) for subset in subsets]
    if len({scores.shape[1] for scores, _, _ in tables}) != 1 or not all(subset.weight > 0 for subset in subsets):
        raise ValueError("subsets must be of the same models, at least one, and their weights positive")
    shares = np.array([subset.weight for subset in subsets], dtype=np.float64)
    shares /= shares.sum()
    generator = np.random.default_rng(seed)
    models = tables[0][0].shape[1]
    groups = drawn_together([names for _, _, names in tables])
    draws, found = AverageDraws(iterations, models, len(groups)), list[_Unscored]()
    total = np.zeros(models)
    for members in groups:
        parts, spans = _summed([(shares[place], subsets[place], tables[place]) for place in members])
        count = len(spans)
        sample = _average(np.ones((1, count)), parts, models)
        total += sample[0]
        drawn = np.concatenate([_average(taken, parts, models) for taken in drawn_counts(count, iterations, generator)])
        deviations = (drawn - sample) * np.sqrt(count / (count - 1))
        draws.add(deviations, float(shares[members].sum()), count)
        found.append(_unscored(parts, spans))
    freedom = draws.finish(generator)
    differing, variances, spans = (np.array(of_groups) for of_groups in zip(*found, strict=True))
    unsure = DRAWN * (variances.sum(axis=0) + draws.borrowed(variances))
    freedoms = draws.freedoms(np.sqrt(DRAWN * spans))
    lacking, values = spans.any(axis=0), total + draws.total
    unbounded = np.any([np.isinf(subset.spans).any(axis=0) for subset in subsets if subset.spans is not None], axis=0)
    unbounded = np.broadcast_to(unbounded, models)
    return Resamples(total, values, seed, freedom, lacking, differing.sum(axis=0), unsure, freedoms, unbounded)


def _summed(members: Sequence[tuple[float, SubsetScores, _Table]]) -> tuple[list[_Part], Floats]:
    """Subsets that are drawn together by cluster, each with its share of the average, and their spans [G, M] of it.

    Where nothing bounds a score, its span is the largest score (`Resamples.unbounded` knows it).

    Raises:
        ValueError: There is a single cluster.
    """
    numbers = numbers_of([names for _, _, (_, _, names) in members])
    count = len(numbers)
    if count < 2:
        raise ValueError("a subset has a single item or cluster, and how much it varies is unknown")
    parts, spans = list[_Part](), np.zeros((count, members[0][2][0].shape[1]))
    for share, subset, (scores, totals, names) in members:
        rows = [numbers[name] for name in names]
        sums = cluster_sums(scores.reshape(len(names), -1), rows, count)
        parts.append((share, sums, cluster_sums(totals, rows, count), subset.score))
        if subset.spans is not None:
            own = np.asarray(subset.spans, np.float64)
            own = np.where(np.isinf(own), scores.max(), own)
            spans += share * cluster_sums(own, rows, count) / totals.sum(axis=0)
    return parts, spans


def rank_models(
    models: Sequence[str], resamples: Resamples, level: float = LEVEL, higher_is_better: bool = True
) -> Ranking:
    """The models in the order of their scores, with rank intervals, and which neighbours the data tell apart.

    With probability `level` or more every interval holds its model's true rank, every best model's reaches 1, and no
    equal models are told apart, all at once: each two models are told apart by the largest studentised difference of
    any two, and only where they differ on so many clusters that a sign test of all pairs (Bonferroni) could do so.

    Raises:
        ValueError: The number of names is not M, or a score is not defined, or not all in half of the resamples.
    """
    values, draws = resamples.values, resamples.draws
    if len(models) != len(values):
        raise ValueError(f"there are {len(models)} models but scores of {len(values)}")
    if not np.isfinite(values).all():
        raise ValueError(f"the score of {models[int(np.flatnonzero(~np.isfinite(values))[0])]} is not defined")
    sign = 1.0 if higher_is_better else -1.0
    order = sorted(range(len(models)), key=lambda place: (-sign * values[place], models[place]))
    scores = sign * values[order]
    spread = sign * draws[np.isfinite(draws).all(axis=1)][:, order] - scores
    if 2 * len(spread) < len(draws):
        raise ValueError(f"the scores of all models are defined in {len(spread)} of {len(draws)} resamples only")
    errors, both = spread.std(axis=0), np.ix_(order, order)
    enough = 2 * 0.5 ** resamples.differing[both] < (1 - level) / _pairs(len(order))
    bounds = _bounds(spread, level, resamples.lacking[order], resamples.freedoms[both])
    better = _better(scores, spread, resamples.unsure[both], bounds) & enough & ~resamples.unbounded[order][:, None]
    rows = []
    for place, index in enumerate(order):
        rank = 1 + int((scores > scores[place] + TINY).sum())
        after = bool(better[place, place + 1]) if place + 1 < len(order) else None
        ends = 1 + int(better[:, place].sum()), len(order) - int(better[place].sum())
        rows.append(RankRow(models[index], float(values[index]), float(errors[place]), rank, *ends, after))
    return Ranking(tuple(rows), level, len(spread), resamples.seed)


def kendall_distance(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """How much two leaderboards of the same models disagree.

    Args:
        first: Scores of M models, at least 2, higher is better.
        second: The scores of the same models in the same order.

    Returns:
        (distance, tau-b): the share of pairs of models that the two order differently, 0 to 1, a pair that is tied in
        one of them alone counting half (Kendall 1938; Fagin et al. 2004 with penalty 1/2); Kendall's tau-b by scipy,
        nan where one ties all models.

    Raises:
        ValueError: Fewer than two models, or lengths that differ.
    """
    from scipy.stats import kendalltau

    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if one.shape != other.shape or one.ndim != 1 or one.size < 2:
        raise ValueError(f"two lists of scores of the same two or more models are needed, not {one.shape, other.shape}")
    upper = np.triu_indices(one.size, 1)
    signs = [np.sign(np.subtract.outer(scores, scores))[upper] for scores in (one, other)]
    return float(np.abs(signs[0] - signs[1]).mean() / 2), float(kendalltau(one, other).statistic)


def _checked(subset: SubsetScores) -> _Table:
    """Numerators [N, M], denominators [N, M] or [N, 1], and each item's cluster, its own where it shares none."""
    scores = np.asarray(subset.scores, dtype=np.float64)
    if scores.ndim != (2 if subset.score is None else 3) or not scores.size:
        raise ValueError(f"scores must be a table of items by models, not of shape {scores.shape}")
    totals = np.ones(len(scores)) if subset.totals is None else np.asarray(subset.totals, dtype=np.float64)
    totals = totals[:, None] if totals.ndim == 1 else totals
    if totals.shape not in (scores.shape[:2], (len(scores), 1)):
        raise ValueError(f"totals have shape {totals.shape}, and the scores {scores.shape}")
    if not (np.isfinite(scores).all() and np.isfinite(totals).all()):
        raise ValueError("scores must be finite: leave out items that a model has no score for")
    return scores, totals, cluster_names(subset.clusters, len(scores))


def _average(taken: Floats, parts: Sequence[_Part], models: int) -> Floats:
    """The weighted sum of subsets' scores, [B, M], where each cluster is taken so many times, [B, G]."""
    average = np.zeros((len(taken), models))
    for share, scores, totals, score in parts:
        if score is not None:
            average += share * score((taken @ scores).reshape(len(taken), models, -1))
            continue
        above, below = taken @ scores, np.broadcast_to(taken @ totals, average.shape)
        average += share * np.divide(above, below, out=np.full_like(above, np.nan), where=below != 0)
    return average


def _unscored(parts: Sequence[_Part], spans: Floats) -> _Unscored:
    """Of subsets that are drawn together `Resamples.differing` [M, M] and `unsure` [M, M], and a bound by model [M].

    The last is how much the variance of its values would be if its items without a score were all that varies; `spans`
    are [G, M], of values. The sum over clusters of squared influences is a variance: the square of one is the least, by
    what the column's model lacks, then the most, by what the row's lacks.
    """
    count, models = spans.shape
    table = np.concatenate(
        [sums.reshape(count, models, -1) for _, sums, _, _ in parts]
        + [np.broadcast_to(totals, (count, models))[..., None] for _, _, totals, _ in parts],
        axis=2,
    )
    open_ = spans.any(axis=1)
    influence, spans_, lacks = _influence(parts, models)[open_], spans[open_], spans != 0
    low, high = np.minimum(spans_, 0), np.maximum(spans_, 0)
    scale = count / (count - 1)
    differing, unsure = np.zeros((models, models), np.int64), np.zeros((models, models))
    for row in range(models):
        differs = (np.abs(table - table[:, [row]]) > TINY).any(axis=2) & ~lacks[:, [row]]
        differing[row] = (differs | lacks).sum(axis=0)
        if not len(spans_):
            continue
        apart = influence[:, [row]] - influence
        farthest = np.max([np.abs(end - end.clip(low, high)) for end in (apart, apart + spans_[:, [row]])], axis=0)
        unsure[row] = (np.square(farthest) - np.square(apart)).sum(axis=0) - np.square(spans_.sum(axis=0)) / count
    return differing, scale * unsure, scale * np.square(spans_).sum(axis=0)


def _influence(parts: Sequence[_Part], models: int) -> Floats:
    """What each cluster adds to the values, [G, M], about their mean, of means and ratios."""
    influence = np.zeros((len(parts[0][1]), models))
    for share, sums, totals, score in parts:
        if score is None:
            below = np.where(totals.any(axis=0), totals.sum(axis=0), np.nan)
            influence += share * (sums - totals * (sums.sum(axis=0) / below)) / below
    return influence


def _better(scores: Floats, spread: Floats, unsure: Floats, bounds: Floats) -> NDArray[np.bool_]:
    """Whether the model of a row is better than that of a column for sure, [M, M].

    The difference of models that differ alike on every cluster has no spread, and counts as sure. `scores` are [M],
    `spread` [B, M] around them; `unsure` [M, M] is added to variances, and `bounds` [M, M] are what studentised
    differences exceed to be sure.
    """
    found = np.zeros(unsure.shape, bool)
    for row, score in enumerate(scores):
        differences = score - scores
        variances = np.square((spread[:, [row]] - spread).std(axis=0)) + unsure[row]
        errors = np.sqrt(np.maximum(variances, 0.0))
        varies = errors > TINY
        sure = np.where(differences > TINY, np.inf, 0.0)
        found[row] = np.where(varies, differences / np.where(varies, errors, 1.0), sure) > bounds[row]
    return found


def _largest(spread: Floats) -> Floats:
    """The largest studentised difference of any two models in each resample, [B]; 0 where no two vary."""
    largest = np.zeros(len(spread))
    for place in range(spread.shape[1] - 1):
        deviations = spread[:, [place]] - spread[:, place + 1 :]
        errors = deviations.std(axis=0)
        np.abs(deviations, out=deviations)
        deviations /= np.where(errors > TINY, errors, np.inf)
        np.maximum(largest, deviations.max(axis=1), out=largest)
    return largest


def _pairs(models: int) -> float:
    return max(models * (models - 1) / 2, 1)


def _bounds(spread: Floats, level: float, lacking: NDArray[np.bool_], freedom: Floats) -> Floats:
    """What a studentised difference exceeds where the model of a row is better than that of a column for sure, [M, M].

    It is what the largest of all exceeds by chance, widened for few clusters as by Student, and not less than for a
    single difference by the normal distribution: few items have few different draws. B draws know their quantile up to
    some error: the one 1.96 errors higher is taken. A model's items without a score could change that: others are
    better than it by the bound of the others alone, which is never more; it is better than others by Bonferroni's,
    which is hardly ever less.
    """
    from scipy import stats

    single = float(stats.norm.isf((1 - level) / 2))
    safe = min(1.0, level + single * math.sqrt(level * (1 - level) / len(spread)))
    bounds = np.full(freedom.shape, max(float(np.quantile(_largest(spread), safe)), single))
    for place in np.flatnonzero(lacking):
        bounds[:, place] = max(float(np.quantile(_largest(np.delete(spread, place, axis=1)), safe)), single)
    bounds[lacking] = np.maximum(bounds[lacking], stats.norm.isf((1 - safe) / 2 / _pairs(len(bounds))))
    return stats.t.isf(stats.norm.sf(bounds), freedom)
