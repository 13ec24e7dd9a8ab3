"""pass@k, its bounds, and what may be said of solutions that were not judged."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.code.pass_at_k import offered_k, pass_at_k, plus_outcome

JUDGED = st.sampled_from(["pass", "fail"])
ANY = st.sampled_from(["pass", "fail", "not_judged"])


@given(st.lists(st.lists(JUDGED, min_size=1, max_size=6), min_size=1, max_size=4), st.integers(1, 3))
def test_it_is_the_share_of_draws_of_k_samples_with_a_pass(tasks, k):
    tasks = {str(number): samples for number, samples in enumerate(tasks) if len(samples) >= k}
    if not tasks:
        return
    shares = []
    for samples in tasks.values():
        draws = list(itertools.combinations(samples, k))
        shares.append(sum("pass" in draw for draw in draws) / len(draws))
    estimate = pass_at_k(tasks, k)
    assert estimate.value == pytest.approx(sum(shares) / len(shares))
    assert (estimate.worst, estimate.best) == pytest.approx((estimate.value, estimate.value))


@given(st.lists(st.lists(ANY, min_size=2, max_size=5), min_size=1, max_size=4), st.data())
def test_the_bounds_hold_whatever_the_rest_turns_out_to_be(tasks, data):
    known = {str(number): samples for number, samples in enumerate(tasks)}
    truth = {
        name: [data.draw(JUDGED) if outcome == "not_judged" else outcome for outcome in samples]
        for name, samples in known.items()
    }
    estimate, true = pass_at_k(known, 1), pass_at_k(truth, 1).value
    assert estimate.worst - 1e-12 <= true <= estimate.best + 1e-12


def test_what_was_not_judged_is_out_of_the_denominator():
    estimate = pass_at_k({"a": ["pass", "not_judged"], "b": ["fail", "fail"], "c": ["not_judged", "not_judged"]}, 1)
    assert (estimate.value, estimate.tasks) == (0.5, 2)
    assert (estimate.worst, estimate.best) == pytest.approx((0.5 / 3, 2 / 3))
    assert estimate.standard_error == pytest.approx(0.5)
    assert math.isnan(pass_at_k({"a": ["not_judged"]}, 1).value)


def test_k_needs_as_many_samples():
    assert offered_k({"a": ["pass"] * 10, "b": ["fail"] * 12}) == [1, 10]
    assert offered_k({"a": ["pass"] * 3, "b": ["fail"] * 3}) == [1, 3]
    for tasks, k in (({}, 1), ({"a": ["pass"]}, 2), ({"a": ["pass"]}, 0)):
        with pytest.raises(ValueError, match=f"pass@{k}"):
            pass_at_k(tasks, k)


@pytest.mark.parametrize(
    ("base", "plus", "both"),
    [
        ("pass", "pass", "pass"),
        ("pass", "fail", "fail"),
        ("fail", "not_judged", "fail"),
        ("not_judged", "fail", "fail"),
        ("pass", "not_judged", "not_judged"),
        ("not_judged", "pass", "not_judged"),
    ],
)
def test_a_plus_pass_needs_both(base, plus, both):
    assert plus_outcome(base, plus) == both
