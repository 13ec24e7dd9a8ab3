"""The published prompts: the template of each row, and whether a set's prompts are the published ones.

`published_prompts.csv` has a row a set of requests: `templates`, the template of each row in published order, a letter
(a is the first) for its place in the dialect's list `all` of `dial8.json`; and `prompts`, a hash of the prompts, from
which no text can be read. Both are recomputed from the released outputs (2,758 monolingual and 2,392 cross-lingual
prompts of JHU-CLSP/al-qasida at 34e4dba). The draws of the published templates follow no single run of the program.
"""

import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

PUBLISHED, NOT_PUBLISHED = "published", "not the published prompts"


class PublishedSet(NamedTuple):
    """What is known of a published set: the hash of its prompts, and of which templates of the dialect they are.

    Attributes:
        templates: Places in the dialect's list, from 0; () for cross-lingual sets.
    """

    templates: tuple[int, ...]
    prompts: str


@cache
def published_sets() -> dict[str, PublishedSet]:
    """The 28 monolingual and 24 cross-lingual sets, by corpus and dialect: `btec_egy`."""
    with files(__package__).joinpath("published_prompts.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {row["set"]: PublishedSet(_places(row["templates"]), row["prompts"]) for row in rows}


def prompts_hash(prompts: Iterable[str]) -> str:
    """First sixteen hexadecimal digits of the SHA-256 of prompts in their order; white space counts as one space."""
    text = "\n".join(" ".join(prompt.split()) for prompt in prompts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def which_prompts(rows: Sequence[Mapping[str, Any]]) -> str:
    """`PUBLISHED` where a set's prepared rows (`prompt`, `genre`, `dialect`) are its published prompts, in order."""
    published = published_sets().get(f"{rows[0]['genre']}_{rows[0]['dialect']}")
    same = published is not None and published.prompts == prompts_hash(str(row["prompt"]) for row in rows)
    return PUBLISHED if same else NOT_PUBLISHED


def _places(letters: str) -> tuple[int, ...]:
    return tuple(ord(letter) - ord("a") for letter in letters)
