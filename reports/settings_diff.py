"""What differs between the records of two runs: `cultureval show FIRST --against SECOND`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run, load
from cultureval.runtime.errors import escaped, shorten, shown_names

SETTINGS = ("options", "seeds", "model", "machine", "versions")  # sections of a record
OF_TASKS = ("form", "limit", "source", "revision", "rows_hash", "prompt_hash", "parity", "rows", "shots", "metrics")
NOT_SETTINGS = ("model.routes", "model.route_checks", "model.parameters")  # they follow from the model and its prompts
NOT_TOLD = "not told"
Difference = tuple[str, Any, Any]  # a setting's name, and its two values


def compare_runs(first: Path, second: Path) -> tuple[str, bool]:
    """Which settings of the newest runs of two paths differ, as text, and whether none does."""
    runs = [load(path).runs[0] for path in (first, second)]
    notes = [
        f"{run.file}: LightEval wrote it without our record: most settings are {NOT_TOLD}."
        for run in runs
        if not run.record.schema_
    ]
    found = [(escaped(what), _shown(one), _shown(other)) for what, one, other in differences(*runs)]
    text = terminal_table(("setting", "first", "second"), found) if found else "Nothing differs."
    return escaped("\n".join([*notes, text]), keep="\n"), not found


def differences(first: Run, second: Run) -> list[Difference]:
    """Every setting that differs between two runs: of the model, the machine, versions, tasks, and what scored them."""
    found = [] if first.model == second.model else [("model name", first.model, second.model)]
    one, other = (run.record.model_dump(mode="json", by_alias=True, include=set(SETTINGS)) for run in (first, second))
    found += [each for each in _unlike("", one, other) if not each[0].startswith(NOT_SETTINGS)]
    tasks, scorers = zip(*map(_members, (first, second)), strict=True)
    return found + _together("tasks", *tasks) + _together("signatures", *scorers)


def _members(run: Run) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Task with `|k` -> its settings; group of tasks with `|k` -> what scored it."""
    scored = ("scorer", "judges", "manifest")
    tasks = {name: task.model_dump(include=set(OF_TASKS)) for name, task in run.record.tasks.items()}
    return tasks, {one.group: {name: one.fields.get(name) for name in scored} for one in run.record.signatures}


def _unlike(name: str, first: Any, second: Any) -> Iterator[Difference]:
    """Differences of nested mappings, by dotted names."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for key in dict.fromkeys([*first, *second]):
            yield from _unlike(f"{name}.{key}".lstrip("."), first.get(key), second.get(key))
    elif first != second:
        yield name, first, second


def _together(
    name: str, first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]
) -> list[Difference]:
    """Differences of tasks or groups; those of several that are alike are one."""
    alike: dict[tuple[str, str, str], tuple[Difference, list[str]]] = {}
    for member in dict.fromkeys([*first, *second]):
        here, there = first.get(member), second.get(member)
        whole: Difference = (name, here and "there", there and "there")
        for one in _unlike(name, here, there) if here and there else [whole]:
            alike.setdefault((one[0], repr(one[1]), repr(one[2])), (one, []))[1].append(member)
    return [(f"{what} ({shown_names(members, 3)})", a, b) for (what, a, b), members in alike.values()]


def _shown(value: Any) -> str:
    if value in (None, "", ()):
        return NOT_TOLD
    return escaped(value) if isinstance(value, str) and len(value) < 60 else shorten(value, 60)
