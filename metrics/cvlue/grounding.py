"""Visual grounding: boxes in models' replies, and their overlap with the gold box.

CVLUE (paper, Table 10) reports the mean intersection over union. The released scorer (evaluation/eval_vg.py) counts
pixels inclusively: 1 is added to every width and height, so that boxes that only touch overlap a little.

How families of models write boxes is one table, `FAMILIES`.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
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
        syntaxes: Keys of `SYNTAXES`, or "sides" named in any order (x1, xmin, left, width, ...); the first that finds a
            box in a reply is read.
        scale: What a coordinate of the right or lower edge is divided by to get a share of the side; 0: coordinates are
            pixels of the original image, -1: of the resized one.
        order: Of four numbers without names.
        model_types: `model_type` in the configurations of its models.
        sizes_by: The processor whose rule of sizes (its `smart_resize`) refuses some images; "" where any are taken.
    """

    syntaxes: tuple[str, ...]
    scale: float
    order: Literal["xyxy", "yxyx", "xywh"] = "xyxy"
    model_types: tuple[str, ...] = ()
    sizes_by: Literal["", "qwen2_vl", "glm4v"] = ""


ORIGINAL, RESIZED = 0, -1  # pixels of the image
_IN_JSON = ("keys", "sides", "lists")
_IN_LISTS = ("lists", "sides")

# Examples of replies, and where each format was read, are in docs/cvlue.md. Ours: normalised, xyxy, xywh. LLaVA 1.5 was
# trained on shares of the image padded to a square (users' analyses, LLaVA issue 606), while processors pad, crop or
# tile: no format is right for its type, so that none follows from it.
FAMILIES = {
    "qwen_vl": Family(("corners", "sides"), 999, model_types=("qwen",)),
    "qwen2_vl": Family(("corners", "sides"), 1000, model_types=("qwen2_vl",), sizes_by="qwen2_vl"),
    "qwen2.5_vl": Family(_IN_JSON, RESIZED, model_types=("qwen2_5_vl",), sizes_by="qwen2_vl"),
    "qwen3_vl": Family(
        _IN_JSON, 1000, model_types=("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"), sizes_by="qwen2_vl"
    ),
    "internvl": Family(_IN_LISTS, 1000, model_types=("internvl", "internvl_chat")),
    "cogvlm": Family(_IN_LISTS, 1000, model_types=("cogvlm", "cogvlm2")),
    "glm_v": Family(_IN_LISTS, 1000, model_types=("glm4v", "glm4v_moe", "glm46v"), sizes_by="glm4v"),
    "deepseek_vl2": Family(_IN_LISTS, 999, model_types=("deepseek_vl_v2", "deepseek_vl2")),
    "minicpm_v": Family(
        ("spaced", *_IN_LISTS), 1000, model_types=("minicpmv", "minicpmo", "minicpmv4_6", "minicpmv4_7")
    ),
    "paligemma": Family(("locations", "sides"), 1024, "yxyx", ("paligemma",)),
    "kosmos2": Family(("patches", "sides"), 1, model_types=("kosmos-2",)),
    "florence2": Family(("bins", "sides"), 1000, model_types=("florence2",)),
    "gemini": Family(_IN_JSON, 1000, "yxyx"),
    "normalised": Family(_IN_LISTS, 1),
    "xyxy": Family(_IN_LISTS, ORIGINAL),
    "xywh": Family(_IN_LISTS, ORIGINAL, "xywh"),
}
BOX_FORMATS = tuple(FAMILIES)

