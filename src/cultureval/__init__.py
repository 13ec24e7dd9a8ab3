"""Culturally and dialectally grounded Arabic and Chinese benchmarks as LightEval custom tasks.

As a library: `evaluate`, `load_results` and `score` (`docs/library.ipynb`). A benchmark of your own is a `Benchmark`
of the kind `multiple_choice`, `generate` or `judged` (`docs/own_benchmark.md`).
The sub-packages beside this file are links to the folders at the top of the repository.
"""

import os
from typing import TYPE_CHECKING, Any

# Threads of torch that wait spin this long: with the usual 300,000 one busy core takes speed to a seventh.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

if TYPE_CHECKING:
    from cultureval.library import evaluate as evaluate
    from cultureval.library import load_results as load_results
    from cultureval.library import score as score
    from cultureval.runtime.errors import CulturevalError as CulturevalError
    from cultureval.tasks.kinds import generate as generate
    from cultureval.tasks.kinds import judged as judged
    from cultureval.tasks.kinds import multiple_choice as multiple_choice
    from cultureval.tasks.suite import Benchmark as Benchmark

__version__: str
_PLACES = {name: "library" for name in ("evaluate", "load_results", "score")} | {"CulturevalError": "runtime.errors"}
_PLACES |= {name: "tasks.kinds" for name in ("multiple_choice", "generate", "judged")} | {"Benchmark": "tasks.suite"}


def __getattr__(name: str) -> Any:
    """Loads a public name, or reads the installed version, when it is first asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("cultureval")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
