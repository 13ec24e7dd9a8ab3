"""Whether a run's boxes were read in the format in which the model writes them, and which format would fit better.

Only a hint for the next run: scores are never computed in the format that happens to overlap most.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cultureval.metrics.cvlue.grounding import FAMILIES, Box, iou, predicted_boxes
from cultureval.runs.rows import saved_reply
from cultureval.runtime.doc_fields import specific_of

MOST_ROWS = 500
MOST_MISREAD = 0.5  # share of replies without a box, or with one that cannot be meant
MARGIN = 0.05  # of a side: a box that reaches further out of the image is not in pixels of it
LEAST_AREA = 0.0005  # of the image: smaller boxes are numbers of another unit
BETTER = 0.15  # of mean IoU, by which another format must overlap more


class Fit(NamedTuple):
    """How the replies look in a format: shares of readable and of plausible boxes, and the mean IoU."""

    readable: float
    plausible: float
    overlap: float


def fit_of(rows: Sequence[Mapping[str, Any]], family: str) -> Fit:
    """How the replies of a grounding task look when they are read in a format.

    Args:
        rows: Rows of its details.
        family: A key of `FAMILIES`.
    """
    readable = plausible = overlap = 0.0
    for row in rows:
        specific = {**specific_of(row["doc"]), "box_format": family}
        try:
            boxes = predicted_boxes(saved_reply(row["model_response"]), specific)
            overlap += iou(boxes[0], specific["box"]) if boxes else 0.0
        except ValueError:  # numbers that are no box, or an image that the format's processor does not take
            continue
        readable += bool(boxes)
        plausible += bool(boxes) and _is_plausible(boxes[0], specific["size"])
    return Fit(readable / len(rows), plausible / len(rows), overlap / len(rows))


def misread_boxes(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """A sentence, where most replies have no readable or plausible box or another format overlaps far more.

    Args:
        rows: Rows of the details of a grounding task; the first `MOST_ROWS` are read.
    """
    rows = rows[:MOST_ROWS]
    if not rows:
        return None
    used = str(specific_of(rows[0]["doc"])["box_format"])
    fits = {family: fit_of(rows, family) for family in FAMILIES}
    mine = fits[used]
    best = max(fits, key=lambda family: (fits[family].overlap, fits[family].plausible))
    better = fits[best].overlap >= mine.overlap + BETTER
    if mine.plausible >= 1 - MOST_MISREAD and not better:
        return None
    if mine.readable < 1 - MOST_MISREAD:
        problem = f"{1 - mine.readable:.0%} of the replies have no box that can be read"
    elif mine.plausible < 1 - MOST_MISREAD:
        problem = f"{1 - mine.plausible / mine.readable:.0%} of the boxes are outside the image or tiny"
    else:
        problem = f"the boxes overlap little with the gold ones (mean IoU {mine.overlap:.2f})"
    if best == used or not better:
        return f"Read as {used} writes boxes, {problem}; no other format fits better: look at the replies."
    found = f"read as {best} writes them, {fits[best].readable:.0%} have one, of mean IoU {fits[best].overlap:.2f}"
    return f"Read as {used} writes boxes, {problem}; {found}. Run again with --box-format {best}."


def _is_plausible(box: Box, size: Sequence[float]) -> bool:
    """Whether a box lies in the image, but for a margin, and is not tiny."""
    (x, y, across, down), (width, height) = box, size
    inside = min(x / width, y / height) >= -MARGIN and max((x + across) / width, (y + down) / height) <= 1 + MARGIN
    return inside and across * down >= LEAST_AREA * width * height
