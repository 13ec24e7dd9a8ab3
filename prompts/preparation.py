"""What a conversion takes and gives: from rows of sources to prepared rows, of which Docs are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
PreparedRow = dict[str, Any]


@dataclass(frozen=True)
class Preparation:
    """What a conversion needs to know besides the row.

    Attributes:
        template: Name of the prompt template of the subset.
        shuffle: Whether sources whose right option always stands first get their options shuffled.
        folder: The source's folder, to which the paths of images in its rows are relative.
    """

    template: str = "ar/mcq"
    shuffle: bool = True
    folder: Path = Path()


# One prepared row, or several where a row holds several items to ask (M2CQA: three statements on one image).
Prepare = Callable[[Row, Preparation], PreparedRow | list[PreparedRow]]
