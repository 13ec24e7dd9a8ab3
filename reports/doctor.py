"""`cultureval check` without a model: which suites can run and be scored here, and how to get missing parts."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.hub import cached_file, go_offline_if_unreachable, is_offline
from cultureval.runtime.data.scorers import local_copy
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, shown_names
from cultureval.runtime.extras import PARTS, install_command, missing_packages, requirements_of
from cultureval.runtime.settings import current_settings, variable_of
from cultureval.tasks.catalogue import all_suites, all_tasks
from cultureval.tasks.options import read_data_options
from cultureval.tasks.reading import find_subset
from cultureval.tasks.registration import mirror_arguments, registered
from cultureval.tasks.suite import Instrument, Task

MOST_NAMED = 3  # groups with tasks that cannot run


class Finding(NamedTuple):
    """A result of a check: `how` is what to do, `tasks` are the tasks that need it.

    A run fails with a "wrong" part. A user may choose to work without an "optional" part.
    """

    state: Literal["wrong", "missing", "optional", "ok"]
    what: str
    how: str = ""
    tasks: tuple[str, ...] = ()


def machine_report(everything: bool = False) -> tuple[str, bool]:
    """A line for each suite, then the missing parts and how to get them.

    Args:
        everything: Whether parts that are in order (versions) are listed, too.

    Returns:
        The text for people, and whether no part is wrong.
    """
    machine = [finding for check in CHECKS for finding in check()]  # first: the suites' data depend on the hub
    of_suites = {name: suite_findings(name) for name in all_suites()}
    rows = [(name, *_state(name, found)) for name, found in of_suites.items()]
    lines = [terminal_table(("suite", "", "tasks"), rows), ""]
    for name, found in of_suites.items():
        lines += [f"{name} lacks {finding.what}: {finding.how}" for finding in found if finding.state != "ok"]
    shown = [finding for finding in machine if everything or finding.state != "ok"]
    lines += [f"{finding.state}: {finding.what}{f': {finding.how}' if finding.how else ''}" for finding in shown]
    return "\n".join(dict.fromkeys(lines)), all(finding.state != "wrong" for finding in machine)


def _state(suite: str, findings: Sequence[Finding]) -> tuple[str, str]:
    """("ready", "partly" or "missing"; how many tasks can run, and the groups with tasks that cannot)."""
    tasks = [task for task in all_tasks().values() if task.suite == suite]
    blocked = {name for finding in findings if finding.state != "ok" for name in finding.tasks}
    missing = Counter(task.group for task in tasks if task.task in blocked)
    count = f"{len(tasks) - missing.total()} of {len(tasks)}"
    if not missing:
        return "ready", count
    shown = shown_names([group if n == 1 else f"{n} of {group}" for group, n in missing.items()], MOST_NAMED)
    return ("missing", count) if missing.total() == len(tasks) else ("partly", f"{count}, not {shown}")


def suite_findings(suite: str) -> list[Finding]:
    """The parts that a suite needs: data, the extra `vision`, and scoring models or programs."""
    tasks = [task for task in all_tasks().values() if task.suite == suite]
    images = tuple(task.task for task in tasks if task.images)
    found = [_data_of(suite, tasks)]
    if images and missing_packages("vision"):
        found.append(Finding("missing", "the extra `vision`", install_command("vision"), images))
    scored: dict[Instrument, list[str]] = {}
    for task in tasks:
        instrument = task.kind.instrument
        if instrument and instrument.needs:
            scored.setdefault(instrument, []).append(task.task)
    return [*found, *(_instrument(suite, instrument, tuple(names)) for instrument, names in scored.items())]


def _data_of(suite: str, tasks: Sequence[Task]) -> Finding:
    try:
        options = read_data_options()
    except CulturevalError as error:
        return Finding("missing", "data", str(error), tuple(task.task for task in tasks))
    without = tasks_without_data(tasks, options)
    if suite in registered().places:  # its author knows where they are
        how = f"--data DIR, with {shown_names(sorted({task.sources[0].repo for task in tasks}), MOST_NAMED)} inside"
    else:
        how = f"cultureval fetch {mirror_arguments(suite)} --output-dir DIR, then --data DIR"
    return Finding("missing" if without else "ok", f"data of {len(without)} of {len(tasks)} tasks", how, without)


def tasks_without_data(tasks: Iterable[Task], options: DataOptions) -> tuple[str, ...]:
    """The tasks without data on this machine. Without a data root and online, data on the hub count as there."""
    without = []
    for task in tasks:
        if options.root is None and not is_offline() and any(source.on_hub for source in task.sources):
            continue
        try:
            find_subset(task, options)
        except CulturevalError:
            without.append(task.task)
    return tuple(without)


def _instrument(suite: str, instrument: Instrument, tasks: tuple[str, ...]) -> Finding:
    """Whether a scoring model or program works; a model is loaded only if it is on this machine."""
    missing = [name for name in instrument.sources() if not _on_machine(name)]
    if missing and not is_offline():
        return Finding("ok", f"{instrument.needs}: the first task that needs it fetches {shown_names(missing)}")
    if missing:
        how = f"{shown_names(missing)}: cultureval fetch {mirror_arguments(suite)} --output-dir DIR"
        return Finding("missing", instrument.needs, how, tasks)
    try:
        instrument.check()
    except CulturevalError as error:
        return Finding("missing", instrument.needs, str(error), tasks)
    return Finding("ok", instrument.needs)


def _on_machine(name: str) -> bool:
    """Whether a scoring model or file is in a folder or in the hub's cache; imports no model library."""
    place = Path(local_copy(name)).expanduser()
    return place.exists() or "://" not in name and any(cached_file(name, file) for file in ("config.json", "model.bin"))


