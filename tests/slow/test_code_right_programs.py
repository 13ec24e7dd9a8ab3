"""Right programs pass in whatever form, no finished verdict is lost, and no fault of machine or data gives a score."""

import functools
import inspect
import os
import pickle
import signal
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from cultureval.metrics.code import kept_verdicts, rules
from cultureval.metrics.code.comparison_server import Comparer
from cultureval.metrics.code.ground_truth import content_key, known_truth
from cultureval.metrics.code.judging import Solution, check_canonical_solutions, judge_solutions
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import journal_folder
from cultureval.runtime.sandbox import codec, worker
from cultureval.runtime.sandbox.sandbox import DiskFull, JobEnd, Sandbox


def problem(entry_point, signature, body, base, plus, atol=0):
    """A problem in EvalPlus's form."""
    return {
        "task_id": entry_point,
        "prompt": f"def {entry_point}({signature}):\n",
        "canonical_solution": "".join(f"    {line}\n" for line in body.split("\n")),
        "entry_point": entry_point,
        "base_input": base,
        "plus_input": plus,
        "atol": atol,
    }


ADD = problem("add", "a, b", "return a + b", [[1, 2]], [[3, 4], [5, 6]])
ROW = problem("row", "n", "return [i / 1 for i in range(n)]", [[3]], [[300_000]])  # over a MiB of outputs
ROWS = problem("rows", "n", "return [i / 1 for i in range(n)]", [[3]], [[1_000_000]] * 7)  # more than memory holds
COUNT = problem("count", "n", "return list(range(n))", [[3]], [[500_000]])  # an array an item takes half of a second
PRODUCT = problem("product", "n", "import math\nreturn math.prod(range(1, n))", [[5]], [[20_000]])
PROBLEMS = {"add": ADD, "row": ROW, "rows": ROWS, "count": COUNT, "product": PRODUCT}
RIGHT = "def add(a, b): return a + b"


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    with pytest.MonkeyPatch.context() as patch:  # which outlives a test's `monkeypatch.undo()`
        patch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
        yield


def judged(*solutions, problems=PROBLEMS, **options):
    """Outcomes, and the verdicts, on (task, code) pairs."""
    asked = [Solution(task, number, code) for number, (task, code) in enumerate(solutions)]
    verdicts = judge_solutions(problems, asked, "humaneval", **{"workers": 1, "progress": False} | options)
    return [(verdict.base, verdict.plus) for verdict in verdicts], verdicts


RIGHT_FORMS = [
    ("rows", "def rows(n): return list(range(n))"),
    ("row", "import numpy\ndef row(n): return list(numpy.arange(n, dtype='f8'))"),
    ("row", "import numpy\ndef row(n): return [float(i) if i % 100 else numpy.int64(i) for i in range(n)]"),
    ("count", "import numpy\ndef count(n): return [numpy.array([i]) for i in range(n)]"),
    ("product", "import math, sympy\ndef product(n): return sympy.Integer(math.prod(range(1, n)))"),
    ("product", "import math, fractions\ndef product(n): return fractions.Fraction(math.prod(range(1, n)))"),
    ("count", "def count(n, stop=quit): return type('Rows', (list,), {})(range(n))"),
    ("count", "def count(n): return copyright() or credits() or list(range(n if license else 0))"),
    ("product", "import math\nclass Number(int): pass\ndef product(n): return Number(math.prod(range(1, n)))"),
]
WRONG_FORMS = [
    ("row", "def row(n): return list(range(n))[:-1] + [n if n > 3 else n - 1]"),
    ("row", "def row(n): return list(range(n)) if n == 3 else [[]] * 4_500_000"),
    ("row", "def row(n): return [[i / 1] for i in range(n)] if n > 3 else [0.0, 1.0, 2.0]"),
    ("count", "import numpy\ndef count(n): return [numpy.array([i, i]) if n > 3 else i for i in range(n)]"),
    ("product", "import math, sympy\ndef product(n): return sympy.Integer(math.prod(range(1, n)) + (n > 9))"),
    ("product", "import sympy\ndef product(n): return 24 if n == 5 else sympy.Integer(7) ** 1_000_000"),
]


