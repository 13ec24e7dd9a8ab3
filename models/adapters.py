"""PEFT adapters (LoRA and its like): found in a folder, put on a model, named in its identity."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.weight_files import fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONFIG = "adapter_config.json"
WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


@dataclass(frozen=True)
class Adapter:
    """A folder with a PEFT adapter.

    Attributes:
        base: The model that it was trained on, as its configuration says; "" where it does not.
        kind: Such as LORA.
    """

    folder: Path
    base: str
    kind: str

    def identity(self, merged: bool) -> str:
        """Name, version and whether it was merged: `my-lora@1a2b3c4d(merged)`."""
        return f"{self.folder.resolve().name}@{fingerprint(self.folder)[:8]}({'merged' if merged else 'beside'})"


def read_adapter(name: str) -> Adapter:
    """Read what an adapter's folder says of it.

    Raises:
        CulturevalError: It is no folder of an adapter, its weights are missing, or it is of a kind that cannot be used.
    """
    folder = Path(name).expanduser()
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        base, kind = str(config.get("base_model_name_or_path") or ""), str(config["peft_type"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CulturevalError(f"{name} is no folder of a PEFT adapter ({CONFIG}: {described(error)}).") from error
    if not any((folder / weights).is_file() for weights in WEIGHTS):
        raise CulturevalError(f"The adapter {name} has no weights ({' or '.join(WEIGHTS)}). Copy the whole folder.")
    if "PROMPT" in kind or "PREFIX" in kind or kind == "P_TUNING":
        raise CulturevalError(f"The adapter {name} tunes the prompt ({kind}), and only those of weights can be used.")
    return Adapter(folder, base, kind)


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


def put_on(model: "PreTrainedModel", adapter: Adapter, merge: bool) -> "PreTrainedModel":
    """The model with an adapter's weights.

    Args:
        merge: Whether its products are added to the model's weights; else they are computed beside them, slower.

    Raises:
        CulturevalError: It does not fit the model.
    """
    from peft import PeftModel

    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            adapted = PeftModel.from_pretrained(model, str(adapter.folder))
    # How PEFT meets modules that the model lacks, other shapes, broken files.
    except Exception as error:
        raise CulturevalError(
            f"The adapter {adapter.folder} cannot be put on {type(model).__name__}: {described(error)[:400]}. Is it of "
            "this base model?"
        ) from error
    if missing := [str(one.message) for one in said if "missing adapter keys" in str(one.message)]:
        raise CulturevalError(f"The adapter {adapter.folder} does not fit its base model: {missing[0][:300]}")
    return adapted.merge_and_unload(safe_merge=True) if merge else adapted.get_base_model()
