"""What keeps two runs from being compared: other items, other prompts, or another scorer; and where."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, get_args

from cultureval.reports.comparison.sides import ComparedTask
from cultureval.reports.item_scores import details_columns, row_names
from cultureval.runtime.errors import shorten

Kind = Literal["items", "prompts", "scorers"]
KINDS: tuple[Kind, ...] = get_args(Kind)
JUDGED = "judge_"  # how the names of judges' metrics begin


class Obstacle(NamedTuple):
    """One thing in which two runs of a task differ.

    Attributes:
        kind: What `--allow` calls it.
        text: A sentence that says where.
    """

    kind: Kind
    text: str


def obstacles(first: ComparedTask, second: ComparedTask, names: tuple[str, str], metric: str) -> list[Obstacle]:
    """Why two runs of a task are not comparable by a metric; [] if they are.

    The texts of prompts and gold answers are compared item by item; few-shot examples, images and judges by the
    records of the runs, where they have some.

    Args:
        first: Of one side.
        second: Of the other.
        names: Of the sides.
        metric: The metric to compare.

    Raises:
        CulturevalError: Details cannot be read.
    """
    found = [*_rows(first, second, names), *_prompting(first, second), *_scoring(first, second, metric)]
    if not found:
        hashes = [task.record.rows_hash if task.record else "" for task in (first, second)]
        if all(hashes) and hashes[0] != hashes[1]:
            reason = f"the rows have the fingerprints {hashes[0]} and {hashes[1]}, though their texts are the same"
            found = [Obstacle("items", f"{first.saved.task}: {reason} (other images, or another order of examples).")]
    return found


def _rows(first: ComparedTask, second: ComparedTask, names: tuple[str, str]) -> Iterator[Obstacle]:
    task = first.saved.task
    one, other = (_texts(side) for side in (first, second))
    alone = [key for key in one if key not in other], [key for key in other if key not in one]
    if any(alone):
        parts = [
            f"{len(keys)} only in {name} (such as {shorten(keys[0], 60)})"
            for keys, name in zip(alone, names, strict=True)
            if keys
        ]
        yield Obstacle("items", f"{task}: {len(one)} and {len(other)} items; {', '.join(parts)}.")
    shared = [key for key in one if key in other]
    if golds := [key for key in shared if one[key][1] != other[key][1]]:
        reason = f"gold answers or choices of {len(golds)} items differ, such as those of {shorten(golds[0], 60)}"
        yield Obstacle("items", f"{task}: {reason}.")
    if prompts := [key for key in shared if one[key][0] != other[key][0]]:
        reason = f"{len(prompts)} of {len(shared)} prompts differ, such as that of {shorten(prompts[0], 60)}"
        yield Obstacle("prompts", f"{task}: {reason}: {_where(one[prompts[0]][0], other[prompts[0]][0])}.")


def _texts(side: ComparedTask) -> dict[str, tuple[str, Any]]:
    """Prompt, and choices with gold, of each row."""
    keys, _ = row_names(side.saved.file)
    columns = details_columns(side.saved.file, ["doc.query", "doc.choices", "doc.gold_index"])
    query, choices, gold = (found or [None] * len(keys) for found in columns.values())
    return {
        key: (text or "", rest) for key, text, rest in zip(keys, query, zip(choices, gold, strict=True), strict=True)
    }


def _where(first: str, second: str) -> str:
    """The first place at which two texts differ."""
    place = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    start = max(0, place - 15)
    return f"{shorten(first[start : place + 25], 60)} / {shorten(second[start : place + 25], 60)}"


def _prompting(first: ComparedTask, second: ComparedTask) -> Iterator[Obstacle]:
    if not (first.record and second.record):
        return
    values = {name: [getattr(side.record, name) for side in (first, second)] for name in ("shots", "parity")}
    models = [side.run.record.model for side in (first, second) if side.run]
    values["system prompt"] = [model.system_prompt_hash for model in models]
    values["image placement"] = [model.settings.get("image_placement") for model in models]
    yield from _differing("prompts", first.saved.task, values)


def _scoring(first: ComparedTask, second: ComparedTask, metric: str) -> Iterator[Obstacle]:
    if not (first.signature and second.signature):
        return
    names = ["task", "scorer", "options", *(["judges"] if metric.startswith(JUDGED) else [])]
    values = {name: [side.signature.fields.get(name) for side in (first, second) if side.signature] for name in names}
    values["task"] = [str(value).rpartition("/")[2] for value in values["task"]]  # its version, after the shots
    yield from _differing("scorers", first.saved.task, values)


def _differing(kind: Kind, task: str, values: dict[str, Sequence[Any]]) -> Iterator[Obstacle]:
    for name, (one, other) in values.items():
        if one != other:
            yield Obstacle(kind, f"{task}: {name} differs: {shorten(one, 90)} / {shorten(other, 90)}.")