def test_right_outputs_pass_in_whatever_form_and_size_and_wrong_ones_fail():
    outcomes, verdicts = judged(*RIGHT_FORMS, *WRONG_FORMS, workers=2)
    assert outcomes == [("pass", "pass")] * len(RIGHT_FORMS) + [("pass", "fail")] * len(WRONG_FORMS), verdicts
    for (_, code), verdict in zip(RIGHT_FORMS + WRONG_FORMS, verdicts, strict=True):
        # A comparison that takes longer than EvalPlus lets a suite run is its `timeout`; it asks sympy's numbers.
        besides = {"timeout", "not_judged"} if "sympy" in code else {"timeout"}
        assert verdict.evalplus_base in {verdict.base, *besides}, verdict
        assert verdict.evalplus_plus in {verdict.plus, *besides}, verdict


USES_OF_OUTPUT = [
    *("OUT.getvalue()", "OUT.truncate(0)", "OUT.write('\\ud800')", "OUT.isatty()", "OUT.seek(0)", "OUT.flush()"),
    *("OUT.buffer", "OUT.fileno()", "OUT.encoding.lower()", "OUT.reconfigure(encoding='utf-8')"),
    *("{2: 0}[print('x', file=OUT) or len(OUT.getvalue())]", "{True: 0}[sys.stdout is sys.stderr]"),
]


def test_standard_output_is_what_evalplus_gives_a_program():
    from evalplus.eval import untrusted_check

    used = [use.replace("OUT", f"sys.{name}") for use in USES_OF_OUTPUT for name in ("stdout", "stderr")]
    codes = [f"import sys\n{use}\n{RIGHT}" for use in used]
    codes += [f"import sys\ndef add(a, b): return [{use}, a + b][1]" for use in used]
    inputs, expected = ADD["plus_input"], [7, 11]
    theirs = [untrusted_check("humaneval", code, inputs, "add", expected, 0, [1.0, 1.0])[0] for code in codes]
    assert [plus for _, plus in judged(*[("add", code) for code in codes])[0]] == theirs
    assert theirs.count("pass") == 32


BEYOND = {"loaded": True, "right": 0, "wrong": True, "error": "", "type_name": ""}
PLACE = f"in call 1 of 1, input ({ROW['plus_input'][0][0]})"


@pytest.mark.parametrize(
    ("answer", "outcome", "of_evalplus", "reason"),
    [
        ({"problem": "the kernel ended their comparison"}, "not_judged", "not_judged", "the kernel ended"),
        (BEYOND | {"beyond": "memory"}, "fail", "not_judged", f" MiB {PLACE}"),
        (BEYOND | {"beyond": "time"}, "fail", "timeout", f" s of CPU time {PLACE}"),
    ],
)
def test_what_the_machine_ends_is_not_judged_and_what_takes_too_much_fails(
    monkeypatch, answer, outcome, of_evalplus, reason
):
    ask = Comparer._ask

    def starved(comparer, body, *arguments):
        return answer if pickle.loads(body)["suite"] == "plus" else ask(comparer, body, *arguments)  # noqa: S301

    monkeypatch.setattr(Comparer, "_ask", starved)
    outcomes, (verdict,) = judged(("row", "def row(n): return list(range(n))"))
    assert outcomes == [("pass", outcome)] and reason in verdict.reason, verdict
    assert (verdict.evalplus_base, verdict.evalplus_plus) == ("pass", of_evalplus)
    monkeypatch.undo()
    again = "pass" if outcome == "not_judged" else outcome
    assert judged(("row", "def row(n): return list(range(n))"))[0] == [("pass", again)]


def kill_first(monkeypatch, times, number=signal.SIGKILL, memory=0):
    """Let the first jobs end by a signal, as those do that the kernel kills when they have so much memory."""
    run, left = Sandbox.run, iter(range(times))

    def killed(sandbox, payload, *limits):
        end = run(sandbox, payload, *limits)
        if next(left, None) is None:
            return end
        limits[2].seek(0)
        limits[2].truncate()
        return JobEnd("done", number, memory=memory)

    monkeypatch.setattr(Sandbox, "run", killed)


