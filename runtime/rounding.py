"""Numbers as tables print them, everywhere alike: one value never stands with two roundings in two tables."""

import math
from decimal import ROUND_HALF_UP, Decimal

NOISE = 7  # digits after the last that is printed; what follows those is the error of binary sums
LARGEST = 1e15  # of larger numbers no decimal place is known


def printed(value: float, digits: int, signed: bool = False) -> str:
    """A number as tables print it: halves away from zero, as the papers' tables and calculators have it.

    Python's own formatting takes the nearest even digit, of the binary number: 47.12 for 47.125, and 0.14 for 0.145.

    Args:
        value: Any number.
        digits: Decimal places.
        signed: Whether a plus stands before positive numbers.
    """
    sign = "+" if signed else ""
    if not math.isfinite(value) or abs(value) >= LARGEST:
        return f"{value:{sign}z.{digits}f}"
    number = Decimal(repr(round(float(value), digits + NOISE)))
    return f"{number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):{sign}zf}"


def printed_or_na(value: float | None, digits: int = 2, signed: bool = False) -> str:
    """As `printed`; `n/a` for None and nan."""
    return "n/a" if value is None or math.isnan(value) else printed(value, digits, signed)
