"""Exact duplicates by normalised words and near duplicates by MinHash, within and across sources and few-shot examples.

Locality-sensitive hashing of words and pairs of words (datasketch) finds candidates; each is then compared word by
word. Items with different numbers are no near duplicates.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cultureval.audit.items import AuditItem
from cultureval.runtime.errors import shorten

SIMILAR = 0.7  # share of common words and pairs of words
BANDS, ROWS = 20, 4  # of MinHash: of pairs with 0.7 in common it finds 99.6 %, of those with 0.8 all but one in 30,000
PERMUTATIONS = BANDS * ROWS
SHORTEST = 6  # words below which a near duplicate says nothing
TATWEEL = "\u0640"
_LETTERS = str.maketrans("أإآٱىةؤئ", "ااااياوي")
_MARK = re.compile("[\u064c-\u0650\u0652]")
_OPTIONAL = re.compile("[\u064b\u0651]")  # tanwin on or before its alef, and shadda
_ARABIC_WORD = re.compile("[\u0621-\u0652]+")
_DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-")
_SIGN = re.compile(r"-(?=\s*(?:\d|\w\b))|[^\w\s-]")  # a hyphen only before what it may be taken from
_NO_SYMBOLS = "#%*/\\^&@-"  # for Unicode, but they tell formulas and names apart
_WORD = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3400-\u4dbf\u4e00-\u9fff]+")


@dataclass(frozen=True)
class Pair:
    """An item and the earlier item that it repeats; few-shot examples come first.

    Attributes:
        similarity: Share of common words and pairs of words; 1.0 for exact duplicates.
        exact: Whether all words, signs and vowel marks (if both have some) are the same, options in any order.
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
        return "exact_duplicate" if self.exact else "near_duplicate"

    @property
    def detail(self) -> str:
        """What they have in common, as a clause."""
        how = "the same words as" if self.exact else f"{self.similarity:.0%} of its words in common with"
        where = f"{self.earlier.id} ({self.earlier.split.replace('_', '-')})"
        return f"it has {how} {where}{_other_gold(self)}: {shorten(self.item.question, 60)}"


def _other_gold(pair: Pair) -> str:
    golds = [_gold_words(one) for one in (pair.item, pair.earlier)]
    return ", with another right answer" if all(golds) and golds[0] != golds[1] else ""


def _gold_words(item: AuditItem) -> tuple[tuple[str, ...], ...]:
    texts = [item.options[place] for place in item.gold] if item.options else list(item.answers)
    return tuple(sorted(map(words, texts)))


def pairs(items: Sequence[AuditItem]) -> list[Pair]:
    """Each item that repeats an earlier item, with the most similar one; few-shot examples come first."""
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
    return found


def _key(item: AuditItem) -> tuple[object, ...]:
    """What exact duplicates have in common: image, passage, words, and signs (5 + 3 is not 5 - 3)."""
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
        """The most similar earlier item with its similarity, few-shot examples first; then adds the item."""
        asked = (item.question, *item.options, *item.answers)  # not the passage, which many questions share
        spelled = [word for text in asked for word in words(text)]
        if len(spelled) < SHORTEST or item.images:
            return None
        shingles, numbers = _shingles(spelled), Counter(word for word in spelled if word.isdigit())
        hashed = self.empty.copy()
        hashed.update_batch(shingles)
        best: tuple[AuditItem, float] | None = None
        closest = (False, 0.0)  # a few-shot example comes first: it gives the answer away
        for place in self.hashes.query(hashed):
            earlier, earlier_shingles, earlier_numbers = self.items[place]
            similarity = len(shingles & earlier_shingles) / len(shingles | earlier_shingles)
            close = (earlier.split == "few_shot", similarity)
            if similarity >= SIMILAR and close >= closest and numbers == earlier_numbers:
                best, closest = (earlier, similarity), close
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


@lru_cache(maxsize=200_000)
def words(text: str) -> tuple[str, ...]:
    """The normalised words of a text: NFKC, one case, one form of alef, yeh and teh marbuta, no vowel marks.

    A Chinese character is a word. Digits become those of ASCII.
    """
    decomposed = unicodedata.normalize("NFKD", text.replace(TATWEEL, "").translate(_LETTERS))
    bare = "".join(letter for letter in decomposed if unicodedata.category(letter) != "Mn")
    plain = unicodedata.normalize("NFKC", bare).casefold().translate(_LETTERS)
    digits = "".join(str(unicodedata.digit(letter)) if letter.isdigit() else letter for letter in plain)
    return tuple(_WORD.findall(digits))


@lru_cache(maxsize=200_000)
def signs(text: str) -> tuple[str, ...]:
    """The symbols of a text in order, which `words` leaves out: `C++` and `C#`, 5 + 3 and 5 - 3 have the same words."""
    found = _SIGN.findall(unicodedata.normalize("NFKC", text).translate(_DASHES))
    return tuple(sign for sign in found if sign in _NO_SYMBOLS or unicodedata.category(sign)[0] == "S")


def vowelled(text: str) -> set[str]:
    """The Arabic words of a text that have vowel marks, with these."""
    return {word for word in _ARABIC_WORD.findall(_OPTIONAL.sub("", text)) if _MARK.search(word)}
