"""Cells of M2CQA in saved runs: a model with one prompt in one variety."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cultureval.metrics.m2cqa.names import F1, Profile
from cultureval.metrics.paired_tests import Floats
from cultureval.reports.comparison.sides import Side
from cultureval.runs.items import details_columns, item_scores
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.m2cqa.benchmarks import PROMPTS, VARIETIES

FIELDS = ("country", "category")
GROUP = "m2cqa:"
Prompted = Mapping[tuple[str, str], Side]  # model and prompt -> their tasks by variety


@dataclass(frozen=True)
class CountedCell:
    """What the metrics count of one model's verdicts on one task.

    Attributes:
        model: Name of the model in the tables.
        prompt: Key of `PROMPTS`.
        variety: Key of `VARIETIES`.
        counts: [N, 8] of the items, as of `item_counts`.
        fields: "country" and "category", where the data have them -> [N] the items' values, "" where unknown.
    """

    model: str
    prompt: str
    variety: str
    counts: Floats
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)


def under_profile(metric: str, profile: Profile) -> str:
    """The name of a metric as a profile of verdicts gives it."""
    return metric if profile == "strict" else f"{metric}_{profile}"


def by_prompt(sides: Sequence[Side]) -> dict[tuple[str, str], Side]:
    """The tasks of M2CQA of models, a side for each prompt, in the order of models, prompts and varieties.

    What a model was asked with examples stands as a model of its own, which says so.

    Args:
        sides: Models with tasks of any suite.

    Raises:
        CulturevalError: There is a task that M2CQA does not have.
    """
    found: dict[tuple[str, str], Side] = {}
    for side in sides:
        for name, task in side.tasks.items():
            if name.startswith(GROUP):
                prompt, variety = prompt_and_variety(name)
                if prompt not in PROMPTS or variety not in VARIETIES:
                    raise CulturevalError(f"{task.saved.file}: {name!r} is not a task of M2CQA.")
                shots = name.partition("|")[2]
                model = side.name if shots in ("", "0") else f"{side.name}, {shots}-shot"
                found.setdefault((model, prompt), Side(f"{model} {prompt}", {}, side.path)).tasks[variety] = task
    order, varieties = [*PROMPTS], [*VARIETIES]
    return {
        key: replace(found[key], tasks=dict(sorted(found[key].tasks.items(), key=lambda one: varieties.index(one[0]))))
        for key in sorted(found, key=lambda key: (key[0], order.index(key[1])))
    }


def prompt_and_variety(task: str) -> tuple[str, str]:
    """Of a task's name: `m2cqa:answer_reason_en|0` is of `answer_reason` and `en`."""
    prompt, _, variety = task.removeprefix(GROUP).partition("|")[0].rpartition("_")
    return prompt, variety


def read_cells(prompted: Prompted, profile: Profile) -> list[CountedCell]:
    """The cells of models, in order, under a profile of verdicts.

    Raises:
        CulturevalError: The details are not of our M2CQA tasks.
    """
    return [
        _read_cell(task.saved.file, task.saved.task, model, profile)
        for (model, _), side in prompted.items()
        for task in side.tasks.values()
    ]


def _read_cell(file: Path, task: str, model: str, profile: Profile) -> CountedCell:
    try:
        items = item_scores(file, task, under_profile(F1, profile))  # the one that is made of all counts
    except CulturevalError as error:
        raise CulturevalError(f"{file}: {error}") from error
    if items is None:
        raise CulturevalError(f"{file} has no verdicts of M2CQA. Run the task again.")
    columns = details_columns(file, [f"doc.specific.{name}" for name in FIELDS])
    values = {
        name: [column[rows[0]] or "" for rows in items.rows]
        for name, column in zip(FIELDS, columns.values(), strict=True)
        if column and any(column)
    }
    return CountedCell(model, *prompt_and_variety(task), items.parts, values)
