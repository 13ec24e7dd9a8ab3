"""Judging of generated code: solutions run in a sandbox, and other processes compare their outputs.

A solution runs once on each suite of inputs, in a process that gets only its code and the inputs. When it has ended,
its outputs, plain data in files, are compared with those of the canonical solution, by EvalPlus's rules (`rules`), in a
process with limits that runs no generated code (`comparing`). EvalPlus's own verdict on the same outputs is reported
next to ours.
"""

import contextlib
import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import IO, Any

from cultureval.metrics.code.comparing import (
    Comparer,
    ComparerBroken,
    SuiteResult,
    TooMuchToCompare,
    suite_of_equal_bytes,
)
from cultureval.metrics.code.ground_truth import (
    WALL_FACTOR,
    GroundTruth,
    call_payload,
    canonical_code,
    compute_truth,
    content_key,
    known_truth,
)
from cultureval.metrics.code.outcomes import NOT_JUDGED, evalplus_status, failure
from cultureval.metrics.code.pass_at_k import Outcome
from cultureval.metrics.code.rules import TEST_SUITES, Dataset
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.progress import progressing
from cultureval.runtime.sandbox.sandbox import JobEnd, Sandbox, SandboxBroken, SandboxPool, SandboxUnavailable

PASS: Outcome = "pass"
FAIL: Outcome = "fail"

_SUITE_SECONDS = 60.0  # EvalPlus's limit
_SPARE_SECONDS = 2.0
_MOST_WAITING_SECONDS = 120.0


@dataclass(frozen=True)
class Solution:
    """One solution to judge.

    Args:
        task_id: The problem's id, a key of the problems.
        sample_index: Index of the sample among those of the task, from 0.
        code: The complete program, including the prompt's part.
    """

    task_id: str
    sample_index: int
    code: str


@dataclass(frozen=True)
class SolutionVerdict:
    """The result for one solution.

    Args:
        task_id: Of the solution.
        sample_index: Of the solution.
        base: Outcome on the base inputs; `not_judged` if the sandbox itself failed.
        plus: Outcome on EvalPlus's added inputs alone; in EvalPlus a solution is correct if both pass.
        reason: Why it did not pass, or "".
        evalplus_base: EvalPlus's status for the same outputs: `pass`, `fail`, `timeout`; `not_judged` where that would
            need the object itself.
        evalplus_plus: The same on the added inputs.
        evalplus_base_details: EvalPlus's list of correct and wrong outputs, up to the first wrong one.
        evalplus_plus_details: The same on the added inputs.
        sandboxed: False if generated code ran without a sandbox.
    """

    task_id: str
    sample_index: int
    base: Outcome
    plus: Outcome
    reason: str
    evalplus_base: str = NOT_JUDGED
    evalplus_plus: str = NOT_JUDGED
    evalplus_base_details: list[bool] = field(default_factory=list, repr=False)
    evalplus_plus_details: list[bool] = field(default_factory=list, repr=False)
    sandboxed: bool = True

    @property
    def differs(self) -> bool:
        """Whether EvalPlus's verdict differs (its `timeout` is a fail)."""
        pairs = ((self.base, self.evalplus_base), (self.plus, self.evalplus_plus))
        return any(NOT_JUDGED not in pair and (pair[0] == PASS) != (pair[1] == PASS) for pair in pairs)


def judge_solutions(
    problems: Mapping[str, Mapping[str, Any]],
    solutions: Sequence[Solution],
    dataset: Dataset,
    *,
    workers: int | None = None,
    sandboxed: bool = True,
    progress: bool = True,
    on_verdict: Callable[[SolutionVerdict], None] | None = None,
) -> list[SolutionVerdict]:
    """Judge solutions in parallel.

    Args:
        problems: EvalPlus's problems by task id, MBPP's inputs deserialised.
        solutions: Solutions of these problems.
        dataset: The data set of the problems.
        workers: Number of sandboxes; default: one per CPU.
        sandboxed: False runs the code without a sandbox, with a warning, and marks the verdicts.
        progress: Whether to show a progress bar.
        on_verdict: Called with every new verdict, in the calling thread.

    Returns:
        One verdict for each solution, in the order of the solutions.

    Raises:
        CulturevalError: A solution's task is not among the problems.
        SandboxUnavailable: This machine cannot run the sandbox.
    """
    unknown = sorted({solution.task_id for solution in solutions} - set(problems))
    if unknown:
        raise CulturevalError(f"solutions name tasks that are not among the {len(problems)} problems: {unknown[:5]}")
    if not solutions:
        return []
    truths = _ground_truths(
        problems, {solution.task_id for solution in solutions}, dataset, workers, sandboxed, progress
    )
    seconds = {task: _seconds(truth) for task, truth in truths.items()}
    # The longest first, so that workers finish at about the same time.
    order = sorted(range(len(solutions)), key=lambda index: -seconds[solutions[index].task_id])
    verdicts: dict[int, SolutionVerdict] = {}
    with SandboxPool(workers, safe=sandboxed) as pool, _Comparers() as comparers:

        def judge(sandbox: Sandbox, index: int) -> tuple[int, SolutionVerdict]:
            task = solutions[index].task_id
            own = _Judge(problems[task], dataset, truths[task], sandbox, comparers.of(sandbox))
            return index, own.verdict(solutions[index])

        for index, verdict in progressing(pool.run(judge, order), len(order), "judging", "task", silent=not progress):
            verdicts[index] = verdict
            if on_verdict is not None:
                on_verdict(verdict)
    return [verdicts[index] for index in range(len(solutions))]


