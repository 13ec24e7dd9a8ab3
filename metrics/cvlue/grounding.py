"""Visual grounding: boxes in models' replies, and their overlap with the gold box.

CVLUE (paper, Table 10) reports the mean intersection over union. The released scorer (evaluation/eval_vg.py) counts
pixels inclusively: 1 is added to every width and height, so that boxes that only touch overlap a little.

The table `FAMILIES` has the box formats of model families.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

Convention = Literal["official", "continuous"]
Size = tuple[int, int]
Box = list[float]

# Qwen2.5-VL's image processor: sides are multiples of 28, pixels between these limits (its published configuration).
RESIZE_FACTOR, MIN_PIXELS, MAX_PIXELS = 28, 56 * 56, 12_845_056
PATCHES_PER_SIDE = 32  # of Kosmos-2

_LONGEST_REPLY = 20_000
_LARGEST = 1e9  # pixels
ORIGINAL, RESIZED = 0, -1  # pixels of the image


class Family(NamedTuple):
    """The box format of a family of models.

    Attributes:
        syntax: A key of `SYNTAXES`; "json" and "list" may also be JSON objects of named sides.
        scale: The coordinate of an image's right or lower edge; 0: pixels of the original image, -1: of the resized
            one.
        order: Of four numbers without names.
        model_types: `model_type` in the configurations of its models.
        sizes_by: The processor that refuses images by their size (its `smart_resize`); "": none.
    """

    syntax: str
    scale: float
    order: Literal["xyxy", "yxyx", "xywh"] = "xyxy"
    model_types: tuple[str, ...] = ()
    sizes_by: Literal["", "qwen2_vl", "glm4v"] = ""


# docs/cvlue.md has examples of replies, docs/evidence/box_formats.md the source of each format. LLaVA 1.5 has no
# format here: it was trained on shares of the image padded to a square (LLaVA issue 606), and processors pad, crop or
# tile.
FAMILIES = {
    "qwen_vl": Family("corners", 999, model_types=("qwen",)),
    "qwen2_vl": Family("corners", 1000, model_types=("qwen2_vl",), sizes_by="qwen2_vl"),
    "qwen2.5_vl": Family("json", RESIZED, model_types=("qwen2_5_vl",), sizes_by="qwen2_vl"),
    "qwen3_vl": Family(
        "json", 1000, model_types=("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"), sizes_by="qwen2_vl"
    ),
    "internvl": Family("list", 1000, model_types=("internvl", "internvl_chat")),
    "cogvlm": Family("list", 1000, model_types=("cogvlm", "cogvlm2")),
    "glm_v": Family("list", 1000, model_types=("glm4v", "glm4v_moe", "glm46v"), sizes_by="glm4v"),
    "deepseek_vl2": Family("list", 999, model_types=("deepseek_vl_v2", "deepseek_vl2")),
    "minicpm_v": Family("spaced", 1000, model_types=("minicpmv", "minicpmo", "minicpmv4_6", "minicpmv4_7")),
    "paligemma": Family("locations", 1024, "yxyx", ("paligemma",)),
    "kosmos2": Family("patches", 1, model_types=("kosmos-2",)),
    "florence2": Family("bins", 1000, model_types=("florence2",)),
    "gemini": Family("json", 1000, "yxyx"),
    "normalised": Family("list", 1),
    "xyxy": Family("list", ORIGINAL),
    "xywh": Family("list", ORIGINAL, "xywh"),
}
BOX_FORMATS = tuple(FAMILIES)

_NUMBER = r"\s{0,9}(-?\d{1,7}(?:\.\d{0,20})?)\s{0,9}"
_FOUR = rf"{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}"
# Patterns of boxes: the groups of a match are the four numbers, for Kosmos-2 two patches.
SYNTAXES = {
    "corners": re.compile(rf"\({_NUMBER},{_NUMBER}\)\s{{0,9}},\s{{0,9}}\({_NUMBER},{_NUMBER}\)"),
    "list": re.compile(rf"[\[;]{_FOUR}(?=[\];])"),  # CogVLM's list of several boxes is [[a,b,c,d;e,f,g,h]]
    "json": re.compile(rf"""["'](?:bbox|bbox_2d|box_2d)["']\s{{0,9}}:\s{{0,9}}\[{{1,2}}{_FOUR}\]"""),
    "spaced": re.compile(r"<box>(\d{1,4}) (\d{1,4}) (\d{1,4}) (\d{1,4})</box>"),
    "locations": re.compile(r"<loc(\d{4})>" * 4),
    "bins": re.compile(r"<loc_(\d{1,3})>" * 4),
    "patches": re.compile(r"<patch_index_(\d{4})><patch_index_(\d{4})>"),
}
# Names of the sides in JSON objects: corners, or a corner with width and height.
_OBJECT = re.compile(r"\{[^{}]{0,500}\}")
_SIDE = re.compile(rf"""["'](\w{{1,9}})["']\s{{0,9}}:{_NUMBER}""")
_SIDES = ("x1 y1 x2 y2", "xmin ymin xmax ymax", "left top right bottom", "x y width height", "x y w h")


