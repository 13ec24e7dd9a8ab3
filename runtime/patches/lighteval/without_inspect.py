"""Imports LightEval without Inspect, which only its command `eval` needs; saves 3 s of CPU a run."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import MagicMock

IMPORTED = ("inspect_ai", "inspect_ai.dataset", "inspect_ai.scorer", "inspect_ai.solver")  # by LightEval, when it loads


@contextmanager
def without_inspect() -> Iterator[None]:
    """A context or decorator that replaces Inspect by stand-ins, unless it is loaded already."""
    stand_ins = {name: MagicMock(__path__=[]) for name in IMPORTED} if "inspect_ai" not in sys.modules else {}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]
