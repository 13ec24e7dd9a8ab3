"""Items of a finished run for people: a table of a task's items, one item whole, its picture."""

import os
import re
import shlex
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.metrics.code.report import verdict_lines
from cultureval.reports.terminal_tables import GAP, terminal_table
from cultureval.runs.rows import (
    Row,
    answer_of,
    chosen_options,
    gold_of,
    headline_of,
    is_choice,
    is_verdict,
    option_scores,
    row_names,
    saved_texts,
)
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import MARKS, counted, escaped, shorten
from cultureval.runtime.rounding import without_nan
from cultureval.tasks.catalogue import all_suites, all_tasks, rows_per_item

TOP = 5  # choices to show of a scored sample
RIGHT_TO_LEFT = ("R", "AL")  # bidirectional classes of letters
HEADER = ("Item", "prompt", "gold", "answer", "score")
WORD = re.compile(r"[^\s\u2e80-\uffff]*")  # Chinese writes no spaces between words
NARROW = 16  # at most so many cells for an item's name and a gold answer; prompt and answer share what is left


def names_of(rows: Sequence[Row]) -> list[str]:
    """The names of all rows of a task, as `row_names` gives them."""
    return row_names([specific_of(row["doc"]) for row in rows])


def item_data(place: int, rows: Sequence[Row], task: str) -> dict[str, Any]:
    """An item, by its place from 0, as data for JSON: name, prompt, gold and answer in full, and all scores."""
    row = rows[place]
    data = {"item": names_of(rows)[place], "place": place, "prompt": row["doc"]["query"], "gold": gold_of(row)}
    return data | {"answer": answer_of(row, headline_of(task)), "scores": without_nan(row["metric"])}


