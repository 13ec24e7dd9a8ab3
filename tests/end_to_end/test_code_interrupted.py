"""`cultureval code evaluate` that is stopped at any moment goes on: the same scores, and no program judged twice."""

import json
import os
import signal
import subprocess
import sys

import pytest
from waiting import PATIENCE, wait_until

from cultureval.tasks.qimma.code_data import load_problems

COMMAND = (
    "code",
    "evaluate",
    "samples.jsonl",
    "--dataset",
    "humaneval",
    "--data",
    "samples",
    "--workers",
    "2",
    "--json",
)


@pytest.fixture
def environment(tmp_path):
    """Variables of a run in a folder, and 30 programs for it, a third of which are wrong."""
    rows = load_problems("humaneval", "samples").rows
    lines = []
    for number in range(5):
        for place, (task, row) in enumerate(rows.items()):
            code = row["prompt"] + row["canonical_solution"] + f"\n# {number}\nimport time\ntime.sleep(0.15)\n"
            code += f"\ndef {row['entry_point']}(*arguments): return ()\n" * ((place + number) % 3 == 0)
            lines.append(json.dumps({"task_id": task, "solution": code}) + "\n")
    (tmp_path / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    return os.environ | {"CULTUREVAL_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}


def started(tmp_path, environment):
    command = [sys.executable, "-m", "cultureval.scripts.main", *COMMAND]
    return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def kept(tmp_path):
    """The keys of all verdicts on the disk, with repetitions."""
    files = (tmp_path / "cache" / "journal").glob("*.jsonl")
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines(keepends=True)]
    return [json.loads(line[line.index("{") :])["key"] for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_stopped_at_five_moments_goes_on(tmp_path, environment, number):
    for moment in (1, 9, 15, 22, 30):
        run = started(tmp_path, environment)
        wait_until(lambda: len(kept(tmp_path)) >= moment or run.poll() is not None)  # noqa: B023
        before = len(kept(tmp_path))
        run.send_signal(number)
        _, errors = run.communicate(timeout=PATIENCE)
        assert moment <= before <= len(kept(tmp_path)), errors.decode()
        if number == signal.SIGTERM:
            assert b"verdicts" in errors and b"goes on from there" in errors, errors.decode()
    last = started(tmp_path, environment)
    output, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors.decode()
    assert json.loads(output)["pass_at_k"]["plus"]["pass@1"] == pytest.approx(20 / 30)
    keys = kept(tmp_path)
    assert len(keys) == len(set(keys)) == 30 + 6  # with the canonical solutions
