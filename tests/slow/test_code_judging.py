"""Judging in the real sandbox: outcomes, caches, a sandbox that fails, interruption, and the run without a sandbox."""

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from waiting import PATIENCE, wait_until

from cultureval.metrics.code.comparison_server import Comparer, ComparerBroken
from cultureval.metrics.code.judging import Solution, check_canonical_solutions, judge_solutions
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.sandbox.jail import jail_command
from cultureval.runtime.sandbox.sandbox import Sandbox, SandboxBroken, SandboxUnavailable
from cultureval.runtime.settings import current_settings, use_settings

pytestmark = pytest.mark.usefixtures("own_cache")

ADD = {
    "task_id": "add",
    "prompt": "def add(a, b):\n",
    "canonical_solution": "    return a + b\n",
    "entry_point": "add",
    "base_input": [[1, 2]],
    "plus_input": [[3, 4], [5, 6]],
    "atol": 0,
}
BROKEN = ADD | {"task_id": "broken", "canonical_solution": "    return a / (a - 3)\n"}
PROBLEMS = {"add": ADD, "broken": BROKEN}
RIGHT = "def add(a, b): return a + b"
BASE_ONLY = "def add(a, b): return 3 if a == 1 else 0"


def test_outcomes_come_in_the_order_of_the_solutions():
    codes = [RIGHT, BASE_ONLY, "def add(a, b): return a - b", "no python", "def other(): pass", RIGHT]
    solutions = [Solution("add", index, code) for index, code in enumerate(codes)]
    verdicts = judge_solutions(PROBLEMS, solutions, "humaneval", workers=2, progress=False)
    assert [(v.sample_index, v.base, v.plus) for v in verdicts] == [
        (0, "pass", "pass"),
        (1, "pass", "fail"),
        (2, "fail", "fail"),
        (3, "fail", "fail"),
        (4, "fail", "fail"),
        (5, "pass", "pass"),
    ]
    assert [(v.evalplus_base, v.evalplus_plus) for v in verdicts] == [(v.base, v.plus) for v in verdicts]
    assert verdicts[1].evalplus_plus_details == [False]
    assert verdicts[1].reason == "plus: wrong output in call 1 of 2, input (3, 4)"
    assert "SyntaxError" in verdicts[3].reason and "KeyError" in verdicts[4].reason
    assert all(v.sandboxed and not v.differs for v in verdicts)


def test_a_solution_of_no_problem_is_refused():
    with pytest.raises(CulturevalError, match="unheard"):
        judge_solutions(PROBLEMS, [Solution("unheard", 0, "")], "humaneval", progress=False)


