"""Item analysis: what the answers of several models say of the items, classical statistics and one ranking.

References: classical item analysis (Lord and Novick, Statistical Theories of Mental Test Scores, 1968); scalability
(Mokken, A Theory and Procedure of Scale Analysis, 1971); bad items of benchmarks, found by how models
answer them ("Fantastic Bugs and Where to Find Them in AI Benchmarks", 2025).

The ranking asks which option behaves like the right one. Of a right option the chance to be chosen grows with ability;
so each option in turn is taken for the key of a two-parameter logistic model with guessing (Birnbaum, in Lord and
Novick), whose likelihood is averaged over difficulties and slopes. An item's evidence is the likelihood of the other
options' mean over that of the stated key, as a logarithm to base 10. With few models no item reaches much evidence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cultureval.audit.checks.table import manifest_row
from cultureval.audit.items import AuditItem
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import ManifestRow

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST_MODELS = 3
DIFFICULTIES = np.linspace(-3.5, 3.5, 15)
SLOPES = np.array([0.6, 1.2, 2.4])
PRIOR_SPREAD = 1.5  # of difficulties
POPULARITY = 2.0  # Dirichlet prior of how attractive wrong options are: some are far more than others
FREE_ANSWER_GUESS = 0.01  # chance to be right without ability where there are no options
LEVEL = 0.05
LEAST_EVIDENCE = 1.0  # from it on, ten times likelier with another key, an item is named
WRONG_KEY = "wrong_key"
REASONS = {
    WRONG_KEY: "strong models choose one other option",
    "weak_beat_strong": "weak models are right more often than strong ones",
    "negative_correlation": "who is right here does worse on the other items",
    "nobody_right": "no model is right",
}


@dataclass(frozen=True)
class ItemReport:
    """What the answers say of one item.

    Attributes:
        place: Its place among the items.
        models: Number of models that answered it.
        share_right: Of these.
        strong_right: Share right of the stronger half of them.
        weak_right: Of the weaker half.
        correlation: Item-rest correlation; nan where it is undefined.
        scalability: Mokken's H of the item, at most 1; nan where it is undefined.
        rival: The other option that most behaves like a right one, from 0; -1 where options are not known.
        strong_rival: Share of the stronger half that chose it.
        strong_gold: Share of the stronger half that chose the gold; that are right, without options.
        evidence: Logarithm to base 10 of how much likelier the answers are with another key than with the stated one.
        reasons: Names in `REASONS`, the most telling first; () where nothing speaks against the item.
    """

    place: int
    models: int
    share_right: float
    strong_right: float
    weak_right: float
    correlation: float
    scalability: float
    rival: int
    strong_rival: float
    strong_gold: float
    evidence: float
    reasons: tuple[str, ...]


def rank_items(
    right: Floats, chosen: Integers, options: Sequence[int], gold: Sequence[int], groups: Sequence[str]
) -> list[ItemReport]:
    """Reports on the items that three models or more answered, the most suspicious first: by evidence.

    Args:
        right: [models, items] 1 where the answer is right, 0 where it is wrong, nan where there is none.
        chosen: [models, items] the option that was chosen, from 0; -1 where it is not known.
        options: [items] the number of options; 0 for free answers.
        gold: [items] the stated key; -1 where there are several, or none.
        groups: [items] the benchmark; abilities are of all items of one.

    Raises:
        ValueError: Shapes differ, or there are fewer than three models.
    """
    count = right.shape[1] if right.ndim == 2 else -1
    if chosen.shape != right.shape or not len(options) == len(gold) == len(groups) == count:
        raise ValueError("answers, options, gold and groups must be of the same models and items")
    if len(right) < FEWEST_MODELS:
        raise ValueError(f"{len(right)} models are too few: at least {FEWEST_MODELS} are needed")
    reports: list[ItemReport] = []
    numbers, keys = np.asarray(options), np.asarray(gold)
    for group in dict.fromkeys(groups):
        places = np.flatnonzero(np.asarray([name == group for name in groups]))
        places = places[(~np.isnan(right[:, places])).sum(axis=0) >= FEWEST_MODELS]
        answered = ~np.isnan(right[:, places]).all(axis=1)
        if len(places):
            part = np.ix_(answered, places)
            reports += _BenchmarkAnswers(right[part], chosen[part], numbers[places], keys[places], places).reports()
    return sorted(reports, key=lambda one: (-one.evidence, one.place))


class _BenchmarkAnswers:
    """The items of one benchmark with the models that answered some of them."""

    def __init__(self, right: Floats, chosen: Integers, options: Integers, gold: Integers, places: Integers) -> None:
        self.right, self.chosen, self.options, self.gold, self.places = right, chosen, options, gold, places
        self.known = ~np.isnan(right)
        self.filled = np.where(self.known, right, 0.0)
        self.shares = self.filled.sum(axis=0) / np.maximum(self.known.sum(axis=0), 1)
        self.guess = np.where(options > 1, 1 / np.maximum(options, 2), FREE_ANSWER_GUESS)
        self.ability = self._abilities()
        self.rests = self._rests()

    def _above_others(self) -> Floats:
        """[M, N] by how much a model's answer is above the mean of the item; 0 without an answer."""
        return np.where(self.known, self.filled - self.shares, 0.0)

    def _abilities(self) -> Floats:
        """[M] abilities in logits: of the share right that a model would have on all items, without guessing."""
        answered = self.known.sum(axis=1)
        share = self.shares.mean() + self._above_others().sum(axis=1) / answered
        guess = float(self.guess.mean())
        knows = np.clip((share - guess) / (1 - guess), 0.5 / answered, 1 - 0.5 / answered)
        return np.log(knows / (1 - knows))

    def _rests(self) -> Floats:
        """[M, N] how a model does on the other items that it answered, relative to their means."""
        above = self._above_others()
        others = np.maximum(self.known.sum(axis=1, keepdims=True) - self.known, 1)
        return (above.sum(axis=1, keepdims=True) - above) / others

    def reports(self) -> Iterator[ItemReport]:
        strong, weak = self._halves()
        evidence, rivals = self._evidence()
        correlations, p_values = self._correlations()
        scalability = self._scalability()
        for item, place in enumerate(self.places):
            tops, lows = self.right[strong[:, item], item], self.right[weak[:, item], item]
            choices = self.chosen[strong[:, item], item]
            rival = int(rivals[item])
            report = ItemReport(
                place=int(place),
                models=int(self.known[:, item].sum()),
                share_right=float(self.shares[item]),
                strong_right=_mean(tops),
                weak_right=_mean(lows),
                correlation=float(correlations[item]),
                scalability=float(scalability[item]),
                rival=rival,
                strong_rival=_mean(choices == rival) if rival >= 0 else np.nan,
                strong_gold=_mean(choices == self.gold[item]) if rival >= 0 else _mean(tops),
                evidence=float(evidence[item]),
                reasons=(),
            )
            yield _with_reasons(report, tops, lows, float(p_values[item]))

    def _halves(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """[M, N] the stronger and the weaker half of the models that answered an item; one in the middle is in none."""
        ability = np.where(self.known, self.ability[:, None], np.nan)
        order = np.argsort(np.argsort(np.where(self.known, -ability, np.inf), axis=0, kind="stable"), axis=0)
        answered = self.known.sum(axis=0)
        half = answered // 2
        return order < half, (order >= answered - half) & (order < answered)

    def _evidence(self) -> tuple[Floats, Integers]:
        evidence, rivals = np.zeros(len(self.places)), np.full(len(self.places), -1)
        listed = (self.options > 1) & (self.gold >= 0) & ((self.chosen >= 0) | ~self.known).all(axis=0)
        for number in np.unique(self.options):
            same = self.options == number
            if (items := np.flatnonzero(same & listed)).size:
                evidence[items], rivals[items] = self._of_options(items, int(number))
            if (items := np.flatnonzero(same & ~listed)).size:
                evidence[items] = self._of_right_and_wrong(items, int(number))
        return evidence, rivals

    def _of_options(self, items: Integers, number: int) -> tuple[Floats, Integers]:
        """Evidence, and the likeliest other option, of items with that many options."""
        chosen, known = self.chosen[:, items], self.known[:, items]
        counts = np.column_stack([(known & (chosen == option)).sum(axis=0) for option in range(number)])
        logs = np.column_stack(
            [
                self._likelihood(known & (chosen == option), known & (chosen != option), number)
                + _log_popularity(np.delete(counts, option, axis=1))
                for option in range(number)
            ]
        )
        gold = self.gold[items]
        rows = np.arange(len(items))
        stated, others = logs[rows, gold], logs.copy()
        others[rows, gold] = -np.inf
        mean = _log_mean(others, number - 1)
        return (mean - stated) / np.log(10), others.argmax(axis=1)

    def _of_right_and_wrong(self, items: Integers, number: int) -> Floats:
        """Evidence where only right and wrong are known: the right answer behaves like one of the wrong ones."""
        hit, miss = self.filled[:, items] > 0, self.known[:, items] & (self.filled[:, items] == 0)
        stated = self._likelihood(hit, miss, number)
        return (self._likelihood(miss, hit, number, mixed=True) - stated) / np.log(10)

    def _likelihood(self, hits: NDArray, misses: NDArray, number: int, mixed: bool = False) -> Floats:
        """[items] logarithm of the likelihood that these models chose the key, averaged over difficulties and slopes.

        Args:
            hits: [M, items] who chose it.
            misses: [M, items] who did not.
            number: Of options; 0 without.
            mixed: Whether a hit is only known not to be one of the others.
        """
        guess = 1 / number if number > 1 else FREE_ANSWER_GUESS
        slopes, places = np.meshgrid(SLOPES, DIFFICULTIES, indexing="ij")
        logits = slopes.ravel() * (self.ability[:, None] - places.ravel())
        knows = guess + (1 - guess) / (1 + np.exp(-logits))
        others = max(number - 1, 1)
        hit, miss = np.log(knows), np.log1p(-np.minimum(knows, 1 - 1e-9))
        if mixed and others > 1:  # the stated key is one of the others: what it does not take, they and the key share
            one = (1 - knows) / others
            hit, miss = np.log1p(-one), np.log(np.maximum(one, 1e-9))
        sums = hits.T.astype(np.float64) @ hit + misses.T.astype(np.float64) @ miss
        weights = np.exp(-0.5 * (places.ravel() / PRIOR_SPREAD) ** 2)
        return _log_mean(sums + np.log(weights / weights.sum()), 1)

    def _correlations(self) -> tuple[Floats, Floats]:
        """[N] item-rest correlations, and the p-values of their being negative."""
        from scipy import stats

        counts = self.known.sum(axis=0)
        rest = np.where(self.known, self.rests, 0.0)
        rest = np.where(self.known, rest - rest.sum(axis=0) / np.maximum(counts, 1), 0.0)
        own = np.where(self.known, self.filled - self.shares, 0.0)
        spread = np.sqrt((own**2).sum(axis=0) * (rest**2).sum(axis=0))
        found = np.divide((own * rest).sum(axis=0), spread, out=np.full(len(counts), np.nan), where=spread > 1e-12)
        found = np.clip(found, -1, 1)
        freedom = np.maximum(counts - 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return found, stats.t.cdf(found * np.sqrt(freedom / (1 - found**2)), freedom)

    def _scalability(self) -> Floats:
        """[N] Mokken's H_i: covariances with the other items over their maxima; of models that answered all items."""
        whole = self.filled[self.known.all(axis=1)]
        if len(whole) < FEWEST_MODELS:
            return np.full(len(self.places), np.nan)
        shares = whole.mean(axis=0)
        centred = whole - shares
        covered = (centred * centred.sum(axis=1, keepdims=True)).mean(axis=0) - (centred**2).mean(axis=0)
        order = np.argsort(shares, kind="stable")
        ordered = shares[order]
        below = np.cumsum(ordered) - ordered  # of easier or harder items: min(p, q) - p q
        above = (1 - ordered)[::-1].cumsum()[::-1] - (1 - ordered)
        most = np.empty(len(order))
        most[order] = below * (1 - ordered) + ordered * above
        return np.divide(covered, most, out=np.full(len(order), np.nan), where=most > 1e-12)


def _with_reasons(report: ItemReport, strong: Floats, weak: Floats, p_value: float) -> ItemReport:
    """The report with what speaks against the item."""
    from scipy.stats import fisher_exact

    found = []
    if report.evidence >= LEAST_EVIDENCE and report.strong_rival > report.strong_gold:
        found.append(WRONG_KEY)
    if len(weak) and report.weak_right > report.strong_right:
        table = [[int(group.sum()), len(group) - int(group.sum())] for group in (weak, strong)]
        if fisher_exact(table, alternative="greater").pvalue < LEVEL:
            found.append("weak_beat_strong")
    if p_value < LEVEL:
        found.append("negative_correlation")
    if report.share_right == 0:
        found.append("nobody_right")
    return replace(report, reasons=tuple(found))


def _log_popularity(counts: Integers) -> Floats:
    """[items] log-likelihood of how those who miss the key share the others; counts [items, others]: who chose each."""
    from scipy.special import gammaln

    prior, total = POPULARITY * counts.shape[1], counts.sum(axis=1)
    return gammaln(prior) - gammaln(prior + total) + (gammaln(POPULARITY + counts) - gammaln(POPULARITY)).sum(axis=1)


def _mean(values: NDArray) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _log_mean(logs: Floats, count: int) -> Floats:
    """Logarithm of the sum of exponentials over the last axis, over `count`."""
    from scipy.special import logsumexp

    return logsumexp(logs, axis=-1) - np.log(max(count, 1))


def review_rows(items: Sequence[AuditItem], asked: Mapping[tuple[str, str], Sequence[str]]) -> list[ManifestRow]:
    """Lines of a manifest that ask for a review of suspicious items: (task, `file:number` of the row) -> the reasons.

    Raises:
        CulturevalError: An item is not among those of the sources.
    """
    found: dict[tuple[str, str], AuditItem] = {}
    for item in items:
        if item.split == "test":
            found.setdefault((item.task, Path(item.row).name), item)
    if missing := [f"{task} {row}" for task, row in asked if (task, row) not in found]:
        raise CulturevalError(
            f"{len(missing)} of the items are not in these data ({', '.join(missing[:3])}): give the data that the "
            "models were asked, with --data."
        )
    return [
        manifest_row(found[key], "review", [f"responses:{name}" for name in dict.fromkeys(names)], ["responses"])
        for key, names in asked.items()
    ]
