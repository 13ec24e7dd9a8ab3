"""The options that sub-commands of `cultureval audit` share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.options import data_settings
from cultureval.tasks.options import read_data_options

if TYPE_CHECKING:
    from cultureval.audit.items import AuditItem
    from cultureval.tasks.manifest import Manifest

SourceNames = Annotated[
    list[str],
    typer.Argument(metavar="SOURCE...", help="Tasks, groups, suites (qimma), or files and folders of data."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=COLUMN,...",
        help="Columns of data by path: question=Q,options=A+B+C+D,gold=answer,context=passage,image=file; default: by "
        "their usual names.",
    ),
]
AskedManifest = Annotated[list[Path], typer.Option(help="The manifest whose rows are to be reviewed. Repeatable.")]
Asks = Annotated[
    Literal["review", "discard", "all"], typer.Option(help="Show rows to review, also discarded ones, or all rows.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a manifest that is there already.")]


def require_new(manifest: Path | None, force: bool) -> None:
    """Refuses to replace a manifest, which may hold people's decisions, unless that is asked for."""
    if manifest and not force and manifest.expanduser().exists():
        raise CulturevalError(f"{manifest} is there already: name another file, or replace it with --force.")


def given_manifest(files: Sequence[Path]) -> "Manifest":
    """The manifest of a required `--manifest`."""
    from cultureval.tasks.manifest import merged, read_manifest

    return merged([read_manifest(file.expanduser()) for file in files])


def require_no_people(manifest: Path) -> None:
    """Refuses to replace a manifest that holds people's decisions by judges'."""
    from cultureval.tasks.manifest import read_manifest

    if manifest.is_file() and any(by.startswith("person:") for row in read_manifest(manifest).rows for by in row.by):
        raise CulturevalError(f"{manifest} holds people's decisions, which this would replace: move it elsewhere.")


def read_sources(source: Sequence[str], columns: str | None) -> "list[AuditItem]":
    """The items of sources under the current settings."""
    from cultureval.audit.columns import columns_given
    from cultureval.audit.sources import read_items

    return read_items(source, read_data_options(), columns_given(columns) if columns else None)


def asked_items(
    source: Sequence[str],
    manifest: Sequence[Path],
    decisions: Literal["review", "discard", "all"],
    data: str | None,
    form: str | None,
    columns: str | None,
) -> "list[tuple[AuditItem, tuple[str, ...]]]":
    """The items of sources that people are asked about, with the manifest's reasons; arguments are the options."""
    from cultureval.audit.review.verdicts import items_to_review

    known = given_manifest(manifest)
    shown = {"review": ("review",), "discard": ("review", "discard"), "all": ("review", "discard", "keep")}[decisions]
    with data_settings(data, form):
        items = read_sources(source, columns)
    return items_to_review(items, known, shown)
