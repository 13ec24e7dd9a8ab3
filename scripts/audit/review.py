"""`cultureval audit review`, `export` and `import`: items that people judge, here or in other tools."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note, print_result
from cultureval.scripts.audit.options import (
    AskedManifest,
    Asks,
    Columns,
    Force,
    SourceNames,
    asked_items,
    given_manifest,
    require_new,
)
from cultureval.scripts.options import Data, Form, OutputDir


def review(
    source: SourceNames,
    manifest: AskedManifest,
    annotator: Annotated[
        list[str], typer.Option(help="Name of an annotator, who gets an address of their own. Repeatable.")
    ],
    decisions: Asks = "review",
    data: Data = None,
    form: Form = None,
    columns: Columns = None,
    output_dir: OutputDir = "review",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of this machine; 0: a free one.")] = 0,
    reasons: Annotated[
        bool, typer.Option("--reasons/--no-reasons", help="Show why an item is to be reviewed, which may sway people.")
    ] = True,
) -> None:
    """Opens a page on this machine, nothing leaves it; every verdict is saved at once. The same command resumes.

    Example: cultureval audit review qimma_arabicmmlu --manifest audit/manifest.jsonl --annotator amal
    """
    require_extra("audit")
    from cultureval.audit.review.server import Review, addresses, listening, new_desk, serve

    items = asked_items(source, manifest, decisions, data, form, columns)
    folder = Path(output_dir).expanduser()
    desks = [new_desk(folder, name) for name in dict.fromkeys(annotator)]
    found = Review(items, desks, reasons)
    opened = listening(port)
    done = found.done()
    for name, address in addresses(found, opened.getsockname()[1]).items():
        print(f"{name} ({done[name][0]:,} of {done[name][1]:,} done): {address}", flush=True)
    print_note(f"Verdicts go to {folder}. Ctrl-C ends; the same command goes on, with new addresses.")
    try:
        serve(found, opened)
    except KeyboardInterrupt:  # uvicorn has answered all requests, and every verdict is on the disk
        saved = ", ".join(f"{name} {count} of {total}" for name, (count, total) in found.done().items())
        print_note(f"saved: {saved}. `cultureval audit import {folder}` makes the manifest.")


def export(
    source: SourceNames,
    manifest: AskedManifest,
    tool: Annotated[Literal["csv", "label-studio", "argilla"], typer.Option("--to", help="Whose files.")] = "csv",
    decisions: Asks = "review",
    data: Data = None,
    form: Form = None,
    columns: Columns = None,
    output_dir: OutputDir = "review",
) -> None:
    """Writes the items that a manifest wants reviewed, with their texts, for people who judge them elsewhere.

    Example: cultureval audit export qimma_arabicmmlu --manifest audit/manifest.jsonl --to label-studio
    """
    from cultureval.audit.review.formats import write_export

    items = asked_items(source, manifest, decisions, data, form, columns)
    folder = Path(output_dir).expanduser()
    files = write_export(items, tool, folder)
    print_result(f"{len(items):,} items to review: {', '.join(map(str, files))}", folder)


def import_verdicts(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="CSV, JSON of Label Studio or Argilla, or folders of `audit review`."),
    ],
    manifest: Annotated[list[Path], typer.Option(help="The manifest that asked for the review. Repeatable.")],
    write_manifest: Annotated[Path, typer.Option(help="Write the manifest with people's decisions here.")],
    csv_annotator: Annotated[str | None, typer.Option(help="Who filled in CSV files without names.")] = None,
    min_verdicts: Annotated[int, typer.Option(min=1, help="Votes that an item needs to be decided.")] = 1,
    force: Force = False,
) -> None:
    """Decides by the majority of people's verdicts; ties stay to be reviewed. Prints agreement (AC1, alpha).

    Example: cultureval audit import review --manifest audit/manifest.jsonl --write-manifest decided.jsonl
    """
    from cultureval.audit.review.formats import read_verdicts
    from cultureval.audit.review.verdicts import decide
    from cultureval.reports.audit.texts import reviewed_text
    from cultureval.tasks.manifest import write_manifest as write_rows

    require_new(write_manifest, force)
    reviewed = decide(given_manifest(manifest), read_verdicts(files, csv_annotator), min_verdicts)
    write_rows(write_manifest, reviewed.manifest)
    print_result(reviewed_text(reviewed), write_manifest)