def iou(pred: Sequence[float] | None, gold: Sequence[float], convention: Convention = "official") -> float:
    """Intersection over union of two boxes.

    Args:
        pred: x, y, width, height in pixels, (x, y) the top left corner; empty (or None) if nothing was predicted.
        gold: The gold box, likewise.
        convention: "official" adds 1 to every width and height of boxes and of their overlap, as the released
            scorer does; "continuous" is the usual ratio of areas.

    Returns:
        0 to 1; 0 for an empty prediction. Corners are not reordered: a box of negative size overlaps nothing.

    Raises:
        ValueError: A box does not have four finite numbers, or an unknown convention.
    """
    if convention not in ("official", "continuous"):
        raise ValueError(f"the convention {convention!r} is neither 'official' nor 'continuous'")
    gold_box = _four(gold, "gold")
    if pred is None or not len(pred):
        return 0.0
    box = _four(pred, "predicted")
    inclusive = 1.0 if convention == "official" else 0.0
    across = min(box[0] + box[2], gold_box[0] + gold_box[2]) - max(box[0], gold_box[0]) + inclusive
    down = min(box[1] + box[3], gold_box[1] + gold_box[3]) - max(box[1], gold_box[1]) + inclusive
    if across <= 0 or down <= 0:
        return 0.0
    # Sides as differences of corners, in this order, so that sums of published examples agree to the last digit.
    areas = [(x + width - x + inclusive) * (y + height - y + inclusive) for x, y, width, height in (box, gold_box)]
    union = sum(areas) - across * down
    return across * down / union if union > 0 else 0.0


def parse_boxes(
    text: str,
    format: str,
    size: Size,
    pixels: tuple[int, int] = (MIN_PIXELS, MAX_PIXELS),
) -> list[Box]:
    """Boxes in a model's reply, in the format of its family's paper or card.

    JSON may also have named sides: `{"x1": 1, "y1": 2, "x2": 3, "y2": 4}`, xmin to ymax, left to bottom, x, y, width,
    height. It may be cut off, or in a code fence.

    Args:
        format: Format of the model family, a key of `FAMILIES`. Boxes of other formats are ignored.
        size: Width and height of the original image.
        pixels: Least and most pixels of the resized image, for formats in its pixels (`qwen_resized`).

    Returns:
        [x, y, width, height] for each box, in the order of the reply; [] without a readable box. Corners
        in the wrong order are swapped; nothing is clipped to the image.

    Raises:
        ValueError: An unknown format, or a size that is not two positive numbers.
    """
    if format not in FAMILIES:
        raise ValueError(f"there is no box format {format!r}; choose from {', '.join(BOX_FORMATS)}")
    family = FAMILIES[format]
    if len(size) != 2 or not all(math.isfinite(side) and side > 0 for side in size):
        raise ValueError(f"size must be a positive width and height, not {size!r}")
    if family.scale == RESIZED:
        resized = qwen_resized(size, *pixels)
        across, down = size[0] / resized[0], size[1] / resized[1]
    else:
        across, down = (side / family.scale if family.scale else 1.0 for side in size)
    boxes = []
    for left, top, right, bottom in _corners(unicodedata.normalize("NFKC", text[:_LONGEST_REPLY]), family):
        x, y = sorted((left * across, right * across)), sorted((top * down, bottom * down))
        boxes.append([x[0], y[0], x[1] - x[0], y[1] - y[0]])
    return [box for box in boxes if all(abs(number) < _LARGEST for number in box)]


