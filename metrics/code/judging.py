"""Judging of generated code: solutions run in a sandbox, and other processes compare their outputs.

A solution runs once on each suite of inputs, in a process that gets only its code and the inputs. When it has ended,
its outputs, plain data in files, are compared with those of the canonical solution, by EvalPlus's rules (`rules`), in a
process with limits that runs no generated code (`comparison_server`). EvalPlus's own verdict on the same outputs is
reported next to ours.
"""

import contextlib
import math
import queue
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any

from cultureval.metrics.code.comparison_server import (
    Comparer,
    ComparerBroken,
    ComparisonInterrupted,
    SuiteResult,
    suite_of_equal_bytes,
)
from cultureval.metrics.code.ground_truth import (
    WALL_FACTOR,
    GroundTruth,
    TruthInterrupted,
    call_payload,
    canonical_code,
    compute_truth,
    content_key,
    known_truth,
    truth_folder,
)
from cultureval.metrics.code.kept_verdicts import KeptVerdicts
from cultureval.metrics.code.outcomes import NOT_JUDGED, evalplus_status, failure
from cultureval.metrics.code.pass_at_k import Outcome
from cultureval.metrics.code.rules import TEST_SUITES, Dataset
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.progress import progressing
from cultureval.runtime.sandbox.sandbox import (
    DiskFull,
    JobEnd,
    Sandbox,
    SandboxBroken,
    SandboxPool,
    SandboxUnavailable,
    is_full,
)

PASS: Outcome = "pass"
FAIL: Outcome = "fail"

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
        task_id: The solution's problem.
        sample_index: The solution's number among those of its problem, from 0.
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
) -> list[SolutionVerdict]:
    """Judge solutions in parallel; each verdict is kept as it comes, so that a stopped run goes on.

    Args:
        problems: EvalPlus's problems by task id, MBPP's inputs deserialised.
        solutions: Solutions of these problems.
        dataset: The data set of the problems.
        workers: Number of sandboxes; default: one per CPU.
        sandboxed: False runs the code without a sandbox, with a warning, and marks the verdicts.
        progress: Whether to show a progress bar.

    Returns:
        One verdict for each solution, in the order of the solutions. Verdicts of earlier runs are used again
        (`kept_verdicts`).

    Raises:
        CulturevalError: A solution's task is not among the problems, or verdicts cannot be kept.
        DiskFull: Outputs cannot be stored; what has been judged is kept.
        SandboxUnavailable: This machine cannot run the sandbox.
    """
    unknown = sorted({solution.task_id for solution in solutions} - set(problems))
    if unknown:
        raise CulturevalError(f"solutions name tasks that are not among the {len(problems)} problems: {unknown[:5]}")
    if not solutions:
        return []
    used = {solution.task_id: problems[solution.task_id] for solution in solutions}
    contents = {task: content_key(problem, dataset) for task, problem in used.items()}
    kept = KeptVerdicts(contents) if sandboxed else None
    # Equal programs are judged once; without a sandbox, one may have changed what the other finds.
    keys = [kept.key(solution) if kept else str(place) for place, solution in enumerate(solutions)]
    first: dict[str, Solution] = {}
    for key, solution in zip(keys, solutions, strict=True):
        first.setdefault(key, solution)
    fields = {key: found for key in first if kept and (found := kept.find(key))}
    missing = {key: solution for key, solution in first.items() if key not in fields}
    verdicts = {key: SolutionVerdict(first[key].task_id, 0, **found) for key, found in fields.items()}
    if missing:
        verdicts |= _Judging(used, contents, dataset, workers, sandboxed, progress, kept).verdicts(missing)
    return [
        replace(verdicts[key], task_id=solution.task_id, sample_index=solution.sample_index)
        for key, solution in zip(keys, solutions, strict=True)
    ]


def check_canonical_solutions(
    problems: Mapping[str, Mapping[str, Any]], dataset: Dataset, **options: Any
) -> dict[str, SolutionVerdict]:
    """By task the verdict on its canonical solution: a failing one is a defect of the data or of its limits.

    Arguments (`options` too) and errors are those of `judge_solutions`.
    """
    return judge_with_canonicals(problems, [], dataset, **options)[1]


def judge_with_canonicals(
    problems: Mapping[str, Mapping[str, Any]], solutions: Sequence[Solution], dataset: Dataset, **options: Any
) -> tuple[list[SolutionVerdict], dict[str, SolutionVerdict]]:
    """The verdicts on solutions, and on the canonical solution of each problem, all judged side by side.

    Arguments (`options` too) and errors are those of `judge_solutions`.
    """
    canonical = [Solution(task, 0, canonical_code(problem)) for task, problem in problems.items()]
    found = judge_solutions(problems, [*canonical, *solutions], dataset, **options)
    return found[len(canonical) :], {verdict.task_id: verdict for verdict in found[: len(canonical)]}


