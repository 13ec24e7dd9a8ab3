"""Picture of a visual grounding sample: its image with gold and predicted boxes."""

import base64
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from cultureval.metrics.cvlue.grounding import predicted_boxes
from cultureval.reports.item_view import printable
from cultureval.runs.rows import Row, saved_reply
from cultureval.runtime.data.image_store import stored_image, upright
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from cultureval.prompts.cvlue.rows import BoxSpecific

FONTS = "'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', 'WenQuanYi Micro Hei', SimHei, 'DejaVu Sans', sans-serif"
GOLD, PREDICTED = "#1a9850", "#d73027"
MIME = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif", ".bmp": "image/bmp"}
NARROWEST = 560  # minimal width of an SVG in pixels, for its texts


def save_boxes(row: Row, path: Path) -> None:
    """Writes the picture of a sample.

    Args:
        row: A row of the details of a grounding task.
        path: Ends in .svg (with texts) or .png (boxes only); its folder is created.

    Raises:
        CulturevalError: It has another suffix, or the image is not in this machine's store.
    """
    if path.suffix not in (".svg", ".png"):
        raise CulturevalError(f"The picture {path} must end in .svg or .png.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".svg":
        path.write_text(boxes_as_svg(row), encoding="utf-8")
    else:
        draw_boxes(row, path)


def draw_sample(row: Row, path: Path) -> str | None:
    """As `save_boxes`, for samples that have a box; returns what the colours mean, None without a box."""
    if "box" not in specific_of(row["doc"]):
        return None
    save_boxes(row, path)
    return "gold green, predicted red"


def boxes_as_svg(row: Row) -> str:
    """The image with its boxes and texts; texts are drawn by the viewer, with its own fonts."""
    doc = row["doc"]
    specific: BoxSpecific = specific_of(doc)
    width, height = specific["size"]
    stroke = max(2, round(max(width, height) / 250))
    line = max(12, round(max(width, height) / 32))
    texts = [(printable(doc["query"]), "#000000"), *_legend(row)]
    broad = max(width, NARROWEST)
    frame = {"width": str(broad), "height": str(height + round(line * (1.6 * len(texts) + 0.6)))}
    svg = ElementTree.Element("svg", frame | {"xmlns": "http://www.w3.org/2000/svg"})
    ElementTree.SubElement(svg, "rect", {"width": "100%", "height": "100%", "fill": "#ffffff"})
    image = _image_file(row)
    content = base64.b64encode(image.read_bytes()).decode("ascii")
    link = {"href": f"data:{MIME[image.suffix]};base64,{content}", "width": str(width), "height": str(height)}
    ElementTree.SubElement(svg, "image", link)
    for place, (box, colour) in enumerate(_boxes(row)):
        x, y, across, down = (f"{number:.2f}" for number in box)
        shape = {"x": x, "y": y, "width": across, "height": down, "fill": "none", "stroke": colour}
        dashes = {"stroke-dasharray": f"{stroke * 3}"} if place > 1 else {}
        ElementTree.SubElement(svg, "rect", shape | {"stroke-width": str(stroke)} | dashes)
    for place, (text, colour) in enumerate(texts, 1):
        style = {"x": str(line // 2), "y": str(height + round(1.6 * line * place)), "font-size": str(line)}
        words = ElementTree.SubElement(svg, "text", style | {"font-family": FONTS, "fill": colour})
        words.text = shorten_line(text, int(broad / line * 1.3))
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def draw_boxes(row: Row, path: Path) -> None:
    """The image with its boxes, as PNG: no font is included, so a PNG has no text."""
    from PIL import ImageDraw

    drawn = upright(_image_file(row)).convert("RGB")
    pen = ImageDraw.Draw(drawn)
    for (x, y, across, down), colour in _boxes(row):
        pen.rectangle([x, y, x + across, y + down], outline=colour, width=max(2, round(max(drawn.size) / 250)))
    drawn.save(path)


def shorten_line(text: str, letters: int) -> str:
    """A text as one line of at most this many letters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= letters else flat[: max(letters - 1, 1)] + "…"


def _boxes(row: Row) -> list[tuple[list[float], str]]:
    """The gold box, then the predicted ones."""
    specific: BoxSpecific = specific_of(row["doc"])
    predicted = predicted_boxes(saved_reply(row["model_response"]), specific)
    return [(specific["box"], GOLD), *((box, PREDICTED) for box in predicted)]


def _legend(row: Row) -> list[tuple[str, str]]:
    found = len(_boxes(row)) - 1
    values = f"IoU {row['metric']['iou']:.3f} (official), {row['metric']['iou_continuous']:.3f} (continuous)"
    what = values if found else "no readable box"
    return [
        ("标注 gold", GOLD),
        (f"预测 predicted: {what}", PREDICTED),
        (printable(saved_reply(row["model_response"])), "#555555"),
    ]


def _image_file(row: Row) -> Path:
    """The stored image of a row; only images in the cache are opened, whatever path the details have."""
    return stored_image(Path(row["doc"]["images"][0]).name)