def check_versions() -> list[Finding]:
    """Compares installed versions with the tested ranges of our own metadata."""
    findings = []
    core = requirements_of()
    for requirement in (*core, *(requirement for extra in PARTS for requirement in requirements_of(extra))):
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            if requirement in core:
                findings.append(Finding("wrong", f"{requirement.name} is not installed", "install cultureval with pip"))
            continue
        fits = requirement.specifier.contains(found, prereleases=True)
        how = "" if fits else f"tested with {requirement.specifier}"
        findings.append(Finding("ok" if fits else "wrong", f"{requirement.name} {found}", how))
    return findings


def check_extras() -> list[Finding]:
    """Which extras are installed."""
    return [
        Finding("missing", f"extra {extra} ({', '.join(missing)})", f"{PARTS[extra]} need it: {install_command(extra)}")
        if (missing := missing_packages(extra))
        else Finding("ok", f"extra {extra}")
        for extra in PARTS
    ]


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
        return [Finding("missing", f"hub ({problem})", "`cultureval fetch` on a connected machine, then --data DIR")]
    return [Finding("ok", "hub answers")]


def check_judges() -> list[Finding]:
    """The judges of CULTUREVAL_JUDGE: their settings, and whether their servers accept the key."""
    if not current_settings().judges:
        how = "judged tasks have reference metrics alone; `cultureval judge` can judge saved answers later"
        return [Finding("optional", f"judge ({variable_of('judges')} is not set)", how)]
    from cultureval.metrics.judges.settings import configured_judges, judge_identity

    findings = []
    try:
        for judge in (judge for judge in configured_judges() if judge.servers()):  # which raises for a missing key
            judge_identity(judge.with_(max_retries=0))
            findings.append(Finding("ok", f"judge {judge.name} ({judge.model}) answers"))
    except CulturevalError as error:
        findings.append(Finding("wrong", "judge", str(error)))
    return findings


CHECKS: tuple[Callable[[], list[Finding]], ...] = (check_hub, check_gpu, check_judges, check_extras, check_versions)
