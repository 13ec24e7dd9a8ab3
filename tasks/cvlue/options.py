"""CVLUE's own options of reading data."""

import re
from collections.abc import Sequence

from cultureval.metrics.cvlue.grounding import BOX_FORMATS, format_of_model
from cultureval.runtime.settings import Option, current_settings
from cultureval.tasks.catalogue import name_and_shots


def _pixels(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,8}-[1-9]\d{0,8}", text):
        raise ValueError("is not LEAST-MOST, as 3136-1003520")
    return text


BOX_FORMAT = Option(
    "box_format",
    "CULTUREVAL_BOX_FORMAT",
    "qwen_vl",
    f"format of the model's boxes: {', '.join(f'`{name}`' for name in BOX_FORMATS)}; sets prompt and parser; default: "
    "that of the model's type where it has one, else `qwen_vl`, the paper's",
    values=BOX_FORMATS,
    signed=False,
)
BOX_PIXELS = Option(
    "box_pixels",
    "CULTUREVAL_BOX_PIXELS",
    "3136-12845056",
    "`LEAST-MOST` pixels of the model's image processor, for `qwen2.5_vl` (default `3136-12845056`)",
    parse=_pixels,
    signed=False,
)
DIALOGUE_HISTORY = Option(
    "dialogue_history",
    "CULTUREVAL_DIALOGUE_HISTORY",
    "full",
    "`full` (default) completes short histories from the gold rounds, `as_given` does not",
    values=("full", "as_given"),
    signed=False,
)
DIALOGUE_LAYOUT = Option(
    "dialogue_layout",
    "CULTUREVAL_DIALOGUE_LAYOUT",
    "lines",
    "`lines` (default) or `one_line`: whether the parts of a dialogue's prompt are on lines of their own",
    values=("lines", "one_line"),
    signed=False,
)
OPTIONS = (BOX_FORMAT, BOX_PIXELS, DIALOGUE_HISTORY, DIALOGUE_LAYOUT)


def options_of_model(model_type: str) -> dict[str, str]:
    """The box format of a model's type, where the table of families has it."""
    known = format_of_model(model_type)
    return {BOX_FORMAT.name: known} if known else {}


def assumed_box_format(tasks: Sequence[str]) -> list[str]:
    """Which box format is assumed, where tasks (`cvlue_vg|0`) ask for boxes and neither option nor model decides."""
    from cultureval.tasks.catalogue import all_tasks

    grounding = [name for name in tasks if all_tasks()[name_and_shots(name)[0]].metric_set == "grounding"]
    if not grounding or BOX_FORMAT.given(current_settings()):
        return []
    assumed = f"{grounding[0]}: boxes are read as {BOX_FORMAT.default} writes them, as in the paper"
    return [f"{assumed}; {BOX_FORMAT.flag} sets another format."]
