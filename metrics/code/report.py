"""Verdicts on code as scores and texts, and the check of the sandbox."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cultureval.runtime.extras import require_extra
from cultureval.runtime.sandbox.jail import TEST_SUITES, check_jail, packages_and_versions

if TYPE_CHECKING:
    from cultureval.metrics.code.judging import SolutionVerdict


def judge_name() -> str:
    """The judge's name for signatures, with the packages that solutions can import."""
    return f"EvalPlus rules, outputs compared outside the sandbox, which has {packages_and_versions()}"


def check_sandbox() -> None:
    """Checks, before a run, that solutions can be judged.

    Raises:
        MissingExtra: EvalPlus is not installed.
        SandboxUnavailable: bubblewrap is missing or may not create namespaces; the message says what to install.
    """
    require_extra("code")
    check_jail()


def problem_scores(verdicts: "Sequence[SolutionVerdict]", ks: Iterable[int] = (1,)) -> dict[str, float]:
    """The metrics of one problem by the verdicts on its solutions, the headline first.

    Returns:
        `plus_pass@k` and `base_pass@k`: EvalPlus's unbiased estimate (Chen et al. 2021, Eq. 1) over judged solutions,
        nan for fewer than k; `not_judged`: the share of other solutions.
    """
    import numpy as np
    from evalplus.eval import estimate_pass_at_k

    scores = {}
    for suite in reversed(TEST_SUITES):
        judged = [outcome for verdict in verdicts if (outcome := getattr(verdict, suite)) != "not_judged"]
        for k in ks:
            (value,) = estimate_pass_at_k([len(judged)], [judged.count("pass")], k) if len(judged) >= k else [np.nan]
            scores[f"{suite}_pass@{k}"] = float(value)
    return scores | {"not_judged": sum(verdict.base == "not_judged" for verdict in verdicts) / len(verdicts)}


def offered_k(samples: Iterable[int]) -> list[int]:
    """The reported k: 1, 10, 100 and the smallest number of samples, as far as every problem has k samples."""
    fewest = min(samples, default=0)
    return [k for k in sorted({1, 10, 100, fewest}) if 1 <= k <= fewest]


def failing_canonicals(verdicts: "Mapping[str, SolutionVerdict]") -> list[dict[str, Any]]:
    """The canonical solutions that do not pass, each with the reason."""
    return [verdict_row(verdict) for verdict in verdicts.values() if not verdict.base == verdict.plus == "pass"]


def verdict_row(verdict: "SolutionVerdict") -> dict[str, Any]:
    """A verdict on a solution, with the reason."""
    names = {"task_id": verdict.task_id, "sample": verdict.sample_index}
    return names | {"base": verdict.base, "plus": verdict.plus, "reason": verdict.reason}


def verdict_in_details(verdicts: "Sequence[SolutionVerdict]") -> dict[str, str]:
    """The verdicts on a problem's solutions as the details keep them in `doc.specific["verdict"]`."""
    parts = {name: ", ".join(getattr(verdict, name) for verdict in verdicts) for name in TEST_SUITES}
    several = len(verdicts) > 1
    reasons = [
        f"solution {verdict.sample_index}: {verdict.reason}" if several else verdict.reason
        for verdict in verdicts
        if verdict.reason
    ]
    return parts | {"reason": "; ".join(reasons)}


def verdict_lines(specific: Mapping[str, Any]) -> list[str]:
    """A saved verdict (`verdict_in_details`) in a doc's `specific` as lines; [] without one."""
    verdict = specific.get("verdict")
    if not isinstance(verdict, Mapping) or not verdict:
        return []
    lines = [f"base tests: {verdict.get('base')}, extra tests: {verdict.get('plus')}"]
    return [*lines, *([str(verdict["reason"])] if verdict.get("reason") else [])]