def test_a_canonical_solution_that_was_killed_is_run_again_and_nothing_of_it_is_kept(monkeypatch):
    kill_first(monkeypatch, 1)
    assert check_canonical_solutions({"add": ADD}, "humaneval", workers=1, progress=False)["add"].plus == "pass"
    monkeypatch.undo()
    other = {"add": ADD | {"canonical_solution": "    return b + a\n"}}
    kill_first(monkeypatch, 9)
    verdict = check_canonical_solutions(other, "humaneval", workers=1, progress=False)["add"]
    assert (verdict.base, verdict.plus) == ("not_judged", "not_judged") and "killed by the kernel" in verdict.reason
    monkeypatch.undo()
    assert known_truth(content_key(other["add"], "humaneval")) is None
    assert check_canonical_solutions(other, "humaneval", workers=1, progress=False)["add"].plus == "pass"


def test_problems_with_inputs_of_any_depth_have_keys_of_their_own():
    deep = functools.reduce(lambda inner, _: [inner], range(300), [])
    changes = ({}, {"canonical_solution": "    return 2\n"}, {"plus_input": []}, {"base_input": [[[deep]]]})
    assert len({content_key(ADD | {"base_input": [[deep]]} | change, "humaneval") for change in changes}) == 4


def test_a_solution_that_the_kernel_kills_is_tried_again_then_not_judged_and_no_solution_can_look_like_it(monkeypatch):
    judged(("add", RIGHT))  # so that the ground truth is known
    kill_first(monkeypatch, 1)
    assert judged(("add", f"{RIGHT}  # once"))[0] == [("pass", "pass")]
    monkeypatch.undo()
    kill_first(monkeypatch, 1, signal.SIGALRM)
    assert judged(("add", f"{RIGHT}  # on a machine that was suspended"))[0] == [("pass", "pass")]
    monkeypatch.undo()
    kill_first(monkeypatch, 4)
    outcomes, (verdict,) = judged(("add", f"{RIGHT}  # always"))
    assert outcomes == [("not_judged", "not_judged")] and "killed by the kernel" in verdict.reason
    monkeypatch.undo()
    assert judged(("add", f"{RIGHT}  # always"))[0] == [("pass", "pass")]
    with monkeypatch.context() as patch:
        kill_first(patch, 2, memory=2 << 30)
        outcomes, (verdict,) = judged(("add", f"{RIGHT}  # takes 2 GiB"))
    assert outcomes == [("fail", "fail")] and "killed by the kernel" in verdict.reason
    kills = ["os.kill(os.getpid(), 9)", "libc.syscall(234, os.getpid(), os.getpid(), 9)"]
    kills += ["libc.syscall(200, os.getpid(), 9)", "libc.syscall(62, os.getpid(), 9 + (1 << 32))"]
    start = "import ctypes, os, signal, resource\nlibc = ctypes.CDLL(None)\n"
    codes = [("add", f"{start}def add(a, b):\n    {act}\n    return 0\n") for act in kills]
    ignoring = "signal.signal(signal.SIGXCPU, signal.SIG_IGN); signal.setitimer(signal.ITIMER_PROF, 0)"
    ignoring += "; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))"
    codes += [("add", f"{start}def add(a, b):\n    {ignoring}\n    while True: pass\n")]
    outcomes, verdicts = judged(*codes, problems={"add": ADD | {"plus_input": []}})
    assert {base for base, _ in outcomes} == {"fail"}, verdicts


def test_a_program_with_two_thousand_branches_or_a_byte_order_mark_is_judged_among_others(tmp_path):
    from cultureval.metrics.code.solution_code import program_of, programs_in_parallel

    branches = "".join(f"    elif a == -{number}: return 0\n" for number in range(9, 2009))
    deep = f"def add(a, b):\n    if a == -8: return 0\n{branches}    return a + b\n"
    two_lines = "def add(a, b):\n    return a + b"
    replies = [RIGHT, deep, f"\ufeff{deep}", f"\ufeff{RIGHT}", f"\ufeff```python\n{two_lines}\n```"]
    replies += [two_lines.replace("\n", "\r\n"), f"- ```\n{textwrap.indent(two_lines, '  ')}\n  ```"]
    replies += [f"1. هنا:\n\n{textwrap.indent(f'```python{chr(10)}{two_lines}{chr(10)}```', '   ')}\n2. انتهى"]
    texts = [(reply, ADD["prompt"], "add") for reply in replies]
    for _ in range(2):
        programs = programs_in_parallel(program_of, texts, replies, workers=2)
        assert [outcome for outcome in judged(*[("add", program.code) for program in programs])[0]] == [
            ("pass", "pass")
        ] * len(texts)
        texts, replies = texts * 8, replies * 8  # the second time in several processes


