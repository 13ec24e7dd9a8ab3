"""pass@k of a problem, and what is said of verdicts."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cultureval.metrics.code.judging import SolutionVerdict
from cultureval.metrics.code.report import offered_k, problem_scores, verdict_in_details, verdict_lines

OUTCOMES = {"pass": ("pass", "pass"), "base": ("pass", "fail"), "fail": ("fail", "fail"), "not": ("not_judged",) * 2}


def verdicts(names):
    return [SolutionVerdict("a", place, *OUTCOMES[name], reason=f"why {name}") for place, name in enumerate(names)]


@given(some.lists(some.sampled_from(sorted(OUTCOMES)), min_size=1, max_size=7), some.integers(1, 3))
def test_pass_at_k_is_the_share_of_draws_of_k_judged_samples_with_a_pass(names, k):
    scores = problem_scores(verdicts(names), [k])
    judged = [name for name in names if name != "not"]
    for suite, right in (("base", {"pass", "base"}), ("plus", {"pass"})):
        draws = list(itertools.combinations(judged, k))
        share = sum(bool(right & set(draw)) for draw in draws) / len(draws) if draws else math.nan
        assert scores[f"{suite}_pass@{k}"] == pytest.approx(share, nan_ok=True)
    assert scores["not_judged"] == names.count("not") / len(names)
    assert next(iter(scores)) == f"plus_pass@{k}"


def test_k_needs_as_many_samples_of_every_problem():
    assert [offered_k(sizes) for sizes in ([10, 12], [3, 3], [200], [])] == [[1, 10], [1, 3], [1, 10, 100, 200], []]


def test_details_hold_outcomes_and_reasons():
    told = verdict_in_details(verdicts(["base", "fail"]))
    assert told == {"base": "pass, fail", "plus": "fail, fail", "reason": "solution 0: why base; solution 1: why fail"}
    assert verdict_lines({"verdict": told})[0] == "base tests: pass, fail, extra tests: fail, fail"
    assert verdict_lines({}) == verdict_lines({"verdict": "x"}) == []
