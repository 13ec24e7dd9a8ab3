"""What a finished run is: its files, its record, and one frame of item scores.

For notebooks: `load` and `Run`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cultureval.runs.loading import Results as Results
    from cultureval.runs.loading import Run as Run
    from cultureval.runs.loading import load as load

_PLACES = {"load": "loading", "Results": "loading", "Run": "loading"}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
