"""Judges generated code by EvalPlus's rules.

Each solution runs in its own jail, which gets code and inputs, never an expected output. The process outside compares
the jail's outputs with those of the canonical solution (`comparing`), up to the first wrong one. The added tests
run only if the base tests pass. A verdict is written to the journal at once,
except after a retry, since the machine may be at fault.
"""

import functools
import hashlib
import importlib.metadata
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cultureval.metrics.code.comparing import ENDS_OF_COMPARISONS, Comparison, compare_suite
from cultureval.metrics.code.ground_truth import (
    SuiteTruth,
    canonical_code,
    compute_truth,
    content_key,
    known_truth,
    truth_file,
)
from cultureval.metrics.code.rules import Dataset, output_form
from cultureval.runtime import sandbox
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.hostile_work import Ended, results
from cultureval.runtime.journal import answer_key, open_journal
from cultureval.runtime.progress import progressing
from cultureval.runtime.sandbox.jail import (
    TEST_SUITES,
    Jail,
    JailPlan,
    JobEnd,
    SandboxBroken,
    check_jail,
    packages_and_versions,
)

Outcome = Literal["pass", "fail", "not_judged"]
Problems = Mapping[str, Mapping[str, Any]]
LABEL = "verdicts-on-code"
_LONGEST_INPUT = 120
_BEYOND = "outputs that cannot be compared in the memory and time that right ones take"


@dataclass(frozen=True)
class Solution:
    """One solution to judge.

    Attributes:
        task_id: Its problem.
        sample_index: Index of the sample among those of the problem, from 0.
        code: The complete program, including the prompt's part.
    """

    task_id: str
    sample_index: int
    code: str


@dataclass(frozen=True)
class SolutionVerdict:
    """The result for one solution.

    Attributes:
        task_id: The solution's problem.
        sample_index: The solution's number among those of its problem, from 0.
        base: Outcome on the base inputs; `not_judged` if sandbox, comparison or machine failed twice.
        plus: Outcome on base and EvalPlus's added inputs together, as EvalPlus counts them.
        reason: Why it did not pass, or "".
        failing_call: Index of the first call without a right output in the first suite that does not pass.
    """

    task_id: str
    sample_index: int
    base: Outcome
    plus: Outcome
    reason: str = ""
    failing_call: int | None = None


def judge_solutions(
    problems: Problems,
    solutions: Sequence[Solution],
    dataset: Dataset,
    *,
    workers: int | None = None,
    progress: bool = True,
) -> list[SolutionVerdict]:
    """Judges solutions in parallel; equal programs once.

    Args:
        problems: EvalPlus's problems by task id, MBPP's inputs deserialised.
        solutions: Solutions of these problems.
        dataset: The data set of the problems.
        workers: Number of solutions that run at the same time; default: one for each CPU.
        progress: Whether to show a progress bar.

    Returns:
        One verdict for each solution, in their order; the journal's verdicts are reused.

    Raises:
        CulturevalError: A solution's task is not among the problems, or the journal cannot be written.
        SandboxUnavailable: This machine cannot run the sandbox.
    """
    unknown = sorted({solution.task_id for solution in solutions} - set(problems))
    if unknown:
        raise CulturevalError(f"Solutions name tasks that are not among the {len(problems)} problems: {unknown[:5]}.")
    contents = {task: content_key(problems[task], dataset) for task in {solution.task_id for solution in solutions}}
    keys = [_key(contents[solution.task_id], solution.code) for solution in solutions]
    rules = [_code_hash(), importlib.metadata.version("evalplus"), packages_and_versions()]
    journal = open_journal(LABEL, rules=rules)
    found = {key: kept for key in dict.fromkeys(keys) if (kept := journal.get(key))}
    missing = {key: solution for key, solution in zip(keys, solutions, strict=True) if key not in found}
    if missing:
        plan = check_jail()
        tasks = [
            _Task(key, problems[solution.task_id], dataset, contents[solution.task_id], solution.code, plan)
            for key, solution in missing.items()
        ]
        failed = _find_truths(tasks, workers, progress)
        found |= {task.key: _not_judged(failed[task.truth_key]) for task in tasks if task.truth_key in failed}
        tasks, retried = [task for task in tasks if task.truth_key not in failed], []
        judged = results(_judge, tasks, workers)
        for place, solution in progressing(judged, len(tasks), "judging", "task", silent=not progress):
            if isinstance(solution, Ended) or solution[1]:
                retried.append(tasks[place])
                continue
            found[tasks[place].key] = solution[0]
            if solution[0]["base"] != "not_judged":
                journal.append({tasks[place].key: solution[0]})
        for place, solution in results(_judge, retried, 1):
            found[retried[place].key] = _ended(solution) if isinstance(solution, Ended) else solution[0]
    return [
        SolutionVerdict(solution.task_id, solution.sample_index, **found[key])
        for key, solution in zip(keys, solutions, strict=True)
    ]


def judge_with_canonicals(
    problems: Problems, solutions: Sequence[Solution], dataset: Dataset, **options: Any
) -> tuple[list[SolutionVerdict], dict[str, SolutionVerdict]]:
    """The verdicts on solutions; and task -> verdict on its canonical solution (a failure is a defect of the data).

    Arguments and errors are those of `judge_solutions`.
    """
    canonical = [Solution(task, 0, canonical_code(problem)) for task, problem in problems.items()]
    found = judge_solutions(problems, [*canonical, *solutions], dataset, **options)
    return found[len(canonical) :], {verdict.task_id: verdict for verdict in found[: len(canonical)]}


