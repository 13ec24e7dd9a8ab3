"""CVLUE's own options of reading data."""

import re

from cultureval.runtime.settings import Option

BOX_FORMATS = ("qwen_vl", "qwen2_vl", "qwen2.5_vl", "qwen3_vl", "xyxy", "xywh")


def _pixels(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,8}-[1-9]\d{0,8}", text):
        raise ValueError("is not LEAST-MOST, as 3136-1003520")
    return text


BOX_FORMAT = Option(
    "box_format",
    "CULTUREVAL_BOX_FORMAT",
    "qwen_vl",
    "how the model's family writes boxes, and so how it is asked for them; as `--box-format`",
    values=BOX_FORMATS,
)
BOX_PIXELS = Option(
    "box_pixels",
    "CULTUREVAL_BOX_PIXELS",
    "3136-12845056",
    "least and most pixels to which the model's image processor brings an image, for `qwen2.5_vl`",
    parse=_pixels,
)
DIALOGUE_HISTORY = Option(
    "dialogue_history",
    "CULTUREVAL_DIALOGUE_HISTORY",
    "full",
    "`full` completes short histories from the gold rounds, `as_given` does not",
    values=("full", "as_given"),
)
DIALOGUE_LAYOUT = Option(
    "dialogue_layout",
    "CULTUREVAL_DIALOGUE_LAYOUT",
    "lines",
    "whether the parts of a dialogue's prompt are lines of their own or in one",
    values=("lines", "one_line"),
)
OPTIONS = (BOX_FORMAT, BOX_PIXELS, DIALOGUE_HISTORY, DIALOGUE_LAYOUT)
