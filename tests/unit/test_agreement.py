import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, norm, t

from cultureval.metrics.agreement import kendall_tau_c, tau_c_with_interval
from cultureval.metrics.rater_agreement import (
    Coefficient,
    gwet_ac1,
    krippendorff_alpha,
    rater_agreement,
)
from cultureval.metrics.standard_errors import bootstrap_interval

SMALL_NUMBERS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), min_size=2, max_size=30)


def expanded_percentiles(items):
    """Hesterberg (2015), section 5.3."""
    tail = 100 * norm.cdf(-((items / (items - 1)) ** 0.5) * t.ppf(0.975, items - 1))
    return tail, 100 - tail


def pairwise_tau_c(x, y):
    """The definition, pair by pair."""
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    difference = sum(np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) for i, j in pairs)
    smaller = min(len(set(x)), len(set(y)))
    return 2 * difference / (len(x) ** 2 * (smaller - 1) / smaller)


@given(SMALL_NUMBERS)
def test_tau_c_is_stuarts(pairs):
    x, y = zip(*pairs, strict=True)
    if min(len(set(x)), len(set(y))) < 2:
        assert math.isnan(kendall_tau_c(x, y))
    else:
        assert kendall_tau_c(x, y) == pytest.approx(pairwise_tau_c(x, y))


def test_constant_input_has_no_correlation_and_does_not_crash():
    for x, y in (([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [4.0, 4.0, 4.0]), ([1], [2])):
        assert math.isnan(kendall_tau_c(x, y))
        found = tau_c_with_interval(x, y)
        assert all(map(math.isnan, (found.value, found.low, found.high))) and found.pairs == len(x)


@pytest.mark.parametrize(("x", "y"), [([1, 2], [1]), ([1, math.nan], [1, 2]), ([[1], [2]], [1, 2]), ([], [])])
def test_unusable_numbers_are_refused(x, y):
    with pytest.raises(ValueError):
        kendall_tau_c(x, y)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_interval_is_that_of_scipy_on_resampled_items(seed, grouped):
    """The same draws, each scored by scipy on the pairs that it holds."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(1, 6, 24).astype(float), np.round(rng.normal(size=24), 1)
    items = [number // 3 for number in range(24)] if grouped else None
    found = tau_c_with_interval(x, y, items, draws=60, seed=seed)
    count = 8 if grouped else 24
    replicates = []
    for drawn in np.random.default_rng(seed).multinomial(count, [1 / count] * count, size=60):
        rows = [row for row in range(24) for _ in range(drawn[row // 3 if grouped else row])]
        replicates.append(kendalltau(x[rows], y[rows], variant="c").statistic)
    assert (found.low, found.high) == pytest.approx(tuple(np.nanpercentile(replicates, expanded_percentiles(count))))
    assert (found.pairs, found.items) == (24, count)


def test_ac1_on_krippendorffs_four_observers():
    """A worked example: 12 units, 4 observers, missing cells; irrCAC's `cac_raw4raters` gives AC1 0.77544."""
    missing = None
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, missing, missing, missing],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, missing, 3],
        [missing, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, missing],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, missing],
    ]
    ratings = list(zip(*observers, strict=True))
    assert gwet_ac1(ratings, [1, 2, 3, 4, 5]) == pytest.approx(0.77544, abs=5e-6)
    found = rater_agreement(ratings, [1, 2, 3, 4, 5], draws=2)
    assert found["raw"].value == pytest.approx(0.8181818)
    # irrCAC 0.4.4 with ordinal weights; Krippendorff's own example of 2011 has alpha 0.815.
    assert found["AC2"].value == pytest.approx(0.89893977, abs=1e-8)
    assert krippendorff_alpha(ratings, [1, 2, 3, 4, 5]) == pytest.approx(0.815, abs=5e-4)


def two_annotators(raw, dominant, count=10_000):
    """Labels of two annotators who agree on `raw` of the items and give "Correct" a mean share of `dominant`."""
    agreeing, mixed = round(raw * count), count - round(raw * count)
    both = round(dominant * count - mixed / 2)
    rest = (agreeing - both) // 2
    pairs = [("Correct", "Correct")] * both + [("Incorrect", "Incorrect")] * rest
    pairs += [("Unsure", "Unsure")] * (agreeing - both - rest)
    half = mixed // 2
    return pairs + [("Correct", "Incorrect")] * half + [("Unsure", "Correct")] * (mixed - half)


@pytest.mark.parametrize(
    ("raw", "published", "dominant"), [(0.784, 0.752, 0.8553), (0.803, 0.775, 0.8612), (0.738, 0.695, 0.8397)]
)
def test_ac1_of_the_m2cqa_papers_table_1(raw, published, dominant):
    """Q-Correctness of Q+, Q1-, Q2-: raw agreement and AC1 as printed, three labels, one of which most items have.

    The paper prints no label shares; `dominant` is the share of "Correct" at which the printed pair holds when the
    other two labels are equally frequent.
    """
    ratings = two_annotators(raw, dominant)
    categories = ("Correct", "Incorrect", "Unsure")
    assert rater_agreement(ratings, categories, draws=2)["raw"].value == pytest.approx(raw, abs=1e-4)
    assert gwet_ac1(ratings, categories) == pytest.approx(published, abs=5e-4)
    assert gwet_ac1(two_annotators(raw, 0.5), categories) < published - 0.05


