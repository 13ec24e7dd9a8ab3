"""Solutions in EvalPlus's format, a file of JSON lines."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.metrics.code.solution_code import Text, programs
from cultureval.runtime.errors import CulturevalError, counted, described, shorten, shown_names


@dataclass(frozen=True)
class Sample:
    """One solution of one problem.

    Attributes:
        task_id: The problem.
        number: Counts the problem's solutions, from 0.
        code: The program.
        rewritten: Whether the program is another than the text that EvalPlus, which reads no texts, would execute.
        cut: Whether a limit left parts of the text unread.
    """

    task_id: str
    number: int
    code: str
    rewritten: bool = False
    cut: bool = False


def read_samples(path: Path, problems: Mapping[str, Mapping[str, Any]], workers: int | None = None) -> list[Sample]:
    """The solutions of a file, in its order; EvalPlus's sanitiser is applied to those that are not Python.

    Args:
        path: JSON lines with `task_id` and `solution` (a complete program) or `completion` (the text after the prompt).
        workers: Processes that sanitise; None: one per core.

    Raises:
        CulturevalError: The file or a line is not of this form, or names no problem.
    """
    counts: dict[str, int] = {}
    read: list[tuple[str, int]] = []
    given: list[str] = []
    texts: list[Text] = []
    for place, record in _lines(path):
        task = record["task_id"]
        if task not in problems:
            raise CulturevalError(
                f"{place}: {shorten(task)} is not one of the {len(problems)} problems "
                f"(the first is {next(iter(problems))}). Do the format and --data match the samples?"
            )
        counts[task] = counts.get(task, -1) + 1
        read.append((task, counts[task]))
        prompt = problems[task]["prompt"]
        given.append(_given(record, prompt))
        whole = _given(record, prompt.removesuffix("\n") + "\n")  # a completion begins a line
        texts.append(Text(whole, problems[task]["entry_point"], as_it_is=True))
    if not read:
        raise CulturevalError(f"{path} has no solutions.")
    return [
        Sample(*name, program.code, rewritten=program.code != text, cut=program.cut)
        for name, program, text in zip(read, programs(texts, workers), given, strict=True)
    ]


def check_complete(samples: list[Sample], problems: Collection[str], partial: bool) -> tuple[list[str], str]:
    """The problems without a solution, and a sentence where the others have different numbers of solutions.

    Args:
        problems: The problems that need one.
        partial: Whether incomplete samples are scored.

    Raises:
        CulturevalError: `partial` is not set and a problem has no solution, or fewer than another.
    """
    counts = dict.fromkeys(problems, 0)
    for sample in samples:
        counts[sample.task_id] += 1
    missing = [task_id for task_id, count in counts.items() if not count]
    if missing and not partial:
        raise CulturevalError(
            f"{len(missing)} of {len(problems)} problems have no solution: {shown_names(missing)}. Generate them, "
            "or pass --partial to score the others."
        )
    found = [count for count in counts.values() if count]
    if len(set(found)) < 2:
        return missing, ""
    unequal = f"Some problems have {counted(min(found), 'solution')}, others up to {max(found)}"
    if not partial:
        raise CulturevalError(f"{unequal}. Repeated lines, or an unfinished run? --partial scores them anyway.")
    return missing, f"{unequal}; each problem counts as one."


def _lines(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The place of each record, for messages, and the record."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise CulturevalError(f"{path} cannot be read as a file of solutions: {described(error)}.") from error
    for number, line in enumerate(lines, 1):
        place = f"{path}, line {number}"
        try:
            record = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as error:
            raise CulturevalError(f"{place}: not JSON ({error}).") from error
        if record is None:
            continue
        if not isinstance(record, dict) or not isinstance(record.get("task_id"), str):
            raise CulturevalError(f"{place}: not an object with a task_id.")
        if not isinstance(record.get("solution", record.get("completion")), str):
            raise CulturevalError(
                f"{place}: {record['task_id']} has neither a `solution` nor a `completion` of text. "
                "Write several solutions of a problem as several lines."
            )
        yield place, record


def _given(record: Mapping[str, str], prompt: str) -> str:
    """The text of a record's program, as EvalPlus executes it: its solution, or the prompt and its completion."""
    return record["solution"] if "solution" in record else prompt + record["completion"]