def test_canonical_solutions_are_checked_once_and_the_defect_is_named(tmp_path, monkeypatch):
    first = check_canonical_solutions(PROBLEMS, "humaneval", workers=1, progress=False)
    assert first["add"].plus == "pass"
    assert (first["broken"].base, first["broken"].plus) == ("pass", "fail")
    assert "ZeroDivisionError" in first["broken"].reason
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    monkeypatch.setenv("PATH", str(tmp_path))  # what is kept needs no sandbox
    assert check_canonical_solutions(PROBLEMS, "humaneval", progress=False) == first
    assert files == {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    changed = {"add": ADD | {"canonical_solution": "    return b + a\n"}}
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        check_canonical_solutions(changed, "humaneval", progress=False)


def test_a_solution_without_ground_truth_fails_with_the_reason():
    (verdict,) = judge_solutions(PROBLEMS, [Solution("broken", 0, "def add(a, b): return a / (a - 3)")], "humaneval")
    assert (verdict.base, verdict.plus) == ("pass", "fail")
    assert verdict.evalplus_plus == "not_judged"


def fail_from_start(monkeypatch, number):
    """Let jails start as they should until the `number`-th one."""
    starts = itertools.count(1)

    def command(*arguments):
        failing = ["/bin/sh", "-c", "echo no namespaces >&2; exit 1"]
        return jail_command(*arguments) if next(starts) < number else failing

    monkeypatch.setattr("cultureval.runtime.sandbox.sandbox.jail_command", command)


def test_what_fails_with_one_solution_concerns_that_one_alone(monkeypatch):
    """A sandbox that fails with everything judges nobody; one that fails with a solution alone fails that solution."""
    run, compare = Sandbox.run, Comparer.compare

    def fails(sandbox, payload, *limits):
        if b"ends sandboxes" in payload:
            raise SandboxBroken("no namespaces")
        return run(sandbox, payload, *limits)

    def fails_comparing(comparer, problem, dataset, truth, suite, outputs):
        contents = outputs.seek(0) or outputs.read()
        if b"4" * 9 in contents:
            raise ComparerBroken("out of order")
        if b"5" * 9 in contents:
            raise ZeroDivisionError("a mistake of ours")
        return compare(comparer, problem, dataset, truth, suite, outputs)

    monkeypatch.setattr(Sandbox, "run", fails)
    monkeypatch.setattr(Comparer, "compare", fails_comparing)
    codes = [RIGHT, "# ends sandboxes", "def add(a, b): return '4' * 9", "def add(a, b): return '5' * 9", RIGHT]
    solutions = [Solution("add", index, code) for index, code in enumerate(codes)]
    verdicts = judge_solutions(PROBLEMS, solutions, "humaneval", workers=2, progress=False)
    assert [(v.base, v.plus) for v in verdicts] == [
        ("pass", "pass"),
        ("fail", "fail"),
        ("fail", "fail"),
        ("not_judged", "not_judged"),
        ("pass", "pass"),
    ]
    assert [v.reason for v in verdicts[1:4]] == [
        "base: it ended its sandbox twice; plus: it ended its sandbox twice",
        "; ".join(f"{suite}: its outputs ended the comparing process twice" for suite in ("base", "plus")),
        "an error of cultureval: ZeroDivisionError: a mistake of ours",
    ]

    monkeypatch.setattr(Sandbox, "run", lambda *_: (_ for _ in ()).throw(SandboxBroken("no namespaces")))
    solutions = [Solution("add", 0, f"{RIGHT}  # later")]
    (verdict,) = judge_solutions(PROBLEMS, solutions, "humaneval", workers=1, progress=False)
    assert (verdict.base, verdict.plus, verdict.evalplus_base) == ("not_judged",) * 3
    assert "no namespaces" in verdict.reason


@pytest.mark.parametrize(
    ("act", "told"),
    [
        ("sum(itertools.repeat(0))", "CPU-time limit"),
        ("time.sleep(9)", "wall-time limit"),
        ("os._exit(5)", "exited with status 5"),
    ],
)
def test_the_call_is_named_that_ended_a_program_and_not_one_before(act, told):
    problem = ADD | {"base_input": [[number, 0] for number in range(3000)], "plus_input": []}
    code = f"import itertools, os, time\ndef add(a, b):\n    if a == 2500:\n        {act}\n    return a + b\n"
    (verdict,) = judge_solutions({"add": problem}, [Solution("add", 0, code)], "humaneval", workers=1, progress=False)
    assert verdict.reason == f"base: {told} in call 2501 of 3000, input (2500, 0)"
    status = ("timeout", [True] * 2500) if "exited" in told else ("fail", [True] * 2500 + [False])
    assert (verdict.evalplus_base, verdict.evalplus_base_details) == status


@pytest.fixture
def under_nohup():
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, earlier)


@pytest.mark.parametrize("when", ["when loaded", "in a call"])
def test_solutions_that_kill_themselves_by_any_signal_get_a_verdict_among_others(when, under_nohup):
    solutions = [Solution("add", 0, RIGHT)]
    numbers = [*range(1, 36), 40, 64]  # the real-time signals are alike
    for number in numbers:
        act = f"os.kill(os.getpid(), {number})"
        code = f"import os\n{act if when == 'when loaded' else ''}\ndef add(a, b):\n    {act}\n    return a + b\n"
        solutions += [Solution("add", 2 * number - 1, code), Solution("add", 2 * number, RIGHT)]
    verdicts = judge_solutions(PROBLEMS, solutions, "humaneval", workers=2, progress=False)
    assert len(verdicts) == 2 * len(numbers) + 1
    assert all((v.base, v.plus) == ("pass", "pass") for v in verdicts[::2])
    # Those that a process in a session of its own, or Python, ignores; and the one that looks at the time.
    harmless = {signal.Signals[f"SIG{name}"] for name in "CHLD CONT URG WINCH PIPE XFSZ TSTP TTIN TTOU ALRM".split()}
    harmless |= {32, 33}  # of the C library, whose posix_spawn (of make, say) passes them on as ignored
    for number, verdict in zip(numbers, verdicts[1::2], strict=True):
        assert verdict.base in (("pass", "fail") if number in harmless else ("fail",)), (number, verdict.reason)
    assert "ended by SIGRTMIN+6" in verdicts[-4].reason and "stopped itself" in verdicts[2 * signal.SIGSTOP - 1].reason


