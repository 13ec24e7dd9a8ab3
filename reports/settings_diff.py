"""What differs between the records of two runs, or between a run's record and this machine."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.load_runs import load
from cultureval.runs.record import Run, RunRecord, TaskRecord
from cultureval.runs.recording import versions
from cultureval.runs.signature import scorer_of
from cultureval.runtime.devices import hardware
from cultureval.runtime.doc_fields import PAPER
from cultureval.runtime.errors import CulturevalError, escaped, shorten, shown_names
from cultureval.tasks.catalogue import all_suites, all_tasks
from cultureval.tasks.options import all_options, read_data_options

# Outcomes of a run, and what it took: two runs of the same settings may differ in them.
OUTCOMES = {
    "reused",
    "reused_since",
    "verdicts_reused",
    "verdicts_reused_since",
    "scored",
    "counted",
    "truncated",
    "cut_prompts",
    "short_limits",
    "unparsable",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "tokens_reasoning",
    "cost",
    "routes",
    "items",
    "content_hash",  # where it differs `rows_hash` does
}
MOST_NAMES = 3
DATA_HASH = "data_hash"  # field of signatures of `cultureval code evaluate`, whose suites hash the data themselves
ABSENT = "not on this machine"
NO_RECORD = "it was written by LightEval without our tasks or by an older cultureval, so most settings are unknown"


@dataclass(frozen=True)
class Difference:
    """One setting that differs.

    Attributes:
        what: Its name, as in docs/results.md: `model.dtype`, `tasks.rows_hash (group:subset|0)`.
        first: Its value in the first run; None where it has none.
        second: In the second run, or on this machine.
    """

    what: str
    first: Any
    second: Any


def differences(first: Run, second: Run) -> list[Difference]:
    """Every setting that differs between two runs: of the model, the tasks, the signatures, the machine, the versions.

    What differs in the same way in several tasks or groups is one difference.
    """
    found = [] if first.model == second.model else [Difference("model name", first.model, second.model)]
    one, other = (record.model_dump(mode="json", by_alias=True) for record in (first.record, second.record))
    found += _of_sections(one, other, ("schema", "versions", "options", "seeds", "model", "machine"))
    found += _of_members("tasks", one["tasks"], other["tasks"])
    signed = [{each.group: each.fields for each in record.signatures} for record in (first.record, second.record)]
    return found + _of_members("signatures", *signed)


def setting_names_that_differ(first: Run, second: Run) -> list[str]:
    """The names of what differs of options, seeds and the model's settings, but for which model it is."""
    sections = ("options", "seeds", "model")
    dumped = [record.model_dump(mode="json", include=set(sections)) for record in (first.record, second.record)]
    names = [one.what for one in _of_sections(dumped[0], dumped[1], sections)]
    return [name for name in names if name not in ("model.version", "model.parameters")]


def _of_sections(one: Mapping[str, Any], other: Mapping[str, Any], sections: Sequence[str]) -> list[Difference]:
    """Differences of some sections of two records."""
    found = [each for section in sections for each in _of_values(section, one[section], other[section])]
    # A run that reuses all its answers has no route; what a route's choice rests on depends on the first prompts.
    return [
        each
        for each in found
        if not each.what.startswith("model.route_checks")
        and (not each.what.startswith("model.routes.") or None not in (each.first, each.second))
    ]


def differences_from_here(run: Run) -> list[Difference]:
    """What differs between a run's record and this machine: versions, hardware, device, dtype, data, what scores."""
    import torch  # noqa: F401  # the GPUs are looked for where it is loaded

    record = run.record
    found = _of_values("versions", record.versions, versions(record.versions))
    found += _of_values("machine", record.machine.model_dump(mode="json"), hardware())
    return [*found, *_devices(record), *_instruments(record), *_data(run), *_parity(record)]


def differences_table(found: list[Difference], columns: tuple[str, str]) -> str:
    """The differences between two sides of these names as text: a row each."""
    rows = [[escaped(one.what), _shown(one.first), _shown(one.second)] for one in found]
    return terminal_table(("setting", *columns), rows, "lll")


def compare_with_here(path: Path) -> tuple[str, bool]:
    """What of the newest run of a path differs from this machine, as text, and whether nothing does."""
    run = load(path)[0]
    return _report(f"{_place(run)} and this machine", differences_from_here(run), ("in the file", "here"), [run])


def compare_runs(first: Path, second: Path) -> tuple[str, bool]:
    """Which settings of the newest runs of two paths differ, as text, and whether none does."""
    runs = [load(path)[0] for path in (first, second)]
    return _report(f"{_place(runs[0])} and {_place(runs[1])}", differences(*runs), ("first", "second"), runs)


def _report(sides: str, found: list[Difference], columns: tuple[str, str], runs: list[Run]) -> tuple[str, bool]:
    notes = [f"{_place(run)}: {NO_RECORD}." for run in runs if not run.record.schema_]
    text = differences_table(found, columns) if found else f"Nothing differs between {sides}."
    return escaped("\n".join([*notes, text]), keep="\n"), not found


