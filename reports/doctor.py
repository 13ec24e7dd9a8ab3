"""Check what is installed on this machine, and what is impossible without the rest."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

from packaging.requirements import Requirement

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.hub import go_offline_if_unreachable, is_offline
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.table import Patch, all_patches
from cultureval.runtime.settings import Settings


@dataclass(frozen=True)
class Finding:
    """One line of the report: `cost` says what does not work unless the state is "ok"."""

    state: Literal["ok", "missing", "untried", "wrong"]
    what: str
    cost: str = ""


def machine_report() -> tuple[str, bool]:
    """All checks in one table.

    Returns:
        (table, fits): the text for people, and whether no check found something wrong.
    """
    findings = [finding for check in CHECKS for finding in check()]
    rows = [(one.state, one.what if one.state == "ok" else f"{one.what} -> {one.cost}") for one in findings]
    return terminal_table((), rows), all(finding.state != "wrong" for finding in findings)


def check_versions() -> list[Finding]:
    """Installed versions against the ranges that were tested (those of our own metadata)."""
    findings = []
    for text in requires("cultureval") or []:
        requirement = Requirement(text)
        if requirement.marker is not None:
            continue
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            findings.append(Finding("wrong", f"{requirement.name} is not installed", "install cultureval with pip"))
            continue
        if requirement.specifier.contains(found, prereleases=True):
            findings.append(Finding("ok", f"{requirement.name} {found}"))
        else:
            cost = f"tested with {requirement.specifier}; other versions are known to fail or untried"
            findings.append(Finding("wrong", f"{requirement.name} {found}", cost))
    return findings


def check_patches() -> list[Finding]:
    """One line per patched library: whether the patches were tried with the installed version."""
    findings = []
    for library, entries in patches_by_library().items():
        if found := entries[0].installed():
            untried = [patch for patch in entries if not patch.is_tested()]
            what = f"patches of {library} {found}: {len(entries)}"
            cost = f"tried with {', '.join(entries[0].versions)}; `cultureval doctor --patches` tries whether they fit"
            findings.append(
                Finding("untried" if untried else "ok", what if untried else f"{what}, tried with this version", cost)
            )
    return findings


def patches_table() -> tuple[str, bool]:
    """All patches with the results of their canaries, and whether all of them fit."""
    rows, fits = [], True
    for library, entries in patches_by_library().items():
        for patch in entries:
            found = patch.installed()
            problem = patch.problem() if found else "not installed"
            fits = fits and (not found or problem is None)
            rows.append(
                (library, found or "-", ", ".join(patch.versions), patch.target, patch.reason, problem or "fits")
            )
    header = ("library", "installed", "tried with", "changed or used", "why", "canary")
    return terminal_table(header, rows, cut_words=True), fits


def patches_by_library() -> dict[str, list[Patch]]:
    """The table of patches, library by library."""
    found: dict[str, list[Patch]] = {}
    for patch in all_patches():
        found.setdefault(patch.library, []).append(patch)
    return found


def check_sandbox() -> list[Finding]:
    """Whether generated code can be judged: bubblewrap, and its permission to create namespaces."""
    from cultureval.runtime.sandbox.jail import SandboxLimits, control_group, shown_packages
    from cultureval.runtime.sandbox.sandbox import Sandbox

    try:
        with contextlib.closing(Sandbox()) as probe:
            probe.start()
    except CulturevalError as error:
        return [Finding("missing", f"sandbox (bubblewrap): {error}", "generated code cannot be scored")]
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
    return [Finding("missing", "GPU", "models run on the CPU: fit for samples and small models only")]


def check_hub() -> list[Finding]:
    """Whether the hub answers."""
    if is_offline():
        return [Finding("missing", "hub (HF_HUB_OFFLINE is set)", "data and models come from folders only")]
    if problem := go_offline_if_unreachable():
        cost = "use folders: `cultureval mirror` on a connected machine, then --data DIR"
        return [Finding("missing", f"hub ({problem})", cost)]
    return [Finding("ok", "hub answers")]


def check_data_root() -> list[Finding]:
    """The data root, and how many tasks it holds."""
    from cultureval.tasks.catalogue import all_tasks
    from cultureval.tasks.options import read_data_options
    from cultureval.tasks.reading import find_subset

    try:
        options = read_data_options()
    except CulturevalError as error:
        return [Finding("wrong", f"data options: {error}", "no task can be read")]
    if options.root is None:
        return [Finding("missing", f"data root ({Settings.data_root.variable} is not set)", "data come from the hub")]
    held = 0
    for task in all_tasks().values():
        try:
            find_subset(task, options)
            held += 1
        except CulturevalError:
            continue
    state: Literal["ok", "missing"] = "ok" if held == len(all_tasks()) else "missing"
    what = f"data root {options.root} has {held} of {len(all_tasks())} tasks"
    return [Finding(state, what, "the other tasks cannot be run from it")]


def check_suites() -> list[Finding]:
    """What suites need besides packages (`Suite.doctor`): scoring models, fonts."""
    from cultureval.tasks.catalogue import all_suites

    checks = dict.fromkeys(suite.part("doctor") for suite in all_suites().values() if suite.doctor)
    return [finding for check in checks for finding in check()]


def tried(what: str, check: Callable[[], object], cost: str) -> Finding:
    """A finding of a check that raises where something is missing.

    Args:
        what: What is checked.
        check: Raises CulturevalError where it is missing.
        cost: What does not work without it.
    """
    try:
        check()
    except CulturevalError as error:
        return Finding("missing", f"{what}: {error}", cost)
    return Finding("ok", what)


def check_judges() -> list[Finding]:
    """The judges that CULTUREVAL_JUDGE names: settings, and whether the servers answer to the key that is set."""
    from cultureval.metrics.judges.optional_judges import judges_wanted

    if not judges_wanted():
        cost = "judged tasks have reference metrics alone; `cultureval judge` can judge saved answers later"
        return [Finding("missing", f"judge ({Settings.judges.variable} is not set)", cost)]
    from cultureval.metrics.judges.settings import configured_judges
    from cultureval.runtime.servers.openai_client import health_check

    try:
        servers = [(judge, judge.servers()) for judge in configured_judges()]
    except CulturevalError as error:
        return [Finding("wrong", f"judge: {error}", "a run with judged tasks does not start")]
    findings = []
    for judge, settings in servers:
        problems = health_check(settings)
        what = f"judge {judge.name} ({judge.model})"
        findings += [Finding("missing", f"{what} at {url}: {why}", "unscored") for url, why in problems.items()]
        if not problems:
            findings.append(Finding("ok", f"{what} answers at {', '.join(judge.base_url)}"))
    return findings


CHECKS: tuple[Callable[[], list[Finding]], ...] = (
    check_versions,
    check_patches,
    check_sandbox,
    check_gpu,
    check_hub,
    check_data_root,
    check_suites,
    check_judges,
)
