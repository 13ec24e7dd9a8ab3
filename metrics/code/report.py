"""What judges code, and verdicts as scores and texts."""

import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cultureval.metrics.code.pass_at_k import Outcome, pass_at_k, plus_outcome
from cultureval.metrics.code.rules import TEST_SUITES
from cultureval.runtime.extras import require_extra
from cultureval.runtime.sandbox.jail import packages_and_versions
from cultureval.runtime.settings import current_settings, variable_of

if TYPE_CHECKING:
    from cultureval.metrics.code.judging import SolutionVerdict

logger = logging.getLogger(__name__)

NO_SANDBOX = "EvalPlus rules, NO SANDBOX"  # the scorer in signatures


def scorer_name(sandboxed: bool) -> str:
    """What judges, for signatures: with the packages that solutions can import, since a pass can depend on them."""
    if not sandboxed:
        return NO_SANDBOX
    return f"EvalPlus rules, outputs compared outside the sandbox, which has {packages_and_versions()}"


def judge_name() -> str:
    """The name of the judge, for signatures."""
    return scorer_name(is_sandboxed())


def check_sandbox() -> None:
    """Check, before a run, that solutions can be judged.

    Raises:
        MissingExtra: EvalPlus is not installed.
        SandboxUnavailable: bubblewrap is missing or may not create namespaces; the message says what to install.
    """
    require_extra("code")
    if is_sandboxed():
        from cultureval.runtime.sandbox.sandbox import Sandbox

        with contextlib.closing(Sandbox()) as probe:
            probe.start()
    else:
        logger.warning("%s is set: generated code runs WITHOUT A SANDBOX.", variable_of("unsafe_no_sandbox"))


def is_sandboxed() -> bool:
    """Whether generated code runs in a sandbox."""
    return not current_settings().unsafe_no_sandbox


def outcomes_by_task(verdicts: "Iterable[SolutionVerdict]", suite: str) -> dict[str, list[Outcome]]:
    """The outcomes of each task's samples on the base tests, or on base and extra tests (`plus`)."""
    outcomes: dict[str, list[Outcome]] = {}
    for verdict in verdicts:
        outcome = verdict.base if suite == "base" else plus_outcome(verdict.base, verdict.plus)
        outcomes.setdefault(verdict.task_id, []).append(outcome)
    return outcomes


def failing_canonicals(verdicts: "Mapping[str, SolutionVerdict]") -> list[dict[str, Any]]:
    """The problems whose canonical solution does not pass, each with the reason."""
    return [named(verdict) for verdict in verdicts.values() if not verdict.base == verdict.plus == "pass"]


def verdict_in_details(verdicts: "Sequence[SolutionVerdict]") -> dict[str, str]:
    """The verdicts on a problem's solutions as the details keep them in `doc.specific["verdict"]`: the outcomes, and
    why, with the failing input.
    """
    parts = {name: [getattr(one, name) for one in verdicts] for name in TEST_SUITES}
    reasons = [f"solution {one.sample_index}: {one.reason}" if verdicts[1:] else one.reason for one in verdicts]
    told = [reason for one, reason in zip(verdicts, reasons, strict=True) if one.reason]
    return {name: ", ".join(outcomes) for name, outcomes in parts.items()} | {"reason": "; ".join(told)}


def verdict_lines(specific: Mapping[str, Any]) -> list[str]:
    """A saved verdict (`verdict_in_details`) of a doc's `specific` as lines; none where there is no program."""
    verdict = specific.get("verdict")
    if not isinstance(verdict, Mapping) or not verdict:
        return []
    lines = [f"base tests: {verdict.get('base')}, extra tests: {verdict.get('plus')}"]
    return [*lines, *([str(verdict["reason"])] if verdict.get("reason") else [])]


def problem_scores(verdicts: "Sequence[SolutionVerdict]", ks: Iterable[int] = (1,)) -> dict[str, float]:
    """The metrics of one problem by the verdicts on its solutions: pass@k of each k, the headline first; nan where
    fewer than k were judged. `not_judged` is the share of those that were not.
    """
    scores = {}
    for suite in reversed(TEST_SUITES):
        outcomes = outcomes_by_task(verdicts, suite)
        scores |= {f"{suite}_pass@{k}": pass_at_k(outcomes, k).value for k in ks}
    unknown = sum("not_judged" in (one.base, plus_outcome(one.base, one.plus)) for one in verdicts)
    return scores | {"not_judged": unknown / len(verdicts)}


def named(verdict: "SolutionVerdict") -> dict[str, Any]:
    """A verdict on a solution, ours and EvalPlus's, with the reason."""
    return {
        "task_id": verdict.task_id,
        "sample": verdict.sample_index,
        "base": verdict.base,
        "plus": verdict.plus,
        "reason": verdict.reason,
        "evalplus_base": verdict.evalplus_base,
        "evalplus_plus": verdict.evalplus_plus,
    }