def predicted_boxes(reply: str, specific: Mapping[str, Any]) -> list[Box]:
    """The boxes of a reply to a visual grounding doc (`BoxSpecific`), in pixels of the original image.

    [] if the format's processor refuses the image (`image_refused`); else as `parse_boxes`.
    """
    if image_refused(specific):
        return []
    width, height = specific["size"]
    least, most = map(int, specific["box_pixels"].split("-"))
    return parse_boxes(reply, specific["box_format"], (width, height), pixels=(least, most))


def image_refused(specific: Mapping[str, Any]) -> str:
    """Why the processor of a doc's box format refuses its image, as a clause; "" if it does not.

    Args:
        specific: As of `predicted_boxes`.
    """
    sizes_by = FAMILIES[specific["box_format"]].sizes_by
    width, height = specific["size"]
    try:  # by their sides alone: multiples of 28 or 32, and limits of pixels, decide nothing
        if sizes_by == "qwen2_vl":
            qwen_resized((width, height))
        elif sizes_by == "glm4v":
            from transformers.models.glm4v.image_processing_pil_glm4v import smart_resize

            smart_resize(2, height, width)
    except ValueError as error:
        return f"the image processor of {specific['box_format']} refuses it: {error}"
    return ""


def format_of_model(model_type: str) -> str | None:
    """The format of a model by the `model_type` of its configuration; None if the table does not have it."""
    return next((name for name, family in FAMILIES.items() if model_type in family.model_types), None)


def qwen_resized(size: Size, min_pixels: int = MIN_PIXELS, max_pixels: int = MAX_PIXELS) -> Size:
    """The size to which the image processors of Qwen2-VL and Qwen2.5-VL resize an image, by their own function.

    Raises:
        ValueError: The processors refuse the image: one side is more than 200 times the other.
    """
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    height, width = smart_resize(size[1], size[0], RESIZE_FACTOR, min_pixels, max_pixels)
    return width, height


def _four(box: Sequence[float], which: str) -> tuple[float, float, float, float]:
    try:
        x, y, width, height = (float(number) for number in box)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the {which} box must be four numbers x, y, width, height, not {box!r}") from error
    if not all(abs(number) < _LARGEST for number in (x, y, width, height)):
        raise ValueError(f"the {which} box {box!r} has a number that is not finite or far too large")
    return x, y, width, height


def _corners(text: str, family: Family) -> list[Box]:
    """Left, top, right, bottom of each box, in the family's scale."""
    found = [list(map(float, match.groups())) for match in SYNTAXES[family.syntax].finditer(text)]
    if family.syntax == "patches":
        return [_of_patches(int(first), int(last)) for first, last in found]
    if family.syntax == "bins":  # of which the tokens are the centres
        found = [[number + 0.5 for number in box] for box in found]
    if family.order == "yxyx":
        found = [[left, top, right, bottom] for top, left, bottom, right in found]
    if family.order == "xywh":
        found = [[x, y, x + width, y + height] for x, y, width, height in found if width >= 0 and height >= 0]
    return found or ([*_named_sides(text)] if family.syntax in ("json", "list") else [])


def _named_sides(text: str) -> Iterator[Box]:
    for found in _OBJECT.finditer(text):
        sides = {name.lower(): float(number) for name, number in _SIDE.findall(found.group())}
        names = next((row.split() for row in _SIDES if sides.keys() >= set(row.split())), None)
        if names:
            left, top, right, bottom = (sides[name] for name in names)
            corner = names[2][0] == "w"
            yield [left, top, left + right if corner else right, top + bottom if corner else bottom]


def _of_patches(first: int, last: int) -> Box:
    """Shares of the sides, from the first and last of Kosmos-2's patches, by its own function."""
    from transformers.models.kosmos2.processing_kosmos2 import patch_index_to_coordinate

    return list(patch_index_to_coordinate(first, last, PATCHES_PER_SIDE))
