"""`cultureval bench`: the benchmarks that a checkout has beside the package, in its folder `benchmarks`."""

import sys
from pathlib import Path

import typer

import cultureval
from cultureval.runtime.errors import CulturevalError


def bench(context: typer.Context) -> None:
    """Benchmarks ours against other harnesses (in a checkout). Example: cultureval bench scoring --help"""
    folder = Path(cultureval.__file__).resolve().parents[2]
    if not (folder / "benchmarks" / "commands.py").is_file():
        raise CulturevalError(
            "`cultureval bench` runs from a checkout of the repository, whose folder `benchmarks` is not in the "
            "installed package: install the checkout (`pip install --editable .[lm-eval]`)."
        )
    sys.path.append(str(folder))
    from benchmarks.commands import app

    app(context.args, prog_name="cultureval bench", standalone_mode=False)
