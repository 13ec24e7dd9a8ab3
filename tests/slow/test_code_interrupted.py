"""`cultureval score` of code that is stopped at any moment goes on: the same scores, and no program judged twice."""

import json
import os
import signal

import pytest
from forked_commands import StartedCommand, own_variables
from waiting import wait_until

from cultureval.tasks.qimma.code_data import load_problems

COMMAND = "score humaneval --pred samples.jsonl --data samples --workers 2 --json".split()


@pytest.fixture
def started(tmp_path):
    """Starts a run in a folder with 18 programs, a third of which are wrong."""
    rows = load_problems("humaneval", "samples").rows
    lines = []
    for number in range(3):
        for place, (task, row) in enumerate(rows.items()):
            code = row["prompt"] + row["canonical_solution"] + f"\n# {number}\nimport time\ntime.sleep(0.2)\n"
            code += f"\ndef {row['entry_point']}(*arguments): return ()\n" * ((place + number) % 3 == 0)
            lines.append(json.dumps({"task_id": task, "solution": code}) + "\n")
    (tmp_path / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    main, variables = "cultureval.scripts.main", own_variables(tmp_path)
    return lambda: StartedCommand(main, COMMAND, tmp_path, variables, loaded="ours")


def kept(tmp_path):
    """The keys of all verdicts on the disk, with repetitions."""
    files = (tmp_path / "cache" / "journal").glob("*/*.jsonl")
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines(keepends=True)]
    return [json.loads(line[line.index("{") :])["key"] for line in lines if line.endswith("\n")]


KILL, END = signal.SIGKILL, signal.SIGTERM
MOMENTS = [(1, KILL), (4, END), (8, KILL), (12, END), (16, KILL)]


def test_a_run_that_is_stopped_at_several_moments_goes_on(tmp_path, started):
    every = "CULTUREVAL_TEST_ALL_CODE_PROBLEMS" in os.environ
    for moment, number in MOMENTS if every else MOMENTS[1:3]:
        wanted = max(moment, len(kept(tmp_path)) + 1)  # a run that is told to end may keep some more
        run = started()
        wait_until(lambda: len(kept(tmp_path)) >= wanted or not run.is_alive())  # noqa: B023
        before = len(kept(tmp_path))
        run.kill(number)
        errors = run.end().stderr
        assert wanted <= before <= len(kept(tmp_path)), errors
        if number == signal.SIGTERM:
            assert "the same command goes on" in errors, errors
    last = started().end()
    assert last.returncode == 0, last.stderr
    assert json.loads(last.stdout)["pass_at_k"]["plus"]["pass@1"] == pytest.approx(12 / 18)
    keys = kept(tmp_path)
    assert len(keys) == len(set(keys)) == 18 + 6  # with the canonical solutions
