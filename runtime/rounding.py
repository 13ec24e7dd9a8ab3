"""Numbers as tables print them: every table rounds a value alike."""

import math
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

NOISE = 7  # digits after the last printed one; later digits are errors of binary sums
LARGEST = 1e15  # larger floats have no exact decimal places


def printed(value: float, digits: int, signed: bool = False) -> str:
    """A number as tables print it: halves away from zero, as the papers' tables and calculators have it.

    Python's formatting rounds the binary number, halves to even: 47.12 for 47.125, and 0.14 for 0.145.
    """
    sign = "+" if signed else ""
    if not math.isfinite(value) or abs(value) >= LARGEST:
        return f"{value:{sign}z.{digits}f}"
    number = Decimal(repr(round(float(value), digits + NOISE)))
    return f"{number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):{sign}zf}"


def printed_or_na(value: float | None, digits: int = 2, signed: bool = False) -> str:
    """As `printed`; `n/a` for None and nan."""
    return "n/a" if value is None or math.isnan(value) else printed(value, digits, signed)


def without_nan(value: Any) -> Any:
    """The value with None for each nan, which JSON cannot hold."""
    if isinstance(value, Mapping):
        return {name: without_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