def check_canonical_solutions(
    problems: Mapping[str, Mapping[str, Any]],
    dataset: Dataset,
    *,
    workers: int | None = None,
    sandboxed: bool = True,
    progress: bool = True,
) -> dict[str, SolutionVerdict]:
    """Judge the problems' canonical solutions: a failing one is a defect of the data or of its limits.

    Args:
        problems: As for `judge_solutions`.
        dataset: As for `judge_solutions`.
        workers: As for `judge_solutions`.
        sandboxed: As for `judge_solutions`.
        progress: As for `judge_solutions`.

    Returns:
        A verdict for each task. Judged ones are cached by content in the user cache.
    """
    folder = user_cache() / "code_canonical"
    paths = {task: folder / f"{content_key(problem, dataset)}.json" for task, problem in problems.items()}
    found: dict[str, SolutionVerdict] = {}
    for task, path in paths.items():
        with contextlib.suppress(OSError, ValueError, TypeError):
            found[task] = replace(SolutionVerdict(**json.loads(path.read_text(encoding="utf-8"))), task_id=task)

    def keep(verdict: SolutionVerdict) -> None:
        found[verdict.task_id] = verdict
        if verdict.sandboxed and NOT_JUDGED not in (verdict.base, verdict.plus):
            folder.mkdir(parents=True, exist_ok=True)
            paths[verdict.task_id].write_text(json.dumps(asdict(verdict)), encoding="utf-8")

    missing = [Solution(task, 0, canonical_code(problems[task])) for task in problems if task not in found]
    judge_solutions(
        problems, missing, dataset, workers=workers, sandboxed=sandboxed, progress=progress, on_verdict=keep
    )
    return {task: found[task] for task in problems}


def _ground_truths(
    problems: Mapping[str, Mapping[str, Any]],
    tasks: set[str],
    dataset: Dataset,
    workers: int | None,
    sandboxed: bool,
    progress: bool,
) -> dict[str, GroundTruth | None]:
    """The ground truth of each task; None where the sandbox failed. Its sandboxes end before solutions run."""
    truths = {task: known_truth(problems[task], dataset) for task in sorted(tasks)}
    missing = [task for task, truth in truths.items() if truth is None]
    if not missing:
        return truths

    def find(sandbox: Sandbox, task: str) -> tuple[str, GroundTruth | None]:
        for _ in range(2):
            with contextlib.suppress(SandboxBroken, SandboxUnavailable):
                return task, compute_truth(problems[task], dataset, sandbox)
        return task, None

    with SandboxPool(workers, safe=sandboxed) as pool:
        found = progressing(pool.run(find, missing), len(missing), "ground truth", "task", silent=not progress)
        return truths | dict(found)


def _seconds(truth: GroundTruth | None) -> float:
    return sum(sum(suite.seconds) for suite in truth.suites.values()) if truth else 0.0


class _BrokenBySolution(CulturevalError):
    """A process of ours fails twice with one solution, and works with another."""


class _Comparers:
    """One comparing process for each sandbox, that is, for each thread; a context that ends them."""

    def __init__(self) -> None:
        self._comparers: dict[int, Comparer] = {}

    def of(self, sandbox: Sandbox) -> Comparer:
        return self._comparers.setdefault(id(sandbox), Comparer())

    def __enter__(self) -> "_Comparers":
        return self

    def __exit__(self, *_: object) -> None:
        for comparer in self._comparers.values():
            comparer.close()