def _place(run: Run) -> str:
    return escaped(str(run.file))


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return escaped(value) if isinstance(value, str) and len(value) < 60 else shorten(value, 60)


def _of_values(name: str, first: Any, second: Any) -> list[Difference]:
    """Differences of nested mappings, by dotted names."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        keys = dict.fromkeys([*first, *second])
        return [one for key in keys for one in _of_values(f"{name}.{key}", first.get(key), second.get(key))]
    return [] if first == second else [Difference(name, first, second)]


def _of_members(
    name: str, first: Mapping[str, Mapping[str, Any]], second: Mapping[str, Mapping[str, Any]]
) -> list[Difference]:
    """Differences of tasks or signatures, those of several members that are alike together."""
    alike: dict[tuple[str, str, str], tuple[Difference, list[str]]] = {}
    for member in dict.fromkeys([*first, *second]):
        if member in first and member in second:
            found = [
                one
                for field in dict.fromkeys([*first[member], *second[member]])
                if field not in OUTCOMES
                for one in _of_values(f"{name}.{field}", first[member].get(field), second[member].get(field))
            ]
        else:
            found = [Difference(name, *("there" if member in side else None for side in (first, second)))]
        for one in found:
            alike.setdefault((one.what, repr(one.first), repr(one.second)), (one, []))[1].append(member)
    return [replace(one, what=f"{one.what} ({shown_names(members, MOST_NAMES)})") for one, members in alike.values()]


def _devices(record: RunRecord) -> Iterator[Difference]:
    """The devices and the dtype of a run that this machine does not have."""
    import torch

    from cultureval.runtime.devices import choose_device

    for device in record.model.devices:
        try:
            choose_device(device)
        except CulturevalError:
            yield Difference("model.devices", device, ABSENT)
    on_gpu = any(device.startswith("cuda") for device in record.model.devices)
    if record.model.dtype == "bfloat16" and on_gpu and torch.cuda.is_available() and not torch.cuda.is_bf16_supported():
        yield Difference("model.dtype", record.model.dtype, ABSENT)


def _instruments(record: RunRecord) -> Iterator[Difference]:
    """What scored a group, where it is another here, or cannot be used."""
    then = {signature.group: signature.fields.get("scorer") for signature in record.signatures}
    known = {task.group for task in all_tasks().values()}
    for group, scorer in then.items():
        name = group.partition("|")[0]
        if scorer is None or name not in known:
            continue
        try:
            here: str | None = scorer_of(name)
        except (CulturevalError, OSError) as error:
            here = f"cannot be used: {error}"
        if here != scorer:
            yield Difference(f"instruments.{group}", scorer, here)


def _data(run: Run) -> Iterator[Difference]:
    """The tasks whose rows are others in the data root, or are not there; data on the hub are not read."""
    from cultureval.tasks.reading import prepare_subset

    options, record = read_data_options(), run.record
    there = record.options.get("data_root")
    root = options.root or (Path(there) if there and Path(there).is_dir() else None)
    if root is None:
        return
    names = {option.name for option in all_options()}
    secrets = {option.name: options.suite[option.name] for option in all_options() if option.secret}  # not recorded
    suite = {name: value for name, value in record.options.items() if name in names} | secrets
    then = replace(options, root=root, bad_rows=record.options.get("bad_rows", "skip"), suite=suite)
    for task in _known(record):
        bare, signature = task.task.partition("|")[0], run.signature_of(task.task)
        try:
            hashed = all_suites()[task.suite].part("data_hash")
            if hashed and signature and DATA_HASH in signature.fields:
                here = hashed(bare, str(root))[: len(task.rows_hash)]
            else:
                form = task.form if task.form in ("curated", "original") else "auto"
                found = prepare_subset(all_tasks()[bare], replace(then, form=form))
                report = found.report_with(task.shots)
                here = task.rows_hash if report["content"] == task.content_hash else report["fingerprint"]
        except CulturevalError as error:
            here = f"cannot be read: {error}"
        if here != task.rows_hash:
            yield Difference(f"tasks.rows_hash ({task.task})", task.rows_hash, here)


def _parity(record: RunRecord) -> Iterator[Difference]:
    """The tasks of a run from before `--parity`, all sound, which the same command would now ask otherwise."""
    from cultureval.tasks.reading import parity_of

    options = read_data_options()
    here = {task.task: parity_of(all_tasks()[task.task.partition("|")[0]], options) for task in _known(record)}
    changed = [name for name, parity in here.items() if parity == PAPER and not record.tasks[name].parity]
    if changed:
        yield Difference(f"tasks.parity ({shown_names(changed, MOST_NAMES)})", None, PAPER)


def _known(record: RunRecord) -> list[TaskRecord]:
    return [task for name, task in record.tasks.items() if name.partition("|")[0] in all_tasks() and task.rows_hash]
