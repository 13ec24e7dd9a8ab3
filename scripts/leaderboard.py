"""`cultureval leaderboard`: a static site, tables and charts of any results; or the results on the hub."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note, print_result, print_text
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import PublicRun, Strict


def leaderboard(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="Output folders of runs, or results files; any number.")
    ],
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "--out", help="Folder of the site; an earlier site in it is replaced.")
    ] = Path("leaderboard"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Leaderboard",
    published: Annotated[
        bool, typer.Option("--published", help="The rows of the suites' papers beside ours, marked.")
    ] = False,
    charts: Annotated[
        str, typer.Option(metavar="FORMATS", help="Formats of the charts' files: svg, pdf, png; or none, no charts.")
    ] = "svg,pdf",
    logs: Annotated[
        str, typer.Option(metavar="PATH", help="Where `cultureval show --bundle` is published, below the page.")
    ] = "",
    space: Annotated[
        str, typer.Option(metavar="ORG/NAME", help="Upload the page as this static Space of the hub.")
    ] = "",
    public_run: PublicRun = False,
    publish: Annotated[
        str | None, typer.Option(metavar="ORG", help="Upload the results to this account of the hub instead.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="--publish: only say what would be sent.")] = False,
    strict: Strict = False,
    as_json: Annotated[bool, typer.Option("--json", help="All tables as one JSON document, printed too.")] = False,
) -> None:
    """Writes a leaderboard that opens without a server. Example: cultureval leaderboard results --out site"""
    if publish:
        return _publish(results, publish, public_run, dry_run)
    require_extra("page")
    from cultureval.reports.charts import chart_formats
    from cultureval.reports.leaderboard.board import read_board
    from cultureval.reports.leaderboard.exports import as_json as json_text
    from cultureval.reports.leaderboard.publishing import check_space, push_space
    from cultureval.reports.leaderboard.site import board_data, site_summary, write_site

    formats = chart_formats(charts)
    if space:
        check_space(space)
    with use_settings(current_settings()):  # read once: every score asks the catalogue
        board = read_board(results, papers=published, strict=strict)
        page = write_site(board, output_dir, title, formats, logs)
    if logs and "://" not in logs and not (output_dir / logs).is_dir():
        print_note(f"--logs {logs}: {output_dir / logs} is not there: cultureval show RESULTS --bundle.")
    print_result(json_text(board_data(board)).rstrip() if as_json else site_summary(board, page), page)
    if space:
        print_note(f"uploaded: {push_space(output_dir, space, public_run)}")


def _publish(results: list[Path], org: str, public: bool, dry_run: bool) -> None:
    """Uploads finished results, as `eval --push-to-hub` does."""
    from cultureval.reports.leaderboard.publishing import publications, publish

    found = publications(results)
    if dry_run:
        print_text("\n".join(one.sentence() for one in found))
    else:
        publish(found, org, public, print_note)
