"""What differs between the records of two runs: `cultureval show FIRST --against SECOND`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run, load
from cultureval.runtime.errors import escaped, shorten, shown_names

SETTINGS = ("options", "seeds", "model", "machine", "versions")  # sections of a record
OF_TASKS = ("form", "limit", "source", "revision", "rows_hash", "prompt_hash", "parity", "rows", "shots", "metrics")
NOT_SETTINGS = ("model.routes", "model.route_checks", "model.parameters")  # results of the model, not settings
UNKNOWN = "unknown"
Difference = tuple[str, Any, Any]  # a setting's name, and its two values


def compare_runs(first: Path, second: Path) -> tuple[str, bool]:
    """The settings that differ between the newest runs of two paths, as text, and whether there is none."""
    runs = [load(path).runs[0] for path in (first, second)]
    notes = [
        f"{run.file}: LightEval wrote it without our record: most settings are {UNKNOWN}."
        for run in runs
        if not run.record.schema_
    ]
    found = [(escaped(name), _shown(first), _shown(second)) for name, first, second in differences(*runs)]
    text = terminal_table(("setting", "first", "second"), found) if found else "Nothing differs."
    return escaped("\n".join([*notes, text]), keep="\n"), not found


def differences(first: Run, second: Run) -> list[Difference]:
    """Every setting that differs between two runs: of the model, the machine, versions, tasks, and what scored them."""
    found = [] if first.model == second.model else [("model name", first.model, second.model)]
    records = (run.record.model_dump(mode="json", by_alias=True, include=set(SETTINGS)) for run in (first, second))
    found += [(name, *values) for name, *values in _unlike("", *records) if not name.startswith(NOT_SETTINGS)]
    tasks, scorers = zip(*map(_members, (first, second)), strict=True)
    return found + _together("tasks", *tasks) + _together("signatures", *scorers)


def _members(run: Run) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Task with `|k` -> its settings; group of tasks with `|k` -> what scored it."""
    scored = ("scorer", "judges", "manifest")
    tasks = {name: task.model_dump(include=set(OF_TASKS)) for name, task in run.record.tasks.items()}
    return tasks, {line.group: {name: line.fields.get(name) for name in scored} for line in run.record.signatures}


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
    """Differences of tasks or groups; equal differences of several are one, with all their names."""
    members_of: dict[tuple[str, ...], tuple[Difference, list[str]]] = {}
    for member in dict.fromkeys([*first, *second]):
        here, there = first.get(member), second.get(member)
        whole: Difference = (name, here and "there", there and "there")
        for difference in _unlike(name, here, there) if here and there else [whole]:
            setting, *values = difference
            members_of.setdefault((setting, *map(repr, values)), (difference, []))[1].append(member)
    return [(f"{setting} ({shown_names(members, 3)})", a, b) for (setting, a, b), members in members_of.values()]


def _shown(value: Any) -> str:
    if value in (None, "", ()):
        return "not set or unknown"
    return escaped(value) if isinstance(value, str) and len(value) < 60 else shorten(value, 60)
