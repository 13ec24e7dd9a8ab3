"""`cultureval audit export`: items to review as files of other tools."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.printing import print_result
from cultureval.scripts.audit.options import AskedManifest, Asks, Columns, SourceNames, asked_items
from cultureval.scripts.options import Data, Form, OutputDir, SourcesFile


def export(
    source: SourceNames,
    manifest: AskedManifest,
    tool: Annotated[Literal["csv", "label-studio", "argilla"], typer.Option("--to", help="Whose files.")] = "csv",
    decisions: Asks = "review",
    data: Data = None,
    form: Form = None,
    columns: Columns = None,
    output_dir: OutputDir = "review",
    sources: SourcesFile = None,
) -> None:
    """Writes the items that a manifest wants reviewed, with their texts, for people who judge them elsewhere.

    Example: cultureval audit export qimma_arabicmmlu --manifest audit/manifest.jsonl --to label-studio
    """
    from cultureval.audit.review.formats import write_export

    items = asked_items(source, manifest, decisions, data, form, columns, sources)
    folder = Path(output_dir).expanduser()
    files = write_export(items, tool, folder)
    print_result(f"{len(items):,} items to review: {', '.join(map(str, files))}", folder)
