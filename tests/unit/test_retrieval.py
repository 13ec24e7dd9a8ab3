import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.cvlue.retrieval import (
    correct_items,
    list_ranks,
    rank_both_ways,
    ranked,
)


def dense_ranks(queries, gallery, correct):
    """By a stable sort of the whole table."""
    order = np.argsort(-(queries @ gallery.T), axis=1, kind="stable")
    return [min(list(row).index(item) for item in items) + 1 for row, items in zip(order, correct, strict=True)]


def test_blocks_equal_a_sort_of_the_whole_table_with_ties():
    """Whole-numbered embeddings, so that equal scores are exactly equal and ties are everywhere."""
    numbers = np.random.default_rng(0)
    captions, images = (numbers.integers(-1, 2, (size, 8)).astype(np.float32) for size in (2000, 400))
    of_images = [list(range(5 * image, 5 * image + 5)) for image in range(400)]
    of_captions = [[caption // 5] for caption in range(2000)]
    for queries, gallery, correct in ((captions, images, of_captions), (images, captions, of_images)):
        assert ranked(queries, gallery, correct, 3, block_bytes=300_000).ranks.tolist() == dense_ranks(
            queries, gallery, correct
        )
        table = queries @ gallery.T
        assert (table == np.take_along_axis(table, np.array(correct)[:, :1], 1)).sum() > 9000


@given(st.integers(1, 9), st.integers(1, 60), st.integers(1, 4), st.integers(1, 4000), st.integers(0, 10**6))
def test_any_block_size_gives_the_same_ranks_and_first_items(queries, gallery, kept, block_bytes, seed):
    numbers = np.random.default_rng(seed)
    asked, items = (numbers.integers(-1, 2, (size, 3)).astype(np.float32) for size in (queries, gallery))
    correct = [sorted(set(numbers.integers(0, gallery, 2).tolist())) for _ in range(queries)]
    ranks, top, _ = ranked(asked, items, correct, kept, block_bytes)
    assert ranks.tolist() == dense_ranks(asked, items, correct)
    assert np.array_equal(top, np.argsort(-(asked @ items.T), axis=1, kind="stable")[:, :kept])


def test_half_precision_is_summed_in_single():
    """2,049 ones: in half precision the sum stays at 2,048, so that all items would be tied."""
    items = np.ones((2, 2049), dtype=np.float16)
    items[0, -1] = 0
    directions = rank_both_ways(items[1:], items, [[1]], [[0], [0]], 1)
    assert directions["TR"].ranks.tolist() == [1] and directions["TR"].top.tolist() == [[1]]


def test_correctness_is_a_matter_of_strings():
    texts, of_images, of_texts = correct_items([["a", "b", "a"], ["b", "c"]])
    assert (texts, of_images, of_texts) == (["a", "b", "c"], [[0, 1], [1, 2]], [[0], [0, 1], [1]])
    assert list_ranks({"q": ["x", "b", "a"], "r": ["x"]}, {"q": ["a", "b"], "r": ["a"]}) == {"q": 2, "r": None}


def test_impossible_input_is_refused():
    one = np.ones((2, 3), dtype=np.float32)
    for queries, gallery, correct in (
        (one, one, [[0]]),
        (one, one, [[0], []]),
        (one, one, [[0], [2]]),
        (one, one[:, :2], [[0], [0]]),
        (one * np.nan, one, [[0], [0]]),
    ):
        with pytest.raises(ValueError):
            rank_both_ways(queries, gallery, correct, [[0], [0]], 1)
