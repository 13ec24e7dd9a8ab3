"""Image-text retrieval: ranks and recall of dual encoders over the full gallery, and of ranked lists.

CVLUE (paper section 3, Table 10) and COCO 5K report R@1, R@5 and R@10 of text retrieval (TR: the query is
an image, any of its captions is correct) and image retrieval (IR: the query is a caption). As in CVLUE's released
scorer (evaluation/eval_itr.py), captions are compared as strings: a shared caption is correct for each of its images.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

BLOCK_BYTES = 64 * 2**20  # approximate memory for the scores of one block of queries


class Direction(NamedTuple):
    """The queries of one direction.

    Attributes:
        ranks: [Q] rank of each query's best-ranked correct item, from 1.
        top: [Q, k] gallery indices of the first items, the best first.
        correct: For each query the indices of its correct items.
    """

    ranks: np.ndarray
    top: np.ndarray
    correct: list[list[int]]


def rank_both_ways(
    images: ArrayLike, texts: ArrayLike, of_images: list[list[int]], of_texts: list[list[int]], kept: int
) -> dict[str, Direction]:
    """Ranks by dot product; half-precision embeddings are multiplied in single precision.

    Args:
        images: [I, D] embeddings of the images (normalised ones for cosine similarity).
        texts: [T, D] embeddings of the captions.
        of_images: For each image the indices of its captions.
        of_texts: For each caption the indices of its images.
        kept: Number of first items to keep.

    Returns:
        "TR" and "IR".

    Raises:
        ValueError: Shapes that do not match, embeddings that are not finite, or a query without a correct item.
    """
    image_vectors, text_vectors = _checked(images), _checked(texts)
    if image_vectors.shape[1] != text_vectors.shape[1]:
        raise ValueError(f"images have {image_vectors.shape[1]} dimensions, captions {text_vectors.shape[1]}")
    return {
        "TR": ranked(image_vectors, text_vectors, of_images, kept),
        "IR": ranked(text_vectors, image_vectors, of_texts, kept),
    }


def ranked(
    queries: np.ndarray, gallery: np.ndarray, correct: list[list[int]], kept: int, block_bytes: int = BLOCK_BYTES
) -> Direction:
    """Ranks and first items of each query; ties keep the gallery's order.

    The full score matrix is never in memory: queries are scored in blocks of about `block_bytes`.

    Raises:
        ValueError: A set is empty, a query has no correct item, or its item is not in the gallery.
    """
    if not len(queries) or not len(gallery):
        raise ValueError("there is nothing to rank: a set is empty")
    if len(correct) != len(queries):
        raise ValueError(f"there are {len(queries)} queries but correct items of {len(correct)}")
    for number, items in enumerate(correct):
        if not items or min(items) < 0 or max(items) >= len(gallery):
            raise ValueError(f"query {number} has no correct item in the gallery of {len(gallery)}: {items[:5]}")
    kept, block = min(kept, len(gallery)), max(1, block_bytes // (len(gallery) * queries.itemsize))
    found = []
    for start in range(0, len(queries), block):
        scores = queries[start : start + block] @ gallery.T
        found += [_ranked_query(*query, kept) for query in zip(scores, correct[start : start + block], strict=True)]
    return Direction(np.array([rank for rank, _ in found]), np.stack([top for _, top in found]), correct)


def _ranked_query(scores: np.ndarray, correct: Sequence[int], kept: int) -> tuple[int, np.ndarray]:
    """(rank, first items) of one query from its scores [gallery]."""
    best = scores[list(correct)].max()
    place = min(item for item in correct if scores[item] == best)
    rank = 1 + np.count_nonzero(scores > best) + np.count_nonzero(scores[:place] == best)
    first = np.flatnonzero(scores >= np.partition(scores, -kept)[-kept])
    return int(rank), first[np.argsort(-scores[first], kind="stable")][:kept]


def correct_items(captions: Sequence[Sequence[str]]) -> tuple[list[str], list[list[int]], list[list[int]]]:
    """The captions of a set of images, and which captions and images belong together.

    Identical captions are one, correct for all of its images, as in CVLUE's released scorer.

    Args:
        captions: The captions of each image.

    Returns:
        (texts, of_images, of_texts): the distinct captions in order of appearance; for each image the indices of its
        captions; for each caption the indices of its images.

    Raises:
        ValueError: There is no image, or none has a caption.
    """
    if not any(captions):
        raise ValueError("there is no caption of an image")
    numbers: dict[str, int] = {}
    of_images = [
        list(dict.fromkeys(numbers.setdefault(text, len(numbers)) for text in of_image)) for of_image in captions
    ]
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


def _checked(embeddings: ArrayLike) -> np.ndarray:
    """Embeddings of at least single precision: products of half precision would be summed in it."""
    table = np.asarray(embeddings)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise ValueError(f"embeddings must be a filled table [items, dimensions] of finite numbers, not {table.shape}")
    return table.astype(np.result_type(table, np.float32), copy=False)
