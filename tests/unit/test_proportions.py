"""Intervals of proportions and Holm's adjustment, against published examples and statsmodels' numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cultureval.metrics.proportions import NORMAL_95, holm, wilson_error, wilson_interval
from cultureval.metrics.standard_errors import clustered_standard_error
from cultureval.runs.scores import interval


def test_wilsons_interval_is_that_of_newcombes_examples():
    """Statistics in Medicine 17 (1998), 857: 81 of 263, 15 of 148, 0 of 20 and 1 of 29, method 3."""
    examples = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for counts, expected in examples.items():
        assert wilson_interval(*counts) == pytest.approx(expected, abs=5e-5)
    assert wilson_interval(20, 20)[1] == 1 and wilson_error(20, 20) == pytest.approx(0.1611 / 3.92, abs=1e-4)


def test_holm_is_statsmodels():
    """`multipletests(p, method="holm")` of statsmodels 0.15."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.001, 0.02, 0.02, 0.9]) == pytest.approx([1.0, 0.005, 0.08, 0.08, 1.0])
    assert holm([]) == [] and holm([0.04]) == [0.04]


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 1), st.floats(1e-12, 10), st.sampled_from([(0.0, 1.0), (1.0, 5.0), (-100.0, 100.0), (0.0, 100.0)]))
def test_an_interval_holds_its_value_and_stays_in_the_range(share, error, bounds):
    low, high = bounds
    value = low + share * (high - low)
    least, most = interval(value, error * (high - low), *bounds)
    assert low <= least <= value + 1e-9 and value - 1e-9 <= most <= high
    mirrored = interval(high + low - value, error * (high - low), *bounds)
    assert mirrored == pytest.approx((high + low - most, high + low - least), abs=1e-6 * (high - low))


def test_intervals_without_two_bounds_are_cut_at_the_one_there_is():
    assert interval(0.5, 1.0, 0, math.inf) == (0, pytest.approx(0.5 + NORMAL_95))
    assert interval(0.5, 1.0) == pytest.approx((0.5 - NORMAL_95, 0.5 + NORMAL_95))


def test_intervals_of_all_and_of_none_are_wilsons():
    for right, items in ((0, 20), (20, 20), (0, 1000)):
        found = interval(right / items, wilson_error(right, items), 0, 1)
        assert found == pytest.approx(wilson_interval(right, items))


@pytest.mark.slow
@pytest.mark.parametrize(("items", "size"), [(50, 1), (300, 1), (300, 3)])
@pytest.mark.parametrize("share", [0.005, 0.02, 0.1, 0.5, 0.9, 0.99])
def test_intervals_near_the_edge_hold_the_truth(items, size, share):
    """1.96 errors on either side hold 0.99 of 300 items in 83% of repeats, and reach beyond 1 in 60%."""
    generator = np.random.default_rng([items, size, int(1000 * share)])
    held, repeats = 0, 700
    clusters = np.arange(items) // size
    for _ in range(repeats):
        of_cluster = generator.random(items // size)[clusters]
        drawn = np.where(generator.random(items) < 0.5, of_cluster, generator.random(items))
        right = (drawn < share).astype(float)
        error = clustered_standard_error(right, clusters.tolist(), (0, 1))
        low, high = interval(float(right.mean()), error, 0, 1)
        held += low <= share <= high
    assert held / repeats > 0.92
