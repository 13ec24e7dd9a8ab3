"""Paired differences: error rates and coverage by simulation, a planted difference, McNemar, power."""

import numpy as np
import pytest
from scipy import stats

from cultureval.metrics.paired_tests import PairedSubset, compare_paired, mcnemar, smallest_difference
from cultureval.metrics.resampling import FEW, bootstrap_sums, drawn_together, random_subset_sums

DRAWS = 400


def subset(first: np.ndarray, second: np.ndarray, **other: object) -> PairedSubset:
    """Two models' scores whose mean is the score."""
    ones = np.ones(len(first))
    return PairedSubset(np.column_stack([first, ones]), np.column_stack([second, ones]), **other)


def answers(generator: np.random.Generator, clusters: int, size: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Right answers of two models; a cluster is harder for both, and harder for one of them."""
    place = np.repeat(np.arange(clusters), size)
    hard = generator.normal(size=len(place)) + generator.normal(size=clusters)[place]
    own = [generator.normal(size=clusters)[place] + generator.normal(size=len(place)) for _ in range(2)]
    return (hard + own[0] + shift > 0).astype(float), (hard + own[1] > 0).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "size"), [(400, 1), (80, 5)])
@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_type_one_error_and_coverage_hold_with_and_without_clusters(clusters: int, size: int, shift: float) -> None:
    repeats = 100
    truth = stats.norm.cdf(shift / 2) - 0.5
    names = np.repeat(np.arange(clusters), size).tolist() if size > 1 else None
    rejected = covered = ignored = 0
    for seed in range(repeats):
        first, second = answers(np.random.default_rng([1, seed]), clusters, size, shift)
        found = compare_paired([subset(first, second, clusters=names)], DRAWS, seed)
        rejected += found.p_value <= 0.05
        covered += found.low <= truth <= found.high
        if names:
            alone = compare_paired([subset(first, second)], DRAWS, seed)
            ignored += alone.low <= truth <= alone.high
    slack = 3 * np.sqrt(0.05 * 0.95 / repeats)
    assert abs(covered / repeats - 0.95) < slack
    assert not names or ignored / repeats < 0.95 - slack  # what the clusters are for
    if not shift:
        assert abs(rejected / repeats - 0.05) < slack
    else:
        assert rejected / repeats > 0.5


def test_a_planted_point_on_5000_items_is_found_with_the_right_interval() -> None:
    found = held = 0
    for seed in range(30):
        generator = np.random.default_rng([2, seed])
        kind = generator.random(5000)
        second = np.where(kind < 0.025, 0, np.where(kind < 0.04, 1, generator.random(5000) < 0.7)).astype(float)
        first = np.where(kind < 0.025, 1, np.where(kind < 0.04, 0, second)).astype(float)
        result = compare_paired([subset(first, second)], 1000, seed)
        found += result.p_value <= 0.05
        held += result.low <= 0.01 <= result.high
        assert (result.high - result.low) / 2 == pytest.approx(1.96 * np.sqrt(0.04 / 5000), rel=0.15)
    assert found >= 25 and held >= 26
    assert smallest_difference(5000, 0.04, power=0.9) == pytest.approx(0.0092, abs=0.0003)


def rare_flips(generator: np.random.Generator, items: int, share: float, size: int = 1) -> tuple[np.ndarray, ...]:
    """Right answers of two models of which a share, whole clusters at a time, is right in the first alone."""
    kind = np.repeat(generator.random(items // size), size)
    second = np.where(kind < share, 0.0, generator.random(items) < 0.9)
    return np.where(kind < share, 1.0, second), second


@pytest.mark.slow
@pytest.mark.parametrize(("items", "share"), [(30, 0.1), (100, 0.01), (1000, 0.002)])
def test_intervals_hold_where_few_items_or_none_differ(items: int, share: float) -> None:
    covered = {"alone": 0, "clusters": 0, "average": 0}
    for seed in range(100):
        generator = np.random.default_rng([4, seed])
        names = np.repeat(np.arange(items // 2), 2).tolist()
        cases = {
            "alone": [subset(*rare_flips(generator, items, share))],
            "clusters": [subset(*rare_flips(generator, items, share, 2), clusters=names)],
            "average": [subset(*rare_flips(generator, items, share)) for _ in range(3)],
        }
        for name, subsets in cases.items():
            found = compare_paired(subsets, 200, seed)
            covered[name] += found.low <= share <= found.high
    assert min(covered.values()) >= 88, covered  # of 60 to 90 by the bootstrap


@pytest.mark.slow
@pytest.mark.parametrize(("rare", "often"), [((0.03, 0.08), (0.03, 0.08)), ((0.4, 0.5), (0.03, 0.03))])
def test_an_average_of_a_tiny_and_a_huge_subset_holds(rare: tuple[float, float], often: tuple[float, float]) -> None:
    truth = (rare[1] - rare[0] + often[1] - often[0]) / 2
    covered = 0
    for seed in range(60):
        generator = np.random.default_rng([5, seed])
        sizes = {5: rare, 1000: often}
        tables = [[(generator.random(items) >= share) * 1.0 for share in wrong] for items, wrong in sizes.items()]
        found = compare_paired([subset(*sides) for sides in tables], DRAWS, seed)
        covered += found.low <= truth <= found.high
    assert covered >= 52, covered  # of subsets alike 20 to 30 where each has the variance of its own items alone


def test_no_difference_among_few_items_is_not_certainty() -> None:
    same = compare_paired([subset(np.ones(98), np.ones(98))], DRAWS)
    assert (same.difference, same.p_value, same.identical, same.interval) == (0.0, 1.0, True, "Bonett-Price")
    assert (same.low, same.high) == (pytest.approx(-1.959964 * 2**0.5 / 100), pytest.approx(1.959964 * 2**0.5 / 100))
    clustered = compare_paired([subset(np.ones(98), np.ones(98), clusters=list(range(49)) * 2)], DRAWS)
    assert clustered.high == pytest.approx(1.959964 * 2**0.5 / 51) and clustered.clusters == 49
    average = compare_paired([subset(np.ones(49), np.ones(49)) for _ in range(2)], DRAWS)
    assert average.high == pytest.approx(same.high)


def test_identical_and_opposite_models_and_single_clusters() -> None:
    scores = np.random.default_rng(0).random(50)
    same = compare_paired([subset(scores, scores)], DRAWS)
    assert (same.difference, same.low, same.high, same.p_value, same.identical) == (0.0, 0.0, 0.0, 1.0, True)
    opposite = compare_paired([subset(np.ones(20), np.zeros(20))], DRAWS)
    assert (opposite.high, opposite.flips) == (1.0, (20, 0))
    assert opposite.low == pytest.approx(0.7351, abs=1e-4) and opposite.p_value < 1e-5  # of 21 and 1 in 22
    tiny = subset(
        np.full(3, 2.5), np.full(3, 0.5)
    )  # of other items, on which both are alike, nobody learns about these
    found = compare_paired([tiny, subset(scores, scores)], DRAWS)
    assert found.low == pytest.approx(compare_paired([tiny], DRAWS).low / 2) and found.high == found.difference == 1.0
    few = compare_paired([subset(np.array([1.0, 0, 1]), np.array([0.0, 1, 1]))], DRAWS)
    assert (few.difference, few.p_value) == (0.0, 1.0) and -1 <= few.low <= few.high <= 1
    alone = compare_paired([subset(scores, scores / 2, clusters=["poem"] * 50)], DRAWS)
    assert alone.difference > 0 and (alone.low, alone.high, alone.p_value, alone.test) == (None, None, None, "")


@pytest.mark.slow
def test_few_clusters_of_one_subset_widen_the_interval_of_an_average() -> None:
    covered = 0
    for seed in range(100):
        generator = np.random.default_rng([3, seed])
        few = subset(*answers(generator, 4, 50, 0), clusters=np.repeat(np.arange(4), 50).tolist())
        found = compare_paired([few, subset(*answers(generator, 1000, 1, 0))], DRAWS, seed)
        covered += found.low <= 0 <= found.high
    assert covered / 100 > 0.89  # 0.84 with the degrees of freedom of all clusters together
    alone = subset(*answers(generator, 1, 50, 0), clusters=["poem"] * 50)
    found = compare_paired([alone, subset(*answers(generator, 1000, 1, 0))], DRAWS)
    assert (found.low, found.high) == (None, None) and found.p_value is not None


def test_mcnemar_is_scipys_binomial_test_and_its_mid_p() -> None:
    first = np.array([1] * 9 + [0] * 3 + [1] * 20)
    second = np.array([0] * 9 + [1] * 3 + [1] * 20)
    found = compare_paired([subset(first, second)], DRAWS)
    assert (found.flips, found.test) == ((9, 3), "McNemar mid-p")
    exact = stats.binomtest(9, 12).pvalue
    assert found.p_exact == pytest.approx(exact)
    assert found.p_value == pytest.approx(exact - stats.binom.pmf(9, 12, 0.5))
    assert mcnemar(0, 0) == mcnemar(4, 4) == (1.0, 1.0)
    swapped = compare_paired([subset(first + 0.5, second + 0.5)], 20_000)  # no accuracy, but the same differences
    assert (swapped.test, swapped.p_value) == ("permutation", pytest.approx(found.p_value, abs=0.01))


def test_averages_weigh_subsets_and_draw_shared_clusters_together() -> None:
    generator = np.random.default_rng(4)
    one, other = generator.random((2, 300)), generator.random((2, 40))
    other[0] += 0.3
    found = compare_paired([subset(*one, weight=1.0), subset(*other, weight=3.0)], 4000)
    errors = [(table[0] - table[1]).std(ddof=1) / np.sqrt(table.shape[1]) for table in (one, other)]
    assert found.difference == pytest.approx(0.25 * (one[0] - one[1]).mean() + 0.75 * (other[0] - other[1]).mean())
    assert found.stderr == pytest.approx(np.hypot(0.25 * errors[0], 0.75 * errors[1]), rel=0.05)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(found.difference / found.stderr)), abs=0.01)
    names = list(range(300))
    cancelling = [subset(*one, clusters=names), subset(*one[::-1], clusters=names)]
    assert compare_paired(cancelling, DRAWS).stderr < 1e-9
    assert drawn_together([["a", 1], ["b"], [1, "c"], ["c"]]) == [[0, 2, 3], [1]]


def test_few_different_rows_are_drawn_as_their_numbers_with_the_same_moments() -> None:
    generator = np.random.default_rng(5)
    few = generator.integers(-1, 2, size=(500, 1)).astype(float)
    many = few + np.where(np.arange(500) < 2 * FEW, np.arange(500) * 1e-9, 0)[:, None]
    for draw in (bootstrap_sums, random_subset_sums):
        sums = [draw(table, 4000, np.random.default_rng(6))[:, 0] for table in (few, many)]
        assert sums[0].mean() == pytest.approx(sums[1].mean(), abs=1.5)
        assert sums[0].std() == pytest.approx(sums[1].std(), rel=0.05)


@pytest.mark.slow
def test_the_planned_difference_is_found_with_the_planned_power() -> None:
    items, discordant = 1000, 0.2
    least = smallest_difference(items, discordant)
    generator = np.random.default_rng(8)
    hits = 0
    for _ in range(600):
        only_first, only_second, _ = generator.multinomial(
            items, [(discordant + least) / 2, (discordant - least) / 2, 1 - discordant]
        )
        hits += mcnemar(only_first, only_second)[0] <= 0.05
    assert hits / 600 == pytest.approx(0.8, abs=0.05)
    assert smallest_difference(items, discordant, tests=10) > least > smallest_difference(4 * items, discordant)
    assert smallest_difference(3, 0.2) is None


def test_more_tests_and_fewer_items_never_make_a_smaller_difference_found() -> None:
    for items in (7, 10, 20, 86):
        found = [smallest_difference(items, 0.24, tests) or 1.0 for tests in (1, 2, 3, 5, 14)]
        assert found == sorted(found)
        assert found[0] >= smallest_difference(items + 1, 0.24)
    # solves its equation: z_a sqrt(v) + z_b sqrt(v - d^2) = d sqrt(n)
    least = smallest_difference(7, 0.24)
    assert 1.959964 * 0.24**0.5 + 0.841621 * (0.24 - least**2) ** 0.5 == pytest.approx(least * 7**0.5, abs=1e-5)


@pytest.mark.parametrize(
    "tables",
    [
        [],
        [PairedSubset(np.ones((3, 2)), np.ones((4, 2)))],
        [PairedSubset(np.ones(3), np.ones(3))],
        [PairedSubset([[np.nan, 1.0]], [[1.0, 1.0]])],
        [PairedSubset(np.ones((3, 2)), np.ones((3, 2)), clusters=["x"])],
        [PairedSubset(np.ones((3, 2)), np.ones((3, 2)), weight=0)],
    ],
)
def test_tables_that_do_not_fit_are_refused(tables: list[PairedSubset]) -> None:
    with pytest.raises(ValueError):
        compare_paired(tables, DRAWS)


@pytest.mark.parametrize("again", [1, 4, 12])
def test_few_differing_items_say_the_same_however_often_they_are_asked(again):
    """50 items in 12 forms had an interval 12 times too narrow, as 600 items have."""
    names = list(range(50))
    right, wrong = np.ones(50), np.arange(50) != 7
    for second in (right, wrong):
        alone = compare_paired([subset(right, second)], 400)
        found = compare_paired([subset(right, second, clusters=names)] * again, 400)
        assert (found.low, found.high) == pytest.approx((alone.low, alone.high), abs=0.02)
        assert found.low <= alone.low + 1e-9 and found.high >= alone.high - 1e-9


def test_ratios_that_are_often_undefined_are_not_tested():
    """A model with one right Q+ of 60 in each of four varieties was told as better by .27 with p < 0.001."""
    rare = np.zeros((60, 2))
    rare[0, 1] = 1
    usual = np.stack([np.arange(60) % 4 == 0, np.ones(60)], axis=1).astype(float)
    clusters = list(range(60))
    four = [PairedSubset(rare, usual, clusters=clusters) for _ in range(4)]
    found = compare_paired(four, 500)
    assert found.undefined > 0.3 and (found.low, found.p_value, found.test) == (None, None, "")
    alone = compare_paired(four[:1], 500)
    assert alone.p_value is None and alone.interval == "Newcombe" and alone.low < -0.3 and alone.high > 0.5
