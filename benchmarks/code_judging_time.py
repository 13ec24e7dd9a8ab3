"""Time of judging canonical solutions, and a mix of right and broken ones, beside EvalPlus's own executor, in turns.
Both have two workers. In the mix every second solution gives a wrong output, in its first or in its third call.

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

from benchmarks.code_transformations import RESULTS, wrapped
from cultureval.metrics.code.ground_truth import canonical_code, content_key, known_truth
from cultureval.metrics.code.judging import Solution, check_canonical_solutions, judge_solutions
from cultureval.metrics.code.rules import output_form
from cultureval.runtime.sandbox.jail import TEST_SUITES
from cultureval.tasks.qimma.code_data import load_problems

DATA = Path(__file__).parents[2] / "shared" / "data" / "evalplus_arabic"
NOT_COMPARED = {"HumanEval/32", "Mbpp/255", "Mbpp/392"}  # which EvalPlus fails, see docs/code_sandbox.md
_expected = {}


def by_evalplus(dataset, problem, code):
    """EvalPlus's verdicts on one solution, as `evalplus.evaluate` finds them."""
    found = []
    for suite, (expected, seconds) in _expected[problem["task_id"]].items():
        settings = (problem["entry_point"], expected, problem["atol"], seconds)
        check = untrusted_check(dataset, code, problem[f"{suite}_input"], *settings, fast_check=True)
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
    os.environ["CULTUREVAL_RESUME"] = "0"
    right = {task: canonical_code(problem) for task, problem in problems.items()}
    time_solutions(dataset, problems, right, given.rounds, f"{len(problems)} canonical solutions")
    time_solutions(dataset, problems, mixed(problems), given.rounds, "a mix of right and broken ones")
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        print(f"the calls alone: {sum(pool.map(the_calls, problems.values())):.1f} s of CPU time", flush=True)


def mixed(problems):
    """By task a program: every second one is broken."""
    found = {}
    for place, (task, problem) in enumerate(problems.items()):
        change = [None, RESULTS["one more"], None, RESULTS["third call wrong"]][place % 4]
        code = canonical_code(problem)
        found[task] = wrapped(code, problem["entry_point"], change) if change else code
    return found


def time_solutions(dataset, problems, codes, rounds, what):
    """Prints the times of one solution a problem, and what part of EvalPlus's ours are."""
    solutions = [Solution(task, 0, code) for task, code in codes.items()]

    def ours():
        verdicts = judge_solutions(problems, solutions, dataset, workers=2, progress=False)
        return sum(verdict.base == verdict.plus == "pass" for verdict in verdicts)

    def theirs():
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            asked = [pool.submit(by_evalplus, dataset, problems[task], code) for task, code in codes.items()]
            return sum(set(one.result()) == {"pass"} for one in asked)

    times = {"here": [], "EvalPlus": []}
    for _ in range(rounds):
        for name, function in (("here", ours), ("EvalPlus", theirs)):
            passed, wall, cpu = measured(function)
            times[name].append((wall, cpu))
            print(f"{name}: {passed} pass, {wall:.1f} s, {cpu:.1f} s of CPU time", flush=True)
    (wall, cpu), (their_wall, their_cpu) = (map(sum, zip(*times[name], strict=True)) for name in times)
    print(f"{dataset}, {what}: {wall / their_wall:.2f} of EvalPlus's time, {cpu / their_cpu:.2f} of its CPU time")


if __name__ == "__main__":
    main()
