"""Solutions in EvalPlus's formats: a file of JSON lines, or a folder of programs; and EvalPlus's result file."""

import gzip
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cultureval.metrics.code.solution_code import Program, Text, programs
from cultureval.runtime.errors import CulturevalError, counted, shorten, shown_names

Sanitize = Literal["auto", "always", "never"]


@dataclass(frozen=True)
class Sample:
    """One solution of one problem.

    Attributes:
        task_id: The problem.
        number: Counts the problem's solutions, from 0.
        code: The program.
        place: File and line, for messages.
        rewritten: Whether the program is another than the text that EvalPlus, which reads no texts, would execute.
        cut: Whether a limit left parts of the text unread.
    """

    task_id: str
    number: int
    code: str
    place: str
    rewritten: bool = False
    cut: bool = False


def read_samples(
    path: Path, problems: Mapping[str, Mapping[str, Any]], sanitize: Sanitize, workers: int | None = None
) -> list[Sample]:
    """The solutions of a file or folder, in its order.

    Args:
        path: JSON lines (also .gz) with `task_id` and `solution` (a complete program) or `completion` (the text after
            the prompt); or a folder `<task>/<number>.py`, `/` in the task's id written as `_`.
        sanitize: When EvalPlus's sanitiser is applied: always, never, or ("auto") to texts that are not Python.
        workers: Processes that do so; None: one per core.

    Raises:
        CulturevalError: A line is not of this form, or names no problem.
    """
    if not path.exists():
        raise CulturevalError(f"The samples {str(path)!r} do not exist.")
    found = _folder(path) if path.is_dir() else _lines(path)
    counts: dict[str, int] = {}
    read: list[tuple[str, int, str]] = []
    given: list[str] = []
    texts: list[Text] = []
    for place, task_id, record in found:
        if task_id not in problems:
            raise CulturevalError(
                f"{place}: {shorten(task_id)} is not one of the {len(problems)} problems "
                f"(the first is {next(iter(problems))}). Do --dataset and --data match the samples?"
            )
        number = counts[task_id] = counts.get(task_id, -1) + 1
        read.append((task_id, number, place))
        given.append(_given(record, problems[task_id]["prompt"]))
        texts.append(Text(given[-1], problems[task_id]["entry_point"], as_it_is=sanitize == "auto"))
    if not read:
        raise CulturevalError(f"{path} has no solutions.")
    taken = [Program(text) for text in given] if sanitize == "never" else programs(texts, workers)
    return [
        Sample(task, number, program.code, place, rewritten=program.code != text, cut=program.cut)
        for (task, number, place), program, text in zip(read, taken, given, strict=True)
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
    fewest, most = (end(filter(None, counts.values()), default=0) for end in (min, max))
    unequal = f"Some problems have {counted(fewest, 'solution')}, others up to {most}; each problem counts as one."
    if partial:
        return missing, unequal * (fewest < most)
    if missing:
        raise CulturevalError(
            f"{len(missing)} of {len(problems)} problems have no solution: {shown_names(missing)}. Generate them "
            "(run `cultureval code generate` again to continue), or pass --partial to score the others."
        )
    usual = max(set(counts.values()), key=list(counts.values()).count)
    odd = [f"{task_id} ({count})" for task_id, count in counts.items() if count != usual]
    if odd:
        raise CulturevalError(
            f"Most problems have {counted(usual, 'solution')}, others not: {shown_names(odd)}. Duplicated "
            "lines, or an unfinished run? Pass --partial to score them anyway."
        )
    return missing, ""


def _lines(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    opened = gzip.open(path) if path.name.endswith(".gz") else path.open("rb")
    with opened as file:
        try:
            for number, line in enumerate(file, 1):
                if line.strip():
                    place = f"{path}, line {number}"
                    record = _record(line, place)
                    yield place, record["task_id"], record
        except (OSError, EOFError) as error:
            raise CulturevalError(f"{path} cannot be read: {error}.") from error


def _record(line: bytes, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CulturevalError(f"{place}: not JSON ({error}).") from error
    if not isinstance(record, dict) or not isinstance(record.get("task_id"), str):
        raise CulturevalError(f"{place}: not an object with a task_id.")
    given = record.get("solution", record.get("completion"))
    if not isinstance(given, str):
        raise CulturevalError(
            f"{place}: {record['task_id']} has neither a `solution` nor a `completion` of text. "
            "Write several solutions of a problem as several lines."
        )
    return record


def _folder(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for folder in sorted((entry for entry in path.iterdir() if entry.is_dir()), key=_natural):
        for file in sorted(folder.glob("*.py"), key=_natural):
            try:
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise CulturevalError(f"{file} cannot be read as UTF-8 text: {error}.") from error
            yield str(file), folder.name.replace("_", "/"), {"solution": text}


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part or 0), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", path.name)]


def _given(record: Mapping[str, Any], prompt: str) -> str:
    """The text of a record's program, as EvalPlus executes it: its solution, or the prompt and its completion."""
    return record["solution"] if "solution" in record else prompt + record["completion"]
