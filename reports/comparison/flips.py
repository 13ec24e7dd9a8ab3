"""The items in which two sides differ, both ways, with their texts."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cultureval.metrics.paired_tests import TINY
from cultureval.reports.comparison.paired_runs import PairedTask, Pairs
from cultureval.reports.item_view import shown_text
from cultureval.runs.files import read_details
from cultureval.runs.rows import answer_of, gold_of
from cultureval.runtime.errors import CulturevalError, counted

TEXTS = ["doc.query", "doc.choices", "doc.gold_index"]
ANSWERS = [f"model_response.{name}" for name in ("text", "text_post_processed", "logprobs", "output_tokens")]
BROADEST = 300  # letters of a text on the terminal
Flip = dict[str, Any]


def flips_of(pairs: Pairs) -> Iterator[Flip]:
    """The items of two sides whose scores differ, task by task, the largest differences first.

    Each has `task`, `metric`, `item`, `first` and `second` (the sides), `first_score`, `second_score`, and the texts
    `prompt`, `gold`, `first_answer` and `second_answer`, None where the details lack them.
    """
    for task in pairs.tasks:
        scores = task.first.values(), task.second.values()
        differences = np.nan_to_num(scores[0] - scores[1])
        places = [int(place) for place in np.argsort(-np.abs(differences), kind="stable")]
        places = [place for place in places if abs(differences[place]) > TINY]
        if not places:
            continue
        texts = _texts(task, places)
        for place, text in zip(places, texts, strict=True):
            row = {"task": task.task, "metric": task.metric, "item": task.first.keys[place]}
            row |= {"first": pairs.first, "second": pairs.second}
            row |= {"first_score": float(scores[0][place]), "second_score": float(scores[1][place])}
            yield row | text


def write_flips(pairs: Sequence[Pairs], file: Path) -> list[Flip]:
    """Writes all items that differ as JSON lines; returns them with texts cut to what a terminal shows."""
    found = []
    with file.open("w", encoding="utf-8") as stream:
        for flip in (flip for one in pairs for flip in flips_of(one)):
            stream.write(json.dumps(flip, ensure_ascii=False) + "\n")
            found.append({name: _cut(value) if isinstance(value, str) else value for name, value in flip.items()})
    return found


def shown_flips(flips: Sequence[Flip], first: str, second: str, most: int, isolate: bool) -> str:
    """The largest differences of two sides, at most so many each way; `isolate` is that of `item_view.shown_text`."""
    ours = [flip for flip in flips if (flip["first"], flip["second"]) == (first, second)]
    parts = []
    for better, worse, sign in ((first, second, 1), (second, first, -1)):
        found = [flip for flip in ours if sign * (flip["first_score"] - flip["second_score"]) > 0]
        found.sort(key=lambda flip: -abs(flip["first_score"] - flip["second_score"]))
        title = f"Higher with {better} than with {worse}: {counted(len(found), 'item')}"
        parts.append("\n".join([title, *(_shown(flip, isolate) for flip in found[:most])]))
    return "\n\n".join(parts)


def _texts(task: PairedTask, places: Sequence[int]) -> Iterator[Flip]:
    """Prompt, gold and both answers of some items, each of one row or several."""
    sides, answer = [], partial(answer_of, metric=task.metric)
    for items, side in zip((task.first, task.second), task.sides, strict=True):
        rows = [row for place in places for row in items.rows[place]]
        table = read_details(side.saved.file, [*TEXTS, *ANSWERS])
        wanted = {"doc", "model_response"} <= set(table.column_names)
        sides.append(iter(table.take(rows).to_pylist() if wanted else [{}] * len(rows)))
    for place in places:
        pair = [
            [next(rows) for _ in items.rows[place]]
            for rows, items in zip(sides, (task.first, task.second), strict=True)
        ]
        yield {
            "prompt": _joined(row.get("doc", {}).get("query") for row in pair[0]),
            "gold": _joined(_or_none(gold_of, row) for row in pair[0]),
            "first_answer": _joined(_or_none(answer, row) for row in pair[0]),
            "second_answer": _joined(_or_none(answer, row) for row in pair[1]),
        }


def _or_none(read: Any, row: dict[str, Any]) -> str | None:
    """A text of a row; None where the details lack what it is made of."""
    try:
        return read(row)
    except (KeyError, TypeError, IndexError, CulturevalError):
        return None


def _joined(texts: Any) -> str | None:
    known = [text for text in texts if text is not None]
    return " / ".join(known) if known else None


def _cut(text: str) -> str:
    """The text on one line of at most `BROADEST` letters."""
    words = " ".join(text[: 4 * BROADEST].split())
    return words if len(words) <= BROADEST else f"{words[: BROADEST - 1]}…"


def _shown(flip: Flip, isolate: bool) -> str:
    def line(name: str) -> str:
        return shown_text("-" if flip[name] is None else flip[name], isolate)

    title = f"{line('task')}, {line('item')}: {flip['first_score']:.3g} / {flip['second_score']:.3g}"
    lines = [f"{name}: {line(name)}" for name in ("prompt", "gold")]
    lines += [f"{line(side)}: {line(f'{side}_answer')}" for side in ("first", "second")]
    return "\n  ".join([title, *lines])
