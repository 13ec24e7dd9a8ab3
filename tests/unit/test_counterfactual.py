"""CFHR and its companions on small cells, and the bootstrap against a plain loop over the same resamples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.m2cqa.counterfactual import counterfactual_report, paired_cfhr_difference

RATES = ("q_plus_acc", "q_minus_acc", "f1", "combined_acc", "cfhr", "invalid_rate", "cfhr_valid_only")
RATES += ("contrastive_instability",)
NAMES = {*RATES, "n_items", "n_q_plus"}


def random_cell(items, seed, right=0.8, rejected=0.8):
    draw = np.random.default_rng(seed)
    return draw.random(items) < right, draw.random((items, 2)) < rejected


def test_a_cell_by_hand():
    q_plus = [True, True, True, False]
    q_minus = [[True, True], [True, False], [False, False], [True, True]]
    invalid = np.zeros((4, 3), bool)
    invalid[2, 1] = True
    report = counterfactual_report(q_plus, q_minus, invalid)
    assert set(report) == NAMES | {f"{name}_stderr" for name in RATES}
    expected = {"q_plus_acc": 0.75, "q_minus_acc": 5 / 8, "combined_acc": 0.25, "cfhr": 2 / 3, "invalid_rate": 1 / 12}
    expected |= {"f1": 2 * 0.75 * 0.625 / 1.375, "cfhr_valid_only": 0.5, "n_items": 4, "n_q_plus": 3}
    expected |= {"contrastive_instability": 3 / 4}  # of four items with a right verdict, one is wholly right
    assert {name: report[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize(
    ("right", "rejected", "cfhr", "f1"),
    [(True, True, 0.0, 1.0), (True, False, 1.0, 0.0), (False, True, None, 0.0), (False, False, None, 0.0)],
)
def test_responders_that_never_waver(right, rejected, cfhr, f1):
    """Perfect; always true; always false; and always wrong. CFHR is null, not 0, where no Q+ is right."""
    report = counterfactual_report(np.full(12, right), np.full((12, 2), rejected))
    assert (report["cfhr"], report["f1"], report["n_q_plus"]) == (cfhr, f1, 12 * right)
    assert report["cfhr_valid_only"] == cfhr
    # Twelve alike say little: Wilson's interval of 0 of 12 ends at 0.242, and its error is that over 2 * 1.96.
    assert report["cfhr_stderr"] == (None if cfhr is None else pytest.approx(0.2425 / 3.92, abs=1e-4))


def test_standard_errors_are_those_of_theory():
    q_plus, q_minus = random_cell(4000, 1)
    report = counterfactual_report(q_plus, q_minus)
    p, c, n = report["q_plus_acc"], report["cfhr"], 4000
    assert report["q_plus_acc_stderr"] == pytest.approx(math.sqrt(p * (1 - p) / n), rel=0.1)
    assert report["cfhr_stderr"] == pytest.approx(math.sqrt(c * (1 - c) / report["n_q_plus"]), rel=0.1)


@given(st.integers(1, 30), st.integers(1, 3), st.integers(0, 2**32))
def test_bounds_and_identities(items, false_statements, seed):
    draw = np.random.default_rng(seed)
    q_plus, q_minus = draw.random(items) < 0.6, draw.random((items, false_statements)) < 0.6
    report = counterfactual_report(q_plus, q_minus)
    assert all(report[name] is None or 0 <= report[name] <= 1 for name in RATES)
    assert (report["cfhr"] is None) == (not q_plus.any())
    if report["cfhr"] is not None:
        combined = np.mean(q_plus & q_minus.all(axis=1))
        assert report["cfhr"] == pytest.approx((report["q_plus_acc"] - combined) / report["q_plus_acc"])
        if false_statements == 2:
            p, m = report["q_plus_acc"], report["q_minus_acc"]
            low, high = max(0.0, 1 - m / p), min(1.0, 1 - max(0.0, p + 2 * m - 2) / p)
            assert low - 1e-9 <= report["cfhr"] <= high + 1e-9


@pytest.mark.parametrize(
    ("q_plus", "q_minus", "named"),
    [
        ([], [], "non-empty"),
        ([True], [True], "q_minus has shape"),
        ([True], [[]], "K of at least 1"),
        ([True, False], [[True, True]], "q_minus has shape"),
        ([0.5], [[True]], "neither true nor false"),
        (["yes"], [[True]], "neither true nor false"),
        ([None], [[True]], "neither true nor false"),
    ],
)
def test_what_is_no_cell_is_refused(q_plus, q_minus, named):
    with pytest.raises(ValueError, match=named):
        counterfactual_report(q_plus, q_minus)


def test_a_difference_of_a_cell_and_itself_is_nothing():
    cell = random_cell(50, 3)
    assert paired_cfhr_difference(*cell, *cell) == {"delta": 0.0, "ci_low": 0.0, "ci_high": 0.0, "p_value": 1.0}


def test_pairing_narrows_the_interval_and_p_is_two_sided():
    """Two cells that differ on a few items: the paired interval excludes 0, in either direction."""
    q_plus, q_minus = random_cell(600, 5)
    better = q_minus.copy()
    better[:60] = True
    down = paired_cfhr_difference(q_plus, q_minus, q_plus, better)
    up = paired_cfhr_difference(q_plus, better, q_plus, q_minus)
    assert down["ci_low"] > 0 and up["ci_high"] < 0
    assert down["delta"] == pytest.approx(-up["delta"]) and down["p_value"] == up["p_value"] < 0.01
    assert down["ci_high"] - down["ci_low"] < 0.06


def test_an_undefined_cfhr_has_no_difference():
    never = np.zeros(10, bool), np.ones((10, 2), bool)
    assert set(paired_cfhr_difference(*never, *random_cell(10, 0)).values()) == {None}
    rare = np.arange(10) == 0, np.zeros((10, 2), bool)
    sometimes = paired_cfhr_difference(*rare, *rare)  # resamples without item 0 are left out
    assert sometimes == {"delta": 0.0, "ci_low": 0.0, "ci_high": 0.0, "p_value": 1.0}
