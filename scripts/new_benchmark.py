"""`cultureval new-benchmark`: writes the skeleton of a new benchmark."""

import shlex
from pathlib import Path
from typing import Annotated

import typer


def new_benchmark(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the package, the suite and its first benchmark.")
    ],
    labels: Annotated[str, typer.Option(help="The labels of options, in order; the model scores these.")] = "A B C D",
    language: Annotated[str, typer.Option(help="ISO 639 code of its language.")] = "en",
    output_dir: Annotated[Path, typer.Option(help="Folder in which it is created.")] = Path(),
) -> None:
    """Writes a small benchmark that already runs. Example: cultureval new-benchmark my_suite --language fa"""
    from cultureval.tasks.new_suite import write_suite

    folder = write_suite(name, labels.split(), language, output_dir)
    place, samples = shlex.quote(str(folder)), shlex.quote(str(folder / "samples"))
    print(f"Written: {folder}, a package with the suite {name!r}. Try it, then add your rows and texts:")
    print(f"  cultureval eval MODEL {name} --custom-suites {place} --data {samples}")
    print(f"  python -m pytest {place}    # after pip install pytest")
    print(f"  pip install --editable {place}    # then --custom-suites is not needed")
