"""Time of judging all canonical solutions, beside EvalPlus's own executor, in turns, with two workers each.

`python -m benchmarks.code_judging_time [humaneval|mbpp] [--most SECONDS] [--rounds N]`, by default both data
sets. The ground truth of both is known before; nothing of an earlier run is used again. Wall time and CPU time of all
processes; on a busy machine only the CPU time says something. `the calls` are the same calls in a bare interpreter,
without limits, comparison or process of their own: the part of both that no judge can take away.
"""

import argparse
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from evalplus.eval import untrusted_check
from evalplus.gen.util import trusted_exec

from cultureval.metrics.code.ground_truth import canonical_code, content_key, known_truth
from cultureval.metrics.code.judging import Solution, check_canonical_solutions, judge_solutions
from cultureval.metrics.code.rules import output_form
from cultureval.runtime.sandbox.jail import TEST_SUITES
from cultureval.tasks.qimma.code_data import load_problems

DATA = Path(__file__).parents[2] / "shared" / "data" / "evalplus_arabic"
NOT_COMPARED = {"HumanEval/32", "Mbpp/255", "Mbpp/392"}  # which EvalPlus fails, see docs/code_sandbox.md
_expected = {}


def by_evalplus(dataset, problem):
    """EvalPlus's verdicts on one canonical solution, as `evalplus.evaluate` finds them."""
    found = []
    for suite, (expected, seconds) in _expected[problem["task_id"]].items():
        settings = (problem["entry_point"], expected, problem["atol"], seconds)
        check = untrusted_check(dataset, canonical_code(problem), problem[f"{suite}_input"], *settings, fast_check=True)
        found.append(check[0])
    return found


def truth_of_evalplus(dataset, problem):
    any_value = output_form(dataset, problem["entry_point"], canonical=True) == "is not None"
    settings = {"record_time": True, "output_not_none": any_value}
    code, name = canonical_code(problem), problem["entry_point"]
    return {suite: trusted_exec(code, problem[f"{suite}_input"], name, **settings) for suite in TEST_SUITES}


def the_calls(problem):
    """CPU time of all calls of one canonical solution, in seconds."""
    names, seconds = {}, 0.0
    exec(canonical_code(problem), names)  # noqa: S102  # as EvalPlus runs it for its ground truth
    function = names[problem["entry_point"]]
    for arguments in [*problem["base_input"], *problem["plus_input"]]:
        began = time.process_time()
        function(*arguments)
        seconds += time.process_time() - began
    return seconds


def measured(function):
    """Wall time and CPU time, in seconds, of what a function and the processes that it starts take."""

    def cpu():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used)

    began, before = time.monotonic(), cpu()
    result = function()
    return result, time.monotonic() - began, cpu() - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", nargs="*", default=["humaneval", "mbpp"], metavar="humaneval|mbpp")
    parser.add_argument("--most", type=float, default=1000.0, help="seconds of a canonical solution")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", default=str(DATA))
    given = parser.parse_args()
    for dataset in given.datasets:
        time_dataset(dataset, given)


def time_dataset(dataset, given):
    """Prints the times of a data set, and what part of EvalPlus's ours are."""
    problems = load_problems(dataset, given.data).problems()
    problems = {task: problem for task, problem in problems.items() if task not in NOT_COMPARED}
    check_canonical_solutions(problems, dataset, workers=2)
    seconds = {
        task: sum(sum(suite.seconds) for suite in known_truth(content_key(problem, dataset)).values())
        for task, problem in problems.items()
    }
    problems = {task: problem for task, problem in problems.items() if seconds[task] <= given.most}
    _expected.clear()
    _expected.update({task: truth_of_evalplus(dataset, problem) for task, problem in problems.items()})
    solutions = [Solution(task, 0, canonical_code(problem)) for task, problem in problems.items()]
    os.environ["CULTUREVAL_RESUME"] = "0"

    def ours():
        verdicts = judge_solutions(problems, solutions, dataset, workers=2, progress=False)
        return sum(verdict.base == verdict.plus == "pass" for verdict in verdicts)

    def theirs():
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            asked = [pool.submit(by_evalplus, dataset, problem) for problem in problems.values()]
            return sum(set(one.result()) == {"pass"} for one in asked)

    print(f"{dataset}: {len(problems)} canonical solutions")
    times = {"here": [], "EvalPlus": []}
    calls = []
    for _ in range(given.rounds):
        for name, function in (("here", ours), ("EvalPlus", theirs)):
            passed, wall, cpu = measured(function)
            times[name].append((wall, cpu))
            print(f"{name}: {passed} pass, {wall:.1f} s, {cpu:.1f} s of CPU time", flush=True)
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            calls.append(sum(pool.map(the_calls, problems.values())))
        print(f"the calls: {calls[-1]:.1f} s of CPU time", flush=True)
    (wall, ours), (their_wall, theirs) = (map(sum, zip(*times[name], strict=True)) for name in times)
    alone = sum(calls)
    print(f"{dataset}: {wall / their_wall:.2f} of EvalPlus's time, {ours / theirs:.2f} of its CPU time")
    shares = f"{alone / ours:.2f} of ours, {alone / theirs:.2f} of EvalPlus's"
    print(f"the calls are {shares}; without them {(ours - alone) / (theirs - alone):.2f} of its", flush=True)


if __name__ == "__main__":
    main()
