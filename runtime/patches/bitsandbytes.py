"""What we change in bitsandbytes: what it says."""

import logging

PRODUCTS = "bitsandbytes.autograd._functions"


def quiet_products() -> None:
    """Silences bitsandbytes' message, at every 8-bit matrix product, that the input is cast."""
    logging.getLogger(PRODUCTS).setLevel(logging.ERROR)
