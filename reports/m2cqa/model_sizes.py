"""Parameter counts and families of models, from their names."""

import re
from collections.abc import Sequence

from cultureval.runtime.errors import CulturevalError

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[bB](?![A-Za-z0-9])")


def model_sizes(models: set[str], given: Sequence[str]) -> dict[str, float]:
    """Billions of parameters by model, as given or from the name (`Qwen3-VL-32B-Instruct`).

    Raises:
        CulturevalError: A given size is not MODEL=NUMBER for one of the models.
    """
    sizes = {model: float(found[1]) for model in models if (found := _SIZE.search(model))}
    for text in given:
        model, _, number = text.rpartition("=")
        if model not in models or not re.fullmatch(r"\d+(\.\d+)?", number) or float(number) <= 0:
            raise CulturevalError(f"--size {text!r} is not MODEL=BILLIONS for one of {', '.join(sorted(models))}.")
        sizes[model] = float(number)
    return sizes


def family(model: str) -> str:
    """A model's name without its size, which models of one family share."""
    return re.sub(r"[-_ ]{2,}", "-", _SIZE.sub("", model)).strip("-_ ") or model
