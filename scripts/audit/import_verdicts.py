"""`cultureval audit import`: people's verdicts, from a page or another tool, into a manifest."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.printing import print_result
from cultureval.scripts.audit.options import Force, given_manifest, require_new


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