def test_a_job_stays_on_the_cpus_of_its_jail():
    most = -(-len(os.sched_getaffinity(0)) // 2)
    code = f"""
import os
def add(a, b):
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except PermissionError:
        return a + b if len(os.sched_getaffinity(0)) <= {most} else 0
"""
    verdicts = judge_solutions(PROBLEMS, [Solution("add", 0, code)] * 2, "humaneval", workers=2, progress=False)
    assert [verdict.plus for verdict in verdicts] == ["pass", "pass"], verdicts


def test_a_machine_without_namespaces_is_told_what_it_needs(monkeypatch):
    fail_from_start(monkeypatch, 1)
    with pytest.raises(SandboxUnavailable, match=r"no namespaces.*user\.max_user_namespaces"):
        judge_solutions(PROBLEMS, [Solution("add", 0, RIGHT)], "humaneval", progress=False)


def test_without_a_sandbox_it_warns_and_marks(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    solutions = [Solution("add", 0, RIGHT), Solution("add", 1, "def add(a, b):\n    while True: pass")]
    with pytest.warns(UserWarning, match="UNSAFE"):
        right, endless = judge_solutions(PROBLEMS, solutions, "humaneval", sandboxed=False, progress=False)
    assert (right.base, right.plus, right.evalplus_plus, right.sandboxed) == ("pass", "pass", "pass", False)
    assert (endless.base, endless.sandboxed) == ("fail", False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interruption_leaves_no_process(tmp_path, number):
    # The ground truth is known: else the jails that are seen below may be its own, which end before solutions start.
    judge_solutions(PROBLEMS, [Solution("add", 0, RIGHT)], "humaneval", workers=1, progress=False)
    code = (
        "import json, sys\nfrom cultureval.metrics.code.judging import Solution, judge_solutions\n"
        "endless = 'import time\\ndef add(a, b):\\n    time.sleep(1000)'\n"
        "solutions = [Solution('add', index, f'{endless}  # {index}') for index in range(50)]\n"
        "judge_solutions(json.loads(sys.argv[1]), solutions, 'humaneval', workers=2)\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(PROBLEMS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    below = set()

    def works():
        below.clear()
        below.update(descendants(run.pid))
        return len(below) >= 4

    wait_until(works, every=1)
    run.send_signal(number)
    run.wait(PATIENCE)
    wait_until(lambda: not any(map(alive, below)))


def test_a_run_ends_at_once_in_the_middle_of_a_long_comparison():
    rows = {"task_id": "rows", "entry_point": "rows", "prompt": "def rows(n):\n", "atol": 0}
    rows |= {"canonical_solution": "    return [i / 1 for i in range(n)]\n"}
    rows |= {"base_input": [[1_000_000]] * 8, "plus_input": []}
    code = (
        "import json, sys\nfrom cultureval.metrics.code.judging import Solution, judge_solutions\n"
        "solution = Solution('rows', 0, 'def rows(n): return list(range(n))')\n"
        "judge_solutions({'rows': json.loads(sys.argv[1])}, [solution], 'humaneval', workers=1)\n"
    )
    run = subprocess.Popen([sys.executable, "-c", code, json.dumps(rows)], stderr=subprocess.PIPE, text=True)
    comparing = set()

    def compares():
        comparing.clear()
        comparing.update(one for one in descendants(run.pid) if b"comparison_server" in command_of(one[0]))
        return len(comparing) == 2  # the server, and what compares a suite of large outputs

    wait_until(compares)
    time.sleep(0.5)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=PATIENCE)
    wait_until(lambda: not any(map(alive, comparing)))
    assert run.returncode == -signal.SIGTERM


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def descendants(pid):
    """All processes below a process, by their start time too, so that a number used again is not taken for it."""
    found, waiting = set(), [pid]
    while waiting:
        try:
            for thread in Path(f"/proc/{waiting.pop()}/task").iterdir():
                children = [int(child) for child in (thread / "children").read_text().split()]
                found |= {(child, started(child)) for child in children}
                waiting += children
        except OSError:
            continue
    return found


def started(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[19]


def alive(process):
    try:
        return started(process[0]) == process[1]
    except OSError:
        return False


def test_a_solution_cannot_read_a_data_root_in_a_bound_folder(tmp_path):
    """The root is given by a link; without it, the solution finds the file."""
    packages = next(Path(entry) for entry in sys.path if Path(entry).name == "site-packages").resolve()
    with tempfile.TemporaryDirectory(dir=packages / "numpy") as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "answers").write_text("secret")
        (tmp_path / "link").symlink_to(folder)
        code = "import glob\ndef add(a, b): return 0 if glob.glob('/sandbox/packages/numpy/*/answers') else a + b"
        verdicts = []
        for root in ("", str(tmp_path / "link")):
            with use_settings(current_settings().with_(data_root=root)):
                verdicts += judge_solutions(
                    PROBLEMS, [Solution("add", 0, f"{code} # {root}")], "humaneval", progress=False
                )
    assert [verdict.base for verdict in verdicts] == ["fail", "pass"]
