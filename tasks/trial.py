"""A trial of a benchmark in one file: ten rows, the first prompt, and the scores of the right answer."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import BadRow, CulturevalError
from cultureval.tasks.options import with_defaults
from cultureval.tasks.reading import find_subset, forget_files, tried_rows, where
from cultureval.tasks.registration import find_suites
from cultureval.tasks.suite import Task

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc

ROWS = 10


@dataclass(frozen=True)
class Trial:
    """What became of the first rows of a task.

    Attributes:
        task: Its name.
        rows: How many rows were tried.
        wrong: What is wrong, a sentence each.
        prompt: The first prompt; "" without a sound row.
        choices: The scored continuations, or the right answers.
        gold: The right ones among them.
    """

    task: str
    rows: int
    wrong: tuple[str, ...]
    prompt: str = ""
    choices: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Prompt, choices and right answer of the first row, and what is wrong."""
        state = f"{len(self.wrong)} wrong" if self.wrong else "all are sound"
        lines = [f"{self.task}: {self.rows} rows tried, {state}.", *(f"  {one}" for one in self.wrong)]
        if self.prompt:
            lines += [
                "The first prompt:",
                "",
                self.prompt,
                "",
                f"choices: {list(self.choices)}",
                f"gold: {list(self.gold)}",
            ]
        return "\n".join(lines)


def try_file(file: Path, options: DataOptions) -> list[Trial]:
    """Tries every benchmark of a file, whose suite is named by the current settings.

    Raises:
        CulturevalError: The file cannot be loaded, or a source or column is missing.
    """
    forget_files()  # its data may have changed since an earlier trial of this process
    found = find_suites((str(file),))
    named = [suite for name, suite in found.suites.items() if found.places.get(name) == str(file)]
    return [try_task(task, options) for suite in named for task in suite.tasks()]


def try_task(task: Task, options: DataOptions) -> Trial:
    """Tries the first rows of a task."""
    options = with_defaults(options)
    found = find_subset(task, options)
    tried, wrong, sound = 0, [], list[PreparedRow]()
    for placed, outcome in islice(tried_rows(task, found, found.files, options), ROWS):
        tried += 1
        if isinstance(outcome, BadRow):
            wrong.append(f"row {placed.number + 1} of {placed.file}: {outcome}")
        elif outcome:
            sound += outcome
    if not tried:
        wrong.append(f"{where(task, found)} has no rows.")
    if not sound:
        return Trial(task.task, tried, tuple(wrong))
    doc = task.kind.prompt(sound[0], task.task)
    if error := _scoring_error(task, doc):
        wrong.append(error)
    return Trial(task.task, tried, tuple(wrong), doc.query, tuple(doc.choices), tuple(doc.get_golds()))


def _scoring_error(task: Task, doc: "Doc") -> str:
    """Why the metrics of generated answers cannot score the first right answer; "" if they can."""
    if task.kind.generation_size < 0:
        return ""
    from lighteval.metrics import apply_metric
    from lighteval.models.model_output import ModelResponse

    answer: Any = doc.get_golds()[0] if doc.choices else "answer"
    try:
        apply_metric([ModelResponse(text=[answer], input=doc.query)], [doc], list(task.kind.metrics()))
    except CulturevalError as error:
        return str(error)
    return ""
