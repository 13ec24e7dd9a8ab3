"""Picture of a visual grounding sample: its image with gold and predicted boxes."""

from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.metrics.cvlue.grounding import predicted_boxes
from cultureval.runs.rows import Row, saved_reply
from cultureval.runtime.data.image_store import stored_image, upright
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from cultureval.prompts.cvlue.rows import BoxSpecific

GOLD, PREDICTED = "#1a9850", "#d73027"


def draw_sample(row: Row, path: Path) -> str | None:
    """Writes the picture of a row of the details; returns the meaning of the colours, None for a row without a box.

    Args:
        path: Ends in .png; its folder is created.

    Raises:
        CulturevalError: `path` has another suffix, or the image is not in this machine's store.
    """
    if not all(specific_of(row["doc"]).get(name) for name in ("box", "size")):
        return None
    if path.suffix != ".png":
        raise CulturevalError(f"The picture {path} must end in .png.")
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_boxes(row, path)
    return "gold green, predicted red"


def draw_boxes(row: Row, path: Path) -> None:
    """Draws the gold and predicted boxes on the image, as PNG; opens only images in this machine's store."""
    from PIL import ImageDraw

    specific: BoxSpecific = specific_of(row["doc"])
    predicted = predicted_boxes(saved_reply(row["model_response"]), specific)
    drawn = upright(stored_image(Path(row["doc"]["images"][0]).name)).convert("RGB")
    pen = ImageDraw.Draw(drawn)
    for (x, y, across, down), colour in [(specific["box"], GOLD), *((box, PREDICTED) for box in predicted)]:
        pen.rectangle([x, y, x + across, y + down], outline=colour, width=max(2, round(max(drawn.size) / 250)))
    drawn.save(path)
