"""What M2CQA's and AynVQA's tables share: where profiles of reading differ."""

from collections.abc import Mapping, Sequence

from cultureval.metrics.m2cqa.names import INVALID_RATE, PROFILE_NAMES
from cultureval.runs.record import Run, TaskRecord

GAP = 0.02  # between profiles, from which the summary names them
MOST = 3  # tasks that a note names


def profile_notes(run: Run, records: Sequence[TaskRecord], columns: Mapping[str, str]) -> list[str]:
    """A line that names the tasks whose headline, or share of invalid outputs, depends on how outputs are read.

    Args:
        run: A results file.
        records: Tasks of it.
        columns: Metric -> its column in the table, the headline first.
    """
    gaps = {}
    for record in records:
        task = record.task.partition("|")[0]
        for metric in (next(iter(columns)), INVALID_RATE):
            if task not in gaps and (gap := _widest_gap(run, record.task, metric)):
                gaps[task] = f"{task} {columns[metric]} {gap}"
    shown = [*gaps.values()][:MOST] + ([f"{len(gaps) - MOST} more (--full)"] if len(gaps) > MOST else [])
    return [f"Parsing profiles differ, so output formats matter: {'; '.join(shown)}."] if gaps else []


def _widest_gap(run: Run, task: str, metric: str) -> str | None:
    """A score and that of the profile farthest from it: `0.400, lenient 0.500`; None where none is far from it."""
    value = run.value(task, metric)
    found = {profile: run.value(task, f"{metric}_{profile}") for profile in PROFILE_NAMES}
    known = {profile: other for profile, other in found.items() if other is not None}
    if value is None or not known:
        return None
    profile = max(known, key=lambda one: abs(known[one] - value))
    return f"{value:.3f}, {profile} {known[profile]:.3f}" if abs(known[profile] - value) > GAP else None