def items_table(
    rows: Sequence[Row],
    task: str,
    run: str,
    width: int | None,
    limit: int,
    refused: int = 0,
    results: str | Path = "RESULTS",
) -> str:
    """The first items of a task as a table, cut to one line each.

    Args:
        task: Its name; `|k` may follow.
        run: Model and date, for the title.
        width: Of the terminal in cells; None: standard output is no terminal.
        limit: At most this many items.
        refused: How many others have no score, and are in no details.
        results: The folder or file that the user named.
    """
    shown = list(rows[:limit])
    metric, names = headline_of(task), names_of(rows)
    alike = os.path.commonprefix([row["doc"]["query"] for row in shown]) if len(shown) > 1 else ""
    start = len(alike) - WORD.match(alike[::-1]).end()  # type: ignore[union-attr]
    of_headline = {name for row in rows if metric in (numbers := _numbers(row["metric"])) for name in numbers}
    columns = [
        [_end_of(name, NARROW) for name in names[: len(shown)]],
        [row["doc"]["query"][start:] for row in shown],
        [_cut(gold_of(row), NARROW) for row in shown],
        [answer_of(row, metric) for row in shown],
        [_score(row["metric"], metric, of_headline) for row in shown],
    ]
    rest = (width or 120) - sum(_widest(columns[place], HEADER[place]) + GAP for place in (0, 2, 4))
    answer = max(min(_widest(columns[3], HEADER[3]), rest // 2), NARROW // 2)
    limits = (NARROW, max(rest - answer - GAP, NARROW // 2), NARROW, answer, NARROW)
    isolate = width is not None
    cut = [[_cut(cell, most, isolate) for cell in column] for column, most in zip(columns, limits, strict=True)]
    of_item = rows_per_item(task)
    unit = "item" if of_item == 1 else "row"
    items = f"{len(shown)} of {counted(len(rows), unit)}{f' ({of_item} an item)' * (of_item > 1)}" + (
        f", {refused} more unscored" if refused else ""
    )
    title = f"{task}, {escaped(run)}: {items}, score: {metric or 'the first metric'}"
    table = terminal_table(HEADER, zip(*cut, strict=True), "llllr", title, width=width, cut_words=isolate)
    more = f"{counted(len(rows) - len(shown), f'more {unit}')}: --limit N\n" if len(shown) < len(rows) else ""
    first = shlex.quote(_one_line(names[0])) if names else "ITEM"
    return f"{table}\n{more}One item in full: cultureval show {shlex.quote(str(results))} {task} {first}"


def _widest(cells: Sequence[str], header: str) -> int:
    """The width of a column in terminal cells."""
    from rich.cells import cell_len

    return max(map(cell_len, (header, *map(_one_line, cells))))


def _score(scores: dict[str, Any], metric: str, alike: Collection[str]) -> str:
    """The item's score by a metric, "n/a" where it has none; where the metric is of other items, its own first.

    Args:
        scores: The item's.
        metric: The task's headline.
        alike: What the items have that the headline scores: one that has another score (a caption that asks for images)
            is of another kind.
    """
    numbers = _numbers(scores)
    own = [value for name, value in numbers.items() if name not in alike] if alike or metric not in scores else []
    value = numbers.get(metric, next(iter(own), None))
    return "n/a" if value is None else score_text(value)


def _numbers(scores: dict[str, Any]) -> dict[str, Any]:
    """The scores without a judge's verdict, which is a mapping, and without None or NaN: a metric of other items."""
    numbers = {name: value for name, value in scores.items() if not isinstance(value, Mapping) and value is not None}
    return {name: value for name, value in numbers.items() if value == value}


def _cut(text: str, width: int, isolate: bool = False) -> str:
    """The text on one line of at most `width` cells."""
    from rich.text import Text

    line = Text(_one_line(text))
    line.truncate(width, overflow="ellipsis")
    return shown_text(line.plain, isolate)


def _end_of(name: str, width: int) -> str:
    """The end of a name, by which it differs from others, in at most `width` cells."""
    return _cut(_one_line(name)[::-1], width)[::-1]


def _one_line(text: str) -> str:
    return shown_text(" ".join(text.split()))


def describe(row: Row, metric: str, isolate: bool = False) -> str:
    """Prompt, gold, reply and scores as text, with control characters as escapes.

    Args:
        metric: The headline of its task, which chose among options.
        isolate: Whether right-to-left text is isolated for a terminal (`shown_text`).
    """
    doc, response = row["doc"], row["model_response"]
    image = specific_of(row["doc"]).get("image_path") or doc.get("images")
    lost = response.get("truncated_tokens_count") or 0
    told = f" (without its first {counted(lost, 'token')}, since more is too long for the model)" if lost > 0 else ""
    lines = [f"prompt{told}:", doc["query"], *([f"image: {image}"] if image else []), f"gold: {gold_of(row)}"]
    if is_choice(row):
        lines.append(f"choices as {metric or 'their log-probability'} orders them, the chosen first:")
        lines += [f"  {score:8.3f}  {choice}" for score, choice in _ordered(row, metric)[:TOP]]
        lines += _other_choices(row, metric)
    elif response.get("text"):
        texts = saved_texts(response)
        names = [f"reply {place} of {len(texts)}" if texts[1:] else "reply" for place in range(1, len(texts) + 1)]
        lines += [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
    lines += verdict_lines(specific_of(doc))
    verdicts = {name: value for name, value in row["metric"].items() if is_verdict(value)}
    lines += [f"{name}: {_verdict_text(verdict)}" for name, verdict in verdicts.items()]
    shown = {name: value for name, value in row["metric"].items() if name not in verdicts and value is not None}
    words = [f"{name} {score_text(value)}" for name, value in shown.items()]
    lines.append("scores: " + ", ".join(words))
    return "\n".join(shown_text(line, isolate) for part in lines for line in part.split("\n"))


def score_text(value: Any) -> str:
    """A score in short; other things that metrics leave in details (verdicts, inputs of corpus metrics)."""
    if isinstance(value, int | float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else shorten(value, 60)


def _verdict_text(verdict: Mapping[str, Any]) -> str:
    """A judge's verdict: its outcome, why it is no score, and the judge's reply in one line."""
    parts = [verdict.get("outcome"), verdict.get("reason"), " / ".join((verdict.get("reply") or "").splitlines())]
    return "; ".join(str(part) for part in parts if part)


def _ordered(row: Row, metric: str) -> list[tuple[float, str]]:
    """The choices of a row with what a metric orders them by, the best first."""
    choices = (choice.strip() for choice in row["doc"]["choices"])
    return sorted(zip(option_scores(row, metric), choices, strict=True), key=lambda pair: -pair[0])


def _other_choices(row: Row, metric: str) -> list[str]:
    """A line for each other accuracy of the row that chose otherwise."""
    chosen = chosen_options(row, metric)
    others = [name for name in ("acc", "acc_norm") if name in row["metric"] and name != metric]
    return [f"{name} chose {' | '.join(found)}" for name in others if (found := chosen_options(row, name)) != chosen]


def shown_text(line: str, isolate: bool = False) -> str:
    """A line as a terminal may show it: control characters as escapes.

    With `isolate` a line with right-to-left letters stands between isolates (U+2068, U+2069), so that it does not
    reorder what stands beside it.
    """
    text = escaped(line, keep=f"\t{MARKS}")
    right_to_left = any(unicodedata.bidirectional(letter) in RIGHT_TO_LEFT for letter in text)
    return f"\u2068{text}\u2069" if isolate and right_to_left else text


def save_picture(row: Row, task: str, path: Path) -> str | None:
    """Draws a sample as the suite of its task does; returns what the colours mean, None where nothing is drawn."""
    known = all_tasks().get(task.partition("|")[0])
    draw = all_suites()[known.suite].part("picture") if known else None
    return draw(row, path) if draw else None


def printable(text: str) -> str:
    """The text without control characters, which neither a terminal nor XML should get."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
