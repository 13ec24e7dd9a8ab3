"""Visual grounding: boxes in models' replies, and their overlap with the gold box.

CVLUE (paper, Table 10) reports the mean intersection over union. The released scorer (evaluation/eval_vg.py) counts
pixels inclusively: 1 is added to every width and height, so that boxes that only touch overlap a little.

How families of models write boxes is one table, `FAMILIES`.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

Convention = Literal["official", "continuous"]
Size = tuple[int, int]
Box = list[float]

# Qwen2.5-VL's image processor: sides are multiples of 28, pixels between these limits (its published configuration).
RESIZE_FACTOR, MIN_PIXELS, MAX_PIXELS = 28, 56 * 56, 12_845_056
PATCHES_PER_SIDE = 32  # of Kosmos-2

_LONGEST_REPLY = 20_000
_LARGEST = 1e9  # pixels


class Family(NamedTuple):
    """How a family of models writes boxes.

    Attributes:
        syntaxes: Keys of `SYNTAXES`; the first that finds a box in a reply is read.
        scale: What a coordinate of the right or lower edge is divided by to get a share of the side; 0: coordinates are
            pixels of the original image, -1: of the resized one.
        order: Of the four numbers.
        model_types: `model_type` in the configurations of its models.
    """

    syntaxes: tuple[str, ...]
    scale: float
    order: Literal["xyxy", "yxyx", "xywh"] = "xyxy"
    model_types: tuple[str, ...] = ()


ORIGINAL, RESIZED = 0, -1  # pixels of the image
_IN_JSON = ("keys", "sides", "lists")

# Read in the families' own code: qwen_vl, internvl (evaluation scripts: / 999, / 1000), deepseek_vl2 (demo: / 999),
# cogvlm (parser: / 1000, several boxes in one pair of brackets with ";"), paligemma (tokens and their demo's parser:
# / 1024), kosmos2 (transformers). Stated by their makers: qwen2_vl, qwen2.5_vl, qwen3_vl, minicpm_v (in issues), glm_v,
# gemini (documentation). From users' reports only: qwen3_5. Not checked with the models themselves. Ours: normalised,
# xyxy, xywh. LLaVA 1.5 was trained on shares of the image padded to a square (users' analyses, LLaVA issue 606), while
# processors pad, crop or tile: no format is right for its type, so that none follows from it.
FAMILIES = {
    "qwen_vl": Family(("corners",), 999, model_types=("qwen",)),
    "qwen2_vl": Family(("corners",), 1000, model_types=("qwen2_vl",)),
    "qwen2.5_vl": Family(_IN_JSON, RESIZED, model_types=("qwen2_5_vl",)),
    "qwen3_vl": Family(_IN_JSON, 1000, model_types=("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe")),
    "internvl": Family(("lists",), 1000, model_types=("internvl", "internvl_chat")),
    "cogvlm": Family(("lists",), 1000, model_types=("cogvlm", "cogvlm2")),
    "glm_v": Family(("lists",), 1000, model_types=("glm4v", "glm4v_moe", "glm46v")),
    "deepseek_vl2": Family(("lists",), 999, model_types=("deepseek_vl_v2", "deepseek_vl2")),
    "minicpm_v": Family(("spaced", "lists"), 1000, model_types=("minicpmv", "minicpmo", "minicpmv4_6", "minicpmv4_7")),
    "paligemma": Family(("locations",), 1024, "yxyx", ("paligemma",)),
    "kosmos2": Family(("patches",), 1, model_types=("kosmos-2",)),
    "gemini": Family(_IN_JSON, 1000, "yxyx"),
    "normalised": Family(("lists",), 1),
    "xyxy": Family(("lists",), ORIGINAL),
    "xywh": Family(("lists",), ORIGINAL, "xywh"),
}
BOX_FORMATS = tuple(FAMILIES)

# A number, perhaps in quotes; replies are read after `_plain`.
_NUMBER = r"""\s*["']?(-?\d{1,7}(?:\.\d{1,20})?)["']?\s*"""
_PAIR = rf"[\[(]{_NUMBER},{_NUMBER}[\])]"
# CogVLM's list of several boxes is [[a,b,c,d;e,f,g,h]].
_FOUR_IN_A_LIST = rf"[\[(;]{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}(?:[\])]|(?=;))|[\[(]\s*{_PAIR}\s*,\s*{_PAIR}\s*[\])]"
_SIDES = (("x1", "xmin", "x_min", "left"), ("y1", "ymin", "y_min", "top"))
_SIDES += (("x2", "xmax", "x_max", "right"), ("y2", "ymax", "y_max", "bottom"))
# What finds boxes: each match's groups that are not empty are the four numbers.
SYNTAXES = {
    "corners": re.compile(rf"\({_NUMBER},{_NUMBER}\)\s*,\s*\({_NUMBER},{_NUMBER}\)"),
    "lists": re.compile(_FOUR_IN_A_LIST),
    "keys": re.compile(rf"""(?i:\b(?:bbox|box|bounding_box)\w*)["']?\s*[:=]\s*(?:[\[(]\s*)*?(?:{_FOUR_IN_A_LIST})"""),
    "sides": re.compile(
        r"\s*,\s*".join(rf"""["'](?:{"|".join(names)})["']\s*:{_NUMBER}""" for names in _SIDES), re.IGNORECASE
    ),
    "spaced": re.compile(rf"<box>{_NUMBER}[\s,]{_NUMBER}[\s,]{_NUMBER}[\s,]{_NUMBER}</box>"),
    "locations": re.compile(r"<loc(\d{4})>" * 4),
    "patches": re.compile(r"<patch_index_(\d{4})><patch_index_(\d{4})>"),
}
# Commas, points, brackets and quotes that compatibility normalisation (NFKC) leaves as they are.
_SIGNS = str.maketrans("、،٫【】〔〕", ",,.[][]")
_SIGNS |= str.maketrans(dict.fromkeys("“”„‟«»「」『』‘’‚‛`", '"'))


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
    one = 1.0 if convention == "official" else 0.0
    across = min(box[0] + box[2], gold_box[0] + gold_box[2]) - max(box[0], gold_box[0]) + one
    down = min(box[1] + box[3], gold_box[1] + gold_box[3]) - max(box[1], gold_box[1]) + one
    if across <= 0 or down <= 0:
        return 0.0
    # Sides as differences of corners, in this order, so that sums of published examples agree to the last digit.
    areas = [(x + width - x + one) * (y + height - y + one) for x, y, width, height in (box, gold_box)]
    union = sum(areas) - across * down
    return across * down / union if union > 0 else 0.0


def parse_boxes(
    text: str,
    format: str,
    size: Size,
    resized: Size | None = None,
    pixels: tuple[int, int] = (MIN_PIXELS, MAX_PIXELS),
) -> list[Box]:
    """Boxes in a model's reply, in pixels of the original image.

    JSON is read in any nesting, complete or cut off, in a code fence or not; digits, commas, brackets and quotes of any
    script and width are the same.

    Args:
        text: The reply.
        format: Format of the model family, a key of `FAMILIES` (case and punctuation do not matter). Boxes of other
            formats are ignored.
        size: Width and height of the original image.
        resized: Width and height of the resized image, for formats in its pixels; None: Qwen2.5-VL's published rule
            applied to `size`.
        pixels: Least and most pixels of that rule.

    Returns:
        [x, y, width, height] for each box, in the order of the reply; [] without a readable box. Corners
        in the wrong order are swapped; nothing is clipped to the image.

    Raises:
        ValueError: An unknown format, or a size that is not two positive numbers.
    """
    family = FAMILIES[box_format(format)]
    for name, given in (("size", size), ("resized", resized or size)):
        if len(given) != 2 or not all(math.isfinite(side) and side > 0 for side in given):
            raise ValueError(f"{name} must be a positive width and height, not {given!r}")
    boxes = _numbers(_plain(text[:_LONGEST_REPLY]), family)
    if family.order == "xywh":
        return boxes
    if not boxes:
        return []
    if family.scale == RESIZED:
        seen = resized or qwen_resized(size, min_pixels=pixels[0], max_pixels=pixels[1])
        across, down = size[0] / seen[0], size[1] / seen[1]
    else:
        across, down = (side / family.scale if family.scale else 1.0 for side in size)
    return [_from_corners(box, across, down) for box in boxes]


def predicted_boxes(reply: str, specific: Mapping[str, Any]) -> list[Box]:
    """The boxes of a reply to a visual grounding doc, in pixels of the original image.

    Args:
        reply: The reply.
        specific: The doc's `size`, `box_format` and `box_pixels` (`prompts.cvlue.specific.BoxSpecific`).

    Raises:
        ValueError: The format is unknown, or its processor refuses the image.
    """
    width, height = specific["size"]
    least, most = map(int, specific["box_pixels"].split("-"))
    return parse_boxes(reply, specific["box_format"], (width, height), pixels=(least, most))


def box_format(name: str) -> str:
    """The format with this name, ignoring case and punctuation.

    Raises:
        ValueError: There is none; the message lists the known formats.
    """
    plain = re.sub(r"[\W_]", "", name.lower())
    for known in BOX_FORMATS:
        if re.sub(r"[\W_]", "", known) == plain:
            return known
    raise ValueError(f"there is no box format {name!r}; choose from {', '.join(BOX_FORMATS)}")


def format_of_model(model_type: str) -> str | None:
    """The format of a model by the `model_type` of its configuration; None where the table does not have it."""
    return next((name for name, family in FAMILIES.items() if model_type in family.model_types), None)


def qwen_resized(
    size: Size, factor: int = RESIZE_FACTOR, min_pixels: int = MIN_PIXELS, max_pixels: int = MAX_PIXELS
) -> Size:
    """The size to which the image processors of Qwen2-VL and Qwen2.5-VL resize an image, by their own function.

    Args:
        size: Width and height.
        factor: Sides become multiples of this.
        min_pixels: Smaller images are enlarged.
        max_pixels: Larger ones are reduced.

    Raises:
        ValueError: The processors refuse the image: one side is more than 200 times the other.
    """
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    height, width = smart_resize(size[1], size[0], factor, min_pixels, max_pixels)
    return width, height


def _four(box: Sequence[float], which: str) -> tuple[float, float, float, float]:
    try:
        x, y, width, height = (float(number) for number in box)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the {which} box must be four numbers x, y, width, height, not {box!r}") from error
    if not all(abs(number) < _LARGEST for number in (x, y, width, height)):
        raise ValueError(f"the {which} box {box!r} has a number that is not finite or far too large")
    return x, y, width, height


def _from_corners(box: Sequence[float], across: float, down: float) -> Box:
    left, right = sorted((box[0] * across, box[2] * across))
    top, bottom = sorted((box[1] * down, box[3] * down))
    return [left, top, right - left, bottom - top]


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_SIGNS)


def _numbers(text: str, family: Family) -> list[Box]:
    """The four numbers of each box, from left, top, right, bottom (or x, y, width, height)."""
    for syntax in family.syntaxes:
        found = [[number for number in match.groups() if number] for match in SYNTAXES[syntax].finditer(text)]
        boxes = [_of_patches(*map(int, one)) if syntax == "patches" else [*map(float, one)] for one in found]
        if boxes:
            return [[box[1], box[0], box[3], box[2]] for box in boxes] if family.order == "yxyx" else boxes
    return []


def _of_patches(first: int, last: int) -> Box:
    """Shares of the sides, from the first and last of Kosmos-2's patches, by its own function."""
    from transformers.models.kosmos2.processing_kosmos2 import patch_index_to_coordinate

    return list(patch_index_to_coordinate(first, last, PATCHES_PER_SIDE))
