"""PEFT adapters (LoRA and its like): found in a folder, put on a model, named in its identity."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.weight_files import fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONFIG = "adapter_config.json"


@dataclass(frozen=True)
class Adapter:
    """A folder with a PEFT adapter, and the model that it was trained on ("" where it does not say)."""

    folder: Path
    base: str

    @property
    def identity(self) -> str:
        """Name and version: `my-lora@1a2b3c4d`."""
        return f"{self.folder.resolve().name}@{fingerprint(self.folder)[:8]}"


def read_adapter(name: str) -> Adapter:
    """Read what an adapter's folder says of it.

    Raises:
        CulturevalError: It is no folder of an adapter.
    """
    folder = Path(name).expanduser()
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        return Adapter(folder, str(config.get("base_model_name_or_path") or ""))
    except (OSError, ValueError, AttributeError) as error:
        raise CulturevalError(f"{name} is no folder of a PEFT adapter ({CONFIG}: {described(error)}).") from error


def with_base_model(values: dict[str, Any]) -> dict[str, Any]:
    """Settings of a model; where the model is an adapter's folder, its base model is the model and it the adapter.

    Raises:
        CulturevalError: The adapter does not name its base model.
    """
    name = str(values.get("model_name") or values.get("model") or "")
    folder = Path(name).expanduser()
    if not name or not (folder / CONFIG).is_file() or (folder / "config.json").is_file():
        return values
    base = read_adapter(name).base
    if not base:
        raise CulturevalError(
            f"The adapter {name} does not name its base model: write a YAML file with model_name (the base model) and "
            f"adapter: {name}."
        )
    left = {key: value for key, value in values.items() if key not in ("model", "model_name")}
    return left | {"model_name": base, "adapter": name}


def put_on(model: "PreTrainedModel", adapter: Adapter) -> None:
    """Adds an adapter's weights to a model, by transformers' own support of PEFT.

    Raises:
        CulturevalError: It does not fit the model.
    """
    try:
        report = model.load_adapter(str(adapter.folder))
    except Exception as error:  # how PEFT meets modules that the model lacks, other shapes, broken files
        raise CulturevalError(
            f"The adapter {adapter.folder} cannot be put on {type(model).__name__}: {described(error)[:400]}. Is it of "
            "this base model?"
        ) from error
    if report.missing_keys:
        raise CulturevalError(
            f"The adapter {adapter.folder} does not fit its configuration: it lacks {sorted(report.missing_keys)[0]}."
        )
