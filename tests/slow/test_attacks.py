"""The attack suite: no effect outside, no false pass, no false fail of honest code, no process left."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attacks.problems import cases

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    root = tmp_path_factory.mktemp("scene")
    paths = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"CULTUREVAL_CACHE": str(root / "cache"), "PYTHONPATH": paths}
    command = [sys.executable, "-m", "attacks.judge_all", str(root), "2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_case_gets_the_verdict_that_it_deserves(judged):
    found = {verdict["name"]: verdict for verdict in judged["verdicts"]}
    everything = cases("hostile") + cases("honest")
    assert len(found) == len(everything)
    wrong = {
        case["name"]: found[case["name"]]
        for case in everything
        if found[case["name"]]["base"] != case["expect"]
        or (case["group"] != "exhaust" and found[case["name"]]["plus"] != case["expect"])
    }
    assert not wrong


def test_nothing_outside_was_touched(judged):
    assert judged["touched"] == []


def test_no_process_is_left(judged):
    assert judged["orphans"] == []
