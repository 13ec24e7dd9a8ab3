"""`cultureval audit review`: a page on this machine for people who judge items."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note
from cultureval.scripts.audit.options import AskedManifest, Asks, Columns, SourceNames, asked_items
from cultureval.scripts.options import Data, Form, OutputDir, SourcesFile


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
    sources: SourcesFile = None,
) -> None:
    """Opens a page on this machine, nothing leaves it; every verdict is saved at once. The same command resumes.

    Example: cultureval audit review qimma_arabicmmlu --manifest audit/manifest.jsonl --annotator amal
    """
    require_extra("audit")
    from cultureval.audit.review.server import Review, addresses, listening, new_desk, serve
    from cultureval.reports.audit.texts import desks_text

    items = asked_items(source, manifest, decisions, data, form, columns, sources)
    folder = Path(output_dir).expanduser()
    desks = [new_desk(folder, name) for name in dict.fromkeys(annotator)]
    found = Review(items, desks, reasons)
    opened = listening(port)
    print(desks_text(addresses(found, opened.getsockname()[1]), found.done()), flush=True)
    print_note(f"Verdicts go to {folder}. Ctrl-C ends; the same command goes on, with new addresses.")
    try:
        serve(found, opened)
    except KeyboardInterrupt:  # uvicorn has answered all requests, and every verdict is on the disk
        done = ", ".join(f"{name} {count} of {total}" for name, (count, total) in found.done().items())
        print_note(f"saved: {done}. `cultureval audit import {folder}` makes the manifest.")
