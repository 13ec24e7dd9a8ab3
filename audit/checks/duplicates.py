"""Duplicates: exact ones by normalised words, near ones by MinHash; in a source, across sources, with few-shot rows.

Near duplicates are found by locality-sensitive hashing of words and pairs of words (datasketch), and each candidate is
then compared word by word, so that no finding rests on an estimate. Items whose numbers differ are different items.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cultureval.audit.checks.findings import Found, signs, vowelled, words
from cultureval.audit.items import AuditItem
from cultureval.runtime.errors import shorten

SIMILAR = 0.7  # share of common words and pairs of words
BANDS, ROWS = 20, 4  # of MinHash: of pairs with 0.7 in common it finds 99.6 %, of those with 0.8 all but one in 30,000
PERMUTATIONS = BANDS * ROWS
SHORTEST = 6  # words below which a near duplicate says nothing


@dataclass(frozen=True)
class Pair:
    """An item and the earlier one that it repeats; few-shot examples are the earliest.

    Attributes:
        similarity: Share of common words and pairs of words; 1.0 for exact ones.
        exact: Whether all words, signs and vowel marks (where both have some) are the same, options in any order.
    """

    item: AuditItem
    earlier: AuditItem
    similarity: float
    exact: bool

    @property
    def kind(self) -> str:
        """The name of the check that reports it."""
        of_examples = self.earlier.split == "few_shot" and self.item.split == "test"
        if of_examples and (self.exact or not _other_gold(self)):
            return "few_shot_in_test"
        if self.earlier.source != self.item.source:
            return "duplicate_across_sources"
        return "exact_duplicate" if self.exact else "near_duplicate"


def of_kind(kind: str) -> Callable[[Sequence[AuditItem]], Iterator[Found]]:
    """The look of a check at the pairs of its kind."""

    def look(items: Sequence[AuditItem]) -> Iterator[Found]:
        for pair in pairs(tuple(items)):
            if pair.kind == kind:
                how = "the same words as" if pair.exact else f"{pair.similarity:.0%} of its words in common with"
                where = f"{pair.earlier.id} ({pair.earlier.split.replace('_', '-')})"
                detail = f"it has {how} {where}{_other_gold(pair)}: {shorten(pair.item.question, 60)}"
                yield Found(pair.item, detail, other=pair.earlier.id)

    return look


def _other_gold(pair: Pair) -> str:
    golds = [_gold_words(one) for one in (pair.item, pair.earlier)]
    return ", with another right answer" if all(golds) and golds[0] != golds[1] else ""


def _gold_words(item: AuditItem) -> tuple[tuple[str, ...], ...]:
    texts = [item.options[place] for place in item.gold] if item.options else list(item.answers)
    return tuple(sorted(map(words, texts)))


@lru_cache(maxsize=1)
def pairs(items: tuple[AuditItem, ...]) -> tuple[Pair, ...]:
    """Each item that repeats an earlier one, with the most similar of those; few-shot examples come before others."""
    ordered = sorted(items, key=lambda item: item.split != "few_shot")
    exact: dict[tuple[object, ...], list[AuditItem]] = {}
    index = _NearIndex()
    found: list[Pair] = []
    for item in ordered:
        same_words = exact.setdefault(_key(item), [])
        first = next((one for one in same_words if not _vowelled_otherwise(item, one)), None)
        if first:
            if item.split == "test" or first.split == "few_shot":
                found.append(Pair(item, first, 1.0, True))
            continue
        same_words.append(item)
        if near := index.nearest(item):
            found.append(Pair(item, near[0], near[1], False))
    return tuple(found)


def _key(item: AuditItem) -> tuple[object, ...]:
    """What exact duplicates have in common; the image tells questions about images apart, signs 5 + 3 and 5 - 3."""
    options = tuple(sorted((words(text), signs(text)) for text in item.options or item.answers))
    asked = words(item.question)
    return item.image, words(item.context), asked or item.id, signs(item.question), options


def _vowelled_otherwise(item: AuditItem, other: AuditItem) -> bool:
    """Whether both have words with vowel marks, and not the same ones: كَتَبَ is another question than كُتِبَ."""
    marked = [set().union(*map(vowelled, one.texts)) for one in (item, other)]
    return all(marked) and marked[0] != marked[1]


class _NearIndex:
    """The items so far, by the MinHash of their words and pairs of words."""

    def __init__(self) -> None:
        from datasketch import MinHash, MinHashLSH

        self.empty = MinHash(num_perm=PERMUTATIONS, seed=1, hashfunc=int)
        self.hashes = MinHashLSH(num_perm=PERMUTATIONS, params=(BANDS, ROWS))
        self.items: list[tuple[AuditItem, frozenset[int], Counter[str]]] = []

    def nearest(self, item: AuditItem) -> tuple[AuditItem, float] | None:
        """The most similar earlier item with its similarity, examples first, if any; the item is added to the index."""
        asked = (item.question, *item.options, *item.answers)  # not the passage, which many questions share
        spelled = [word for text in asked for word in words(text)]
        if len(spelled) < SHORTEST or item.images:
            return None
        shingles, numbers = _shingles(spelled), Counter(word for word in spelled if word.isdigit())
        hashed = self.empty.copy()
        hashed.update_batch(shingles)
        best: tuple[AuditItem, float] | None = None
        closest = (False, 0.0)  # a few-shot example counts before all others: what it gives away is worse
        for place in self.hashes.query(hashed):
            other, others, other_numbers = self.items[place]
            similarity = len(shingles & others) / len(shingles | others)
            close = (other.split == "few_shot", similarity)
            if similarity >= SIMILAR and close >= closest and numbers == other_numbers:
                best, closest = (other, similarity), close
        self.hashes.insert(len(self.items), hashed, check_duplication=False)
        self.items.append((item, shingles, numbers))
        return best


def _shingles(spelled: Sequence[str]) -> frozenset[int]:
    """Hashes of the words and of the pairs of neighbouring words."""
    pairs_of_words = [f"{first} {second}" for first, second in zip(spelled, spelled[1:], strict=False)]
    return frozenset(map(_hashed, [*spelled, *pairs_of_words]))


@lru_cache(maxsize=1_000_000)
def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")
