"""The skeleton of a new suite: what it is refused for, and that what is written is sound."""

import subprocess
import sys

import pytest
from forked_commands import own_variables, run_forked

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.new_suite import sample_rows, write_suite

LETTERS = "A B C D".split()


@pytest.mark.parametrize(
    ("name", "labels", "language", "message"),
    [
        ("My-Suite", LETTERS, "en", "not a name of a Python package"),
        ("../suite", LETTERS, "en", "not a name of a Python package"),
        ("lambda", LETTERS, "en", "not a name of a Python package"),
        ("json", LETTERS, "en", "Python module named 'json' already"),
        ("qimma", LETTERS, "en", "suite or task named 'qimma' already"),
        ("qimma_aratrust", LETTERS, "en", "suite or task named 'qimma_aratrust' already"),
        ("new_sums", ["A"], "en", "not two or more distinct"),
        ("new_sums", ["A", "A"], "en", "not two or more distinct"),
        ("new_sums", ["1.", "2."], "en", "'1.' holds punctuation"),
        ("new_sums", LETTERS, "persian", r"not an ISO 639 code .*Did you mean fa \(Persian\)\?"),
        ("new_sums", LETTERS, "xx", "not an ISO 639 code"),
        ("new_sums", LETTERS, "Egyptian", r"Did you mean .*arz \(Egyptian Arabic\)"),
        ("there", LETTERS, "en", "there exists already"),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path, name, labels, language, message):
    (tmp_path / "there").mkdir()
    with pytest.raises(CulturevalError, match=message):
        write_suite(name, labels, language, tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


@pytest.mark.slow
def test_the_skeletons_own_test_passes_with_other_labels_and_ruff_finds_nothing(tmp_path):
    folder = write_suite("new_sums", "أ ب ج د هـ".split(), "fa", tmp_path)
    lint = [sys.executable, "-m", "ruff"]
    for command in ("check", "format"):
        options = ["--isolated", "--line-length=120", *(["--check"] if command == "format" else [])]
        subprocess.run([*lint, command, *options], cwd=folder, check=True, capture_output=True)
    run = run_forked("pytest", ["-q", str(folder)], tmp_path, own_variables(tmp_path), loaded="ours")
    assert run.returncode == 0 and "2 passed" in run.stdout, run.stdout


def test_right_answers_of_the_sample_rows_have_every_label_in_turn():
    rows = sample_rows(LETTERS)
    assert [row["answer"] for row in rows] == ["A", "B", "C", "D", "A", "B"]
    for row in rows:
        question = row["question"].removesuffix(" = ?")
        right = sum(map(int, question.split(" + ")))
        assert row["options"][LETTERS.index(row["answer"])] == str(right)
        assert len(set(row["options"])) == 4