# A number, perhaps in quotes; replies are read after `_plain`.
_DIGITS = r"[-+]?(?:\d{1,7}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,2})?"
_NUMBER = rf"""\s*["']?({_DIGITS})["']?\s*"""
_PAIR = rf"[\[(]{_NUMBER},{_NUMBER}[\])]"
# CogVLM's list of several boxes is [[a,b,c,d;e,f,g,h]].
_FOUR_IN_A_LIST = rf"[\[(;]{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}(?:[\])]|(?=;))|[\[(]\s*{_PAIR}\s*,\s*{_PAIR}\s*[\])]"
# Names of left, top, and right, bottom or width, height, without underscores; the first that are all there count.
_SIDES = tuple(
    tuple(names.split())
    for names in (
        "xmin ymin xmax ymax",
        "minx miny maxx maxy",
        "left top right bottom",
        "x0 y0 x1 y1",
        "x1 y1 x2 y2",
        "x y x2 y2",
    )
    + tuple(
        f"{corner} {size}" for size in ("width height", "w h") for corner in ("x y", "left top", "xmin ymin", "x1 y1")
    )
)
_CORNER = r"[xy]_?(?:[012]|min|max)|(?:min|max)_?[xy]"
_PLAIN_NAME = r"x|y|w|h|left|top|right|bottom|width|height"
_NAME = rf"{_CORNER}|{_PLAIN_NAME}"
# image_width and the like are not of the box.
_OF_THE_BOX = rf"{_CORNER}|(?:(?<!_)(?<!image )|(?<=box_)|(?<=rect_)|(?<=2d_))(?:{_PLAIN_NAME})"
_SIDE = re.compile(
    rf"""(?<![a-z0-9])(<)?({_OF_THE_BOX})(?(1)>|\b["'*]{{0,3}}\s*[:=]\s*+\*{{0,2}}+){_NUMBER}|[{{}}]""", re.I
)
_POINT = re.compile(rf"""(?:(top|upper)[ _-]?left|(?:bottom|lower)[ _-]?right)["'*]{{0,3}}\s*[:=]\s*{_PAIR}""", re.I)
# The order of four numbers as a reply names it, and short names of orders.
_ORDER = re.compile(
    rf"(?<![a-z0-9])({_NAME})" + rf"[ ,/]+({_NAME})" * 3 + r"(?![a-z0-9_])|(?<![a-z])(xyxy|yxyx|xywh)(?![a-z])", re.I
)
_ORDERS = {"xyxy": "x1 y1 x2 y2", "yxyx": "y1 x1 y2 x2", "xywh": "x y w h"}
# What finds boxes: each match's groups that are not empty are the four numbers.
SYNTAXES = {
    "corners": re.compile(rf"\({_NUMBER},{_NUMBER}\)\s*,\s*\({_NUMBER},{_NUMBER}\)"),
    "lists": re.compile(_FOUR_IN_A_LIST),
    "keys": re.compile(rf"""(?i:\b(?:bbox|box|bounding_box)\w*)["']?\s*[:=]\s*(?:[\[(]\s*)*?(?:{_FOUR_IN_A_LIST})"""),
    "spaced": re.compile(rf"<box>{_NUMBER}[\s,]{_NUMBER}[\s,]{_NUMBER}[\s,]{_NUMBER}</box>"),
    "locations": re.compile(r"<loc(\d{4})>" * 4),
    "bins": re.compile(r"<loc_(\d{1,3})>" * 4),
    "patches": re.compile(r"<patch_index_(\d{4})><patch_index_(\d{4})>"),
}
_TOKENS = {"locations", "bins", "patches"}
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
    pixels: tuple[int, int] = (MIN_PIXELS, MAX_PIXELS),
) -> list[Box]:
    """Boxes in a model's reply, in pixels of the original image.

    JSON is read in any nesting, complete or cut off, in a code fence or not; digits, commas, brackets and quotes of any
    script and width are the same.

    Args:
        format: Format of the model family, a key of `FAMILIES` (case and punctuation do not matter). Boxes of other
            formats are ignored.
        size: Width and height of the original image.
        pixels: Least and most pixels of the resized image, for formats in its pixels (`qwen_resized`).

    Returns:
        [x, y, width, height] for each box, in the order of the reply; [] without a readable box. Corners
        in the wrong order are swapped; nothing is clipped to the image.

    Raises:
        ValueError: An unknown format, or a size that is not two positive numbers.
    """
    family = FAMILIES[box_format(format)]
    if len(size) != 2 or not all(math.isfinite(side) and side > 0 for side in size):
        raise ValueError(f"size must be a positive width and height, not {size!r}")
    boxes = _numbers(_plain(text[:_LONGEST_REPLY]), family)
    if family.order == "xywh":
        return _sound(boxes)
    if not boxes:
        return []
    if family.scale == RESIZED:
        seen = qwen_resized(size, *pixels)
        across, down = size[0] / seen[0], size[1] / seen[1]
    else:
        across, down = (side / family.scale if family.scale else 1.0 for side in size)
    return _sound([_from_corners(box, across, down) for box in boxes])


def predicted_boxes(reply: str, specific: Mapping[str, Any]) -> list[Box]:
    """The boxes of a reply to a visual grounding doc (`BoxSpecific`), in pixels of the original image.

    [] where the format's processor refuses the image (`image_refused`); else as `parse_boxes`.
    """
    if image_refused(specific):
        return []
    width, height = specific["size"]
    least, most = map(int, specific["box_pixels"].split("-"))
    return parse_boxes(reply, specific["box_format"], (width, height), pixels=(least, most))


def image_refused(specific: Mapping[str, Any]) -> str:
    """Why a doc's image cannot be shown to the models of its box format, as a clause; "" where it can.

    Args:
        specific: As of `predicted_boxes`.
    """
    sizes_by = FAMILIES[box_format(specific["box_format"])].sizes_by
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