@dataclass(frozen=True)
class _Judging:
    """The judging of programs that no run has judged yet.

    Args:
        problems: By task id.
        contents: The `content_key` of each.
        dataset: Their data set.
        workers: Number of sandboxes; None: one per CPU.
        sandboxed: Whether there are sandboxes.
        progress: Whether to show progress bars.
        kept: Where verdicts are kept; None where they are not.
    """

    problems: Mapping[str, Mapping[str, Any]]
    contents: Mapping[str, str]
    dataset: Dataset
    workers: int | None
    sandboxed: bool
    progress: bool
    kept: KeptVerdicts | None

    def verdicts(self, solutions: Mapping[str, Solution]) -> Iterator[tuple[str, SolutionVerdict]]:
        """The verdicts on solutions by key, each as soon as it is kept."""
        truths = self._ground_truths(sorted({solution.task_id for solution in solutions.values()}))
        seconds = {task: _seconds(truth) for task, truth in truths.items()}
        # The longest first, so that workers finish at about the same time.
        order = sorted(solutions, key=lambda key: -seconds[solutions[key].task_id])
        with SandboxPool(self.workers, safe=self.sandboxed) as pool, contextlib.ExitStack() as closing:
            idle: queue.SimpleQueue[Comparer] = queue.SimpleQueue()
            for _ in range(pool.workers):
                idle.put(closing.enter_context(contextlib.closing(Comparer())))

            def judge(sandbox: Sandbox, key: str) -> tuple[str, SolutionVerdict]:
                task, comparer = solutions[key].task_id, idle.get()
                try:
                    own = _Judge(self.problems[task], self.dataset, truths[task], sandbox, comparer)
                    return key, self._once(own, key, solutions[key])
                finally:
                    idle.put(comparer)

            found = pool.run(judge, order)
            yield from progressing(found, len(order), "judging", "task", silent=not self.progress)

    def _ground_truths(self, tasks: list[str]) -> dict[str, GroundTruth | str]:
        """The ground truth of each task, or why there is none. Its sandboxes end before solutions run."""
        truths: dict[str, GroundTruth | str] = {task: known_truth(self.contents[task]) or "" for task in tasks}
        missing = [task for task, truth in truths.items() if not truth]
        if not missing:
            return truths

        def find(sandbox: Sandbox, task: str) -> tuple[str, GroundTruth | str]:
            reason = ""
            for _ in range(2):
                try:
                    return task, compute_truth(self.problems[task], self.dataset, self.contents[task], sandbox)
                except (SandboxBroken, SandboxUnavailable, TruthInterrupted) as error:
                    reason = str(error)
            return task, reason

        with SandboxPool(self.workers, safe=self.sandboxed) as pool:
            found, silent = pool.run(find, missing), not self.progress
            return truths | dict(progressing(found, len(missing), "ground truth", "task", silent, truth_folder()))

    def _once(self, judge: "_Judge", key: str, solution: Solution) -> SolutionVerdict:
        """The verdict on one solution: a kept one, or a new one, which is kept."""
        if self.kept is None:
            return judge.verdict(solution)
        if found := self.kept.find(key):
            return SolutionVerdict(solution.task_id, solution.sample_index, **found)
        verdict = judge.verdict(solution)
        if judge.is_of_the_program and NOT_JUDGED not in (verdict.base, verdict.plus):
            self.kept.keep({key: verdict})
        return verdict


def _seconds(truth: GroundTruth | str) -> float:
    return 0.0 if isinstance(truth, str) else sum(sum(suite.seconds) for suite in truth.suites.values())


class _BrokenBySolution(CulturevalError):
    """A process of ours fails twice with one solution, and works with another."""


class _KilledByKernel(CulturevalError):
    """The kernel killed a solution twice, as where the machine has too little memory."""


