"""Check what is installed on this machine, and what is impossible without the rest."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.hub import cached_file, go_offline_if_unreachable, is_offline
from cultureval.runtime.data.scorers import local_copy
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.runtime.extras import PARTS, install_command, missing_packages, requirements_of
from cultureval.runtime.printing import folded, terminal_width
from cultureval.runtime.settings import variable_of
from cultureval.runtime.smollm2 import SHORT, gguf_file
from cultureval.tasks.catalogue import all_suites, all_tasks, kind_of
from cultureval.tasks.kinds import Instrument
from cultureval.tasks.options import read_data_options
from cultureval.tasks.registration import mirror_arguments, registered
from cultureval.tasks.suite import Suite, Task

WIDTH = 80  # cells, where standard output is no terminal
MOST_NAMED = 3  # groups of which tasks cannot run
STATES = ("wrong", "missing", "optional", "untried", "ok")
MIRROR = "`mirror` needs internet, here or elsewhere; runs then take --data DIR."
REST = "Why, all versions and patches: cultureval doctor --all"


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        state: "ok", or what is the matter; "optional" is what a user chooses to do without.
        what: What was checked, and what was found.
        cost: What does not work unless the state is "ok".
        needed: What was checked in a few words, where a suite's tasks cannot be scored without it.
        get: How it is got, where `cultureval mirror` does not fetch it.
        tasks: Those that cannot run or be scored without it; empty: all of the suite.
    """

    state: Literal["ok", "missing", "optional", "untried", "wrong"]
    what: str
    cost: str = ""
    needed: str = ""
    get: str = ""
    tasks: tuple[str, ...] = ()


def machine_report(everything: bool = False) -> tuple[str, bool]:
    """A line a suite, then what does not work, in the terminal's width.

    Args:
        everything: Whether what was found in order (versions, patches) is listed, too.

    Returns:
        (report, fits): the text for people, and whether no check found something wrong.
    """
    before = [finding for check in CHECKS for finding in check()]  # whether the hub answers, for the suites' data
    of_suites = {name: suite_findings(suite) for name, suite in all_suites().items()}
    data = {name: _data_of(name) for name in of_suites}
    suites = [_suite_row(name, [data[name], *findings]) for name, findings in of_suites.items()]
    findings = list(dict.fromkeys([*(one for found in of_suites.values() for one in found), *before]))
    findings.sort(key=lambda one: STATES.index(one.state))
    told = [one for one in findings if everything or not (one.state == "ok" or one.needed)]  # needed: told of suites
    rows = [(one.state, one.what if one.state == "ok" else f"{one.what} -> {one.cost}") for one in told]
    parts = [
        _table(suites),
        *([_lines(MIRROR)] if any("cultureval mirror" in what for _, _, what in suites) else []),
        *_samples_line([name for name, one in data.items() if (one.state, one.needed) == ("missing", "data")]),
        *([_table(rows)] if rows else []),
        *([] if everything else [_lines(REST)]),
    ]
    return "\n\n".join(parts), all(finding.state != "wrong" for finding in findings)


def _table(rows: Sequence[Sequence[str]]) -> str:
    return terminal_table((), rows, width=terminal_width() or WIDTH)


def _lines(text: str) -> str:
    return folded(text, terminal_width() or WIDTH)


def _samples_line(without_data: Sequence[str]) -> list[str]:
    """How the first suite that has samples is tried at once; [] where none has."""
    for name in without_data:
        tasks = [task for task in all_tasks().values() if task.suite == name]
        if len(tasks_without_data(tasks, DataOptions(root=samples_root()))) < len(tasks):
            command = f"cultureval eval {SHORT if gguf_file() else 'MODEL'} {name} --data samples --skip-unscorable"
            return [_lines(f"To try it now, on a few rows that we made up (other suites have some, too):\n  {command}")]
    return []


def _suite_row(name: str, findings: Sequence[Finding]) -> tuple[str, str, str]:
    """("ready", "partly" or "missing", the suite, where its data are or what is missing and below it the commands).

    Args:
        findings: Of its data, then of all else that it needs.
    """
    lacking = [one for one in findings if one.needed and one.state != "ok"]
    if not lacking:
        return "ready", name, findings[0].what
    mirror = f"cultureval mirror {mirror_arguments(name)} --output-dir DIR"
    fetched = ", ".join(one.needed for one in lacking if not one.get)
    told = [f"{fetched}\n  {mirror}"] if fetched else []
    told += [f"{one.needed}\n  {one.get}" for one in lacking if one.get]
    tasks = [task for task in all_tasks().values() if task.suite == name]
    without = [task for task in tasks if any(not one.tasks or task.task in one.tasks for one in lacking)]
    if len(without) == len(tasks):
        return "missing", name, "\n".join(told)
    groups = Counter(task.group for task in without)
    named = [group if count == 1 else f"{count} of {group}" for group, count in groups.items()]
    what = f"{len(tasks) - len(without)} of {len(tasks)} tasks can run, not {shown_names(named, MOST_NAMED)}"
    return "partly", name, "\n".join([what, *told])


