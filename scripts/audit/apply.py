"""`cultureval audit apply`: writes data without the rows that a manifest discards."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.scripts.audit.options import Columns, SourceNames, given_manifest, read_sources
from cultureval.scripts.options import Data, Form, OutputDir, SourcesFile, data_settings


def apply(
    source: SourceNames,
    manifest: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="Manifest of an audit, whose discarded rows are left out. Repeatable."),
    ],
    output_dir: OutputDir = "cleaned",
    file_format: Annotated[
        Literal["parquet", "arrow", "jsonl"], typer.Option(help="Form of the data; arrow is that of load_from_disk.")
    ] = "parquet",
    push_to: Annotated[
        str | None, typer.Option(metavar="ORG/NAME", help="Also upload it as a private data set of the hub.")
    ] = None,
    data: Data = None,
    form: Form = None,
    columns: Columns = None,
    sources: SourcesFile = None,
) -> None:
    """Writes data without the rows that manifests discard, as a data root for `cultureval eval --data`.

    Example: cultureval audit apply qimma_arabicmmlu --manifest manifest.jsonl --output-dir cleaned
    """
    from cultureval.audit.cleaning import cleaned_subsets, push_cleaned, write_cleaned
    from cultureval.reports.audit.texts import cleaned_text

    decided = given_manifest(manifest)
    with data_settings(data, form, sources):
        items = read_sources(source, columns, each_task=True)
    subsets = cleaned_subsets(items, decided)
    folders = write_cleaned(subsets, decided, Path(output_dir).expanduser(), file_format)
    if push_to:
        push_cleaned(subsets, decided, push_to)
    print(cleaned_text(subsets, decided, folders, push_to))
