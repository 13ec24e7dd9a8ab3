"""What commands print: closed pipes, full disks and ASCII locales, widths, hostile control characters."""

import contextlib
import os
import pty
import subprocess
import sys

import pytest

from cultureval.runtime.printing import folded, print_result

RESULT = """
from cultureval.runtime.printing import print_result, steady_streams
with steady_streams():
    print_result("accuracy 0.5 ± 0.1 …\\nسؤال" + 99999 * "\\nx", "out/summary.txt")
"""
LISTING = """
from cultureval.runtime.printing import steady_streams
with steady_streams():
    print("سؤال ± " + 999 * "x")
    raise SystemExit(0)
"""


def run(code, redirection, encoding="utf-8"):
    command = f'set -o pipefail; "$0" -c "$1" {redirection}'
    variables = {"PYTHONIOENCODING": encoding, "PATH": "/usr/bin:/bin"}
    command = ["bash", "-c", command, sys.executable, code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("redirection", ["| head -1", ">&-", "2>&1 | head -1", "2>&- | head -1"])
def test_a_reader_that_stops_is_no_error(redirection):
    for code in (RESULT, LISTING):
        done = run(code, redirection)
        assert done.returncode == 0 and "Traceback" not in done.stderr + done.stdout


def test_lost_output_is_an_error():
    done = run(LISTING, "> /dev/full")
    assert done.returncode and "No space left on device" in done.stderr


def test_letters_that_an_encoding_lacks_are_written_otherwise():
    done = run(RESULT, "| head -2", "ascii")
    assert done.stdout == "accuracy 0.5 \\xb1 0.1 \\u2026\n\\u0633\\u0624\\u0627\\u0644\n"


COMMAND = """
import sys
from cultureval.scripts import main
sys.argv = ["cultureval", "--version"]
main.main()
"""


def test_a_command_runs_also_where_standard_error_is_closed():
    done = run(COMMAND, "2>&-")
    assert done.returncode == 0 and done.stdout.startswith("cultureval ")


NOTE = """
import contextlib
import os
import pty
from cultureval.runtime.printing import print_note
from cultureval.scripts import main
print_note("a sentence of some length " * 5)
os.environ["CULTUREVAL_CACHE"] = "/tmp"
import sys; sys.argv = ["cultureval", "tasks", "no_such_suite_of_any_length_at_all"]
main.main()
"""


def test_notes_and_errors_are_folded_between_words_on_a_terminal():
    master, slave = os.openpty()
    variables = {"PATH": "/usr/bin:/bin", "COLUMNS": "40", "TERM": "xterm"}
    done = subprocess.run([sys.executable, "-c", NOTE], env=variables, stdout=subprocess.PIPE, stderr=slave, timeout=60)
    os.close(slave)
    lines = os.read(master, 9999).decode().splitlines()
    os.close(master)
    assert done.returncode == 2 and len(lines) > 6 and max(map(len, lines)) <= 40
    assert " ".join(lines).startswith("cultureval: a sentence of some length a sentence of")
    assert any(line.startswith("cultureval: There is no task") for line in lines)


@pytest.mark.parametrize("columns, widest", [("100", 100), ("wide", 80)])
def test_columns_count_where_output_is_piped_and_words_such_as_paths_stay_whole(run_here, columns, widest):
    path = f"/no/{'such' * 22}/folder"
    told = run_here("tasks", COLUMNS=columns)
    assert widest - 12 < max(map(len, told.stdout.splitlines())) <= widest
    refused = run_here("show", path, COLUMNS=columns).stderr.splitlines()
    assert any(path in line for line in refused)
    assert (len(refused) == 1) == (widest == 80) and all(len(line) <= widest or path in line for line in refused)


def test_words_and_commands_are_never_broken():
    command = "  .venv/bin/cultureval eval MODEL qimma_aratrust --data samples --skip-unscorable"
    text = f"{command}\nSee the page for them, or {'long' * 15}.\n\nend"
    lines = folded(text, 30).split("\n")
    assert lines[:3] == [command, "See the page for them, or", "long" * 15 + "."]
    assert lines[3:] == ["", "end"]


@pytest.mark.parametrize("text, notes", [("Page: {}", 0), ("Page: {}/index.html", 0), ("accuracy 0.5", 1)])
def test_a_path_that_the_text_names_is_told_once(monkeypatch, tmp_path, capsys, text, notes):
    monkeypatch.chdir(tmp_path)
    print_result(text.format(tmp_path / "page"), "page")
    assert capsys.readouterr().err.count("page") == notes


HOSTILE = r"""
import logging, sys, warnings
from cultureval.runtime.printing import print_note, print_result, steady_streams
with steady_streams():
    print("printed \x1b]0;owned\x07 \x9b31m \x1b[2J سؤال\tend")
    print_note("noted \x1b[31m\r over")
    print_result("saved \x1b]8;;link\x1b\\", "out")
    logging.warning("logged \x1b]52;c;AAAA\x07 \x08")
    warnings.warn("warned \x1b[6n", stacklevel=2)
    print("\r100%|\u2588\x1b[A", end="", file=sys.stderr)
    print("\x1b[31mred\x1b[0m \u202eleft \u2068سؤال\u2069")
"""


def test_a_terminal_obeys_no_control_characters_but_those_of_bars_and_colours():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", HOSTILE])
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal's end shows
        while part := os.read(terminal, 1 << 16):
            shown += part
    os.close(terminal)
    os.waitpid(pid, 0)
    text = shown.decode()
    for sequence in ("\x1b]", "\x1b[2J", "\x1b[6n", "\x9b", "\x07", "\x08"):
        assert sequence not in text
    for kept in (
        "printed \\x1b]0;owned\\x07 \\x9b31m \\x1b[2J سؤال\t",
        "noted \\x1b[31m\\r over",
        "saved \\x1b]8;;link\\x1b\\",
        "logged \\x1b]52;c;AAAA\\x07 \\x08",
        "\r100%|\u2588\x1b[A",
        "\x1b[31mred\x1b[0m \\u202eleft \u2068سؤال\u2069",
    ):
        assert kept in text


def test_a_line_break_in_the_name_of_a_folder_forges_no_line():
    done = run(RESULT.replace("out/summary.txt", "out\\n\\x1bcultureval: saved: summary.txt"), "> /dev/null")
    assert done.stderr == "cultureval: saved: out\\n\\x1bcultureval: saved: summary.txt\n"
