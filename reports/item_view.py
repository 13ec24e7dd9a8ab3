"""Items of a saved run for people: a table of a task's items, a whole item, its picture."""

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.metrics.code.report import verdict_lines
from cultureval.metrics.declared import DEN, SUMS
from cultureval.reports.summary_text import PLAIN_WIDTH, listed
from cultureval.reports.terminal_tables import GAP
from cultureval.runs.files import output_folder
from cultureval.runs.frame import NAMES
from cultureval.runs.rows import (
    Row,
    answer_of,
    find_task,
    gold_of,
    headline_of,
    is_choice,
    is_verdict,
    names_of,
    option_scores,
    rows_of,
    saved_texts,
)
from cultureval.runs.warnings import warnings
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import MARKS, CulturevalError, counted, escaped, shorten, shown_names
from cultureval.runtime.printing import isolated, terminal_width
from cultureval.runtime.rounding import without_nan
from cultureval.tasks.catalogue import all_suites, known_task

TOP = 5  # choices to show of a scored sample
HEADER = ("Item", "prompt", "gold", "answer", "score")
WORD = re.compile(r"[^\s\u2e80-\uffff]*")  # Chinese writes no spaces between words
UNCLOSED = re.compile(r"\u2068[^\u2068\u2069]*?…(?=  |$)(?![^\u2068\u2069]*\u2069)")  # an isolate of a cell that is cut
NARROW = 16  # cells at most for an item's name and a gold answer; prompt and answer share the rest
LONGEST = 1000  # letters of a text in a table


def places_of(item: str, rows: Sequence[Row], task: str) -> list[int]:
    """The indices (from 0) of an item's rows: one, or several that share it (statements of an image, two directions).

    Args:
        item: Its name in any command's output; `row N`, or N if no row has this name, is the Nth row from 1.
        rows: All rows of the task.
        task: Its name, for the message.

    Raises:
        CulturevalError: There is no such item.
    """
    names = names_of(rows)
    if item in names:
        return [names.index(item)]
    specifics = [specific_of(row["doc"]) for row in rows]
    for field in (*NAMES, "item_id"):
        if found := [place for place, specific in enumerate(specifics) if str(specific.get(field)) == item]:
            return found
    number = re.fullmatch(r"(?:row )?([1-9]\d{0,8})", item)
    if number and int(number[1]) <= len(rows):
        return [int(number[1]) - 1]
    problem = f"{task} has no item {item!r} among its {len(rows)}: {shown_names(names)}"
    raise CulturevalError(f"{problem}. Write 'row 1' (in quotes) for the first item.")


def item_data(place: int, rows: Sequence[Row], task: str) -> dict[str, Any]:
    """An item, by its index from 0, as data for JSON: name, row from 1, prompt, gold, answer and all scores."""
    row = rows[place]
    data = {"item": names_of(rows)[place], "row": place + 1, "prompt": row["doc"]["query"], "gold": gold_of(row)}
    return data | {"answer": answer_of(row, headline_of(task)), "scores": without_nan(row["metric"])}


def items_table(rows: Sequence[Row], task: str, run: str, width: int | None, limit: int, results: str) -> str:
    """The first items of a task as a table with one line for each.

    Args:
        task: Its name; `|k` may follow.
        run: Model and date, for the title.
        width: Of the terminal in cells; None: standard output is no terminal.
        limit: At most this many items.
        results: The folder or file that the user named.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown, metric, names = rows[:limit], headline_of(task), names_of(rows)
    prefix = os.path.commonprefix([row["doc"]["query"] for row in shown]) if len(shown) > 1 else ""
    last_word = WORD.match(prefix[::-1])
    start = len(prefix) - (last_word.end() if last_word else 0)  # the shared beginning of all prompts is not shown
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_header=False)
    for widest in (NARROW, None, NARROW, None, NARROW):
        table.add_column(max_width=widest)
    table.add_row(*HEADER)
    for name, row in zip(names, shown, strict=False):
        score = _number(row["metric"], metric)
        name = name if len(name) <= NARROW else f"…{name[1 - NARROW :]}"  # the ends differ
        texts = (name, row["doc"]["query"][start:][:LONGEST], gold_of(row), answer_of(row, metric)[:LONGEST])
        cells = [shown_text(" ".join(text.split()), width is not None) for text in texts]
        table.add_row(
            *(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells),
            "n/a" if score is None else f"{score:.4g}",
        )
    console = Console(width=width or 120, color_system=None, force_terminal=False, force_jupyter=False)
    with console.capture() as capture:
        console.print(table)
    lines = [f"{task}, {escaped(run)}: {len(shown)} of {counted(len(rows), 'row')}, score: {metric or 'none'}"]
    lines += [UNCLOSED.sub("\\g<0>\u2069", line.rstrip()) for line in capture.get().splitlines()]
    lines += [f"{counted(len(rows) - len(shown), 'more row')}: --limit N"] if len(shown) < len(rows) else []
    first = shlex.quote(shown_text(names[0])) if names else "ITEM"
    return "\n".join([*lines, f"One item in full: cultureval show {shlex.quote(results)} {shlex.quote(task)} {first}"])


def _number(scores: Mapping[str, Any], metric: str) -> float | None:
    """The item's score by a metric; if it has none, its first score by any metric."""
    numbers = {name: value for name, value in scores.items() if isinstance(value, int | float) and value == value}
    return numbers.get(metric, next((value for name, value in numbers.items() if not name.endswith(DEN)), None))


