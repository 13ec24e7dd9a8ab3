"""Solutions in EvalPlus's formats, and what is refused."""

import errno
import gzip
import json

import pytest

from cultureval.reports.code import evaluation
from cultureval.reports.code.samples import check_complete, read_samples
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.qimma.code_data import load_problems

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


def test_solutions_and_completions_of_a_file_packed_or_not(tmp_path):
    records = [
        {"task_id": "Mbpp/1", "solution": ADD},
        {"task_id": "Mbpp/2", "completion": "    return a + b\n"},
        {"task_id": "Mbpp/1", "completion": ADD},
    ]
    file = lines(tmp_path / "a.jsonl", *records)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
    for path in (file, tmp_path / "b.jsonl.gz"):
        samples = read_samples(path, PROBLEMS, "auto")
        assert [(sample.task_id, sample.number) for sample in samples] == [("Mbpp/1", 0), ("Mbpp/2", 0), ("Mbpp/1", 1)]
        assert all(solves(sample.code) for sample in samples)


def test_a_folder_of_programs_in_the_order_of_their_numbers(tmp_path):
    folder = tmp_path / "model_temp_0.8" / "Mbpp_1"
    folder.mkdir(parents=True)
    for number in (0, 2, 10):
        (folder / f"{number}.py").write_text(f"{ADD} + {number}", encoding="utf-8")
    (folder / "note.txt").write_text("no program", encoding="utf-8")
    samples = read_samples(folder.parent, PROBLEMS, "auto")
    assert [sample.code[-2:].strip() for sample in samples] == ["0", "2", "10"]
    (folder / "3.py").write_bytes(b"\xff\xfe")
    with pytest.raises(CulturevalError, match=r"3\.py cannot be read as UTF-8"):
        read_samples(folder.parent, PROBLEMS, "auto")


def test_when_the_sanitiser_is_applied(tmp_path):
    recursive = f"import sys\nsys.setrecursionlimit(9999)\n{ADD}"
    chat = f"Sure:\n```python\n{ADD}\n```"
    at_run_time = "import math\nexec('def ' + 'add(a, b): return a + b')"
    codes = [recursive, chat, at_run_time, f"\ufeff{ADD}"]
    file = lines(tmp_path / "a.jsonl", *({"task_id": "Mbpp/1", "solution": code} for code in codes))
    read = read_samples(file, PROBLEMS, "auto")
    assert [(sample.rewritten, sample.code in codes) for sample in read] == [
        (False, True),
        (True, False),
        (False, True),
        (True, False),
    ]
    automatic, always, never = (
        [sample.code for sample in read_samples(file, PROBLEMS, how)] for how in ("auto", "always", "never")
    )
    assert automatic[0] == recursive and all(map(solves, automatic))
    assert "setrecursionlimit" not in always[0] and solves(always[0])
    assert never == [*codes[:3], ADD]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON"),
        ("[1]", "line 2: not an object with a task_id"),
        ({"task_id": 1, "solution": ADD}, "line 2: not an object with a task_id"),
        ({"task_id": "Mbpp/1"}, "neither a `solution` nor a `completion`"),
        ({"task_id": "Mbpp/1", "solution": [ADD]}, "Write several solutions of a problem as several lines"),
        ({"task_id": "HumanEval/1", "solution": ADD}, "Do --dataset and --data match"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, named):
    file = lines(tmp_path / "a.jsonl", {"task_id": "Mbpp/1", "solution": ADD}, line)
    with pytest.raises(CulturevalError) as caught:
        read_samples(file, PROBLEMS, "auto")
    assert named in str(caught.value)


def test_no_file_and_no_solution(tmp_path):
    with pytest.raises(CulturevalError, match="do not exist"):
        read_samples(tmp_path / "none.jsonl", PROBLEMS, "auto")
    for empty in (lines(tmp_path / "a.jsonl"), tmp_path / "folder"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        with pytest.raises(CulturevalError, match="has no solutions"):
            read_samples(empty, PROBLEMS, "auto")
    (tmp_path / "b.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(CulturevalError, match="cannot be read"):
        read_samples(tmp_path / "b.jsonl.gz", PROBLEMS, "auto")


def test_missing_and_repeated_solutions_are_named(tmp_path):
    one = {"task_id": "Mbpp/1", "solution": ADD}
    samples = read_samples(lines(tmp_path / "a.jsonl", one), PROBLEMS, "auto")
    with pytest.raises(CulturevalError, match="1 of 2 problems have no solution: Mbpp/2"):
        check_complete(samples, PROBLEMS, partial=False)
    assert check_complete(samples, PROBLEMS, partial=True) == (["Mbpp/2"], "")
    problems = PROBLEMS | {"Mbpp/3": PROBLEMS["Mbpp/1"]}
    several = lines(tmp_path / "b.jsonl", one, one, one | {"task_id": "Mbpp/2"}, one | {"task_id": "Mbpp/3"})
    with pytest.raises(CulturevalError, match=r"Most problems have 1 solution, others not: Mbpp/1 \(2\)"):
        check_complete(read_samples(several, problems, "auto"), problems, partial=False)
    told = check_complete(read_samples(several, problems, "auto"), problems, partial=True)[1]
    assert told.startswith("Some problems have 1 solution, others up to 2")


def test_a_disk_that_fills_leaves_the_results_of_before(tmp_path, monkeypatch):
    """Broken JSON stood in the place of EvalPlus's results, beside the verdicts of the run before."""
    for name in ("x_eval_results.json", "x_verdicts.jsonl"):
        (tmp_path / name).write_text("of before")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(evaluation, "write_json_lines", full)
    with pytest.raises(OSError, match="No space"):
        problems = load_problems("humaneval", "samples")
        evaluation.write_files(tmp_path / "x.jsonl", tmp_path, problems, [], [])
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "x_eval_results.json": "of before",
        "x_verdicts.jsonl": "of before",
    }
