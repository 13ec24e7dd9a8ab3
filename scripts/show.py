"""`cultureval show`: finished runs, their tasks, items and answers, in the terminal or in Inspect's viewer."""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError, counted, shown_names
from cultureval.runtime.printing import print_note, print_result, print_text, terminal_width
from cultureval.scripts.options import AsJson

Full = Annotated[bool, typer.Option("--full", help="All scores, notes and signatures above the summary.")]


def show(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="The --output-dir of runs, or a results file.")],
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="A task of a run; a group with --web.")] = None,
    item: Annotated[str | None, typer.Argument(metavar="[ITEM]", help="Its id, or 'row N' (quoted), from 1.")] = None,
    full: Full = False,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(min=1, help="At most this many items of a task.")] = 20,
    fooled: Annotated[
        bool, typer.Option("--fooled", help="Items that were right on Q+ and fooled on Q- (M2CQA, AynVQA).")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(metavar="RESULTS", help="Settings in which two runs differ; exit status 1 if any.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the tables and figures of a suite's analysis here.")
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Open Inspect's viewer on this machine.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the viewer, on 127.0.0.1.")] = 7575,
    bundle: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the viewer with the answers as a static site.")
    ] = None,
    gated: Annotated[bool, typer.Option("--gated", help="--bundle: gated data too; do not publish it.")] = False,
) -> None:
    """Shows the summary of runs, or a task's items, or one item. Example: cultureval show results cvlue_vg 2649"""
    if against:
        from cultureval.reports.settings_diff import compare_runs

        text, same = compare_runs(results, against)
        print(text)
        raise typer.Exit(not same)
    if figures:
        _write_figures(results, figures)
    elif bundle:
        _write_bundle(results, bundle, task, gated)
    elif web:
        _open_viewer(results, task, port)
    elif fooled:
        from cultureval.reports.m2cqa.fooled import fooled_text

        if task is None:
            raise CulturevalError("--fooled is of one task: cultureval show RESULTS m2cqa:tf_en --fooled")
        print(fooled_text(results, task, limit, as_json))
    elif task is None:
        _show_runs(results, full, as_json)
    else:
        from cultureval.reports.item_view import item_text, items_text

        print(items_text(results, task, limit, as_json) if item is None else item_text(results, task, item, as_json))


def _show_runs(results: Path, full: bool, as_json: bool) -> None:
    """The runs of a path, the newest last."""
    from cultureval.reports.summary_text import shown_run, summaries_json
    from cultureval.runs.loading import load

    found = load(results)
    for file in found.left_out:
        print_note(file.sentence)
    summaries = [] if as_json else [shown_run(run, terminal_width(), full) for run in found.runs[::-1]]
    print(summaries_json(found.runs) if as_json else "\n\n".join(summaries))


def _write_figures(results: Path, folder: Path) -> None:
    """The analyses of those suites in the results that have one."""
    from cultureval.runs.loading import load
    from cultureval.tasks.catalogue import all_suites, known_task

    known = [known_task(name) for run in load(results).runs for name in run.record.tasks]
    suites = [all_suites()[name] for name in dict.fromkeys(task.suite for task in known if task)]
    analyses = [suite.part("analysis") for suite in suites if suite.analysis]
    if not analyses:
        raise CulturevalError(f"{results}: no run of a suite that has an analysis.")
    print(*(write([results.expanduser()], folder) for write in analyses), sep="\n")
    print(f"Tables and figures: {folder.resolve()}")


def _write_bundle(results: Path, folder: Path, task: str | None, gated: bool) -> None:
    from cultureval.reports.viewer.bundle import write_bundle

    logs = write_bundle([results], folder, task, gated)
    if gated_tasks := sorted({log.task.partition("|")[0] for log in logs if not log.written}):
        print_note(f"left out, since their data are gated: {shown_names(gated_tasks)}")
    name = shlex.quote(str(folder.resolve()))
    print_result(f"Viewer: {name}. To open it: python -m http.server --directory {name}", folder)


def _open_viewer(results: Path, task: str | None, port: int) -> None:
    from cultureval.reports.viewer.bundle import serve
    from cultureval.reports.viewer.logs import write_logs
    from cultureval.runs.files import output_folder

    folder = (results if results.is_dir() else output_folder(results) or results.parent) / "inspect"
    logs = write_logs([results], folder, task)
    print_result(f"{counted(len(logs), 'log')}: {folder.resolve()}", folder)
    print_text(f"Viewer: http://127.0.0.1:{port} (Ctrl+C ends it)")
    with suppress(KeyboardInterrupt):
        serve(folder, port)
