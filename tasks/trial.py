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
    """The result of a trial of a task's first rows.

    Attributes:
        task: Its name.
        rows: Number of tried rows.
        wrong: A sentence for each problem.
        prompt: The first prompt; "" without a valid row.
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
        """Problems, and prompt, choices and right answer of the first row."""
        state = f"{len(self.wrong)} wrong" if self.wrong else "all are valid"
        lines = [f"{self.task}: {self.rows} rows tried, {state}.", *(f"  {problem}" for problem in self.wrong)]
        if self.prompt:
            lines += ["The first prompt:", "", self.prompt, ""]
            lines += [f"choices: {list(self.choices)}", f"gold: {list(self.gold)}"]
        return "\n".join(lines)


def try_file(file: Path, options: DataOptions) -> list[Trial]:
    """Tries all benchmarks of a file that the current settings name as a custom suite.

    Raises:
        CulturevalError: The file cannot be loaded, or a source or column is missing.
    """
    forget_files()  # its data may have changed since an earlier trial of this process
    found = find_suites((str(file),))
    suites = [suite for name, suite in found.suites.items() if found.places.get(name) == str(file)]
    return [try_task(task, options) for suite in suites for task in suite.tasks()]


def try_task(task: Task, options: DataOptions) -> Trial:
    """Tries the first rows of a task."""
    options = with_defaults(options)
    found = find_subset(task, options)
    tried, wrong, valid = 0, [], list[PreparedRow]()
    for placed, outcome in islice(tried_rows(task, found, found.files, options), ROWS):
        tried += 1
        if isinstance(outcome, BadRow):
            wrong.append(f"row {placed.number + 1} of {placed.file}: {outcome}")
        elif outcome:
            valid += outcome
    if not tried:
        wrong.append(f"{where(task, found)} has no rows.")
    if not valid:
        return Trial(task.task, tried, tuple(wrong))
    doc = task.kind.prompt(valid[0], task.task)
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
