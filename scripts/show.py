"""`cultureval show`: finished runs, their tasks, items and answers, in the terminal or in Inspect's viewer."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError, counted
from cultureval.runtime.printing import print_note, print_result, print_text, terminal_width
from cultureval.scripts.options import AsJson, Full, Strict


def show(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="The --output-dir of runs, or a results file.")],
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="A task of a run, such as cvlue_vg; a group with --web.")
    ] = None,
    item: Annotated[
        str | None,
        typer.Argument(metavar="[ITEM]", help="Its id in the data, or 'row N' (quoted), the Nth from 1."),
    ] = None,
    full: Full = False,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(min=1, help="At most this many items of a task.")] = 20,
    fooled: Annotated[
        bool, typer.Option("--fooled", help="The items that were right on Q+ and fooled on Q- (M2CQA, AynVQA).")
    ] = False,
    strict: Strict = False,
    output: Annotated[
        Path | None, typer.Option(help="Picture of an item, .png; default: in the output folder.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="RESULTS", help="Print the settings in which two runs differ; exits 1 if so.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the tables and figures of a suite's own analysis here.")
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Open Inspect's viewer on this machine.")] = False,
    bundle: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the viewer with the answers as a static site.")
    ] = None,
    gated: Annotated[
        bool, typer.Option("--gated", help="Tasks of gated data are in the bundle too: not for publishing.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the viewer, on 127.0.0.1.")] = 7575,
) -> None:
    """Shows the summary of runs, or a task's items, or one item. Example: cultureval show results cvlue_vg 2649"""
    if against:
        _show_differences(results, against)
    elif figures:
        _write_figures(results, figures)
    elif bundle:
        _write_bundle(results, bundle, task, gated)
    elif web:
        _open_viewer(results, task, port)
    elif fooled:
        _show_fooled(results, task, limit, as_json)
    elif task is None:
        _show_runs(results, full, as_json, strict)
    elif item is None:
        _show_items(results, task, limit, as_json)
    else:
        _show_item(results, task, item, output, as_json)


def _show_differences(first: Path, second: Path) -> None:
    from cultureval.reports.settings_diff import compare_runs

    text, fits = compare_runs(first, second)
    print(text)
    raise SystemExit(not fits)


def _write_figures(results: Path, folder: Path) -> None:
    """The analyses of the suites that have one, of those in the results."""
    from cultureval.runs.loading import load
    from cultureval.tasks.catalogue import all_suites, all_tasks, name_and_shots

    names = {name_and_shots(task)[0] for run in load(results).runs for task in run.record.tasks}
    there = {all_tasks()[name].suite for name in names if name in all_tasks()}
    suites = [suite for name, suite in all_suites().items() if suite.analysis and name in there]
    if not suites:
        raise CulturevalError(f"{results}: no run of a suite that has an analysis.")
    for suite in suites:
        print(suite.part("analysis")([results.expanduser()], folder))
    print(f"Tables and figures: {folder.resolve()}")


def _write_bundle(results: Path, folder: Path, task: str | None, gated: bool) -> None:
    from cultureval.reports.viewer.bundle import write_bundle
    from cultureval.tasks.catalogue import name_and_shots

    logs = write_bundle([results], folder, task, gated)
    if left_out := [name_and_shots(log.task)[0].partition(":")[0] for log in logs if not log.written]:
        names = ", ".join(sorted({*left_out}))
        print_note(f"{counted(len(left_out), 'task')} left out, since their data are gated: {names}")
    print_result(f"Viewer: {shlex.quote(str(folder.resolve()))} (needs a web server)", folder)


def _open_viewer(results: Path, task: str | None, port: int) -> None:
    from cultureval.reports.viewer.bundle import serve
    from cultureval.reports.viewer.logs import write_logs
    from cultureval.runs.files import output_folder

    folder = (results if results.is_dir() else output_folder(results) or results.parent) / "inspect"
    logs = write_logs([results], folder, task)
    print_result(f"{counted(len(logs), 'log')}: {folder.resolve()}", folder)
    print_text(f"Viewer: http://127.0.0.1:{port} (Ctrl+C ends it)")
    serve(folder, port)


def _show_runs(results: Path, full: bool, as_json: bool, strict: bool) -> None:
    """The runs of a path, the newest last."""
    from cultureval.reports.summary_text import shown_run, summaries_json
    from cultureval.runs.loading import load

    found = load(results, strict=strict)
    for one in found.left_out:
        print_note(one.sentence)
    if as_json:
        print(summaries_json(found.runs))
    else:
        print("\n\n".join(shown_run(run, terminal_width(), full) for run in found.runs[::-1]))


def _show_items(results: Path, task: str, limit: int, as_json: bool) -> None:
    from cultureval.reports.item_view import item_data, items_table
    from cultureval.reports.summary_text import PLAIN_WIDTH, listed
    from cultureval.runs.rows import find_task, rows_of
    from cultureval.runs.warnings import warnings

    run, name = find_task(results, task)
    rows, told = rows_of(run.details[name], run.judgements.get(name, ())), warnings(run, [name])
    if as_json:
        items = [item_data(place, rows, name) for place in range(min(limit, len(rows)))]
        content = {"task": name, "run": run.name, "date": run.date, "warnings": [one._asdict() for one in told]}
        print(json.dumps(content | {"rows": len(rows), "items": items}, ensure_ascii=False, indent=2))
    else:
        table = items_table(rows, name, f"{run.name}, {run.date}", terminal_width(), limit, str(results))
        print("\n".join([*listed([one.sentence for one in told], terminal_width() or PLAIN_WIDTH), table]))


def _show_fooled(results: Path, task: str | None, limit: int, as_json: bool) -> None:
    from cultureval.reports.m2cqa.fooled import find_fooled, fooled_text

    if task is None:
        raise CulturevalError("--fooled is of one task: cultureval show RESULTS m2cqa:tf_en --fooled")
    items, named = find_fooled(results, task)
    if as_json:
        print(json.dumps({"run": named, "fooled": items}, ensure_ascii=False, indent=2))
        return
    print(f"{named}: {counted(len(items), 'item')} right on Q+ and fooled on Q-")
    print(fooled_text(items[:limit], sys.stdout.isatty()))
    if len(items) > limit:
        print(f"{len(items) - limit} more items: --limit N, or --json")


def _show_item(results: Path, task: str, item: str, output: Path | None, as_json: bool) -> None:
    from cultureval.reports.item_view import describe, item_data, places_of, save_picture
    from cultureval.runs.files import output_folder
    from cultureval.runs.rows import find_task, headline_of, names_of, rows_of

    run, name = find_task(results, task)
    rows = rows_of(run.details[name], run.judgements.get(name, ()))
    places = places_of(item, rows, name)
    if as_json:
        found = [item_data(place, rows, name) for place in places]
        print(json.dumps(found[0] if len(found) == 1 else {"items": found}, ensure_ascii=False, indent=2))
        return
    names = names_of(rows)
    for place in places:
        if len(places) > 1:
            print(f"{names[place]}:")
        print(describe(rows[place], headline_of(name), isolate=sys.stdout.isatty()))
        file = re.sub(r"[^\w.-]+", "_", f"{task}-{names[place]}").strip("_")
        path = output or (output_folder(run.file) or run.file.parent) / "pictures" / f"{file}.png"
        if colours := save_picture(rows[place], name, path):
            print(f"Picture ({colours}): {path.resolve()}")
