"""Parameter counts and families of models, from their names."""

import math
import re

_BILLIONS = {"b": 1.0, "m": 1e-3, "t": 1e3}
SIZE_LABEL = "datum.value >= 1 ? format(datum.value, '~g') + ' B' : format(1e3 * datum.value, '~g') + ' M'"  # of Vega
_BOUNDED = r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)([{}])(?![A-Za-z0-9])"
# Billions come first: in Qwen2.5-7B-Instruct-1M the other number is the length of the context.
_SIZES = tuple(re.compile(_BOUNDED.format(letter), re.IGNORECASE) for letter in _BILLIONS)


def family(model: str) -> str:
    """A model's name without its size, which models of one family share."""
    found = _size(model)
    rest = model[: found.start()] + model[found.end() :] if found else model
    return re.sub(r"[-_ ]{2,}", "-", rest).strip("-_ ") or model


def billions_of(model: str) -> float | None:
    """Billions of parameters as a model's name says; None where it does not."""
    found = _size(model)
    return float(found[1]) * _BILLIONS[found[2].lower()] if found else None


def _size(model: str) -> re.Match[str] | None:
    return next((found for pattern in _SIZES if (found := pattern.search(model))), None)


def size_ticks(low: float, high: float) -> list[float]:
    """Once, twice and five times the powers of ten between two sizes, on a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    return [tick for power in powers for step in (1, 2, 5) if low <= (tick := float(f"{step}e{power}")) <= high]


def size_text(billions: float) -> str:
    """Parameters as people write them, of billions: 1.04 T, 7.62 B, 135 M."""
    rounded = float(f"{billions:.3g}")
    unit, letter = next((scale for scale in ((1e3, "T"), (1, "B"), (1e-3, "M")) if rounded >= scale[0]), (1e-6, "K"))
    return f"{rounded / unit:.3g} {letter}"
