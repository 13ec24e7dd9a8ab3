"""CVLUE's 92 object categories and 15 semantic fields (paper, Table 4), found by an image's path.

Verified: the number that begins the name of an image's folder (`84-suona`) is the category's place in Table 4. The
Chinese names are ours.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

OTHER = "other"


@dataclass(frozen=True)
class Category:
    """One object category: its number (1 to 92), its names, and its semantic field's names."""

    number: int
    english: str
    chinese: str
    field: str
    field_chinese: str

    @property
    def label(self) -> str:
        """Its label in tables and plots."""
        return f"{self.chinese} {self.english}"

    @property
    def field_label(self) -> str:
        """Its field's label in tables and plots."""
        return f"{self.field_chinese} {self.field}"


@cache
def categories() -> dict[int, Category]:
    """All categories by number."""
    with (Path(__file__).parent / "categories.csv").open(encoding="utf-8", newline="") as file:
        rows = [Category(**row | {"number": int(row["number"])}) for row in csv.DictReader(file)]
    return {row.number: row for row in rows}


def category_of(image: str) -> Category | None:
    """The category of an image by its released path (`images/val/A/84-suona/A-84-326.png`); None without a number."""
    number = re.match(r"(\d{1,2})-", PurePosixPath(image).parent.name)
    return categories().get(int(number[1])) if number else None
