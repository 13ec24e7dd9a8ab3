"""From what a solution's outputs show, and how its run ended, to our outcome and to EvalPlus's status."""

import reprlib
import signal
from collections.abc import Mapping
from typing import Any

from cultureval.metrics.code.comparison_server import ComparisonLimits, SuiteResult
from cultureval.metrics.code.ground_truth import SuiteTruth
from cultureval.metrics.code.pass_at_k import Outcome
from cultureval.metrics.code.rules import Dataset, asks_for_a_zero
from cultureval.runtime.sandbox.sandbox import JobEnd

NOT_JUDGED: Outcome = "not_judged"
_LONGEST_INPUT = 120


def failure(problem: Mapping[str, Any], suite: str, truth: SuiteTruth, result: SuiteResult, end: JobEnd) -> str:
    """Why a solution fails on a suite of inputs, with the call and its input; "" if it passes."""
    calls = problem[f"{suite}_input"]
    if not result.loaded:
        return f"it raises {result.error} when loaded" if result.error else f"{end.describe()}, when loaded"
    if result.right == len(calls):
        return ""
    place = f"call {result.right + 1} of {len(calls)}, input {shown_input(calls[result.right])}"
    if result.beyond:
        limits = ComparisonLimits.of(truth, len(calls))
        room = f"{limits.memory >> 20} MiB" if result.beyond == "memory" else f"{limits.cpu} s of CPU time"
        return f"output that cannot be compared in {room} in {place}"
    if result.wrong and result.right >= len(truth.sizes):
        return f"no ground truth for {place}: of the canonical solution, {truth.defect}"
    if result.wrong:
        kind = f", an object of type {result.type_name}" if result.type_name else ""
        return f"wrong output{kind} in {place}"
    return f"it raises {result.error} in {place}" if result.error else f"{end.describe()} in {place}"


def shown_input(arguments: list[Any]) -> str:
    """The arguments of a call, shortened and without control characters."""
    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = shown.maxlong = 40
    text = ", ".join(shown.repr(argument) for argument in arguments)
    text = text if len(text) <= _LONGEST_INPUT else f"{text[: _LONGEST_INPUT - 3]}..."
    return f"({text})"


def evalplus_status(
    dataset: Dataset, problem: Mapping[str, Any], suite: str, truth: SuiteTruth, result: SuiteResult, end: JobEnd
) -> tuple[str, list[bool]]:
    """What EvalPlus 0.3.1 says of the same outputs: `pass`, `fail` or `timeout`, and its list of right and wrong ones.

    It is `not_judged` where EvalPlus asks an object what it equals, where the canonical solution gives no output, and
    where the outputs meet a limit of size, of which EvalPlus has none. Where the comparison takes longer than EvalPlus
    lets a whole suite run, it is `timeout`. Its limits of wall time are left aside: whether an output meets them
    depends on what else the machine does.
    """
    calls = len(problem[f"{suite}_input"])
    complete = result.loaded and result.right == calls
    if result.loaded and asks_for_a_zero(dataset, problem["entry_point"]):
        return "fail", [] if complete else [False]  # it forgets to count this problem's right outputs
    if truth.defect or result.asks or result.beyond == "memory" or end.outcome in ("output", "disk"):
        return NOT_JUDGED, []
    if not result.loaded:
        return ("fail" if result.error else "timeout"), []
    if result.beyond == "time":
        return "timeout", [True] * result.right
    if complete:
        return "pass", [True] * calls
    limited = end.outcome == "done" and end.signal in (signal.SIGPROF, signal.SIGALRM)
    if result.wrong or result.error or limited:
        return "fail", [True] * result.right + [False]
    return "timeout", [True] * result.right
