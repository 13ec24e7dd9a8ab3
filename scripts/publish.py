"""`cultureval publish`: finished results and details on the hub, as `eval --push-to-hub` sends them."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.printing import print_note
from cultureval.scripts.options import PublicRun


def publish_results(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Output folders, or results files.")],
    results_org: Annotated[str, typer.Option(metavar="ORG", help="Account or organisation on the hub.")],
    public_run: PublicRun = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")] = False,
) -> None:
    """Uploads finished results, as eval --push-to-hub. Example: cultureval publish results --results-org lab"""
    from cultureval.reports.hub_upload import publications, publish

    found = publications(results, results_org, public_run)
    if dry_run:
        for one in found:
            print(one.sentence())
        return
    publish(found, public_run, print_note)
