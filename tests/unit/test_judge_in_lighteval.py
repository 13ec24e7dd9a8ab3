"""Judge metrics in LightEval's averages over a group."""

import itertools
import math

import pytest

from cultureval.metrics.judges.lighteval import NoMean, ScoredMean
from cultureval.metrics.lighteval.clustered_means import ClusteredScore

SCORES = ([4.0, 5.0, 3.0], [1.0, 2.0, 2.0, 5.0])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_subset_that_is_not_asked_is_left_out_of_the_groups_average(order):
    """JEEM's MSA among its dialects, wherever it stands; LightEval's average is sum / count, from 0."""
    subsets = [
        ScoredMean("fluency", 5).compute_corpus([ClusteredScore(score) for score in scores]) for scores in SCORES
    ]
    subsets.append(NoMean("fluency", 5).compute_corpus([math.nan] * 3))
    assert subsets[0].keys() == subsets[2].keys()
    assert all(math.isnan(value) for value in subsets[2].values())
    average = {name: sum(subsets[place][name] for place in order) / 3 for name in subsets[0]}
    assert average["fluency"] == pytest.approx((4 + 2.5) / 2)
    assert average["fluency_missing_as_1"] == pytest.approx((4 + 2.5) / 2)
    errors = [subset["fluency_stderr"] for subset in subsets[:2]]
    assert average["fluency_stderr"] == pytest.approx(math.hypot(*errors) / 2)
    alone = {name: sum([subsets[2][name]]) / 1 for name in subsets[2]}
    assert all(math.isnan(value) for value in alone.values())


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_an_undefined_mean_of_a_subset_that_is_asked_leaves_no_average(order):
    unscored = [ClusteredScore(math.nan)] * 2
    subsets = [ScoredMean("fluency", 5).compute_corpus(scores) for scores in ([ClusteredScore(4.0)] * 2, unscored)]
    subsets.append(NoMean("fluency", 5).compute_corpus(unscored))
    assert math.isnan(sum(subsets[place]["fluency"] for place in order) / 3)
    assert sum(subsets[place]["fluency_missing_as_1"] for place in order) / 3 == pytest.approx((4 + 1) / 2)
