"""How data are found and read: the options that every entry point shares, kept in environment variables.

LightEval loads our tasks by module name and has no option of its own for them, so the environment is the one channel
that reaches them from `cultureval eval`, from `cultureval lighteval` and from stock `lighteval` alike.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from cultureval.runtime.errors import CulturevalError

BadRows = Literal["error", "skip"]
Form = Literal["auto", "curated", "original"]
Location = Literal["country_region", "region", "none"]
Shuffle = Literal["on", "off"]
BoxFormat = Literal["qwen_vl", "qwen2_vl", "qwen2.5_vl", "qwen3_vl", "xyxy", "xywh"]
DialogueHistory = Literal["full", "as_given"]
DialogueLayout = Literal["lines", "one_line"]

VARIABLES = {
    "root": "CULTUREVAL_DATA",
    "bad_rows": "CULTUREVAL_BAD_ROWS",
    "form": "CULTUREVAL_FORM",
    "location": "CULTUREVAL_ARABCULTURE_LOCATION",
    "shuffle": "CULTUREVAL_SHUFFLE",
    "box_format": "CULTUREVAL_BOX_FORMAT",
    "box_pixels": "CULTUREVAL_BOX_PIXELS",
    "dialogue_history": "CULTUREVAL_DIALOGUE_HISTORY",
    "dialogue_layout": "CULTUREVAL_DIALOGUE_LAYOUT",
}


@dataclass(frozen=True)
class DataOptions:
    """Options of reading data.

    Attributes:
        root: Folder that replaces the hub (`root/<org>/<name>`); None reads from the hub.
        bad_rows: "error" stops at the first broken row of a source, "skip" counts and lists such rows.
        form: Which copy of a source is read where two exist: QIMMA's "curated" one, the "original", or "auto"
            (curated when reachable).
        location: What ArabCulture's own prompt says of the place: country and region, region only, or nothing.
        shuffle: "on" shuffles the options of sources whose right option always stands first.
        box_format: How the model's family writes boxes, and so how it is asked for them (CVLUE's visual grounding).
        box_pixels: Least and most pixels to which the model's image processor brings an image (Qwen2.5-VL's boxes).
        dialogue_history: "full" completes a dialogue's history from the gold rounds, "as_given" does not.
        dialogue_layout: Whether the parts of a dialogue's prompt stand on lines of their own or in one.
    """

    root: Path | None = None
    bad_rows: BadRows = "error"
    form: Form = "auto"
    location: Location = "country_region"
    shuffle: Shuffle = "on"
    box_format: BoxFormat = "qwen_vl"
    box_pixels: str = "3136-12845056"
    dialogue_history: DialogueHistory = "full"
    dialogue_layout: DialogueLayout = "lines"


def samples_root() -> Path:
    """The folder of the shipped samples, laid out as a data root."""
    return Path(str(files("cultureval.samples")))


def read_data_options(environment: Mapping[str, str] | None = None) -> DataOptions:
    """The options as the environment states them.

    Raises:
        CulturevalError: A variable holds a value outside its list, or the data root is not a folder.
    """
    environment = os.environ if environment is None else environment
    values = {field: environment.get(name, "") for field, name in VARIABLES.items()}
    allowed = {"bad_rows": get_args(BadRows), "form": get_args(Form), "location": get_args(Location)}
    allowed |= {"shuffle": get_args(Shuffle), "box_format": get_args(BoxFormat)}
    allowed |= {"dialogue_history": get_args(DialogueHistory), "dialogue_layout": get_args(DialogueLayout)}
    for field, choices in allowed.items():
        if values[field] and values[field] not in choices:
            raise CulturevalError(f"{VARIABLES[field]}={values[field]!r} is not one of {', '.join(choices)}.")
    if values["box_pixels"] and not re.fullmatch(r"[1-9]\d{0,8}-[1-9]\d{0,8}", values["box_pixels"]):
        raise CulturevalError(f"{VARIABLES['box_pixels']}={values['box_pixels']!r} is not LEAST-MOST, as 3136-1003520.")
    given = {field: value for field, value in values.items() if value and field != "root"}
    return DataOptions(root=data_root(values["root"]), **given)


def data_root(value: str) -> Path | None:
    """The folder that `CULTUREVAL_DATA` names: '' is the hub, 'samples' the shipped samples (./samples is a path)."""
    if not value:
        return None
    root = samples_root() if value == "samples" else Path(value).expanduser()
    if not root.is_dir():
        raise CulturevalError(
            f"The data root {value!r} is not a folder. Give an existing folder with <org>/<name> inside, "
            "'samples' for the shipped samples, or nothing for the hub."
        )
    return root.resolve()
