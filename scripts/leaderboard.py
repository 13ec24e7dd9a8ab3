"""`cultureval leaderboard`: a static site, tables and charts of any results; or the results on the hub."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.errors import CulturevalError, counted
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note, print_result, print_text
from cultureval.runtime.saving import require_folder
from cultureval.runtime.settings import current_settings, use_settings

Results = Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Output folders of runs, or results files.")]
Folder = Annotated[Path, typer.Option("--output-dir", "--out", help="Folder of the site, which is written anew.")]


def leaderboard(
    results: Results,
    output_dir: Folder = Path("leaderboard"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Leaderboard",
    published: Annotated[bool, typer.Option("--published", help="Add the rows of the suites' papers, marked.")] = False,
    charts: Annotated[
        str, typer.Option(metavar="FORMATS", help="Formats of the charts' files: svg, pdf, png; or none, no charts.")
    ] = "svg,pdf",
    logs: Annotated[
        str, typer.Option(metavar="PATH", help="Where `cultureval show --bundle` is published, below the page.")
    ] = "",
    space: Annotated[str, typer.Option(metavar="ORG/NAME", help="Upload the page as a private static Space.")] = "",
    publish: Annotated[str, typer.Option(metavar="ORG", help="Upload the results instead, as private data sets.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="--publish: only list what would be uploaded.")] = False,
    export: Annotated[
        Literal["eee", "model-card"] | None,
        typer.Option(help="Write files for others instead: Every Eval Ever's JSON, or .eval_results of model cards."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All tables as one JSON document, printed too.")] = False,
) -> None:
    """Writes a leaderboard that opens without a server. Example: cultureval leaderboard results --out site"""
    from cultureval.reports.leaderboard import publishing

    if export:
        if publish or space:
            raise CulturevalError("--export writes files alone: leave out --publish and --space.")
        require_folder(output_dir, "--out")
        with use_settings(current_settings()):
            return _export(results, output_dir, export)
    if publish:
        found = publishing.publications(results)
        if dry_run:
            return print_text("\n".join(publication.sentence() for publication in found))
        return publishing.publish(found, publish, print_note)
    require_extra("page")
    from cultureval.reports.charts import chart_formats
    from cultureval.reports.leaderboard.board import read_board
    from cultureval.reports.leaderboard.exports import as_json as json_text
    from cultureval.reports.leaderboard.site import board_data, site_summary, write_site

    formats = chart_formats(charts)
    if space:
        publishing.check_space(space)
    with use_settings(current_settings()):  # read once: every score asks the catalogue
        board = read_board(results, papers=published)
        page = write_site(board, output_dir, title, formats, logs)
    if logs and "://" not in logs and not (output_dir / logs).is_dir():
        print_note(f"--logs {logs}: {output_dir / logs} is not there: cultureval show RESULTS --bundle.")
    print_result(json_text(board_data(board)).rstrip() if as_json else site_summary(board, page), page)
    if space:
        print_note(f"uploaded: {publishing.push_space(output_dir, space)}")


def _export(results: list[Path], folder: Path, schema: Literal["eee", "model-card"]) -> None:
    from cultureval.reports.leaderboard.travelling import export
    from cultureval.runs.loading import load

    files, left_out = export(load(*results, strict=True).runs, folder, schema)
    for sentence in left_out:
        print_note(sentence)
    print_result(f"{counted(len(files), 'file')} of {schema}: {folder}", folder)
