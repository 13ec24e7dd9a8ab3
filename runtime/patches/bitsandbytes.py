"""What we change in bitsandbytes: what it says."""

import logging

from cultureval.runtime.patches.table import expect, patched, source_of

PRODUCTS = "bitsandbytes.autograd._functions"


def quiet_products() -> None:
    """Silences bitsandbytes' message, at every 8-bit matrix product, that the input is cast."""
    logging.getLogger(PRODUCTS).setLevel(logging.ERROR)


@patched("bitsandbytes", PRODUCTS, "It warns at every product in 8 bits that its input is cast.")
def _products_are_announced() -> None:
    source = source_of(PRODUCTS)
    expect("logger = logging.getLogger(__name__)" in source, "bitsandbytes logs under another name")
    expect("inputs will be cast from" in source, "bitsandbytes no longer announces its casts")
