"""What `cultureval audit apply` prints."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.reports.terminal_tables import terminal_table

if TYPE_CHECKING:
    from cultureval.audit.cleaning import CleanedSubset
    from cultureval.tasks.manifest import Manifest

COLUMNS = ("data set", "subset", "kept", "discarded", "undecided", "few-shot examples")


def cleaned_text(
    subsets: "Sequence[CleanedSubset]", manifest: "Manifest", folders: Sequence[Path], pushed_to: str | None
) -> str:
    """Rows kept, discarded and not decided on, and where the data are.

    Args:
        subsets: What was written.
        manifest: The manifest.
        folders: Folders of the data sets.
        pushed_to: The data set on the hub, if any.
    """
    cells = [
        (one.source, one.subset, *(f"{count:,}" for count in (kept, one.discarded, one.undecided, examples)))
        for one in subsets
        for kept, examples in [_rows(one)]
    ]
    places = ", ".join([*map(str, folders), *([f"the hub's {pushed_to}"] if pushed_to else [])])
    review = manifest.count("review")
    waiting = f" To be reviewed in the whole manifest: {review:,} (such rows are kept)." if review else ""
    return (
        f"{terminal_table(COLUMNS, cells, align='llrrrr')}\n\nManifest {manifest.hash}: written to {places}.{waiting}"
    )


def _rows(one: "CleanedSubset") -> tuple[int, int]:
    """Evaluated rows, of which the manifest decides, and few-shot examples."""
    examples = len(one.splits.get(one.few_shot, ()))
    return sum(map(len, one.splits.values())) - examples, examples