def test_ac1_of_perfect_agreement_and_of_categories_that_nobody_used():
    assert gwet_ac1([["yes", "yes"], ["yes", "yes"]], ["yes", "no", "unsure"]) == 1
    ratings = [["yes", "yes"], ["yes", "no"], ["no", "no"], ["yes", "yes"]]
    assert gwet_ac1(ratings, ["yes", "no"]) < gwet_ac1(ratings, ["yes", "no", "unsure"])
    assert math.isnan(gwet_ac1([["yes", None], [None, "no"]], ["yes", "no"]))


@pytest.mark.parametrize(
    ("ratings", "categories"),
    [([], "ab"), ([["a"]], "ab"), ([["a", "b"]], "a"), ([["a", "c"]], "ab"), (["ab", "a"], "ab")],
)
def test_unusable_ratings_are_refused(ratings, categories):
    with pytest.raises(ValueError):
        gwet_ac1(ratings, categories)


@given(st.lists(st.lists(st.sampled_from([1, 2, 3, None]), min_size=3, max_size=3), min_size=1, max_size=20))
def test_ac1_is_at_most_one(ratings):
    value = gwet_ac1(ratings, [1, 2, 3])
    assert math.isnan(value) or -1 <= value <= 1


def random_ratings(draw, raters):
    """Ratings of 1 to `top`, a fifth of them missing, and the scale."""
    top = int(draw.integers(2, 6))
    table = draw.integers(1, top + 1, (int(draw.integers(3, 30)), raters)).astype(float)
    table[draw.random(table.shape) < 0.2] = math.nan
    return table, [float(score) for score in range(1, top + 1)]


def test_alpha_is_that_of_the_package_krippendorff():
    import krippendorff

    draw, compared = np.random.default_rng(0), 0
    for _ in range(200):
        table, scale = random_ratings(draw, int(draw.integers(2, 5)))
        ours = krippendorff_alpha(table.tolist(), scale)
        if not math.isnan(ours):
            theirs = krippendorff.alpha(table.T, level_of_measurement="ordinal", value_domain=scale)
            assert ours == pytest.approx(theirs, abs=1e-12)
            compared += 1
    assert compared > 150


def test_weighted_kappa_is_that_of_scikit_learn():
    from sklearn.metrics import cohen_kappa_score

    draw, compared = np.random.default_rng(1), 0
    for _ in range(200):
        table, scale = random_ratings(draw, 2)
        both = table[~np.isnan(table).any(axis=1)]
        ours = rater_agreement(table.tolist(), scale, draws=2)["kappa"].value
        if not math.isnan(ours):
            theirs = cohen_kappa_score(*both.T.astype(int), labels=[*map(int, scale)], weights="quadratic")
            assert ours == pytest.approx(theirs, abs=1e-12)
            compared += 1
    assert compared > 150
    assert "kappa" not in rater_agreement([[1, 2, 3]], [1, 2, 3], draws=2)


def test_percentiles_are_wider_for_few_items_and_95_percent_for_many():
    values = np.linspace(0, 1, 100_001)
    assert bootstrap_interval(values, 15) == pytest.approx((0.01321, 0.98679), abs=1e-5)
    assert bootstrap_interval(values, 1_000_000) == pytest.approx((0.025, 0.975), abs=1e-5)


def test_the_intervals_are_those_of_resampled_rows():
    """Each resample built row by row; rows of one item are drawn together."""
    draw = np.random.default_rng(2)
    ratings = [[int(score), min(5, int(score) + int(draw.random() < 0.4))] for score in draw.integers(1, 6, 40)]
    items, scale = [place // 2 for place in range(40)], [1, 2, 3, 4, 5]
    found = rater_agreement(ratings, scale, items, draws=200, seed=3)
    counts = np.random.default_rng(3).multinomial(20, [1 / 20] * 20, size=200)
    drawn = [
        rater_agreement(
            [row for row, item in zip(ratings, items, strict=True) for _ in range(times[item])], scale, draws=2
        )
        for times in counts
    ]
    whole = rater_agreement(ratings, scale, draws=2)
    assert list(whole) == ["raw", "AC1", "AC2", "alpha", "kappa"]
    for name in whole:
        values = [one[name].value for one in drawn]
        expected = Coefficient(whole[name].value, *np.percentile(values, expanded_percentiles(20)).tolist())
        assert vars(found[name]) == pytest.approx(vars(expected), abs=1e-12)
    alike = rater_agreement([[4, 4]] * 5 + [[3, 3]], scale)
    assert alike["AC2"].value == 1 and math.isnan(alike["AC2"].low)  # no resample could differ
