"""Printing cannot fail a command: closed pipes, full disks and ASCII locales; output that is nowhere else is missed."""

import contextlib
import os
import pty
import subprocess
import sys

import pytest
from rich.cells import cell_len

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.printing import folded, print_result, shown_path

RESULT = """
from cultureval.runtime.printing import print_result, steady_streams
with steady_streams():
    print_result("accuracy 0.5 ± 0.1 …\\nسؤال" + 99999 * "\\nx", "out/summary.txt")
"""
LISTING = """
from cultureval.runtime.printing import steady_streams
with steady_streams():
    print("سؤال ± " + 99999 * "x")
    raise SystemExit(0)
"""


def run(code, redirection, encoding="utf-8"):
    command = f'set -o pipefail; "$0" -c "$1" {redirection}'
    variables = {"PYTHONIOENCODING": encoding, "PATH": "/usr/bin:/bin"}
    command = ["bash", "-c", command, sys.executable, code]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("redirection", ["| head -1", "> /dev/full", ">&-", "2>&1 | head -1", "2>&- | head -1"])
def test_a_result_that_is_saved_never_fails(redirection):
    done = run(RESULT, redirection)
    assert done.returncode == 0 and "Traceback" not in done.stderr + done.stdout
    assert redirection.startswith("2>") or done.stderr.endswith("cultureval: saved: out/summary.txt\n")
    assert ("No space left" in done.stderr) == (redirection == "> /dev/full")
    assert ("accuracy 0.5 ± 0.1 …" in done.stdout) == redirection.endswith("head -1")


def test_letters_that_an_encoding_lacks_are_written_otherwise():
    done = run(RESULT, "| head -2", "ascii")
    assert done.returncode == 0
    assert done.stdout == "accuracy 0.5 +/- 0.1 ...\n\\u0633\\u0624\\u0627\\u0644\n"


@pytest.mark.parametrize("redirection, code", [("| head -c 2", 0), (">&-", 0), ("> /dev/full", 1)])
def test_output_that_is_nowhere_else_is_missed_unless_its_reader_stopped(redirection, code):
    done = run(LISTING, redirection)
    assert done.returncode == code and "Traceback" not in done.stderr
    assert ("cultureval: the output could not be written: No space left" in done.stderr) == bool(code)


COMMAND = """
import sys
from cultureval.scripts import main
sys.argv = ["cultureval", "--version"]
main.main()
"""


def test_a_command_runs_also_where_standard_error_is_closed():
    done = run(COMMAND, "2>&-")
    assert done.returncode == 0 and done.stdout.startswith("cultureval ")


ALIGNED = """
from cultureval.runs.table import Cell, Row, SuiteTable
from cultureval.reports.summary_text import table_lines
from cultureval.runtime.printing import for_files, steady_streams
rows = [Row("سؤال", (Cell(1.25, 0.5), Cell(2.0, 0.1))), Row("y", (Cell(10.0), Cell(3.0, 12.2)))]
with steady_streams():
    table = SuiteTable("t", "", ("Row", "a", "b"), rows)
    print("\\n".join(table_lines(table, 80)))
    with for_files():
        assert "±0.50" in table_lines(table, 80)[2]
"""


def test_columns_are_aligned_in_an_ascii_locale():
    _, header, first, second = run(ALIGNED, "", "ascii").stdout.splitlines()
    assert "\\u0633\\u0624\\u0627\\u0644" in first and "1.25 +/-0.50" in first
    assert header.index("b") == first.index("2.00 +/-0.10") == second.index("3.00 +/-12.20")


NOTE = """
import contextlib
import os
import pty
from cultureval.runtime.printing import print_note
from cultureval.scripts import main
print_note("a sentence of some length " * 5)
os.environ["CULTUREVAL_CACHE"] = "/tmp"
import sys; sys.argv = ["cultureval", "tasks", "--suite", "no_such_suite_of_any_length_at_all"]
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
    assert any(line.startswith("cultureval: There is no suite") for line in lines)


@pytest.mark.parametrize("columns, widest", [("100", 100), ("", 80), ("0", 80), ("wide", 80)])
def test_columns_count_where_output_is_piped_and_words_such_as_paths_stay_whole(run_here, columns, widest):
    path = f"/no/{'such' * 22}/folder"
    told = run_here("tasks", COLUMNS=columns)
    assert widest - 12 < max(map(len, told.stdout.splitlines())) <= widest
    refused = run_here("show", path, COLUMNS=columns).stderr.splitlines()
    assert any(path in line for line in refused)
    assert (len(refused) == 1) == (widest == 80) and all(len(line) <= widest or path in line for line in refused)


def test_paths_and_commands_are_never_broken_and_wide_letters_count_twice():
    command = "  .venv/bin/cultureval eval MODEL qimma_aratrust --data samples --skip-unscorable"
    path = shown_path("/a folder/نتائج اليوم/results.json")
    text = f"Results: {path}\n{command}\nSee `cultureval show RESULTS TASK` for them, or {'long' * 15}.\n{'中文 ' * 9}"
    lines = folded(text, 30).split("\n")
    assert lines[:3] == ["Results:", path, command] and "long" * 15 + "." in lines
    assert "`cultureval show RESULTS TASK`" in lines
    assert [cell_len(line) for line in lines[-2:]] == [29, 14] and " ".join(lines).split() == text.split()
    assert shown_path("/no/space") == "/no/space"
    table = terminal_table((), [["missing", "data\n  cultureval mirror qimma --output-dir DIR"]], width=20)
    assert "  cultureval mirror qimma --output-dir DIR" in table


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
