"""`cultureval new-benchmark`: writes the skeleton of a benchmark of one's own."""

from pathlib import Path
from typing import Annotated

import typer


def new_benchmark(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the package, the suite and its first benchmark.")],
    labels: Annotated[str, typer.Option(help="The labels of options, in order; they are what is scored.")] = "A B C D",
    language: Annotated[str, typer.Option(help="ISO 639 code of its language.")] = "en",
    to: Annotated[Path, typer.Option(help="Where its folder is made.")] = Path(),
) -> None:
    """Writes a small benchmark that runs at once. Example: cultureval new-benchmark my_suite --language fa"""
    from cultureval.tasks.new_suite import write_suite

    folder = write_suite(name, labels.split(), language, to)
    print(f"Written: {folder}, a package with the suite {name!r}. Try it, then put your rows and words in:")
    print(f"  cultureval eval MODEL {name} --custom-suites {folder / name} --data {folder / 'samples'}")
    print(f"  python -m pytest {folder}")
    print(f"  pip install --editable {folder}    # then it needs no --custom-suites")
