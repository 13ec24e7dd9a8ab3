"""The items in which two runs differ, both ways, with their texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cultureval.metrics.statistics import TINY
from cultureval.reports.comparison.differences import Place, TwoRuns
from cultureval.reports.item_view import shown_text
from cultureval.runs.files import read_details
from cultureval.runs.loading import Run
from cultureval.runs.rows import answer_of, gold_of
from cultureval.runtime.errors import CulturevalError, counted

FIELDS = (
    *("doc.query", "doc.choices", "doc.gold_index"),
    *(f"model_response.{name}" for name in ("text", "text_post_processed", "logprobs", "output_tokens")),
)
BROADEST = 300  # letters of a text on the terminal
Flip = dict[str, Any]


def flips_of(two: TwoRuns, places: Iterable[Place]) -> list[Flip]:
    """The items that both runs have a score of and whose scores differ, the largest differences first.

    Each has `task`, `metric`, `item`, `first` and `second` (the runs), `first_score` and `second_score`.
    """
    found = []
    for task, metric in places:
        frame = two.items[task, metric]
        counts = frame[(frame["den"] > 0).to_numpy()]
        scores = (counts["num"] / counts["den"]).groupby([counts["item"], counts["run"]], observed=True).first()
        table = scores.unstack().reindex(columns=[two.first.name, two.second.name]).dropna()
        for item, first, second in table[(table.iloc[:, 0] - table.iloc[:, 1]).abs() > TINY].itertuples(name=None):
            row = {"task": task, "metric": metric, "item": item, "first": two.first.name, "second": two.second.name}
            found.append(row | {"first_score": float(first), "second_score": float(second)})
    return sorted(found, key=lambda flip: -abs(flip["first_score"] - flip["second_score"]))


def with_texts(two: TwoRuns, flips: Sequence[Flip]) -> list[Flip]:
    """The same with `prompt`, `gold`, `first_answer` and `second_answer`; None where the details lack them."""
    found = list(flips)
    for task, metric in dict.fromkeys((flip["task"], flip["metric"]) for flip in flips):
        places = [place for place, flip in enumerate(flips) if (flip["task"], flip["metric"]) == (task, metric)]
        items = [flips[place]["item"] for place in places]
        firsts, seconds = (_rows(run, task, metric, items) for run in (two.first, two.second))
        for place, one, other in zip(places, firsts, seconds, strict=True):
            texts = {"prompt": one.get("doc", {}).get("query"), "gold": _or_none(gold_of, one)}
            answers = [_or_none(answer_of, row, metric) for row in (one, other)]
            texts |= dict(zip(("first_answer", "second_answer"), answers, strict=True))
            found[place] = flips[place] | texts
    return found


def shown_flips(two: TwoRuns, flips: Sequence[Flip], most: int, isolate: bool) -> str:
    """The largest differences, at most so many each way; `isolate` is that of `item_view.shown_text`."""
    parts = []
    for better, worse, sign in ((two.first.name, two.second.name, 1), (two.second.name, two.first.name, -1)):
        found = [flip for flip in flips if sign * (flip["first_score"] - flip["second_score"]) > 0]
        title = f"Higher with {better} than with {worse}: {counted(len(found), 'item')}"
        parts.append("\n".join([title, *(_shown(flip, isolate) for flip in with_texts(two, found[:most]))]))
    return "\n\n".join(parts)


def _rows(run: Run, task: str, metric: str, items: Sequence[str]) -> list[Mapping[str, Any]]:
    """The rows of some items in a run's details."""
    of_task = run.items[((run.items["task"] == task) & (run.items["metric"] == metric)).to_numpy()]
    names = of_task["item"].astype(str).to_numpy()
    place = dict(zip(names, np.arange(len(names)), strict=True))
    return read_details(run.details[task], FIELDS).take([int(place[item]) for item in items]).to_pylist()


def _or_none(read: Callable[..., str], *row: Any) -> str | None:
    """A text of a row; None where the details lack what it is made of."""
    try:
        return read(*row)
    except (KeyError, TypeError, IndexError, CulturevalError):
        return None


def _shown(flip: Flip, isolate: bool) -> str:
    def line(value: object) -> str:
        words = " ".join(str("-" if value is None else value)[: 4 * BROADEST].split())
        return shown_text(words if len(words) <= BROADEST else f"{words[: BROADEST - 1]}…", isolate)

    title = f"{line(flip['task'])}, {line(flip['item'])}: {flip['first_score']:.3g} / {flip['second_score']:.3g}"
    lines = [f"{name}: {line(flip[name])}" for name in ("prompt", "gold")]
    lines += [f"{line(flip[side])}: {line(flip[f'{side}_answer'])}" for side in ("first", "second")]
    return "\n  ".join([title, *lines])
