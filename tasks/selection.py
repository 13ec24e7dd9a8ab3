"""Parses the argument TASKS (suites, groups, tasks, files of these, `|k` for few-shot); samples rows."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.tasks.catalogue import all_tasks, groups, name_and_shots, suites
from cultureval.tasks.registration import unknown_name_hint
from cultureval.tasks.suite import HARNESSES


def select_tasks(names: list[str]) -> tuple[list[str], set[str]]:
    """The tasks of the names, without duplicates, in the order of the names.

    Args:
        names: Suites, groups, tasks (case, spaces and punctuation do not matter), files with one of these per line, or
            several separated by commas; each may end in `|k` for k few-shot examples.

    Returns:
        (tasks, explicit): the tasks as LightEval spells them, with `|k`; and those that were named as a single task.

    Raises:
        CulturevalError: A name is unknown; the message gives the nearest names.
    """
    selected: dict[str, None] = {}
    explicit: set[str] = set()
    for name in _spread(names):
        bare, few_shot = name_and_shots(name)
        if few_shot and not few_shot.isdecimal():
            raise CulturevalError(f"{name!r}: write a number of few-shot examples after |, as in qimma_aratrust|2.")
        found = tasks_named(bare)
        spelled = [f"{task}|{int(few_shot or all_tasks()[task].shots)}" for task in found]
        selected.update(dict.fromkeys(spelled))
        if len(found) == 1:
            explicit.update(spelled)
    if not selected:
        raise CulturevalError("Name at least one task. `cultureval tasks` lists them.")
    return list(selected), explicit


def with_shots(names: list[str], number: int | None) -> list[str]:
    """The names with `|number` few-shot examples, but for those that have their own `|k`; None: as they are."""
    return names if number is None else [name if "|" in name else f"{name}|{number}" for name in _spread(names)]


def tasks_named(name: str) -> list[str]:
    """The tasks of a suite or a group, or the single task with this name; names of other harnesses are looked up."""
    if name.partition(":")[0] in HARNESSES:
        from cultureval.tasks.harnesses.foreign import add_tasks

        return add_tasks(name)
    if name in suites():
        return [task for members in groups(name).values() for task in members]
    spellings = {_plain(names): members for names, members in groups().items()}
    spellings |= {_plain(task): [task] for task in all_tasks()}
    if _plain(name) in spellings:
        return spellings[_plain(name)]
    names = dict.fromkeys([*suites(), *groups(), *all_tasks()])
    raise CulturevalError(
        f"There is no task, group or suite {name!r}.{did_you_mean(name, names)} `cultureval tasks` lists them."
        f"{unknown_name_hint()}"
    )


def _spread(names: list[str]) -> list[str]:
    """Files replaced by their lines (`#` begins a comment), commas by separate names."""
    spread: list[str] = []
    for name in names:
        if name.endswith(".py"):
            raise CulturevalError(f"{name} is a file of benchmarks: add --custom-suites {name}, and name its tasks.")
        if os.path.isfile(name):  # Path.is_file raises for texts longer than a file name
            lines = Path(name).read_text(encoding="utf-8").splitlines()
            spread += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        else:
            spread += [part.strip() for part in name.split(",") if part.strip()]
    return spread


def _plain(name: str) -> str:
    """A name without case, spaces and punctuation, except the colon that separates group and subset."""
    return "".join(character for character in name.lower() if character.isalnum() or character == ":")


def sampled_rows(ids: Sequence[str], name: str, sample: int | None, seed: int) -> list[int]:
    """Indices of the rows of a random sample, in order.

    The sample depends only on seed, name and ids, so it is the same for all models. A larger sample contains a smaller
    one.

    Args:
        sample: Number of rows; None: all.
    """
    if sample is None or sample >= len(ids):
        return list(range(len(ids)))
    order = sorted(range(len(ids)), key=lambda place: hashlib.sha256(f"{seed}|{name}|{ids[place]}".encode()).digest())
    return sorted(order[:sample])
