"""PEFT adapters (LoRA and its like): found in a folder, put on a model, named in its identity."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.weight_files import fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONFIG = "adapter_config.json"


def base_model(adapter: str) -> str:
    """The base model of an adapter; "" if its configuration has none; a CulturevalError for another folder."""
    try:
        config = json.loads((Path(adapter).expanduser() / CONFIG).read_text(encoding="utf-8"))
        return str(config.get("base_model_name_or_path") or "")
    except (OSError, ValueError, AttributeError) as error:
        raise CulturevalError(f"{adapter} is no folder of a PEFT adapter ({CONFIG}: {described(error)}).") from error


def adapter_identity(adapter: str) -> str:
    """Name and version: `my-lora@1a2b3c4d`."""
    folder = Path(adapter).expanduser().resolve()
    return f"{folder.name}@{fingerprint(folder)[:8]}"


def with_base_model(values: dict[str, Any]) -> dict[str, Any]:
    """Settings of a model; an adapter's folder becomes `adapter`, and its base model `model_name`."""
    name = str(values.get("model_name") or values.get("model") or "")
    folder = Path(name).expanduser()
    if not name or not (folder / CONFIG).is_file() or (folder / "config.json").is_file():
        return values
    base = base_model(name)
    if not base:
        raise CulturevalError(
            f"The adapter {name} does not name its base model: write a YAML file with model_name (the base model) and "
            f"adapter: {name}."
        )
    left = {key: value for key, value in values.items() if key not in ("model", "model_name")}
    return left | {"model_name": base, "adapter": name}


def put_on(model: "PreTrainedModel", adapter: str) -> None:
    """Adds an adapter's weights to a model, by transformers' PEFT support; a CulturevalError if they do not fit."""
    try:
        report = model.load_adapter(str(Path(adapter).expanduser()))
    except Exception as error:  # PEFT's errors on missing modules, other shapes, broken files
        raise CulturevalError(
            f"The adapter {adapter} cannot be put on {type(model).__name__}: {described(error)[:400]}. Check "
            "that it was trained on this base model."
        ) from error
    if report.missing_keys:
        raise CulturevalError(
            f"The adapter {adapter} does not fit its configuration: {sorted(report.missing_keys)[0]} is missing."
        )
