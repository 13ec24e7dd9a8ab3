"""A run that is stopped, cannot write or cannot print: nothing is lost, and what happened is said."""

import os
import shutil
import signal
from pathlib import Path

import pytest
import yaml
from faulty_server import MODEL, FaultyServer
from forked_commands import StartedCommand
from result_files import details_of, results_of
from waiting import wait_until

TASK = "m2cqa:tf_en"
# The command, with an output that nobody reads (as that of `| head`) or files that must stay small.
LIMITED = """
import os, resource, sys
from cultureval.scripts.main import main

unread, largest_file, *arguments = sys.argv[1:]
if unread == "unread":
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, 1)
    sys.stdout = open(1, "w", encoding="ascii", closefd=False)
if int(largest_file):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest_file), int(largest_file)))
sys.argv = ["cultureval", *arguments]
main()
"""


@pytest.fixture
def start(tmp_path):
    (tmp_path / "limited.py").write_text(LIMITED, encoding="utf-8")
    variables = {"HF_HOME": str(tmp_path / "hf"), "CULTUREVAL_CACHE": "cache", "TERM": "dumb"}

    def run(unread=False, largest_file=0):
        command = ["eval", "settings.yaml", TASK, "--data", "samples", "--output-dir", "out"]
        arguments = ["unread" if unread else "read", str(largest_file), *command]
        return StartedCommand("limited", arguments, tmp_path, os.environ | variables, network=True, loaded="ours")

    return run


def end_of(process):
    """Exit code and standard error of a run."""
    ended = process.end()
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stderr


def journalled(folder):
    """Answers in the journal."""
    return sum(len(file.read_bytes().splitlines()) for file in (folder / "cache" / "journal").glob("*/*.jsonl"))


def stop(process, number, folder):
    """Sends a signal as soon as the run has new answers."""
    before = journalled(folder)
    wait_until(lambda: journalled(folder) >= before + 2 or not process.is_alive())
    assert process.is_alive()
    process.kill(number)


def test_signals_a_full_disk_and_lost_output_lose_nothing(tmp_path, start):
    with FaultyServer(delay=0.2) as server:
        settings = {"model": MODEL, "base_url": server.url, "concurrency": 1}
        (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
        for number, name in ((signal.SIGHUP, "SIGHUP"), (signal.SIGINT, "Ctrl-C")):
            process = start()
            stop(process, number, tmp_path)
            code, errors = end_of(process)
            assert code == 128 + number
            (line,) = [line for line in errors.splitlines() if "stopped by" in line]
            assert line.startswith(f"cultureval: stopped by {name}. Answers so far are kept: the same command")
        server.delay = 0
        code, errors = end_of(start(largest_file=9000))
        assert code == 2 and "the same command goes on" in errors  # the journal found no room
        assert not (tmp_path / "out").exists()
        code, errors = end_of(start(unread=True))
        summary = Path(errors.splitlines()[-1].removeprefix("cultureval: saved: "))
        assert code == 0 and "m2cqa:tf_en|0" in summary.read_text(encoding="utf-8").replace(" ", "")
        assert results_of(tmp_path / "out") and len(details_of(tmp_path / "out")) == 1
        assert len(set(server.asked)) == 36 and sum(server.asked.values()) <= 36 + 3  # those in flight

        shutil.rmtree(tmp_path / "out")
        asked = sum(server.asked.values())
        code, errors = end_of(start(largest_file=9000))
    assert code == 2 and "the run is finished, but its files cannot be written" in errors.lower()
    assert "File too large" in errors and "All answers are in the journal" in errors
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert sum(server.asked.values()) == asked
