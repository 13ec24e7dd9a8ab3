"""`cultureval mirror`: copies data and scoring models for machines without access to the hub."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import SourcesFile, with_sources


def mirror(
    output_dir: Annotated[Path, typer.Option(help="Folder to fill; use it later as --data DIR.")],
    suite: Annotated[list[str] | None, typer.Argument(help="Suites; default: all.")] = None,
    sources: SourcesFile = None,
) -> None:
    """Copies the suites' data and scoring models, resumes, verifies counts.

    Example: cultureval mirror qimma --output-dir DIR
    """
    from cultureval.tasks.mirroring import mirror_suites

    with use_settings(with_sources(current_settings(), sources)):
        lines, complete = mirror_suites(suite, output_dir)
    print("\n".join(lines))
    if not complete:
        raise CulturevalError("Some sources could not be fetched (see above). The same command resumes.")