@dataclass
class _Judge:
    """Judges one solution.

    Attributes:
        is_of_the_program: Whether the verdict follows from the program alone; else another try could give another.
    """

    problem: Mapping[str, Any]
    dataset: Dataset
    truth: GroundTruth | str
    sandbox: Sandbox
    comparer: Comparer
    is_of_the_program: bool = True

    def verdict(self, solution: Solution) -> SolutionVerdict:
        """The verdict, whatever happens: an error of ours concerns this solution alone.

        Raises:
            DiskFull: Outputs cannot be stored, for no fault of the solution.
        """
        try:
            return self._judged(solution)
        except DiskFull:
            raise
        except CulturevalError as error:
            reason = str(error)
        except OSError as error:
            if is_full(error):
                raise DiskFull(error) from error
            reason = f"an error of cultureval: {type(error).__name__}: {error}"
        except Exception as error:
            reason = f"an error of cultureval: {type(error).__name__}: {error}"
        return self._verdict(solution, NOT_JUDGED, NOT_JUDGED, reason)

    def _verdict(self, solution: Solution, base: Outcome, plus: Outcome, reason: str) -> SolutionVerdict:
        safe = self.sandbox.safe
        return SolutionVerdict(solution.task_id, solution.sample_index, base, plus, reason, sandboxed=safe)

    def _judged(self, solution: Solution) -> SolutionVerdict:
        truth = self.truth
        if isinstance(truth, str):
            raise SandboxBroken(f"there is no ground truth, since the canonical solution could not be run: {truth}")
        found: dict[str, tuple[Outcome, str]] = {}
        values: dict[str, Any] = {}
        for suite in TEST_SUITES:
            with tempfile.TemporaryFile() as outputs:
                try:
                    end = self._run(solution.code, suite, truth, outputs)
                    result = self._compare(truth, suite, outputs)
                except _BrokenBySolution as error:
                    found[suite] = FAIL, str(error)
                    continue
                except (ComparisonInterrupted, _KilledByKernel) as error:
                    found[suite] = NOT_JUDGED, str(error)
                    continue
            known = self.problem, suite, truth.suites[suite], result, end
            reason = failure(*known)
            found[suite] = (FAIL if reason else PASS), reason
            status, details = evalplus_status(self.dataset, *known)
            values |= {f"evalplus_{suite}": status, f"evalplus_{suite}_details": details}
        reason = "; ".join(f"{suite}: {text}" for suite, (_, text) in found.items() if text)
        base, plus = (found[suite][0] for suite in TEST_SUITES)
        return replace(self._verdict(solution, base, plus, reason), **values)

    def _run(self, code: str, suite: str, truth: GroundTruth, outputs: IO[bytes]) -> JobEnd:
        """Run a solution on a suite, again if its sandbox fails, the kernel kills it or a call is late.

        A machine that is busy, or was suspended meanwhile, makes a call late: no verdict is kept that it had a part in.

        Raises:
            _BrokenBySolution: The sandbox fails again, and only with this solution.
            _KilledByKernel: The kernel kills it again.
        """
        end = None
        for _ in range(2):
            with contextlib.suppress(SandboxBroken):
                outputs.seek(0)
                outputs.truncate()
                end = self._run_once(code, suite, truth, outputs)
                self.is_of_the_program &= not end.waits_for_the_machine
                if not (end.is_late_call or end.is_kill and self.sandbox.safe):
                    return end
        if end is not None and end.is_late_call:
            return end
        if end is not None:
            raise _KilledByKernel(end.describe())
        with tempfile.TemporaryFile() as nothing:
            self._run_once("", suite, truth, nothing)
        raise _BrokenBySolution("it ended its sandbox twice")

    def _run_once(self, code: str, suite: str, truth: GroundTruth, outputs: IO[bytes]) -> JobEnd:
        known = truth.suites[suite]
        calls = len(self.problem[f"{suite}_input"])
        seconds = known.seconds_of_suite(calls)
        payload = call_payload(self.problem, self.dataset, suite, code, known.limits(calls), seconds)
        seconds += _SPARE_SECONDS + known.seconds_of_outputs()
        wall_seconds = min(WALL_FACTOR * seconds, seconds + _MOST_WAITING_SECONDS)
        return self.sandbox.run(payload, wall_seconds, math.ceil(seconds), outputs, known.size())

    def _compare(self, truth: GroundTruth, suite: str, outputs: IO[bytes]) -> SuiteResult:
        """Compare a solution's outputs: by their digests, else in the comparing process, again if that fails.

        Raises:
            _BrokenBySolution: It fails again, and only with these outputs.
        """
        known = self.problem, self.dataset
        result = suite_of_equal_bytes(*known, suite, truth, outputs)
        if result is not None:
            return result
        for _ in range(2):
            with contextlib.suppress(ComparerBroken):
                return self.comparer.compare(*known, truth, suite, outputs)
        with tempfile.TemporaryFile() as nothing:
            self.comparer.compare(*known, truth, suite, nothing)
        raise _BrokenBySolution("its outputs ended the comparing process twice")