def ends(text):
    """A function of a module, which some texts end the process of."""
    if text == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if text == "raise":
        raise RecursionError
    return f"{text}!"


def test_a_text_that_ends_its_process_costs_no_other_its_program():
    from cultureval.metrics.code.solution_code import programs_in_parallel

    texts = ["a"] * 30 + ["kill"] + ["b"] * 30 + ["raise", "kill", "c"]
    programs = programs_in_parallel(ends, [(text,) for text in texts], [f"{text}?" for text in texts], workers=2)
    assert programs == [(f"{text}?", True) if text in ("kill", "raise") else f"{text}!" for text in texts]


def on_a_disk(monkeypatch, free):
    """Let the disk of outputs have so many bytes left at first."""
    monkeypatch.setattr(
        "cultureval.runtime.sandbox.sandbox.os.fstatvfs",
        lambda descriptor: SimpleNamespace(f_bavail=free - os.fstat(descriptor).st_size, f_frsize=1),
    )


def test_a_flood_on_a_small_disk_is_the_programs_fault(monkeypatch):
    judged(("add", RIGHT))
    on_a_disk(monkeypatch, 100 << 20)
    flood = "def add(a, b): return bytes(250 << 20) if a == 1 else a + b"
    outcomes, (verdict, _) = judged(("add", flood), ("add", f"{RIGHT}  # too"))
    assert outcomes == [("fail", "pass"), ("pass", "pass")]
    assert "its outputs fill the disk" in verdict.reason and verdict.evalplus_base != "pass"


def test_a_disk_that_was_full_before_stops_the_run_and_loses_nothing(monkeypatch):
    run = Sandbox.run

    def on_a_full_disk(sandbox, payload, wall_seconds, cpu_seconds, outputs, *size):
        with open("/dev/full", "wb", buffering=0) as full:
            file = full if b"on a full disk" in payload else outputs
            return run(sandbox, payload, wall_seconds, cpu_seconds, file, *size)

    monkeypatch.setattr(Sandbox, "run", on_a_full_disk)
    solutions = [("add", f"{RIGHT}  # {number}") for number in range(5)] + [("add", f"{RIGHT}  # on a full disk")]
    with pytest.raises(DiskFull, match="No space left.*TMPDIR"):
        judged(*solutions)
    monkeypatch.undo()
    monkeypatch.setattr(Sandbox, "run", lambda *_: pytest.fail("judged twice"))
    assert judged(*solutions[:5])[0] == [("pass", "pass")] * 5


def test_a_disk_that_is_full_for_the_ground_truth_stops_the_run_and_is_named(monkeypatch):
    run = Sandbox.run

    def on_a_full_disk(sandbox, payload, wall_seconds, cpu_seconds, outputs, *size):
        with open("/dev/full", "wb") as full:
            os.dup2(full.fileno(), outputs.fileno())  # so that closing it fails too
        return run(sandbox, payload, wall_seconds, cpu_seconds, outputs, *size)

    monkeypatch.setattr(Sandbox, "run", on_a_full_disk)
    with pytest.raises(DiskFull, match="No space left.*TMPDIR"):
        judged(("add", RIGHT))


def kept_lines():
    return sum(file.read_bytes().count(b"\n") for file in journal_folder().rglob("*.jsonl"))


def test_verdicts_of_the_same_program_problem_and_rules_are_used_again_and_no_others(monkeypatch):
    first = judged(("add", RIGHT), ("add", "def add(a, b): return a - b"))[1]
    count = kept_lines()
    with monkeypatch.context() as context:
        context.setattr(Sandbox, "start", lambda *_: pytest.fail("a sandbox was started"))
        assert judged(("add", RIGHT), ("add", "def add(a, b): return a - b"))[1] == first
    assert kept_lines() == count
    changed = ADD | {"plus_input": [[3, 5], [5, 6]]}
    judged(("add", RIGHT), problems={"add": changed})
    monkeypatch.setattr("cultureval.metrics.code.kept_verdicts.packages_and_versions", lambda: "other packages")
    judged(("add", RIGHT))
    assert kept_lines() == count + 2
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")
    monkeypatch.setattr(Sandbox, "start", lambda *_: (_ for _ in ()).throw(CulturevalError("asked anew")))
    with pytest.raises(CulturevalError, match="asked anew"):
        judged(("add", RIGHT))


