"""`cultureval show`: the summary of finished runs, the items of one of their tasks, or one item whole."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cultureval.reports.terminal_tables import terminal_width
from cultureval.runtime.errors import CulturevalError, counted
from cultureval.scripts.showing import AsJson, Full


def show(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="The --output-dir of runs, or a results file.")],
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="A task of a run, such as cvlue_vg.")] = None,
    item: Annotated[
        str | None,
        typer.Argument(metavar="[ITEM]", help="Its id in the data, or '#N' (quoted), the Nth from 0."),
    ] = None,
    full: Full = False,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(min=1, help="At most this many items of a task.")] = 20,
    fooled: Annotated[
        bool, typer.Option("--fooled", help="The items that were right on Q+ and fooled on Q- (M2CQA, AynVQA).")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Picture of an item, .svg or .png; default: in the output folder. --fooled: an HTML page."),
    ] = None,
) -> None:
    """Shows the summary of runs, or a task's items, or one item. Example: cultureval show results cvlue_vg 2649"""
    if fooled:
        _show_fooled(results, task, limit, output, as_json)
    elif task is None:
        _show_runs(results, full, as_json)
    elif item is None:
        _show_items(results, task, limit, as_json)
    else:
        _show_item(results, task, item, output, as_json)


def _show_runs(results: Path, full: bool, as_json: bool) -> None:
    """The newest run of each model in each output folder."""
    from cultureval.reports.saved_runs import load
    from cultureval.reports.summary_text import shown_run, summaries_json

    newest = list({(run.model, run.file.parent): run for run in reversed(load(results))}.values())[::-1]
    if as_json:
        print(summaries_json(newest))
    else:
        print("\n\n".join(shown_run(run, terminal_width(), full) for run in newest))


def _show_items(results: Path, task: str, limit: int, as_json: bool) -> None:
    from cultureval.reports.saved_items import item_data, items_table
    from cultureval.reports.saved_sample import find_details, rows_of, run_of_details

    file = find_details(results, task)
    rows = rows_of(file)
    if as_json:
        items = [item_data(place, row) for place, row in enumerate(rows[:limit])]
        print(json.dumps({"task": task, "rows": len(rows), "items": items}, ensure_ascii=False, indent=2))
    else:
        print(items_table(rows, task, run_of_details(file), terminal_width(), limit))


def _show_fooled(results: Path, task: str | None, limit: int, output: Path | None, as_json: bool) -> None:
    from cultureval.reports.fooled import find_fooled, fooled_text, write_gallery

    if task is None:
        raise CulturevalError("--fooled is of one task: cultureval show RESULTS m2cqa:tf_en --fooled")
    items, run = find_fooled(results, task)
    if output:
        write_gallery(items, f"{task}, {run}: {counted(len(items), 'item')} fooled the model", output)
    if as_json:
        content = {"task": task, "run": run, "fooled": [asdict(item) for item in items]}
        print(json.dumps(content, ensure_ascii=False, indent=2))
        return
    print(f"{task}, {run}: {counted(len(items), 'item')} right on Q+ and fooled on Q-")
    print(fooled_text(items[:limit], terminal_width() is not None))
    if len(items) > limit:
        print(f"{len(items) - limit} more items: --limit N, or all of them in a page: --output FILE.html")
    if output:
        print(f"Page of all: {output.resolve()}")


def _show_item(results: Path, task: str, item: str, output: Path | None, as_json: bool) -> None:
    from cultureval.reports.saved_items import item_data
    from cultureval.reports.saved_sample import describe, find_item, output_folder_of, save_picture
    from cultureval.runtime.doc_specific import specific_of

    place, row = find_item(results, task, item)
    if as_json:
        print(json.dumps(item_data(place, row), ensure_ascii=False, indent=2))
        return
    print(describe(row, isolate=terminal_width() is not None))
    name = re.sub(r"[^\w.-]+", "_", f"{task}-{specific_of(row['doc']).get('id') or item}")
    path = output or output_folder_of(results) / "pictures" / f"{name}.svg"
    if colours := save_picture(row, task, path):
        print(f"Picture ({colours}): {path.resolve()}")
