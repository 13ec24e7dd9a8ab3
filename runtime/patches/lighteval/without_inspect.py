"""LightEval imported without Inspect, which it needs for its command `eval` alone: 3 s of CPU less for a run."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import MagicMock

IMPORTED = ("inspect_ai", "inspect_ai.dataset", "inspect_ai.scorer", "inspect_ai.solver")  # by LightEval, when it loads


@contextmanager
def without_inspect() -> Iterator[None]:
    """A context, or decorator, in which LightEval gets stand-ins of Inspect, unless that is loaded already."""
    stand_ins = {name: MagicMock(__path__=[]) for name in IMPORTED} if "inspect_ai" not in sys.modules else {}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]
