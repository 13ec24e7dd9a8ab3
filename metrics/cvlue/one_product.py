"""Ranks and first items of both directions of retrieval, from one product of images and captions, tile by tile.

The score table is never in memory. A query's rank needs the score of its best correct item, which may come in a later
tile, so scores are counted against bounds around an independent estimate of it; the few scores between these bounds are
kept and counted at the end, when the product's own score is known: ranks are exact, ties included.
"""

from collections.abc import Sequence

import numpy as np

TILE_BYTES = 64 * 2**20
_PAIRS = 4096  # whose products are computed at once


def rank_two_ways(
    first: np.ndarray,
    second: np.ndarray,
    of_first: Sequence[Sequence[int]],
    of_second: Sequence[Sequence[int]],
    kept: int,
    tile_bytes: int = TILE_BYTES,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Ranks by dot product, of each of two sets as queries for the other.

    Args:
        first: [A, D] finite embeddings, float32 or float64.
        second: [B, D] embeddings, likewise.
        of_first: For each of the first set the indices of its correct items in the second; at least one.
        of_second: The same for the second set.
        kept: Number of first items to keep, at least 1.
        tile_bytes: Approximate memory for the scores of one tile.

    Returns:
        For each direction (ranks, top): [queries] rank of the best-ranked correct item, from 1, and [queries, kept]
        indices of the first items, best first. Ties keep the order of the items.

    Raises:
        ValueError: A set is empty.
    """
    if not len(first) or not len(second):
        raise ValueError("there is nothing to rank: a set is empty")
    rows = max(1, tile_bytes // (len(first) * first.dtype.itemsize))
    forward, backward = _Ranking(first, second, of_first, kept), _Ranking(second, first, of_second, kept)
    scores = np.empty((min(rows, len(second)), len(first)), dtype=np.result_type(first, second))
    for start in range(0, len(second), rows):
        part = second[start : start + rows]
        tile = np.matmul(part, first.T, out=scores[: len(part)])
        backward.add(tile, start, 0)
        forward.add(tile.T, 0, start)
    return forward.result(), backward.result()


class _Ranking:
    """One direction: what is known of each query from the tiles so far, which come in the order of the items."""

    def __init__(self, queries: np.ndarray, gallery: np.ndarray, correct: Sequence[Sequence[int]], kept: int) -> None:
        self.kept = min(kept, len(gallery))
        self.owner = np.repeat(np.arange(len(queries)), [len(items) for items in correct])
        self.item = np.concatenate([np.asarray(items, dtype=np.int64) for items in correct])
        order = np.argsort(self.item, kind="stable")
        self.owner, self.item = self.owner[order], self.item[order]
        self.score = np.full(len(self.item), -np.inf, dtype=np.result_type(queries, gallery))
        estimate = _best_products(queries, gallery, self.owner, self.item)
        # A product's rounding error is at most D * eps * |q| * |g|; the window is twice that on either side.
        norms = np.linalg.norm(queries, axis=1).astype(np.float64) * float(np.linalg.norm(gallery, axis=1).max())
        window = 2 * queries.shape[1] * float(np.finfo(self.score.dtype).eps) * norms
        self.low, self.high = ((estimate + sign * window).astype(self.score.dtype) for sign in (-1, 1))
        self.above = np.zeros(len(queries), dtype=np.int64)
        self.unsure: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.top_scores = np.full((len(queries), self.kept), -np.inf, dtype=self.score.dtype)
        self.top = np.full((len(queries), self.kept), len(gallery), dtype=np.int64)

    def add(self, tile: np.ndarray, query: int, item: int) -> None:
        """Counts a tile [queries, items] that begins at these indices."""
        part = slice(query, query + len(tile))
        low, high = self.low[part, None], self.high[part, None]
        above = _count(tile > high)
        unsure = _count(tile >= low) - above
        self.above[part] += above
        own = self._own_scores(tile, query, item)
        known = np.bincount(self.owner[own] - query, minlength=len(tile))
        more = unsure > known  # other items score almost the same: they are looked for
        own = own[~more[self.owner[own] - query]]
        self.unsure.append((self.owner[own], self.item[own], self.score[own]))
        for row in np.flatnonzero(more):
            near = np.flatnonzero((tile[row] >= low[row]) & (tile[row] <= high[row]))
            self.unsure.append((np.full(len(near), query + row), near + item, tile[row, near]))
        self._keep_first(tile, part, item)

    def _own_scores(self, tile: np.ndarray, query: int, item: int) -> np.ndarray:
        """Notes the scores of the tile's correct items; returns the places of those between their bounds."""
        first, last = np.searchsorted(self.item, (item, item + tile.shape[1]))
        owner = self.owner[first:last]
        mine = first + np.flatnonzero((owner >= query) & (owner < query + len(tile)))
        owner, scores = self.owner[mine], tile[self.owner[mine] - query, self.item[mine] - item]
        self.score[mine] = scores
        return mine[(scores >= self.low[owner]) & (scores <= self.high[owner])]

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """(ranks, top) after the last tile."""
        best = np.full(len(self.above), -np.inf, dtype=self.score.dtype)
        np.maximum.at(best, self.owner, self.score)
        is_best = self.score == best[self.owner]
        position = np.full(len(best), np.iinfo(np.int64).max)
        np.minimum.at(position, self.owner[is_best], self.item[is_best])
        query, item, score = (np.concatenate(parts) for parts in zip(*self.unsure, strict=True))
        before = (score > best[query]) | ((score == best[query]) & (item < position[query]))
        return 1 + self.above + np.bincount(query[before], minlength=len(best)), self.top

    def _keep_first(self, tile: np.ndarray, part: slice, item: int) -> None:
        """Merges the best items of a tile into the first ones so far."""
        bound = np.maximum(self.top_scores[part, -1], _lower_bound(tile, self.kept))
        rows, columns = _places(tile >= bound[:, None])
        touched = np.unique(rows)
        if not len(touched):
            return
        earlier = self.top[part][touched]
        query = np.concatenate([np.repeat(touched, self.kept), rows])
        items = np.concatenate([earlier.ravel(), columns + item])
        scores = np.concatenate([self.top_scores[part][touched].ravel(), tile[rows, columns]])
        order = np.lexsort((items, -scores, query))
        starts = np.searchsorted(query[order], touched)
        first = order[starts[:, None] + np.arange(self.kept)]
        self.top[part.start + touched], self.top_scores[part.start + touched] = items[first], scores[first]


def _best_products(queries: np.ndarray, gallery: np.ndarray, owner: np.ndarray, item: np.ndarray) -> np.ndarray:
    """[queries] the largest product of each query with its correct items, in double precision."""
    best = np.full(len(queries), -np.inf)
    for start in range(0, len(owner), _PAIRS):
        mine, theirs = owner[start : start + _PAIRS], item[start : start + _PAIRS]
        products = np.einsum("pd,pd->p", queries[mine], gallery[theirs], dtype=np.float64)
        np.maximum.at(best, mine, products)
    return best


def _lower_bound(tile: np.ndarray, kept: int) -> np.ndarray:
    """[queries] a number that at least `kept` scores of the tile reach, or -inf where it has fewer."""
    items = tile.shape[1]
    if items < kept:
        return np.full(len(tile), -np.inf, dtype=tile.dtype)
    groups = min(items, max(64, 8 * kept))
    width = items // groups
    if width == 1:
        return np.partition(tile, -kept, axis=1)[:, -kept]
    maxima = tile[:, : groups * width].reshape(len(tile), groups, width).max(2)
    return np.partition(maxima, -kept, axis=1)[:, -kept]


def _count(mask: np.ndarray) -> np.ndarray:
    """True values of each row; counted in bytes, which is several times as fast as summing booleans."""
    if not mask.flags.c_contiguous:
        return mask.T.view(np.uint8).sum(0, dtype=np.uint32).astype(np.int64)
    return np.bitwise_count(np.packbits(mask, axis=1)).sum(1, dtype=np.int64)


def _places(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the true values, read in the order of memory."""
    if mask.flags.c_contiguous:
        return np.divmod(np.flatnonzero(mask), mask.shape[1])
    columns, rows = np.divmod(np.flatnonzero(mask.T), mask.shape[0])
    return rows, columns