def check_canonical_solutions(problems: Problems, dataset: Dataset, **options: Any) -> dict[str, SolutionVerdict]:
    """`judge_with_canonicals` of the canonical solutions alone."""
    return judge_with_canonicals(problems, [], dataset, **options)[1]


def _key(content: str, code: str) -> str:
    return answer_key(problem=content, program=hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest())


@functools.cache
def _code_hash() -> str:
    """A hash of our code for verdicts, so that another version does not reuse them."""
    files = sorted({*Path(__file__).parent.glob("*.py"), *Path(sandbox.__file__).parent.glob("*.py")})
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@dataclass(frozen=True)
class _Task:
    """The input of a process that judges one program."""

    key: str
    problem: Mapping[str, Any]
    dataset: Dataset
    truth_key: str
    code: str
    plan: JailPlan


def _fields(base: Outcome, plus: Outcome, reason: str = "", failing_call: int | None = None) -> dict[str, Any]:
    return {"base": base, "plus": plus, "reason": reason, "failing_call": failing_call}


def _not_judged(reason: str) -> dict[str, Any]:
    return _fields("not_judged", "not_judged", reason)


def _ended(process: Ended) -> dict[str, Any]:
    """The verdict on a program after the comparing process ended twice, the second time without parallel work."""
    if process.status in ENDS_OF_COMPARISONS:
        return _fields("fail", "fail", _BEYOND)
    return _not_judged(f"it cannot be judged twice: {process}")


def _find_truths(tasks: Sequence[_Task], workers: int | None, progress: bool) -> dict[str, str]:
    """Computes missing ground truths; failures are retried once without parallel work.

    Returns:
        `truth_key` of each failure -> reason.
    """
    missing = [task for key, task in {task.truth_key: task for task in tasks}.items() if not truth_file(key).exists()]
    found = results(_find_truth, missing, workers)
    shown = progressing(found, len(missing), "ground truth", "task", silent=not progress)
    retried = [missing[place] for place, reason in shown if reason]
    return {
        retried[place].truth_key: f"there is no ground truth: {reason}"
        for place, reason in results(_find_truth, retried, 1)
        if reason
    }


def _find_truth(task: _Task) -> str:
    """Computes a ground truth; returns why it failed, or ""."""
    form = output_form(task.dataset, task.problem["entry_point"], canonical=True)
    return compute_truth(task.problem, task.truth_key, form, task.plan)


def _judge(task: _Task) -> tuple[dict[str, Any], bool]:
    """Judges one program; an error of ours affects this program only.

    Returns:
        (fields of a verdict, whether the machine may be at fault: then the program is judged once more).
    """
    try:
        return _judged(task, known_truth(task.truth_key) or {})
    except SandboxBroken as error:
        return _not_judged(str(error)), True
    except Exception as error:
        return _not_judged(f"an error of cultureval: {type(error).__name__}: {error}"), False


def _judged(task: _Task, truths: Mapping[str, SuiteTruth]) -> tuple[dict[str, Any], bool]:
    form = output_form(task.dataset, task.problem["entry_point"], canonical=False)
    with Jail(task.plan) as jail:
        for suite in TEST_SUITES:
            truth, calls = truths[suite], task.problem[f"{suite}_input"]
            job = truth.job(task.problem, suite, task.code, form)
            with jail.start(job) as outputs:
                shown = compare_suite(task.problem, task.dataset, suite, truth, outputs, job["wall"])
            end = jail.end() if shown.what in ("passed", "ended") else JobEnd(0, False)
            if shown.what == "passed" and end.status == 0:
                continue
            if end.is_kill:
                return _not_judged("killed by the kernel, as where the machine has too little memory"), True
            reason = f"{suite}: {_reason(shown, end, calls, truth)}"
            return _fields("fail" if suite == "base" else "pass", "fail", reason, shown.right), end.waited
    return _fields("pass", "pass"), False


def _reason(shown: Comparison, end: JobEnd, calls: list[Any], truth: SuiteTruth) -> str:
    """Why a solution fails on a suite of inputs, with the call and its input."""
    causes = {"raised": f"it raises {shown.name}", "ended": str(end)}
    cause = causes.get(shown.what, "wrong output")
    if not shown.loaded:
        return f"{cause} when loaded"
    if shown.what == "beyond":
        return _BEYOND
    if shown.what == "passed":
        return f"{end}, after right outputs"
    place = f"call {shown.right + 1} of {len(calls)}, input {_shown_input(calls[shown.right])}"
    if shown.what == "wrong" and shown.right >= len(truth.outputs):
        return f"no ground truth for {place}: of the canonical solution, {truth.defect}"
    return f"{cause} in {place}"


def _shown_input(arguments: list[Any]) -> str:
    """The arguments of a call, shortened and without control characters."""
    shown = reprlib.Repr()
    shown.maxstring = shown.maxother = shown.maxlong = 40
    text = ", ".join(shown.repr(argument) for argument in arguments)
    text = text if len(text) <= _LONGEST_INPUT else f"{text[: _LONGEST_INPUT - 3]}..."
    return f"({text})"
