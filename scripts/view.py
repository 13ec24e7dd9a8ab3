"""`cultureval view`: single answers in Inspect's log viewer, on this machine or as a bundle for publishing."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import counted
from cultureval.runtime.printing import print_note, print_result


def view(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="Output folders of runs, results files or details.")
    ],
    task: Annotated[str | None, typer.Option(help="Only this task, or this group of tasks.")] = None,
    bundle: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the viewer with the logs as a static site instead.")
    ] = None,
    gated: Annotated[
        bool, typer.Option("--gated", help="Tasks of gated data are in the bundle too: not for publishing.")
    ] = False,
    serve: Annotated[bool, typer.Option(help="Open the viewer; --no-serve only writes the logs.")] = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the viewer, on 127.0.0.1.")] = 7575,
) -> None:
    """Shows every answer with images, gold and verdicts in Inspect's viewer. Example: cultureval view results"""
    from cultureval.reports.viewer.bundle import check_bundle, write_bundle
    from cultureval.reports.viewer.bundle import serve as open_viewer
    from cultureval.reports.viewer.logs import write_logs

    if bundle:
        check_bundle(bundle)
    logs = write_logs(results, task)
    folders = sorted({log.file.parent.parent for log in logs})
    written = f"{counted(len(logs), 'log')}: {', '.join(str(folder.resolve()) for folder in folders)}"
    if bundle:
        if left_out := write_bundle(logs, bundle, gated):
            names = ", ".join(sorted({log.task.partition("|")[0].partition(":")[0] for log in left_out}))
            print_note(f"{counted(len(left_out), 'task')} left out, since their data are gated: {names}")
        print_result(f"{written}\nViewer: {bundle.resolve()} (needs a web server)", bundle)
    elif serve:
        print_result(f"{written}\nViewer: http://127.0.0.1:{port} (Ctrl+C ends it)", folders[0])
        open_viewer(logs, port)
    else:
        print_result(written, folders[0])
