"""Types of the conversion from source rows to prepared rows and LightEval Docs, and the maker of Docs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.data_options import DataOptions

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

Row = Mapping[str, Any]
PreparedRow = dict[str, Any]


@dataclass(frozen=True)
class Preparation:
    """The arguments of a conversion besides the row.

    Attributes:
        template: Name of the prompt template of the subset (see `templates.load_template`).
        folder: The source's folder; image paths in its rows are relative to it.
        options: How data are read, with the suites' own options.
        language: ISO 639 code of the task's language.
    """

    template: str = ""
    folder: Path = Path()
    options: DataOptions = field(default_factory=DataOptions)
    language: str = ""


# One prepared row, or several for a row with several items (M2CQA: three statements on one image).
Prepare = Callable[[Row, Preparation], PreparedRow | list[PreparedRow]]


def make_doc(
    row: Mapping[str, Any],
    task_name: str | None,
    choices: list[str],
    gold: int | list[int],
    specific: Mapping[str, Any],
    query: str | None = None,
) -> "Doc":
    """The Doc of a prepared row, with its image if it has one; the default query is the row's `prompt`."""
    from lighteval.tasks.requests import Doc

    return Doc(
        task_name=task_name or "",
        query=row["prompt"] if query is None else query,
        choices=choices,
        gold_index=gold,
        images=[str(stored_image(row["image"]))] if "image" in row else None,
        specific=dict(specific),
    )