def describe(row: Row, metric: str, isolate: bool = False) -> str:
    """Prompt, gold, reply and scores as text, with control characters as escapes.

    Args:
        metric: The headline of its task; it ranks the options.
        isolate: Whether right-to-left text is isolated for a terminal (`shown_text`).
    """
    doc, response, specific = row["doc"], row["model_response"], specific_of(row["doc"])
    image, lost = specific.get("image_path") or doc.get("images"), response.get("truncated_tokens_count") or 0
    cut = f" (without its first {counted(lost, 'token')}: too long for the model)" if lost > 0 else ""
    lines = [f"prompt{cut}:", doc["query"], *([f"image: {image}"] if image else []), f"gold: {gold_of(row)}"]
    if is_choice(row):
        choices = zip(option_scores(row, metric), (choice.strip() for choice in doc["choices"]), strict=True)
        lines.append(f"choices ordered by {metric or 'log-probability'}, the chosen first:")
        lines += [f"  {score:8.3f}  {choice}" for score, choice in sorted(choices, key=lambda pair: -pair[0])[:TOP]]
    else:
        texts = saved_texts(response)
        names = [f"reply {place} of {len(texts)}" if texts[1:] else "reply" for place in range(1, len(texts) + 1)]
        lines += [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
    lines += [f"no score: {specific['unscored']}"] if specific.get("unscored") else []
    lines += verdict_lines(specific)
    lines += [f"{name}: {_verdict_text(value)}" for name, value in row["metric"].items() if is_verdict(value)]
    scores = {name: value for name, value in row["metric"].items() if value is not None and not is_verdict(value)}
    words = [f"{name} {score_text(value)}" for name, value in scores.items() if not name.endswith((DEN, SUMS))]
    lines.append("scores: " + ", ".join(words))
    return "\n".join(shown_text(line, isolate) for part in lines for line in part.split("\n"))


def score_text(value: Any) -> str:
    """A short text of a score, or of another value in details (labels, inputs of corpus metrics)."""
    return f"{value:.4g}" if isinstance(value, int | float) else shorten(value, 60)


def _verdict_text(verdict: Mapping[str, Any]) -> str:
    """A judge's verdict in one line: outcome, reason if unscored, and the judge's reply."""
    parts = [verdict.get("outcome"), verdict.get("reason"), " / ".join((verdict.get("reply") or "").splitlines())]
    return "; ".join(str(part) for part in parts if part)


def shown_text(line: str, isolate: bool = False) -> str:
    """A line for a terminal: control characters as escapes; with `isolate`, right-to-left lines isolated."""
    text = escaped(line, keep=f"\t{MARKS}")
    return isolated(text) if isolate else text


def items_text(results: Path, task: str, limit: int, as_json: bool = False) -> str:
    """The first items of a task of the newest run, as a table below the run's warnings, or as JSON.

    Raises:
        CulturevalError: The results have no details of the task.
    """
    run, name = find_task(results, task)
    rows, found = rows_of(run.details[name], run.judgements.get(name, ())), warnings(run, [name])
    if as_json:
        items = [item_data(place, rows, name) for place in range(min(limit, len(rows)))]
        content = {"task": name, "run": run.name, "date": run.date, "warnings": [one._asdict() for one in found]}
        return json.dumps(content | {"rows": len(rows), "items": items}, ensure_ascii=False, indent=2)
    width = terminal_width()
    table = items_table(rows, name, f"{run.name}, {run.date}", width, limit, str(results))
    return "\n".join([*listed([one.sentence for one in found], width or PLAIN_WIDTH), table])


def item_text(results: Path, task: str, item: str, as_json: bool = False) -> str:
    """One item of the newest run in full, or as JSON; its picture is drawn into the output folder's `pictures`.

    Raises:
        CulturevalError: The results have no details of the task, or no such item.
    """
    run, name = find_task(results, task)
    rows = rows_of(run.details[name], run.judgements.get(name, ()))
    places = places_of(item, rows, name)
    if as_json:
        found = [item_data(place, rows, name) for place in places]
        return json.dumps(found[0] if len(found) == 1 else {"items": found}, ensure_ascii=False, indent=2)
    names, lines = names_of(rows), []
    folder = (output_folder(run.file) or run.file.parent) / "pictures"
    for place in places:
        lines += [f"{names[place]}:"] if len(places) > 1 else []
        lines.append(describe(rows[place], headline_of(name), isolate=sys.stdout.isatty()))
        file = re.sub(r"[^\w.-]+", "_", f"{task}-{names[place]}").strip("_")
        if colours := save_picture(rows[place], name, folder / f"{file}.png"):
            lines.append(f"Picture ({colours}): {(folder / file).resolve()}.png")
    return "\n".join(lines)


def save_picture(row: Row, task: str, path: Path) -> str | None:
    """Draws a sample by its suite's `picture`; returns the meaning of the colours, None if nothing is drawn."""
    found = known_task(task)
    draw = all_suites()[found.suite].part("picture") if found else None
    return draw(row, path) if draw else None
