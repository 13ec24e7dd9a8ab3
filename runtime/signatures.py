"""Score signatures, as in sacrebleu: a line with everything that a number depends on.

Two scores are comparable where their signatures differ only in the model.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cultureval.runtime.text_templates import short_hash

if TYPE_CHECKING:
    from lighteval.models.abstract_model import ModelConfig

PACKAGES = ("cultureval", "lighteval", "transformers", "torch")


def signature(**fields: object) -> str:
    """`name:value|name:value`, in the arguments' order, without fields that are None; `|` in a value becomes `%7C`."""
    values = {name: str(value).replace("|", "%7C") for name, value in fields.items() if value is not None}
    return "|".join(f"{name}:{value}" for name, value in values.items())


def combined_hash(hashes: Iterable[str]) -> str:
    """A hash of several hashes in any order: the first eight hexadecimal digits of a SHA-256."""
    return hashlib.sha256("\n".join(sorted(hashes)).encode("utf-8")).hexdigest()[:8]


def installed_versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Versions of the packages that scores depend on."""
    return {name: version(name) for name in packages}


def changed_settings(settings: "ModelConfig", left_out: Collection[str]) -> str:
    """For a signature: `name=value` of all settings that differ from their defaults, generation parameters included.

    In alphabetical order, without `left_out`; a value that is no short word becomes eight digits of its SHA-256.
    """
    changed = changed_values(settings, left_out)
    return ",".join(f"{name}={_short(value)}" for name, value in sorted(changed.items())) or "default"


def changed_values(settings: "ModelConfig", left_out: Collection[str]) -> dict[str, Any]:
    """The settings and generation parameters that differ from their defaults, without `left_out`."""
    from lighteval.models.model_input import GenerationParameters

    changed = {
        name: getattr(settings, name)
        for name, field in type(settings).model_fields.items()
        if name not in left_out and getattr(settings, name) != field.get_default(call_default_factory=True)
    }
    generation, usual = changed.pop("generation_parameters", None), GenerationParameters()
    return changed | {name: value for name, value in generation or () if value != getattr(usual, name)}


def text_hash(text: str | None) -> str:
    """Eight hexadecimal digits of a text's SHA-256; "" for none."""
    return short_hash(text) if text else ""


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if re.fullmatch(r"[\w.+-]{1,32}", text) else short_hash(text)