def test_a_damaged_ground_truth_is_computed_anew(tmp_path):
    judged(("add", RIGHT))
    (file,) = (tmp_path / "cache/code_ground_truth").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:-40] + bytes(40))
    assert judged(("add", "def add(a, b): return float(a + b)"))[0] == [("pass", "pass")]
    assert file.read_bytes() != content[:-40] + bytes(40)


def test_a_ground_truth_that_cannot_be_written_stops_the_run_with_its_place(tmp_path):
    judged(("add", RIGHT))
    (file,) = (tmp_path / "cache/code_ground_truth").iterdir()
    file.unlink()
    file.mkdir()
    with pytest.raises(CulturevalError, match=f"{file.name}.*directory.*CULTUREVAL_CACHE"):
        judged(("add", f"{RIGHT}  # again"))


def test_verdicts_are_kept_by_the_code_of_all_that_the_rules_use(monkeypatch):
    read, read_bytes = set(), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda file: read.add(str(file)) or read_bytes(file))
    kept_verdicts._own_code.__wrapped__()
    assert {inspect.getsourcefile(one) for one in (rules.oracle, rules, codec, worker, Comparer)} <= read


LYING = "def __eq__(self, other): return True\n    "
ASKED = [
    (f"class L(list):\n    {LYING}\ndef add(a, b): return L(range(30_000))", "not_judged"),  # beyond the limits
    (f"class N(int):\n    {LYING}\ndef add(a, b): return N(1 << 200_000)", "not_judged"),
    ("import numbers\nclass N:\n    def __int__(self): return 3\nnumbers.Integral.register(N)\n"
     "def add(a, b): return N()", "fail"),
    ("class N(int):\n    def __abs__(self): return 0\ndef add(a, b): return N(8)", "fail"),
    ("def add(a, b): return (a for _ in (b,))", "fail"),
    ("import sympy\ndef add(a, b): return sympy.Integer(3) if a == 1 else a", "not_judged"),
]  # fmt: skip


def test_evalplus_status_says_nothing_where_it_asks_an_object_and_the_reason_is_of_the_wrong_output():
    outcomes, verdicts = judged(*[("add", code) for code, _ in ASKED])
    assert outcomes == [("fail", "fail")] * 5 + [("pass", "fail")]
    assert [verdict.evalplus_base for verdict in verdicts] == [status for _, status in ASKED]
    both = {"add": ADD | {"base_input": [[1, 2], [3, 4]]}}
    (verdict,) = judged(("add", ASKED[-1][0]), problems=both)[1]
    assert (verdict.base, verdict.evalplus_base) == ("fail", "not_judged")
    assert "wrong output in call 2 of 2" in verdict.reason and "type" not in verdict.reason
    assert "an object of type generator" in verdicts[4].reason


def test_where_sets_are_compared_an_array_has_the_expected_length_as_under_evalplus():
    difference = problem("Diff", "a, b", "return list(set(a) ^ set(b))", [[[1, 2], [2, 3]]], [[[1, 2], [2, 5]]])
    form = "import numpy\ndef Diff(a, b): return {}"
    forms = ["numpy.array({})", "numpy.array([*{}, 'x'], object)[:-1]", "({} * 2)", "iter({})", "numpy.array({} * 2)"]
    forms += ["numpy.array([{0}, {0}], object)", "type('L', (list,), {{'__iter__': None}})({})"]
    given = [Solution("Diff", 0, form.format(one.format("[*set(a) ^ set(b)]"))) for one in forms]
    verdicts = judge_solutions({"Diff": difference}, given, "mbpp", workers=1, progress=False)
    assert [verdict.base for verdict in verdicts] == ["pass"] * 4 + ["fail"] * 3
    assert all(verdict.base == verdict.evalplus_base for verdict in verdicts)
