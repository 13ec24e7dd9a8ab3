"""Image-text retrieval: recall of dual encoders, computed blockwise, and of ranked lists.

CVLUE (paper section 3, Table 10) and COCO 5K report R@1, R@5 and R@10 of text retrieval (TR: the query is
an image, any of its captions is correct) and image retrieval (IR: the query is a caption). As in CVLUE's released
scorer (evaluation/eval_itr.py), captions are compared as strings: one that several images share is correct for each.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cultureval.metrics.cvlue.names import KS

BLOCK_BYTES = 128 * 2**20


def recall(
    queries: ArrayLike,
    gallery: ArrayLike,
    correct: Sequence[int | Sequence[int]],
    ks: Sequence[int] = KS,
    block_bytes: int = BLOCK_BYTES,
) -> dict[int, float]:
    """The share of queries with a correct item among the first k of the gallery, for each k.

    Items are ranked by dot product; ties keep the gallery's order. The full score matrix is never in memory.

    Args:
        queries: [Q, D] embeddings (normalised ones for cosine similarity).
        gallery: [G, D] embeddings.
        correct: For each query the gallery index of its correct item, or several indices.
        ks: Positive numbers.
        block_bytes: Approximate memory for the scores of one block of queries.

    Raises:
        ValueError: As in `best_ranks`, or a k below 1.
    """
    if any(k < 1 for k in ks):
        raise ValueError(f"k must be at least 1, not {min(ks)}")
    ranks = best_ranks(queries, gallery, correct, block_bytes)
    return {k: float(np.mean(ranks <= k)) for k in ks}


def best_ranks(
    queries: ArrayLike, gallery: ArrayLike, correct: Sequence[int | Sequence[int]], block_bytes: int = BLOCK_BYTES
) -> np.ndarray:
    """The rank of each query's best-ranked correct item: [Q] numbers from 1 to G; arguments as in `recall`.

    Raises:
        ValueError: Shapes that do not match, embeddings that are not finite, or a query without a correct item or
            with one that is not in the gallery.
    """
    queries, gallery = checked_embeddings(queries, gallery)
    places = [np.atleast_1d(np.asarray(items, dtype=np.int64)) for items in correct]
    check_correct(places, len(queries), len(gallery))
    block = max(1, block_bytes // (gallery.shape[0] * queries.dtype.itemsize))
    transposed = gallery.T
    ranks = np.empty(len(queries), dtype=np.int64)
    scores = np.empty((min(block, len(queries)), gallery.shape[0]), dtype=np.result_type(queries, gallery))
    for start in range(0, len(queries), block):
        stop = min(start + block, len(queries))
        part = np.matmul(queries[start:stop], transposed, out=scores[: stop - start])
        for row, items in zip(range(start, stop), places[start:stop], strict=True):
            ranks[row] = _best_rank(part[row - start], items)
    return ranks


def reranked_ranks(
    ranks: np.ndarray, top: np.ndarray, scores: np.ndarray, correct: Sequence[Sequence[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Ranks after reranking the first k items of each query by another model's scores.

    Args:
        ranks: [Q] ranks of the best-ranked correct items before reranking (`best_ranks`).
        top: [Q, k] indices of the first k items, best first.
        scores: [Q, k] the other model's scores of these items; ties keep their order.
        correct: For each query the gallery indices of its correct items.

    Returns:
        (ranks, top) after reranking. Queries without a correct item among the first k keep their rank.
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    reordered = np.take_along_axis(top, order, 1)
    new_ranks = ranks.copy()
    for query, items in enumerate(correct):
        places = np.flatnonzero(np.isin(reordered[query], list(items)))
        if len(places):
            new_ranks[query] = places[0] + 1
    return new_ranks, reordered


def correct_items(
    captions: Sequence[Sequence[str]], by_index: bool = False
) -> tuple[list[str], list[list[int]], list[list[int]]]:
    """The captions of a set of images, and which captions and images belong together.

    Args:
        captions: The captions of each image.
        by_index: Whether identical captions stay apart, each correct for its own image alone, as in the training code
            of CVLUE's baselines; otherwise they are one, correct for all of its images, as in CVLUE's released scorer.

    Returns:
        (texts, of_images, of_texts): the captions in order of appearance; for each image the indices of its captions;
        for each caption the indices of its images.

    Raises:
        ValueError: There is no image, or none has a caption.
    """
    if not any(captions):
        raise ValueError("there is no caption of an image")
    if by_index:
        ends = np.cumsum([len(own) for own in captions]).tolist()
        of_each = [list(range(end - len(own), end)) for own, end in zip(captions, ends, strict=True)]
        owners = [[image] for image, own in enumerate(captions) for _ in own]
        return [text for own in captions for text in own], of_each, owners
    numbers: dict[str, int] = {}
    of_images = [list(dict.fromkeys(numbers.setdefault(text, len(numbers)) for text in own)) for own in captions]
    of_texts: list[list[int]] = [[] for _ in numbers]
    for image, texts in enumerate(of_images):
        for text in texts:
            of_texts[text].append(image)
    return list(numbers), of_images, of_texts


def list_ranks(ranked: Mapping[str, Sequence[str]], correct: Mapping[str, Sequence[str]]) -> dict[str, int | None]:
    """The rank of each query's first correct item in its list (best first), from 1; None if the list has none."""
    if not ranked:
        raise ValueError("there is no query")
    ranks: dict[str, int | None] = {}
    for query, items in ranked.items():
        right = set(correct[query])
        ranks[query] = next((rank for rank, item in enumerate(items, 1) if item in right), None)
    return ranks


def _best_rank(scores: np.ndarray, items: np.ndarray) -> int:
    own = scores[items]
    best = own.max()
    position = items[own == best].min()
    return 1 + int(np.count_nonzero(scores > best)) + int(np.count_nonzero(scores[:position] == best))


def checked_embeddings(queries: ArrayLike, gallery: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings as arrays of single or double precision: products of half precision would be summed in it.

    Raises:
        ValueError: They are no tables [items, dimensions] of finite numbers, or of different dimensions.
    """
    tables = {"queries": np.asarray(queries), "the gallery": np.asarray(gallery)}
    for name, table in tables.items():
        if table.ndim != 2 or not table.size:
            raise ValueError(f"{name} must be a non-empty array [items, dimensions], not of shape {table.shape}")
        if not np.isfinite(table).all():
            raise ValueError(f"{name} has an embedding that is not finite")
    one, other = (table.astype(np.result_type(table, np.float32), copy=False) for table in tables.values())
    if one.shape[1] != other.shape[1]:
        raise ValueError(f"queries have {one.shape[1]} dimensions, the gallery {other.shape[1]}")
    return one, other


def check_correct(correct: Sequence[Sequence[int] | np.ndarray], queries: int, gallery: int) -> None:
    """Checks that each query has correct items, all of them indices of the gallery."""
    if len(correct) != queries:
        raise ValueError(f"there are {queries} queries but correct items of {len(correct)}")
    for number, items in enumerate(correct):
        if not len(items) or min(items) < 0 or max(items) >= gallery:
            raise ValueError(f"query {number} has no correct item in the gallery of {gallery}: {list(items[:5])}")
