"""`cultureval audit report`: the page of an audit."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.printing import print_result
from cultureval.scripts.options import OutputDir


def report(
    audits: Annotated[
        list[Path], typer.Argument(metavar="AUDIT...", help="Output folders of `audit run`, and manifests.")
    ],
    results: Annotated[
        list[Path] | None, typer.Option(help="Results of models, for scores before and after. Repeatable.")
    ] = None,
    output_dir: OutputDir = "audit-report",
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Audit",
    examples: Annotated[
        bool,
        typer.Option("--examples/--no-examples", help="Show items' texts; not where the data may not be published."),
    ] = True,
) -> None:
    """Writes a page: kept and discarded, reasons, examples, judges' agreement, scores of models before and after.

    Example: cultureval audit report audit --results results
    """
    from cultureval.reports.audit.page import read_audit, write_page

    files = read_audit(audits, results or ())
    page = write_page(files, Path(output_dir).expanduser(), title, examples)
    counts = [f"{files.manifest.count(name):,} {told}" for name, told in (("keep", "kept"), ("discard", "discarded"))]
    print_result(f"{', '.join(counts)}, {files.manifest.count('review'):,} to review: {page}", page)
