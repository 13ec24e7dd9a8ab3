"""Judging in the real sandbox: outcomes, right and wrong forms, what is kept, and faults of machine or data."""

import functools
import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_until

from cultureval.metrics.code import comparing, judging
from cultureval.metrics.code.ground_truth import SuiteTruth, content_key
from cultureval.metrics.code.judging import Solution, check_canonical_solutions, judge_solutions
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.hostile_work import Ended, results
from cultureval.runtime.journal import journal_folder
from cultureval.runtime.sandbox.codec import FRAME
from cultureval.runtime.sandbox.jail import Jail, JobEnd, SandboxBroken, SandboxUnavailable, check_jail

pytestmark = pytest.mark.usefixtures("own_cache")


def problem(entry_point, signature, body, base, plus, atol=0):
    """A problem in EvalPlus's form."""
    return {
        "task_id": entry_point,
        "prompt": f"def {entry_point}({signature}):\n",
        "canonical_solution": textwrap.indent(f"{body}\n", "    "),
        "entry_point": entry_point,
        "base_input": base,
        "plus_input": plus,
        "atol": atol,
    }


ADD = problem("add", "a, b", "return a + b", [[1, 2]], [[3, 4], [5, 6]])
PROBLEMS = {
    "add": ADD,
    "broken": ADD | {"task_id": "broken", "canonical_solution": "    return a / (a - 3)\n"},
    "row": problem("row", "n", "return [i / 1 for i in range(n)]", [[3]], [[300_000]]),
    "product": problem("product", "n", "import math\nreturn math.prod(range(1, n))", [[5]], [[20_000]]),
}
RIGHT = "def add(a, b): return a + b"


def judged(*solutions, problems=PROBLEMS, dataset="humaneval"):
    """Outcomes, and the verdicts, on (task, code) pairs."""
    asked = [Solution(task, number, code) for number, (task, code) in enumerate(solutions)]
    verdicts = judge_solutions(problems, asked, dataset, workers=2, progress=False)
    assert [verdict.sample_index for verdict in verdicts] == list(range(len(solutions)))
    return [(verdict.base, verdict.plus) for verdict in verdicts], verdicts


BASE_ONLY = "def add(a, b): return 3 if a == 1 else 0"
CASES = [
    ("add", RIGHT, "pass", ""),
    ("add", BASE_ONLY, "plus", "plus: wrong output in call 1 of 2, input (3, 4)"),
    ("add", "def add(a, b): return a - b", "fail", "base: wrong output in call 1 of 1, input (1, 2)"),
    ("add", "no python", "fail", "base: it raises SyntaxError when loaded"),
    ("add", "def other(): pass", "fail", "base: it raises KeyError when loaded"),
    ("add", "import os\ndef add(a, b): os._exit(5)", "fail", "base: it exited with status 5 in call 1 of 1"),
    ("add", "import os\ndef add(a, b): os.kill(os.getpid(), 11)", "fail", "base: ended by SIGSEGV in call 1"),
    ("add", "def add(a, b):\n    while True: pass", "fail", "base: CPU-time limit in call 1 of 1"),
    ("broken", "def add(a, b): return a / (a - 3)", "plus", "plus: it raises ZeroDivisionError in call 1"),
    ("broken", "def add(a, b): return -0.5", "plus", "no ground truth for call 1 of 2, input (3, 4)"),
    ("row", "def row(n): return list(range(n))", "pass", ""),
    ("row", "import numpy\ndef row(n): return list(numpy.arange(n, dtype='f8'))", "pass", ""),
    ("row", "def row(n): return list(range(n))[:-1] + [n if n > 3 else n - 1]", "plus", "wrong output"),
    (
        "row",
        "def row(n): return [[i / 1] for i in range(n)] if n > 3 else [0.0, 1.0, 2.0]",
        "plus",
        "wrong output",
    ),
    (
        "product",
        "import math, fractions\ndef product(n): return fractions.Fraction(math.prod(range(1, n)))",
        "pass",
        "",
    ),
    ("product", "import sympy\ndef product(n): return 24 if n == 5 else sympy.Integer(7) ** 1_000_000", "plus", ""),
]


