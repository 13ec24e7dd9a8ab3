"""Coefficients of agreement against their definitions, printed examples and other packages; their intervals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.agreement import (
    gwet_ac1,
    kendall_tau_c,
    krippendorff_alpha,
    rater_agreement,
    tau_c_with_interval,
    with_interval,
)

SMALL_NUMBERS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), min_size=2, max_size=30)


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
        assert math.isnan(kendall_tau_c(x, y)) and math.isnan(tau_c_with_interval(x, y).low)
    else:
        assert kendall_tau_c(x, y) == pytest.approx(pairwise_tau_c(x, y))


def test_the_interval_of_a_mean_is_students_and_rows_of_an_item_go_together():
    values = np.random.default_rng(0).normal(0, 0.1, 20)
    found = with_interval(lambda rows: float(values[rows].mean()), range(20))
    assert (found.value, found.items) == (pytest.approx(values.mean()), 20)
    assert found.high - found.value == pytest.approx(2.093024 * values.std(ddof=1) / math.sqrt(20))
    twice = np.repeat(values, 2)
    again = with_interval(lambda rows: float(twice[rows].mean()), [place // 2 for place in range(40)])
    assert again == pytest.approx(found)
    alike = rater_agreement([[4, 4]] * 5 + [[3, 3]], [1, 2, 3, 4, 5])
    assert alike["AC1"].value == 1 and math.isnan(alike["AC1"].low)  # no item changes it


@pytest.mark.slow
def test_intervals_hold_the_true_value():
    """Of two raters on 60 items, 0.92 to 0.985 of the intervals hold the value of 200,000 items."""
    draw, scale = np.random.default_rng(1), [1, 2, 3, 4, 5]

    def ratings(count):
        truth = draw.normal(size=count)
        return np.clip(np.round(3 + truth + draw.normal(0, 0.7, (2, count))), 1, 5).astype(int)

    many, held = ratings(200_000), np.zeros(2)
    truth = gwet_ac1(many.T.tolist(), scale), kendall_tau_c(*many)
    for _ in range(200):
        drawn = ratings(60)
        of_ac1 = with_interval(lambda rows, table=drawn.T: gwet_ac1(table[rows].tolist(), scale), range(60))
        found = of_ac1, tau_c_with_interval(*drawn)
        held += [one.low <= value <= one.high for one, value in zip(found, truth, strict=True)]
    assert ((held >= 0.92 * 200) & (held <= 0.985 * 200)).all(), held


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
    assert rater_agreement(ratings, [1, 2, 3, 4, 5])["raw"].value == pytest.approx(0.8181818)
    # Krippendorff's own example of 2011.
    assert krippendorff_alpha(ratings, [1, 2, 3, 4, 5]) == pytest.approx(0.815, abs=5e-4)
    assert "kappa" not in rater_agreement(ratings, [1, 2, 3, 4, 5])


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
    categories = ("Correct", "Incorrect", "Unsure")
    assert gwet_ac1(two_annotators(raw, dominant), categories) == pytest.approx(published, abs=5e-4)
    assert gwet_ac1(two_annotators(raw, 0.5), categories) < published - 0.05


@pytest.mark.parametrize(
    ("ratings", "categories"),
    [([], "ab"), ([["a"]], "ab"), ([["a", "b"]], "a"), ([["a", "c"]], "ab"), (["ab", "a"], "ab")],
)
def test_unusable_ratings_are_refused(ratings, categories):
    with pytest.raises(ValueError):
        gwet_ac1(ratings, categories)


@given(st.lists(st.lists(st.sampled_from([1, 2, 3, None]), min_size=2, max_size=2), min_size=1, max_size=20))
def test_coefficients_of_any_ratings_are_at_most_one_or_undefined(ratings):
    found = rater_agreement(ratings, [1, 2, 3])
    assert list(found) == ["raw", "AC1", "alpha", "kappa"]
    for one in found.values():
        assert math.isnan(one.value) or -1 <= one.value <= 1
        assert math.isnan(one.low) or one.low <= one.value <= one.high
    both = [row for row in ratings if None not in row]
    assert math.isnan(found["AC1"].value) == (not both)


def test_unrated_texts_and_unused_categories_change_what_they_should():
    ratings = [["yes", "yes"], ["yes", "no"], ["no", "no"], ["yes", "yes"]]
    assert gwet_ac1(ratings, ["yes", "no"]) < gwet_ac1(ratings, ["yes", "no", "unsure"])
    numbers = [[1, 3], [2, 2], [3, 3], [1, 1], [2, 3]]
    for name in ("alpha", "kappa"):
        value = rater_agreement(numbers, [1, 2, 3])[name].value
        with_gaps = rater_agreement([*numbers, [math.nan, 2], [None, None]], [1, 2, 3])[name].value
        assert with_gaps == pytest.approx(value)
    assert rater_agreement(numbers, [1, 2, 3])["kappa"].value == pytest.approx(1 - 5 / 7.8)  # Cohen (1968)
