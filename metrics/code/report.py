"""What judges code, and verdicts as scores and texts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cultureval.runtime.extras import require_extra
from cultureval.runtime.sandbox.jail import TEST_SUITES, check_jail, packages_and_versions

if TYPE_CHECKING:
    from cultureval.metrics.code.judging import SolutionVerdict


def judge_name() -> str:
    """What judges, for signatures: with the packages that solutions can import, since a pass can depend on them."""
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
        `plus_pass@k` and `base_pass@k`: EvalPlus's unbiased estimate (Chen et al. 2021, Eq. 1) of the solutions that
        were judged, nan where they are fewer than k; `not_judged`: the share of the others.
    """
    import numpy as np
    from evalplus.eval import estimate_pass_at_k

    scores = {}
    for suite in reversed(TEST_SUITES):
        judged = [outcome for one in verdicts if (outcome := getattr(one, suite)) != "not_judged"]
        for k in ks:
            (value,) = estimate_pass_at_k([len(judged)], [judged.count("pass")], k) if len(judged) >= k else [np.nan]
            scores[f"{suite}_pass@{k}"] = float(value)
    return scores | {"not_judged": sum(one.base == "not_judged" for one in verdicts) / len(verdicts)}


def offered_k(samples: Iterable[int]) -> list[int]:
    """The k that are reported: EvalPlus's 1, 10 and 100, and the number of samples, if every problem has as many."""
    fewest = min(samples, default=0)
    return [k for k in sorted({1, 10, 100, fewest}) if 1 <= k <= fewest]


def failing_canonicals(verdicts: "Mapping[str, SolutionVerdict]") -> list[dict[str, Any]]:
    """The problems whose canonical solution does not pass, each with the reason."""
    return [named(verdict) for verdict in verdicts.values() if not verdict.base == verdict.plus == "pass"]


def named(verdict: "SolutionVerdict") -> dict[str, Any]:
    """A verdict on a solution, with the reason."""
    names = {"task_id": verdict.task_id, "sample": verdict.sample_index}
    return names | {"base": verdict.base, "plus": verdict.plus, "reason": verdict.reason}


def verdict_in_details(verdicts: "Sequence[SolutionVerdict]") -> dict[str, str]:
    """The verdicts on a problem's solutions as the details keep them in `doc.specific["verdict"]`."""
    parts = {name: ", ".join(getattr(one, name) for one in verdicts) for name in TEST_SUITES}
    several = len(verdicts) > 1
    reasons = [
        f"solution {one.sample_index}: {one.reason}" if several else one.reason for one in verdicts if one.reason
    ]
    return parts | {"reason": "; ".join(reasons)}


def verdict_lines(specific: Mapping[str, Any]) -> list[str]:
    """A saved verdict (`verdict_in_details`) of a doc's `specific` as lines; none where there is no program."""
    verdict = specific.get("verdict")
    if not isinstance(verdict, Mapping) or not verdict:
        return []
    lines = [f"base tests: {verdict.get('base')}, extra tests: {verdict.get('plus')}"]
    return [*lines, *([str(verdict["reason"])] if verdict.get("reason") else [])]
