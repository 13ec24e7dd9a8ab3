"""The items of one task of a finished run: prompt, gold, answer and score, as a table or as data."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cultureval.reports.saved_results import saved_reply
from cultureval.reports.saved_sample import Row, best_choices, gold_of, item_name, score_text, shown_text
from cultureval.reports.terminal_tables import GAP, terminal_table
from cultureval.runtime.errors import escaped
from cultureval.tasks.catalogue import all_tasks

HEADER = ("Item", "prompt", "gold", "answer", "score")
WORD = re.compile(r"[^\s\u2e80-\uffff]*")  # Chinese writes no spaces between words
NARROW = 16  # at most so many cells for an item's name and a gold answer; prompt and answer share what is left


def item_data(place: int, row: Row) -> dict[str, Any]:
    """An item as data for JSON: its name, prompt, gold and the model's answer in full, and all scores.

    Args:
        place: Its place in the task, from 0.
        row: Its row of the details.
    """
    scores = {name: None if value != value else value for name, value in row["metric"].items()}
    data = {"item": item_name(place, row), "place": place, "prompt": row["doc"]["query"], "gold": gold_of(row)}
    return data | {"answer": answer_of(row), "scores": scores}


def answer_of(row: Row) -> str:
    """The model's reply, or its most probable choice."""
    return best_choices(row)[0][1] if row["model_response"].get("logprobs") else saved_reply(row["model_response"])


def items_table(rows: Sequence[Row], task: str, run: str, width: int | None, limit: int) -> str:
    """The first items of a task as a table, cut to one line each.

    Args:
        rows: The rows of the task's details.
        task: Its name; `|k` may follow.
        run: Model and date, for the title.
        width: Of the terminal in cells; None: standard output is no terminal.
        limit: At most this many items.
    """
    shown = list(rows[:limit])
    known = all_tasks().get(task.partition("|")[0])
    metric = known.metrics[0] if known else ""
    alike = os.path.commonprefix([row["doc"]["query"] for row in shown]) if len(shown) > 1 else ""
    start = len(alike) - WORD.match(alike[::-1]).end()  # type: ignore[union-attr]
    columns = [
        [_cut(item_name(place, row), NARROW) for place, row in enumerate(shown)],
        [row["doc"]["query"][start:] for row in shown],
        [_cut(gold_of(row), NARROW) for row in shown],
        [answer_of(row) for row in shown],
        [_score(row["metric"], metric) for row in shown],
    ]
    rest = (width or 120) - sum(_widest(columns[place], HEADER[place]) + GAP for place in (0, 2, 4))
    answer = max(min(_widest(columns[3], HEADER[3]), rest // 2), NARROW // 2)
    limits = (NARROW, max(rest - answer - GAP, NARROW // 2), NARROW, answer, NARROW)
    isolate = width is not None
    cut = [[_cut(cell, most, isolate) for cell in column] for column, most in zip(columns, limits, strict=True)]
    title = f"{task}, {escaped(run)}: {len(shown)} of {len(rows)} items, score: {metric or 'the first metric'}"
    table = terminal_table(HEADER, zip(*cut, strict=True), "llllr", title, width=width, cut_words=isolate)
    more = f"{len(rows) - len(shown)} more items: --limit N\n" if len(shown) < len(rows) else ""
    return f"{table}\n{more}One item in full: cultureval show RESULTS TASK ITEM"


def _widest(cells: Sequence[str], header: str) -> int:
    """The width of a column in terminal cells."""
    from rich.cells import cell_len

    return max(map(cell_len, (header, *map(_one_line, cells))))


def _score(scores: dict[str, Any], metric: str) -> str:
    """The item's score by a metric, or where the item is of another kind (a caption that asks for images) its first."""
    # A mapping is a judge's verdict; None is a metric that the item does not have.
    numbers = {name: value for name, value in scores.items() if not isinstance(value, Mapping) and value is not None}
    value = numbers.get(metric, next(iter(numbers.values()), None))
    return "n/a" if value is None or value != value else score_text(value)


def _cut(text: str, width: int, isolate: bool = False) -> str:
    """The text on one line of at most `width` cells."""
    from rich.text import Text

    line = Text(_one_line(text))
    line.truncate(width, overflow="ellipsis")
    return shown_text(line.plain, isolate)


def _one_line(text: str) -> str:
    return shown_text(" ".join(text.split()))
