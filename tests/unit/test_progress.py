"""Progress: lines where there is no terminal, else a bar, neither wider than the terminal nor coloured."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from types import SimpleNamespace

import pytest
from waiting import wait_until

from cultureval.runtime import progress
from cultureval.runtime.progress import Progress, progressing, working

ON_A_TERMINAL = """
from cultureval.runtime.printing import print_result, steady_streams
from cultureval.runtime.progress import Progress
with steady_streams():
    with Progress(40, "Generating " + "a long description", "doc") as bar:
        bar.update(40)
    print_result("accuracy 0.5 " * 20 + "\\n" + "x" * 45, "summary.txt")
"""


@pytest.fixture(autouse=True)
def no_server_asks_to_wait(monkeypatch):
    monkeypatch.setattr(progress, "_WAITS", {})  # those of other tests in this process


def test_without_a_terminal_a_phase_is_one_line_and_a_short_one_none(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with Progress(100, "Generating", "doc") as shown:
        for _ in range(100):
            now[0] += 1
            shown.update()
    assert capsys.readouterr().err == "Generating: 100 of 100 docs (100 %), 100 s\n"
    assert list(progressing("ab", 2, "Quick", "thing")) == ["a", "b"] and not capsys.readouterr().err


def test_the_pace_is_that_of_the_items_that_this_process_does(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with Progress(100, "Scoring", "doc", done=10) as shown:
        shown.reuse(50)
        with shown.phase("Checking the route"):
            now[0] += 20
            shown._print()
        now[0] += 10
        shown.update(10)
        shown._print()
        now[0] += 30
        shown.update(30)
    checking, *_, said, last = capsys.readouterr().err.splitlines()
    assert checking == "Checking the route, 20 s"
    assert said == "Scoring: 70 of 100 docs (70 %), 30 s, about 30 s left" and last.startswith("Scoring: 100 of 100")


def test_there_are_signs_of_life_while_nothing_ends(monkeypatch, capsys, tmp_path):
    seen = ""

    def lines(word):
        nonlocal seen
        seen += capsys.readouterr().err
        return [line for line in seen.splitlines() if word in line]

    monkeypatch.setattr(progress, "LINE_PAUSE", 0.2)
    with Progress(8, "Generating", "doc", done=4) as shown:
        shown.most_tokens = 400
        shown.count_tokens(100)
        wait_until(lambda: len(lines("Generating")) >= 3)
        shown.update(note="cost 3")
        wait_until(lambda: any(re.search(r"100 tokens, about \d+ s left, cost 3$", one) for one in lines("cost 3")))
    with working("Loading tiny"):
        wait_until(lambda: bool(lines("Loading tiny, ")))
    with working("Whole"), working("Part"):
        wait_until(lambda: len(lines("Part")) >= 3)
    assert not lines("Whole"), "one line at a time, of what is done just now"
    ended = len(lines(""))
    time.sleep(0.3)
    assert len(lines("")) == ended
    with pytest.raises(ValueError), Progress(5, "Failing", "doc", kept_in=tmp_path):
        raise ValueError
    time.sleep(0.4)
    assert not lines("Failing"), "the error says it all"
    assert re.match(r"Generating: 4 of 8 docs \(50 %\), \d+ s, 100 tokens, at most \d+ s left", lines("")[0])


def test_on_a_terminal_nothing_is_wider_than_it_or_coloured():
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    variables = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-c", ON_A_TERMINAL]
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=variables) as process:
        os.close(terminal)
        seen = b""
        while True:
            try:
                seen += (part := os.read(reader, 4096))
            except OSError:  # the other end is closed
                break
            if not part:
                break
    os.close(reader)
    text = seen.decode()
    assert process.returncode == 0 and "100%" in text and "accuracy" in text
    assert "\x1b[3" not in text and "saved" not in text
    assert max(len(line) for line in re.split(r"[\r\n]+", text)) <= 50