def box_format(name: str) -> str:
    """The format with this name, ignoring case and punctuation."""
    plain = re.sub(r"[\W_]", "", name.lower())
    for known in BOX_FORMATS:
        if re.sub(r"[\W_]", "", known) == plain:
            return known
    raise ValueError(f"there is no box format {name!r}; choose from {', '.join(BOX_FORMATS)}")


def format_of_model(model_type: str) -> str | None:
    """The format of a model by the `model_type` of its configuration; None where the table does not have it."""
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


def _from_corners(box: Sequence[float], across: float, down: float) -> Box:
    left, right = sorted((box[0] * across, box[2] * across))
    top, bottom = sorted((box[1] * down, box[3] * down))
    return [left, top, right - left, bottom - top]


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_SIGNS)


def _sound(boxes: list[Box]) -> list[Box]:
    """Boxes without those with a number that no image could have."""
    return [box for box in boxes if all(abs(number) < _LARGEST for number in box)]


def _numbers(text: str, family: Family) -> list[Box]:
    """The four numbers of each box: left, top, right, bottom, or x, y, width, height where the family writes these."""
    sizes = family.order == "xywh"
    for syntax in family.syntaxes:
        if syntax == "sides":
            boxes = list(_named_sides(text, sizes))
        else:
            found = [[number for number in match.groups() if number] for match in SYNTAXES[syntax].finditer(text)]
            boxes = [_of_tokens(syntax, one) if syntax in _TOKENS else [*map(float, one)] for one in found]
            order = _order(text, family) if syntax not in _TOKENS else _ORDERS[family.order].split()
            boxes = [box for one in boxes if (box := _of_sides(dict(zip(order, one, strict=True)), sizes))]
        if boxes:
            return boxes
    return []


def _order(text: str, family: Family) -> list[str]:
    """Names of the sides in the order of four numbers without names: the one that a reply names, else the family's."""
    named = {
        tuple(_ORDERS[match[5].lower()].split() if match[5] else map(_side_name, match.groups()[:4]))
        for match in _ORDER.finditer(text)
    }
    known = [order for order in named if any(set(order) == set(row) for row in _SIDES)]
    return list(known[0]) if len(named) == len(known) == 1 else _ORDERS[family.order].split()


def _side_name(name: str | None) -> str:
    return (name or "").lower().replace("_", "")


def _named_sides(text: str, sizes: bool) -> Iterator[Box]:
    """Boxes whose sides have names, in whatever order, or whose corners are two points with x and y."""
    sides: dict[str, float] = {}
    point: dict[str, float] = {}
    text = _POINT.sub(lambda one: "x{0}: {1}, y{0}: {2}".format(1 if one[1] else 2, one[2], one[3]), text)
    for match in chain(_SIDE.finditer(text), [None]):
        name = _side_name(match[2]) if match else ""
        if not name or name in sides:  # an object's end, or the next box
            if set(sides) == {"x", "y"}:
                if point:
                    sides = {"x1": point["x"], "y1": point["y"], "x2": sides["x"], "y2": sides["y"]}
                point = {} if point else sides
            if box := _of_sides(sides, sizes):
                yield box
            sides = {}
        if match and name:
            sides[name] = float(match[3])


def _of_sides(sides: Mapping[str, float], sizes: bool) -> Box | None:
    """A box of named sides: its corners, or with `sizes` corner, width and height; None where some lack or disagree."""
    names = next((row for row in _SIDES if all(one in sides for one in row)), None)
    if names is None:
        return None
    left, top, right, bottom = (sides[one] for one in names)
    across, down = right, bottom
    if names[2] == "width" and (right, bottom) != (sides.get("w", right), sides.get("h", bottom)):
        return None  # one of the two is the image's
    if names[2][0] != "w":
        (left, right), (top, bottom) = sorted((left, right)), sorted((top, bottom))
        across, down = right - left, bottom - top
    return [left, top, across, down] if sizes else [left, top, left + across, top + down]


def _of_tokens(syntax: str, numbers: Sequence[str]) -> Box:
    """A box from a model's location tokens, in the family's scale."""
    if syntax == "patches":
        return _of_patches(*map(int, numbers))
    return [int(number) + (0.5 if syntax == "bins" else 0.0) for number in numbers]  # Florence's are centres of bins


def _of_patches(first: int, last: int) -> Box:
    """Shares of the sides, from the first and last of Kosmos-2's patches, by its own function."""
    from transformers.models.kosmos2.processing_kosmos2 import patch_index_to_coordinate

    return list(patch_index_to_coordinate(first, last, PATCHES_PER_SIDE))
