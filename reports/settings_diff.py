"""What differs between the records of two runs, or between a run's record and this machine."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run, load
from cultureval.runs.recording import versions
from cultureval.runs.signature import scorer_of
from cultureval.runtime.devices import hardware
from cultureval.runtime.errors import CulturevalError, escaped, shorten, shown_names
from cultureval.tasks.catalogue import known_task, name_and_shots
from cultureval.tasks.options import all_options, read_data_options

SETTINGS = ("options", "seeds", "model", "machine", "versions")  # sections of a record
OF_TASKS = ("form", "limit", "source", "revision", "content_hash", "prompt_hash", "parity", "rows", "shots", "metrics")
NOT_SETTINGS = ("model.routes", "model.route_checks", "model.parameters")  # they follow from the model and its prompts
NOT_TOLD = "not told"
Difference = tuple[str, Any, Any]  # a setting's name, and its two values


def compare_runs(first: Path, second: Path) -> tuple[str, bool]:
    """Which settings of the newest runs of two paths differ, as text, and whether none does."""
    runs = [load(path).runs[0] for path in (first, second)]
    return _report(differences(*runs), ("first", "second"), runs)


def compare_with_here(path: Path) -> tuple[str, bool]:
    """What of the newest run of a path differs from this machine, as text, and whether nothing does."""
    run = load(path).runs[0]
    return _report(differences_from_here(run), ("in the file", "here"), [run])


def differences(first: Run, second: Run) -> list[Difference]:
    """Every setting that differs between two runs: of the model, the machine, versions, tasks, and what scored them."""
    found = [] if first.model == second.model else [("model name", first.model, second.model)]
    one, other = (run.record.model_dump(mode="json", by_alias=True, include=set(SETTINGS)) for run in (first, second))
    found += [each for each in _unlike("", one, other) if not each[0].startswith(NOT_SETTINGS)]
    tasks = [
        {name: task.model_dump(include=set(OF_TASKS)) for name, task in run.record.tasks.items()}
        for run in (first, second)
    ]
    scorers = [_scorers(run) for run in (first, second)]
    return found + _together("tasks", *tasks) + _together("signatures", *scorers)


def differences_from_here(run: Run) -> list[Difference]:
    """What differs between a run's record and this machine: versions, hardware, data, what scores."""
    import torch  # noqa: F401  # the GPUs are looked for where it is loaded

    record = run.record
    found = list(_unlike("versions", record.versions, versions(record.versions)))
    found += _unlike("machine", record.machine.model_dump(mode="json"), hardware())
    then = {group: fields for group, fields in _scorers(run).items() if fields["scorer"]}
    found += _together("signatures", then, {group: {"scorer": _scorer_here(group)} for group in then})
    known = {name: {"content_hash": task.content_hash} for name, task in record.tasks.items() if task.content_hash}
    return found + _together("tasks", known, {name: {"content_hash": _rows_here(run, name)} for name in known})


def _scorers(run: Run) -> dict[str, dict[str, Any]]:
    """Group of tasks with `|k` -> what scored it."""
    return {
        one.group: {name: one.fields.get(name) for name in ("scorer", "judges", "manifest")}
        for one in run.record.signatures
    }


def _scorer_here(group: str) -> str | None:
    try:
        return scorer_of(name_and_shots(group)[0])
    except (CulturevalError, OSError, LookupError) as error:
        return f"cannot be used: {error}"


def _rows_here(run: Run, name: str) -> str | None:
    """The hash of a task's rows in the data root of this machine, else in that of the run; None without any."""
    from cultureval.tasks.reading import prepare_subset

    options, task, record = read_data_options(), known_task(name), run.record
    there = record.options.get("data_root")
    root = options.root or (Path(there) if there and Path(there).is_dir() else None)
    if root is None or task is None:
        return record.tasks[name].content_hash  # data on the hub are not read
    of_suites = {
        option.name: options.suite[option.name] if option.secret else record.options.get(option.name)
        for option in all_options()
    }
    suite = {option: value for option, value in of_suites.items() if value is not None}
    try:
        found = prepare_subset(task, replace(options, root=root, suite=suite, form=record.tasks[name].form or "mixed"))
        return found.report_with(record.tasks[name].shots)["content"]
    except CulturevalError as error:
        return f"cannot be read: {error}"


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


def _report(found: list[Difference], columns: tuple[str, str], runs: Iterable[Run]) -> tuple[str, bool]:
    notes = [
        f"{run.file}: LightEval wrote it without our record: most settings are {NOT_TOLD}."
        for run in runs
        if not run.record.schema_
    ]
    rows = [(escaped(what), _shown(first), _shown(second)) for what, first, second in found]
    text = terminal_table(("setting", *columns), rows) if found else "Nothing differs."
    return escaped("\n".join([*notes, text]), keep="\n"), not found


def _shown(value: Any) -> str:
    if value in (None, "", ()):
        return NOT_TOLD
    return escaped(value) if isinstance(value, str) and len(value) < 60 else shorten(value, 60)
