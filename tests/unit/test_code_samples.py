"""Solutions in EvalPlus's formats, and what is refused."""

import json

import pytest

from cultureval.reports.code.samples import check_complete, read_samples
from cultureval.runtime.errors import CulturevalError

ADD = "def add(a, b):\n    return a + b"
PROBLEMS = {
    "Mbpp/1": {"prompt": '"""\nاجمع\n"""', "entry_point": "add"},
    "Mbpp/2": {"prompt": 'def add(a, b):\n    """ اجمع """\n', "entry_point": "add"},
}


def lines(path, *records):
    path.write_text("\n".join(item if isinstance(item, str) else json.dumps(item) for item in records) + "\n\n")
    return path


def solves(code):
    space = {}
    exec(code, space)  # noqa: S102
    return space["add"](1, 2) == 3


def test_solutions_and_completions_of_a_file(tmp_path):
    records = [
        {"task_id": "Mbpp/1", "solution": ADD},
        {"task_id": "Mbpp/2", "completion": "    return a + b\n"},
        {"task_id": "Mbpp/1", "completion": ADD},
    ]
    samples = read_samples(lines(tmp_path / "a.jsonl", *records), PROBLEMS)
    assert [(sample.task_id, sample.number) for sample in samples] == [("Mbpp/1", 0), ("Mbpp/2", 0), ("Mbpp/1", 1)]
    assert all(solves(sample.code) for sample in samples)


def test_when_the_sanitiser_is_applied(tmp_path):
    recursive = f"import sys\nsys.setrecursionlimit(9999)\n{ADD}"
    chat = f"Sure:\n```python\n{ADD}\n```"
    at_run_time = "import math\nexec('def ' + 'add(a, b): return a + b')"
    codes = [recursive, chat, at_run_time, f"\ufeff{ADD}"]
    file = lines(tmp_path / "a.jsonl", *({"task_id": "Mbpp/1", "solution": code} for code in codes))
    read = read_samples(file, PROBLEMS)
    assert [(sample.rewritten, sample.code in codes) for sample in read] == [
        (False, True),
        (True, False),
        (False, True),
        (True, False),
    ]
    assert read[0].code == recursive and all(solves(sample.code) for sample in read)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON"),
        ("[1]", "line 2: not an object with a task_id"),
        ({"task_id": 1, "solution": ADD}, "line 2: not an object with a task_id"),
        ({"task_id": "Mbpp/1"}, "neither a `solution` nor a `completion`"),
        ({"task_id": "Mbpp/1", "solution": [ADD]}, "Write several solutions of a problem as several lines"),
        ({"task_id": "HumanEval/1", "solution": ADD}, "Do the format and --data match"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, named):
    file = lines(tmp_path / "a.jsonl", {"task_id": "Mbpp/1", "solution": ADD}, line)
    with pytest.raises(CulturevalError) as caught:
        read_samples(file, PROBLEMS)
    assert named in str(caught.value)


def test_no_file_and_no_solution(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(CulturevalError, match="cannot be read as a file of solutions"):
            read_samples(path, PROBLEMS)
    with pytest.raises(CulturevalError, match="has no solutions"):
        read_samples(lines(tmp_path / "a.jsonl"), PROBLEMS)


def test_missing_and_repeated_solutions_are_named(tmp_path):
    one = {"task_id": "Mbpp/1", "solution": ADD}
    samples = read_samples(lines(tmp_path / "a.jsonl", one), PROBLEMS)
    with pytest.raises(CulturevalError, match="1 of 2 problems have no solution: Mbpp/2"):
        check_complete(samples, PROBLEMS, partial=False)
    assert check_complete(samples, PROBLEMS, partial=True) == (["Mbpp/2"], "")
    problems = PROBLEMS | {"Mbpp/3": PROBLEMS["Mbpp/1"]}
    several = lines(tmp_path / "b.jsonl", one, one, one | {"task_id": "Mbpp/2"}, one | {"task_id": "Mbpp/3"})
    with pytest.raises(CulturevalError, match="Some problems have 1 solution, others up to 2"):
        check_complete(read_samples(several, problems), problems, partial=False)
    told = check_complete(read_samples(several, problems), problems, partial=True)[1]
    assert told.startswith("Some problems have 1 solution, others up to 2")
