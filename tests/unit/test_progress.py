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


def test_without_a_terminal_a_phase_is_one_line_and_a_short_or_failed_one_none(monkeypatch, capsys):
    assert list(progressing("ab", 2, "Quick", "thing")) == ["a", "b"] and not capsys.readouterr().err
    monkeypatch.setattr(progress, "SHORT_PHASE", 0.1)
    with Progress(100, "Generating", "doc", done=10) as shown:
        shown.reuse(50)
        shown.count_tokens(1200)
        time.sleep(0.2)
        shown.update(20, note="cost 3")
    line = capsys.readouterr().err
    assert re.fullmatch(r"Generating:  80% 80/100 \[00:00<00:00, \d\d\.\d+doc/s, 1,200 tokens, cost 3\]\n", line)
    with pytest.raises(ValueError), Progress(5, "Failing", "doc"):
        time.sleep(0.2)
        raise ValueError
    assert not capsys.readouterr().err, "the error says it all"


def test_there_are_signs_of_life_in_long_work(monkeypatch, capsys):
    seen = ""

    def said(word):
        nonlocal seen
        seen += capsys.readouterr().err
        return word in seen

    monkeypatch.setattr(progress, "LINE_PAUSE", 0.1)
    with Progress(8, "Generating", "doc") as shown:
        time.sleep(0.2)
        shown.update(2)
        assert said("Generating:  25% 2/8")
    with working("Loading tiny"):
        wait_until(lambda: said("Loading tiny, 0 s\n"))


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