def _data_of(suite: str) -> Finding:
    """Where the data of a suite are, or of which of its tasks they are missing."""
    try:
        options = read_data_options()
    except CulturevalError as error:
        return Finding("wrong", "", needed="data", get=str(error).rstrip("."))
    tasks = [task for task in all_tasks().values() if task.suite == suite]
    if options.root is None and not is_offline():
        without = tuple(task.task for task in tasks if not any(source.on_hub for source in task.sources))
        terms = ", whose terms you accept there" if any(task.sources[0].gated for task in tasks) else ""
        place = f"data come from the hub{terms}"
    else:
        without = tasks_without_data(tasks, options)
        place = f"data in {options.root or 'the cache of the hub'}"
    needed = "data" if len(without) == len(tasks) else f"data of {len(without)} of {len(tasks)} tasks"
    get = ""
    if suite in registered().installed | registered().custom:  # its author knows where they are
        folders = sorted({task.sources[0].repo for task in tasks})
        get = f"--data DIR, with {shown_names(folders, MOST_NAMED)} inside"
    return Finding("missing" if without else "ok", place, needed=needed, get=get, tasks=without)


def check_versions() -> list[Finding]:
    """Installed versions against the ranges that were tested (those of our own metadata)."""
    findings = []
    core = requirements_of()
    for requirement in (*core, *(one for extra in PARTS for one in requirements_of(extra))):
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            if requirement in core:
                findings.append(Finding("wrong", f"{requirement.name} is not installed", "install cultureval with pip"))
            continue
        if requirement.specifier.contains(found, prereleases=True):
            findings.append(Finding("ok", f"{requirement.name} {found}"))
        else:
            cost = f"tested with {requirement.specifier}; other versions are known to fail or untried"
            findings.append(Finding("wrong", f"{requirement.name} {found}", cost))
    return findings


def check_extras() -> list[Finding]:
    """Which parts of the package are installed."""
    return [check_extra(extra) for extra in PARTS]


def check_extra(extra: str) -> Finding:
    """Whether one of `extras.PARTS` is installed."""
    if missing := missing_packages(extra):
        what, get = f"extra {extra} ({', '.join(missing)})", install_command(extra)
        return Finding("missing", what, f"{PARTS[extra]} need it: {get}", f"extra {extra}", get)
    return Finding("ok", f"extra {extra}")


def check_sandbox() -> list[Finding]:
    """Whether generated code can be judged: EvalPlus, bubblewrap, and its permission to create namespaces."""
    if missing_packages("code"):
        return [check_extra("code")]
    from cultureval.runtime.sandbox.jail import SandboxLimits, control_group, shown_packages
    from cultureval.runtime.sandbox.sandbox import Sandbox

    try:
        with contextlib.closing(Sandbox()) as probe:
            probe.start()
    except CulturevalError as error:
        how = str(error).rstrip(".")
        return [Finding("missing", f"sandbox: {how}", "generated code cannot be scored", "sandbox", how)]
    grouped = control_group(SandboxLimits())
    bound = "a control group (systemd)" if grouped else "the system-call filter, without a control group"
    text = f"sandbox: bubblewrap runs generated code, which sees {', '.join(shown_packages())}"
    return [Finding("ok", f"{text}; its kernel memory is bounded by {bound}")]


def check_gpu() -> list[Finding]:
    """A GPU that torch sees."""
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        return [Finding("ok", f"GPU: {', '.join(names)}")]
    return [Finding("optional", "GPU", "models run on the CPU: fit for samples and small models only")]


def check_hub() -> list[Finding]:
    """Whether the hub answers."""
    if is_offline():
        return [Finding("optional", "hub (HF_HUB_OFFLINE is set)", "data and models come from folders only")]
    if problem := go_offline_if_unreachable():
        cost = "use folders: `cultureval mirror` on a connected machine, then --data DIR"
        return [Finding("missing", f"hub ({problem})", cost)]
    return [Finding("ok", "hub answers")]


