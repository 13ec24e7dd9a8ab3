"""Standard errors of clustered items, and p-values of several tests."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cultureval.metrics.statistics import errors_of_ratio, holm


def error_of_mean(values, clusters, share=False):
    return errors_of_ratio(values, np.ones(len(values)), clusters, share).error


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30))
def test_clusters_of_one_item_give_the_usual_standard_error(values):
    assume(np.ptp(values) > 1e-6)
    usual = np.std(values, ddof=1) / np.sqrt(len(values))
    assert error_of_mean(values, range(len(values))) == pytest.approx(usual, abs=1e-12)


def test_items_that_repeat_within_a_cluster_add_no_information():
    values = [0.0, 1.0, 1.0, 0.5, 0.0]
    repeated = np.repeat(values, 7)
    clusters = np.repeat(["a", "b", "c", "d", "e"], 7).tolist()
    single = error_of_mean(values, "abcde")
    assert error_of_mean(repeated, clusters) == pytest.approx(single)
    # By hand: mean 0.5, residual sums -0.5 and 0.5 of clusters {0, 1, 2} and {3}, which leave 1 and 3 items.
    by_hand = math.sqrt((0.5**2 + (0.5 / 3) ** 2) / 2)
    assert error_of_mean([0, 0, 1, 1], ["p", "p", "p", None]) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("values", "clusters"), [([0.5] * 6, range(6)), ([0.1] * 3, range(3)), ([1.0, 0.0] * 4, [0, 0, 1, 1, 2, 2, 3, 3])]
)
def test_clusters_of_one_mean_say_nothing_of_its_error(values, clusters):
    assert math.isnan(error_of_mean(values, list(clusters), share=True))


def test_one_cluster_says_nothing_of_the_spread():
    assert math.isnan(error_of_mean([1.0], ["a"]))
    assert math.isnan(error_of_mean([1.0, 0.0], ["a", "a"]))


def test_holm_is_statsmodels():
    """`multipletests(p, method="holm")` of statsmodels 0.15."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.001, 0.02, 0.02, 0.9]) == pytest.approx([1.0, 0.005, 0.08, 0.08, 1.0])
    assert holm([]) == [] and holm([0.04]) == [0.04]