class _Judge:
    """Judges solutions of one problem."""

    def __init__(
        self,
        problem: Mapping[str, Any],
        dataset: Dataset,
        truth: GroundTruth | None,
        sandbox: Sandbox,
        comparer: Comparer,
    ) -> None:
        self.problem = problem
        self.dataset = dataset
        self.truth = truth
        self.sandbox = sandbox
        self.comparer = comparer

    def verdict(self, solution: Solution) -> SolutionVerdict:
        """The verdict on one solution, whatever happens: an error of ours concerns this solution alone."""
        try:
            return self._judged(solution)
        except CulturevalError as error:
            reason = str(error)
        except Exception as error:
            reason = f"an error of cultureval: {type(error).__name__}: {error}"
        return self._verdict(solution, NOT_JUDGED, NOT_JUDGED, reason)

    def _verdict(self, solution: Solution, base: Outcome, plus: Outcome, reason: str) -> SolutionVerdict:
        safe = self.sandbox.safe
        return SolutionVerdict(solution.task_id, solution.sample_index, base, plus, reason, sandboxed=safe)

    def _judged(self, solution: Solution) -> SolutionVerdict:
        truth = self.truth
        if truth is None:
            raise SandboxBroken("the sandbox failed on the canonical solution")
        with tempfile.TemporaryFile() as base, tempfile.TemporaryFile() as plus:
            files = {"base": base, "plus": plus}
            try:
                ends = {suite: self._run(solution.code, suite, truth, files[suite]) for suite in TEST_SUITES}
                results = self._compare(truth, files)
            except (TooMuchToCompare, _BrokenBySolution) as error:
                return self._verdict(solution, FAIL, FAIL, str(error))
        reasons, values = {}, {}
        for suite in TEST_SUITES:
            known = self.problem, suite, truth.suites[suite], results[suite], ends[suite]
            reasons[suite] = failure(*known)
            status, details = evalplus_status(self.dataset, *known)
            values |= {f"evalplus_{suite}": status, f"evalplus_{suite}_details": details}
        base_outcome, plus_outcome = (FAIL if reasons[suite] else PASS for suite in TEST_SUITES)
        reason = "; ".join(f"{suite}: {text}" for suite, text in reasons.items() if text)
        return replace(self._verdict(solution, base_outcome, plus_outcome, reason), **values)

    def _run(self, code: str, suite: str, truth: GroundTruth, outputs: IO[bytes]) -> JobEnd:
        """Run a solution on a suite, a second time if its sandbox fails.

        Raises:
            _BrokenBySolution: The sandbox fails again, and only with this solution.
        """
        for _ in range(2):
            with contextlib.suppress(SandboxBroken):
                outputs.seek(0)
                outputs.truncate()
                return self._run_once(code, suite, truth, outputs)
        with tempfile.TemporaryFile() as nothing:
            self._run_once("", suite, truth, nothing)
        raise _BrokenBySolution("it ended its sandbox twice")

    def _run_once(self, code: str, suite: str, truth: GroundTruth, outputs: IO[bytes]) -> JobEnd:
        limits = truth.suites[suite].limits(len(self.problem[f"{suite}_input"]))
        payload = call_payload(self.problem, self.dataset, suite, code, limits)
        seconds = min(_SUITE_SECONDS, sum(limits)) + _SPARE_SECONDS
        wall_seconds = min(WALL_FACTOR * seconds, seconds + _MOST_WAITING_SECONDS)
        return self.sandbox.run(payload, wall_seconds, math.ceil(seconds), outputs)

    def _compare(self, truth: GroundTruth, files: Mapping[str, IO[bytes]]) -> dict[str, SuiteResult]:
        """Compare a solution's outputs: by their digests, else in the comparing process, again if that fails.

        Raises:
            _BrokenBySolution: It fails again, and only with these outputs.
        """
        found = {}
        for suite in TEST_SUITES:
            result = suite_of_equal_bytes(self.problem, self.dataset, suite, truth, files[suite])
            if result is None:
                break
            found[suite] = result
        else:
            return found
        for _ in range(2):
            with contextlib.suppress(ComparerBroken):
                return self.comparer.compare(self.problem, self.dataset, truth, files)
        with tempfile.TemporaryFile() as nothing:
            self.comparer.compare(self.problem, self.dataset, truth, dict.fromkeys(TEST_SUITES, nothing))
        raise _BrokenBySolution("its outputs ended the comparing process twice")
