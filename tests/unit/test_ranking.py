import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.cvlue.ranking import gold_ranks, gold_ties, ndcg


@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 10**6))
def test_ranks_are_those_of_a_stable_sort(items, candidates, seed):
    numbers = np.random.default_rng(seed)
    scores = numbers.integers(0, 4, (items, candidates)).astype(float)  # few values, so that ties are common
    gold = numbers.integers(0, candidates, items)
    expected = [
        sorted(range(candidates), key=lambda c: -row[c]).index(g) + 1 for row, g in zip(scores, gold, strict=True)
    ]
    assert gold_ranks(scores, gold).tolist() == expected
    assert gold_ties(scores, gold).tolist() == [
        list(row).count(row[g]) > 1 for row, g in zip(scores, gold, strict=True)
    ]


def test_ndcg_by_hand():
    """Two relevant candidates (1 and 0.5), ranked 2nd and 1st: (0.5 + 1/log2 3) / (1 + 0.5/log2 3)."""
    relevance = [[1.0, 0.5, 0.0, 0.0]]
    assert ndcg([[2.0, 3.0, 1.0, 0.0]], relevance) == pytest.approx((0.5 + 1 / np.log2(3)) / (1 + 0.5 / np.log2(3)))
    assert ndcg([[0.0, 0.0, 2.0, 1.0]], relevance) == 0
    assert ndcg([[9.0, 8.0, 7.0, 6.0]], relevance) == 1
    with pytest.raises(ValueError, match="no relevant candidate"):
        ndcg([[1.0, 2.0]], [[0.0, 0.0]])


def test_impossible_gives_an_error_and_minus_infinity_is_last():
    assert gold_ranks([[-np.inf, 0.0]], [0]) == [2]
    for scores, gold in (
        [[[np.nan, 0.0]], [0]],
        [[[1.0, 2.0]], [2]],
        [[[1.0, 2.0]], [0.5]],
        [[], []],
        [[[1.0]], [0, 0]],
    ):
        with pytest.raises(ValueError):
            gold_ranks(scores, gold)
