"""pass@k of judged solutions, with bounds for solutions that could not be judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cultureval.metrics.statistics import clustered_standard_error

Outcome = Literal["pass", "fail", "not_judged"]


@dataclass(frozen=True)
class PassAtK:
    """pass@k of a data set.

    Attributes:
        value: Mean over the tasks that have at least k judged samples; nan if none has.
        standard_error: Standard error of that mean, over tasks (Wilson's at 0 and 1); nan for fewer than two tasks.
        worst: The mean if every sample that was not judged failed.
        best: The mean if every such sample passed.
        tasks: Number of tasks in the mean.
    """

    value: float
    standard_error: float
    worst: float
    best: float
    tasks: int


def plus_outcome(base: Outcome, plus: Outcome) -> Outcome:
    """Outcome under base and extra tests together: EvalPlus counts a pass only if both pass."""
    if "fail" in (base, plus):
        return "fail"
    return "pass" if base == plus == "pass" else "not_judged"


def pass_at_k(outcomes: Mapping[str, Sequence[Outcome]], k: int) -> PassAtK:
    """EvalPlus's unbiased estimate of pass@k (Chen et al. 2021, Eq. 1), averaged over tasks.

    Args:
        outcomes: The outcomes of each task's samples.
        k: Number of samples drawn.

    Raises:
        ValueError: There is no task, or a task has fewer than k samples.
    """
    if not outcomes or k < 1 or min(map(len, outcomes.values())) < k:
        raise ValueError(f"pass@{k} needs at least {k} samples of every task")
    totals = {name: len(samples) for name, samples in outcomes.items()}
    passed = {name: list(samples).count("pass") for name, samples in outcomes.items()}
    unknown = {name: list(samples).count("not_judged") for name, samples in outcomes.items()}
    judged = {name: total - unknown[name] for name, total in totals.items() if total - unknown[name] >= k}
    values = _estimates(list(judged.values()), [passed[name] for name in judged], k)
    worst = _estimates(list(totals.values()), list(passed.values()), k)
    best = _estimates(list(totals.values()), [passed[name] + unknown[name] for name in totals], k)
    error = clustered_standard_error(values, list(judged), share=True) if len(values) > 1 else float("nan")
    return PassAtK(_mean(values), float(error), _mean(worst), _mean(best), len(values))


def offered_k(outcomes: Mapping[str, Sequence[Outcome]]) -> list[int]:
    """The k that are reported: EvalPlus's 1, 10 and 100, and the number of samples, if every task has as many."""
    fewest = min(map(len, outcomes.values()), default=0)
    return [k for k in sorted({1, 10, 100, fewest}) if 1 <= k <= fewest]


def _estimates(totals: Sequence[int], passed: Sequence[int], k: int) -> list[float]:
    import numpy as np
    from evalplus.eval import estimate_pass_at_k

    return [float(value) for value in estimate_pass_at_k(np.array(totals, dtype=int), np.array(passed, dtype=int), k)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