def test_outcomes_and_reasons():
    outcomes, verdicts = judged(*[(task, code) for task, code, _, _ in CASES])
    expected = {"pass": ("pass", "pass"), "plus": ("pass", "fail"), "fail": ("fail", "fail")}
    for outcome, verdict, (_, _, kind, reason) in zip(outcomes, verdicts, CASES, strict=True):
        assert outcome == expected[kind] and reason in verdict.reason, verdict
        assert (verdict.failing_call is None) == (kind == "pass")


def test_a_solution_of_no_problem_is_refused():
    with pytest.raises(CulturevalError, match="unheard"):
        judged(("unheard", ""))


def kept_lines():
    return sum(file.read_bytes().count(b"\n") for file in journal_folder().rglob("*.jsonl"))


def test_verdicts_and_ground_truths_are_kept_and_need_no_sandbox_again(monkeypatch, tmp_path):
    first = check_canonical_solutions(PROBLEMS, "humaneval", progress=False)
    assert (first["add"].plus, first["broken"].plus) == ("pass", "fail")
    count = kept_lines()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_canonical_solutions(PROBLEMS, "humaneval", progress=False) == first and kept_lines() == count
    for change in ({"canonical_solution": "    return b + a\n"}, {"plus_input": [[1, 1]]}):
        with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
            judged(("add", RIGHT), problems={"add": ADD | change})


class Killed(Jail):
    """A jail whose programs the kernel kills, as where memory is short."""

    is_kill = True

    def end(self):
        super().end()
        return JobEnd(-signal.SIGKILL, self.is_kill)


def one_verdict(monkeypatch, jail, code=RIGHT):
    """What a process finds that judges one program."""
    judged(("add", RIGHT))  # so that the ground truth is known
    monkeypatch.setattr(judging, "Jail", jail)
    task = judging._Task("", ADD, "humaneval", content_key(ADD, "humaneval"), code, check_jail())
    fields, again = judging._judge(task)
    return fields["base"], again, fields["reason"]


def test_what_the_kernel_kills_is_tried_again_but_for_what_took_much_memory(monkeypatch):
    ends = "import os\ndef add(a, b): os._exit(0)"
    for code in (RIGHT, ends):
        assert one_verdict(monkeypatch, Killed, code)[:2] == ("not_judged", True)
    monkeypatch.setattr(Killed, "is_kill", False)
    assert one_verdict(monkeypatch, Killed, ends)[:2] == ("fail", False)


@pytest.mark.parametrize(("error", "again"), [(SandboxBroken("no jail"), True), (ZeroDivisionError("ours"), False)])
def test_an_error_of_ours_concerns_one_solution_alone(monkeypatch, error, again):
    class Failing(Jail):
        def start(self, job):
            raise error

    outcome, retried, reason = one_verdict(monkeypatch, Failing)
    assert (outcome, retried) == ("not_judged", again) and str(error) in reason


@pytest.mark.parametrize(
    ("number", "outcome"), [(signal.SIGPROF, "fail"), (signal.SIGALRM, "not_judged"), (signal.SIGKILL, "not_judged")]
)
def test_what_ends_the_comparing_process_is_tried_once_more_alone(monkeypatch, tmp_path, number, outcome):
    monkeypatch.setattr(judging, "_judge", functools.partial(ended_by, number, str(tmp_path)))
    found = judge_solutions(PROBLEMS, [Solution("add", 0, RIGHT)], "humaneval", workers=2, progress=False)
    assert (found[0].base, found[0].plus) == (outcome, outcome) and len(list(tmp_path.glob("[0-9]*"))) == 2
    assert not kept_lines()


