"""What a finished run is: its files, its record, its items, their means, and whether two runs may be compared.

For notebooks: `load` and `scores_table`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cultureval.runs.load_runs import load as load
    from cultureval.runs.load_runs import scores_table as scores_table
    from cultureval.runs.record import Run as Run
    from cultureval.runs.warnings import run_warnings as run_warnings

_PLACES = {"load": "load_runs", "scores_table": "load_runs", "Run": "record", "run_warnings": "warnings"}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
