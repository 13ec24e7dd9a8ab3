"""`cultureval audit check`: bad items, found without judges."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note
from cultureval.scripts.audit.options import Columns, Force, SourceNames, read_sources, require_new
from cultureval.scripts.options import (
    Data,
    Form,
    OnlyJson,
    data_settings,
)


def check(
    source: SourceNames,
    data: Data = None,
    form: Form = None,
    columns: Columns = None,
    only: Annotated[list[str] | None, typer.Option(help="Run only this check. Repeatable.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="Leave out this check. Repeatable.")] = None,
    findings: Annotated[Path | None, typer.Option(help="Write all findings into this file, as JSON lines.")] = None,
    write_manifest: Annotated[
        Path | None,
        typer.Option(help="Write a manifest: errors discard an item, warnings ask for a review, all others are kept."),
    ] = None,
    force: Force = False,
    full: Annotated[bool, typer.Option("--full", help="Print every finding.")] = False,
    json: OnlyJson = False,
) -> None:
    """Looks for bad items without a model: gold, options, encoding, labels, duplicates, few-shot rows in the test set.

    Example: cultureval audit check qimma_arabicmmlu --data DIR
    """
    require_extra("audit")
    from cultureval.audit.checks.table import CHECKS, manifest_rows, run_checks
    from cultureval.reports.audit.texts import findings_text
    from cultureval.tasks.manifest import write_manifest as write_rows

    require_new(write_manifest, force)
    with data_settings(data, form):
        items = read_sources(source, columns)
    found = run_checks(items, only or (), without or ())
    if findings:
        write_json_lines(findings, map(asdict, found))
    if write_manifest:
        write_rows(write_manifest, manifest_rows(items, found))
    if json:
        report = {"items": len(items), "findings": [asdict(one) for one in found]}
        print(json_format.dumps(report, ensure_ascii=False, indent=2))
    else:
        print(findings_text(CHECKS, found, items, full))
    for written in filter(None, (findings, write_manifest)):
        print_note(f"saved: {written}")