def ended_by(number, folder, _task):
    """In the place of `_judge`: ends its process by a signal."""
    Path(folder, str(os.getpid())).touch()
    os.kill(os.getpid(), number)


def test_outputs_that_take_long_to_read_end_the_process_by_its_timer():
    truth, problem = SuiteTruth([1.0], [b'set\0{"<":[]}'], ""), ADD | {"base_input": [[1, 2]]}
    items = b",".join(b"%d" % (number * (2**61 - 1)) for number in range(4_000))  # all have one hash
    frames = [(b"P", b""), (b"L", b""), (b"V", b'set\0{"<":[%b]}' % items)]
    sent = b"".join(FRAME.pack(kind, 0.0, len(content)) + content for kind, content in frames)
    given = (problem, "humaneval", "base", truth, io.BytesIO(sent), 60.0)
    ((_, found),) = results(compare_slowly, [given], 1)
    assert found == Ended(-signal.SIGPROF)


def compare_slowly(given):
    comparing.CPU_SECONDS = 0.01
    return comparing.compare_suite(*given)


def test_a_canonical_solution_that_sleeps_too_long_gives_no_ground_truth_and_no_verdict(monkeypatch, tmp_path):
    monkeypatch.setattr("cultureval.metrics.code.ground_truth.SUITE_SECONDS", 0.1)
    asleep = ADD | {"canonical_solution": "    import time; time.sleep(99)\n"}
    task = judging._Task("", asleep, "humaneval", content_key(asleep, "humaneval"), RIGHT, check_jail())
    assert "of the canonical solution, wall-time limit" in judging._find_truth(task)
    monkeypatch.setattr(judging, "_find_truth", functools.partial(ended_by, signal.SIGKILL, str(tmp_path)))
    (found,) = judged(("add", RIGHT), problems={"add": asleep})[1]
    assert found.base == "not_judged" and "no ground truth" in found.reason and not kept_lines()


def test_no_signal_that_a_program_sends_itself_ends_the_others():
    pairs = []
    for number in [*range(1, 36), 64]:
        pairs += [
            ("add", f"import os\ndef add(a, b):\n    os.kill(os.getpid(), {number})\n    return 0\n"),
            ("add", RIGHT),
        ]
    outcomes, verdicts = judged(*pairs)
    assert set(outcomes[1::2]) == {("pass", "pass")} and set(outcomes[::2]) == {("fail", "fail")}, verdicts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interruption_leaves_no_process(number):
    judged(("add", RIGHT))  # the ground truth is known
    code = (
        "import json, sys\nfrom cultureval.metrics.code.judging import Solution, judge_solutions\n"
        "endless = 'import time\\ndef add(a, b):\\n    time.sleep(1000)'\n"
        "solutions = [Solution('add', index, f'{endless}  # {index}') for index in range(50)]\n"
        "judge_solutions(json.loads(sys.argv[1]), solutions, 'humaneval', workers=2)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code, json.dumps(PROBLEMS)], stderr=subprocess.DEVNULL)
    below = set()

    def works():
        below.clear()
        below.update(descendants(run.pid))
        return sum(name == "bwrap" for _, _, name in below) >= 2

    wait_until(works, every=1)
    run.send_signal(number)
    run.wait(PATIENCE)
    wait_until(lambda: not any(one in state(one[0]) for one in below))


def state(pid):
    """A process as (number, start, name), in a set that is empty if there is none."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
        return set() if rest.split()[0] == "Z" else {(pid, rest.split()[19], name)}
    except OSError:
        return set()


def descendants(pid):
    found, waiting = set(), [pid]
    while waiting:
        try:
            for thread in Path(f"/proc/{waiting.pop()}/task").iterdir():
                children = [int(child) for child in (thread / "children").read_text().split()]
                found = found.union(*map(state, children))
                waiting += children
        except OSError:
            time.sleep(0)
    return found