def check_data_root() -> list[Finding]:
    """The data root, and how many tasks it holds."""
    try:
        options = read_data_options()
    except CulturevalError as error:
        return [Finding("wrong", f"data options: {error}", "no task can be read")]
    if options.root is None:
        return [Finding("optional", f"data root ({variable_of('data_root')} is not set)", "data come from the hub")]
    without, tasks = tasks_without_data(all_tasks().values(), options), len(all_tasks())
    what = f"data root {options.root} has {tasks - len(without)} of {tasks} tasks"
    return [Finding("missing" if without else "ok", what, "the other tasks cannot be run from it")]


def tasks_without_data(tasks: Iterable[Task], options: DataOptions) -> tuple[str, ...]:
    """The tasks without data on this machine, and on the hub where no root is named and it is not offline."""
    from cultureval.tasks.reading import find_subset

    without = []
    for task in tasks:
        try:
            find_subset(task, options)
        except CulturevalError:
            without.append(task.task)
    return tuple(without)


def suite_findings(suite: Suite) -> list[Finding]:
    """What a suite needs besides the core and data: an extra, and its `Suite.doctor`, or what scores its tasks."""
    tasks = [task for task in all_tasks().values() if task.suite == suite.name]
    images = tuple(task.task for task in tasks if task.images)
    lacking = [replace(check_extra("vision"), tasks=images)] if images and missing_packages("vision") else []
    if suite.doctor:
        return [*lacking, *suite.part("doctor")()]
    try:
        kinds = {kind_of(task.task) for task in tasks}
    except CulturevalError as error:
        return [Finding("missing", str(error), "its tasks cannot be run", "its kinds", str(error).rstrip("."))]
    scorers = dict.fromkeys(kind.instrument for kind in kinds if kind.instrument and kind.instrument.needs)
    cost = f"tasks of {suite.name} cannot be scored"
    return [*lacking, *(tried(one.needs, one.check, cost, scored_by(suite.name, one)) for one in scorers)]


def scored_by(suite: str, instrument: Instrument) -> tuple[str, ...]:
    """The tasks of a suite whose answers an instrument scores."""
    tasks = (task for task in all_tasks().values() if task.suite == suite)
    return tuple(task.task for task in tasks if kind_of(task.task).instrument == instrument)


def tried(needed: str, check: Callable[[], object], cost: str, tasks: tuple[str, ...] = (), name: str = "") -> Finding:
    """What a check tells that raises CulturevalError where something is missing.

    Args:
        cost: What does not work without it.
        tasks: Those that cannot be scored without it; empty: all of the suite.
        name: The hub id or folder of a scoring model: it is loaded only where it is on this machine.
    """
    what = f"{needed} {name}".strip()
    if name and not _on_machine(name):
        if not is_offline():
            return Finding("missing", f"{what}: not on this machine yet", "the first task that needs it fetches it")
        cost = f"{cost}; its variable (docs/settings.md) may name a folder"
        return Finding("missing", f"{what}: not on this machine", cost, needed, tasks=tasks)
    try:
        check()
    except CulturevalError as error:
        return Finding("missing", f"{what}: {error}", cost, needed, tasks=tasks)
    return Finding("ok", what, needed=needed)


def _on_machine(name: str) -> bool:
    """Whether a scoring model is in a folder or in the hub's cache; loads no library of models."""
    cached = (cached_file(name, file) for file in ("config.json", "model.bin"))
    return Path(local_copy(name)).expanduser().exists() or any(cached)


def check_judges() -> list[Finding]:
    """The judges that CULTUREVAL_JUDGE names: settings, and whether the servers answer to the key that is set."""
    from cultureval.metrics.judges.optional_judges import judges_wanted

    if not judges_wanted():
        cost = "judged tasks have reference metrics alone; `cultureval judge` can judge saved answers later"
        return [Finding("optional", f"judge ({variable_of('judges')} is not set)", cost)]
    from cultureval.metrics.judges.identity import judge_identity
    from cultureval.metrics.judges.settings import configured_judges

    try:
        judges = [judge for judge in configured_judges() if judge.servers()]  # which raises for a missing key
    except CulturevalError as error:
        return [Finding("wrong", f"judge: {error}", "a run with judged tasks does not start")]
    findings = []
    for judge in judges:
        what = f"judge {judge.name} ({judge.model})"
        try:
            judge_identity(judge.with_(max_retries=0))
            findings.append(Finding("ok", f"{what} answers at {', '.join(judge.base_url)}"))
        except CulturevalError as error:
            findings.append(Finding("missing", f"{what}: {error}", "unscored"))
    return findings


CHECKS: tuple[Callable[[], list[Finding]], ...] = (
    check_hub,
    check_data_root,
    check_gpu,
    check_judges,
    check_extras,
    check_versions,
)
