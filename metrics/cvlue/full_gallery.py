"""Retrieval over the full gallery in both directions: TR (image queries) and IR (caption queries)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cultureval.metrics.cvlue.names import KS
from cultureval.metrics.cvlue.one_product import rank_two_ways
from cultureval.metrics.cvlue.retrieval import check_correct, checked_embeddings, reranked_ranks
from cultureval.metrics.standard_errors import clustered_standard_error


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
    images: np.ndarray, texts: np.ndarray, of_images: list[list[int]], of_texts: list[list[int]], kept: int
) -> dict[str, Direction]:
    """Ranks by dot product, both ways from one product; half-precision embeddings are multiplied in single precision.

    Args:
        images: [I, D] embeddings of the images.
        texts: [T, D] embeddings of the captions.
        of_images: For each image the indices of its captions.
        of_texts: For each caption the indices of its images.
        kept: Number of first items to keep.

    Returns:
        "TR" and "IR".

    Raises:
        ValueError: Shapes that do not match, embeddings that are not finite, or a query without a correct item.
    """
    images, texts = checked_embeddings(images, texts)
    check_correct(of_images, len(images), len(texts))
    check_correct(of_texts, len(texts), len(images))
    of_queries = rank_two_ways(images, texts, of_images, of_texts, kept)
    return {
        name: Direction(ranks, top, correct)
        for name, (ranks, top), correct in zip(("TR", "IR"), of_queries, (of_images, of_texts), strict=True)
    }


def recalls(directions: Mapping[str, Direction], suffix: str = "") -> dict[str, float]:
    """Recall at 1, 5 and 10 of each direction, 0 to 1, with standard errors; metric names end with the suffix.

    Raises:
        ValueError: There is no direction, or one without a query.
    """
    if not directions or not all(len(direction.ranks) for direction in directions.values()):
        raise ValueError("there is no query")
    values: dict[str, float] = {}
    for name, direction in directions.items():
        for k in KS:
            hits = (direction.ranks <= k).astype(float)
            values[f"{name}@{k}{suffix}"] = float(np.mean(hits))
            # Captions of one image are one cluster; each image is a separate one.
            clusters = [items[0] for items in direction.correct] if name == "IR" else range(len(hits))
            values[f"{name}@{k}{suffix}_stderr"] = clustered_standard_error(hits, list(clusters), (0, 1))
    return values


def pairs_at_the_top(directions: Mapping[str, Direction], top_k: int) -> list[tuple[int, int]]:
    """The distinct (image, caption) pairs among the first k items of any query, sorted by image."""
    of_images = {(image, int(text)) for image, texts in enumerate(directions["TR"].top[:, :top_k]) for text in texts}
    of_texts = {(int(image), text) for text, images in enumerate(directions["IR"].top[:, :top_k]) for image in images}
    return sorted(of_images | of_texts)


def reranked(
    directions: Mapping[str, Direction], top_k: int, pairs: Sequence[tuple[int, int]], scores: Sequence[float]
) -> dict[str, Direction]:
    """Rerank the first k items of every query, in both directions; the others keep their ranks.

    Args:
        directions: "TR" and "IR".
        top_k: k.
        pairs: The result of `pairs_at_the_top`.
        scores: One per pair, higher is better.
    """
    score_of = dict(zip(pairs, scores, strict=True))
    ordered: dict[str, Direction] = {}
    for name, direction in directions.items():
        first, rest = direction.top[:, :top_k], direction.top[:, top_k:]
        pair = (lambda query, item: (query, item)) if name == "TR" else (lambda query, item: (item, query))
        table = np.array([[score_of[pair(query, int(item))] for item in row] for query, row in enumerate(first)])
        ranks, items = reranked_ranks(direction.ranks, first, table, direction.correct)
        ordered[name] = Direction(ranks, np.concatenate([items, rest], axis=1), direction.correct)
    return ordered
