"""The journal keeps what was written, whatever kills the writer and however many write."""

import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cultureval.runtime import journal_index
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal, answer_key, open_journal
from cultureval.runtime.journal_pruning import prune
from cultureval.scripts.main import app

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
answers = st.dictionaries(st.text(), json_values, max_size=4)


def test_key_depends_on_every_part_and_not_on_their_order():
    parts = {"model": "م", "settings": {"a": 1, "b": [1.5, None]}, "index": 0}
    key = answer_key(**parts)
    assert key == answer_key(**dict(reversed(parts.items())))
    assert len(key) == 64
    changed = [{"model": "م "}, {"settings": {"a": 1, "b": [1.5, None, 0]}}, {"index": 1}, {"index": "0"}]
    assert len({key} | {answer_key(**(parts | change)) for change in changed}) == 5


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, object(), b"x", {1: "a"}, [{"a": {None: 0}}]])
def test_key_refuses_what_json_cannot_hold(value):
    with pytest.raises(ValueError, match="JSON"):
        answer_key(part=value)


def test_answers_that_wait_for_a_check_are_passed_over_unless_it_came_or_their_run_goes_on(tmp_path):
    written = Journal(tmp_path, of="m")
    written.append({"a" * 64: {"checks": ["one"]}, "b" * 64: {"checks": ["one", "two"]}, "c" * 64: {"n": 1}})
    written.confirm(["one"])
    keys = [letter * 64 for letter in "abc"]

    def hidden():
        journal = Journal(tmp_path)
        found = *journal.hide_unconfirmed(keys), [key for key in keys if journal.get(key) is None]
        return tuple("".join(key[0] for key in some) for some in found)

    assert hidden() == ("b", "", "b")
    (file,) = tmp_path.glob("*.jsonl")
    of_another = file.with_name(file.name.replace(f"-{os.getpid()}-", "-1-"))
    file.rename(of_another)
    assert hidden() == ("", "b", ""), "a process that holds the file's lock goes on"
    os.close(written._descriptor)
    assert hidden() == ("b", "", "b")
    journal = Journal(tmp_path)
    journal.hide_unconfirmed(keys)
    journal.append({"b" * 64: {"n": 2}})
    assert journal.get("b" * 64) == {"n": 2, "before": [{}]} and len(journal) == 3


def test_what_was_paid_for_answers_that_are_not_used_is_kept_through_every_later_one(tmp_path):
    key = "a" * 64
    for run in range(3):  # each is killed before a check follows its answer
        journal = Journal(tmp_path)
        assert journal.hide_unconfirmed([key]) == ([key] * bool(run), [])
        journal.append({key: {"usage": {"n": run}, "completions": ["text"], "checks": [f"check {run}"]}})
        os.close(journal._descriptor)
    journal = Journal(tmp_path)
    journal.confirm(["check 2"])
    journal.withdraw({key: None})
    assert journal.get(key) is None and len(journal.paid(key, None)) == 3
    os.close(journal._descriptor)
    prune(tmp_path)
    journal = Journal(tmp_path)
    assert journal.hide_unconfirmed([key]) == ([], []) and journal.get(key) is None
    journal.append({key: {"usage": {"n": 3}}})
    last = Journal(tmp_path)
    paid = last.paid(key, last.get(key))
    assert [one["usage"]["n"] for one in paid.values()] == [0, 1, 2, 3] and len(paid) == 4


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1), answers, max_size=6))
def test_answers_come_back_as_they_were(records):
    with tempfile.TemporaryDirectory() as folder:
        written = Journal(Path(folder))
        written.append(records)
        read = Journal(Path(folder))
        for journal in (written, read):
            assert {key: journal.get(key) for key in records} == records
            assert len(journal) == len(records)
            assert all(key in journal for key in records)
        assert read.dropped == 0


def test_minus_infinity_and_half_an_emoji_survive(tmp_path):
    answer = {"logprobs": [-math.inf], "text": "a\ud83d\u2028\n"}
    Journal(tmp_path).append({"k": answer})
    assert Journal(tmp_path).get("k") == answer
    assert Journal(tmp_path).get("other") is None


@pytest.mark.slow
@given(st.lists(answers, min_size=1, max_size=5), st.data())
def test_a_file_cut_at_any_byte_loses_the_cut_record_only(items, data):
    with tempfile.TemporaryDirectory() as folder:
        records = {str(index): item for index, item in enumerate(items)}
        Journal(Path(folder)).append(records)
        (file,) = Path(folder).glob("*.jsonl")
        content = file.read_bytes()
        cut = data.draw(st.integers(0, len(content)))
        file.write_bytes(content[:cut])
        ends = [index for index, byte in enumerate(content) if byte == ord("\n")]
        whole = sum(cut >= end for end in ends)
        in_the_middle = cut not in {0, *ends, *(end + 1 for end in ends)}

        journal = Journal(Path(folder))

        assert {key: journal.get(key) for key in records if key in journal} == dict(list(records.items())[:whole])
        assert journal.dropped == in_the_middle
        journal.append(records)
        assert {key: Journal(Path(folder)).get(key) for key in records} == records


def test_a_changed_byte_is_noticed(tmp_path):
    Journal(tmp_path).append({"a": {"text": "yes"}, "b": {"text": "no"}})
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b"yes", b"yet"))
    journal = Journal(tmp_path)
    assert ("a" in journal, "b" in journal, journal.dropped) == (False, True, 1)


def test_lines_are_json_for_other_tools(tmp_path):
    Journal(tmp_path, of="tiny").append({"a": {"text": "نعم"}})
    (file,) = tmp_path.glob("*.jsonl")
    (record,) = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert record["key"] == "a" and record["answer"] == {"text": "نعم"} and record["of"] == "tiny"


def test_the_newer_record_wins_within_and_across_files(tmp_path):
    first, second = Journal(tmp_path), Journal(tmp_path)
    second.append({"k": {"turn": 0}})
    first.append({"k": {"turn": 1}})
    first.append({"k": {"turn": 2}})
    assert Journal(tmp_path).get("k") == {"turn": 2}
    second.append({"k": {"turn": 3}})
    assert Journal(tmp_path).get("k") == {"turn": 3}
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_answers_of_another_run_are_found_though_the_journal_was_opened_before_its_folder_was_made(tmp_path):
    early, other = Journal(tmp_path / "journal"), Journal(tmp_path / "journal")
    assert early.get("a") is None
    other.append({"a": {"text": "نعم"}})
    assert early.get("a") == {"text": "نعم"} and "a" in early


def test_the_newest_is_told_by_its_sequence_whatever_the_clocks_say(tmp_path, monkeypatch):
    for turn, now in enumerate((50, 40, 60, 30)):  # a clock that is put back between runs
        monkeypatch.setattr(time, "time_ns", lambda now=now: now)
        Journal(tmp_path).append({"k": {"turn": turn}})
        assert Journal(tmp_path).get("k") == {"turn": turn}
    for index in tmp_path.glob("index-*.sqlite"):
        index.unlink()
    afresh = Journal(tmp_path, resume=False)
    assert len(afresh) == 0 and afresh.get("k") is None
    afresh.append({"k": {"turn": 9}})
    assert (afresh.get("k"), afresh.earlier("k"), len(afresh)) == ({"turn": 9}, None, 1)
    assert Journal(tmp_path).get("k") == {"turn": 9}


def test_what_is_indexed_is_not_read_again_and_an_index_is_only_a_help(tmp_path, monkeypatch, caplog):
    first = Journal(tmp_path)
    first.append({f"k{number}": {"n": number} for number in range(50)})
    decode, read = journal_index.decode_line, []
    monkeypatch.setattr(journal_index, "decode_line", lambda line: read.append(line) or decode(line))
    assert len(Journal(tmp_path)) == 50 and read == []
    (index,) = tmp_path.glob("index-*.sqlite")
    index.write_bytes(b"no database " * 1000)
    assert Journal(tmp_path).get("k7") == {"n": 7} and len(read) == 50
    first.append({"more": {}})  # its index has gone from under it
    assert {"more", "k7"} <= {key for key in ("more", "k7") if key in first and key in Journal(tmp_path)}
    for file in tmp_path.glob("index-*.sqlite"):
        file.unlink()
    index.mkdir()
    assert len(Journal(tmp_path)) == 51
    assert "cannot be used" in caplog.text


def test_a_journal_that_is_deleted_in_mid_run_is_a_sentence_and_further_answers_are_kept(tmp_path, caplog):
    journal = Journal(tmp_path / "journal")
    journal.append({"a": {}})
    shutil.rmtree(tmp_path / "journal")
    with pytest.raises(CulturevalError, match="deleted or changed while this command was using them. Start it again"):
        journal.get("a")
    journal.append({"b": {"n": 1}})
    assert "deleted in mid-run" in caplog.text
    again = Journal(tmp_path / "journal")
    assert ("a" in again, again.get("b"), journal.get("b")) == (False, {"n": 1}, {"n": 1})


def test_the_command_lists_measures_and_prunes(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))

    def run(*arguments, code=0):
        done = CliRunner().invoke(app, ["journal", *arguments])
        assert done.exit_code == code, done.output
        return done.output if not code else str(done.exception)

    assert "no journal" in run("list", code=1)
    here = f"-{socket.gethostname()}-"
    with monkeypatch.context() as patched:
        patched.setattr(time, "time_ns", lambda: 5)
        first = Journal(tmp_path / "journal", of="zero")
        first.append({"old": {"n": 0}, "a": {"n": 0}})
        os.close(first._descriptor)
    (tmp_path / "journal" / f"2{here}b.jsonl").write_bytes(b'{"checksum": "')
    for of in ("one\x1b[2J\u2028", "two"):
        journal = Journal(tmp_path / "journal", of=of)
        journal.append({"a": {"of": of}, of: {"text": "x" * 5000}})
        os.close(journal._descriptor)  # as the end of its process does
    listed = run("list")
    rows = [" ".join(line.split()) for line in listed.splitlines()[1:]]
    assert rows[0].startswith("two 2 0.0 20") and rows[1].startswith(r"one\x1b[2J\u2028 1 ")
    assert rows[2] == "zero 1 0.0 1970-01-01 1970-01-01"
    assert "4 answers" in run("size") and "1 damaged line;" in run("size")
    running = Journal(tmp_path / "journal", of="three")
    running.append({"busy": {}})
    before = {key: running.get(key) for key in ("a", "old", "two", "busy")}
    told = run("prune", "--dry-run")
    assert (
        "0 answers and 3 replaced or damaged lines would be taken out" in told and "1 files are being written" in told
    )
    assert run("prune") == told.replace("would be taken out", "taken out")
    assert {key: running.get(key) for key in before} == before
    assert "0 answers and 0 replaced" in run("prune")
    assert "Did you mean two" in run("prune", "--of", "twoo", code=1)
    assert "1 answers and 0" in run("prune", "--older-than", "30")
    assert "2 answers and 0" in run("prune", "--of", "two")
    assert [key in running for key in before] == [False, False, False, True]
    left = Journal(tmp_path / "journal")
    assert (len(left), left.dropped) == (2, 0)


def test_an_answer_json_cannot_hold_leaves_the_batch_unwritten(tmp_path):
    journal = Journal(tmp_path)
    with pytest.raises(TypeError):
        journal.append({"a": {"text": "x"}, "b": {"text": object()}})
    assert len(journal) == len(Journal(tmp_path)) == 0


def test_a_full_disk_costs_only_what_did_not_fit(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    journal.append({"a": {"text": "x"}})
    real_write = os.write

    def half_then_full(descriptor, data):
        monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        return real_write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half_then_full)
    with pytest.raises(CulturevalError, match="disk full.*Make room"):
        journal.append({"b": {"text": "y"}})
    monkeypatch.setattr(os, "write", real_write)
    journal.append({"c": {"text": "z"}})
    again = Journal(tmp_path)
    assert ("a" in again, "b" in again, "c" in again, again.dropped) == (True, False, True, 1)


def test_batches_written_in_the_background_are_there_in_order_and_their_errors_are_told(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    with journal.appending() as append:
        append({"a": {"text": "1"}})
        append({"a": {"text": "2"}, "b": {"text": "3"}})
        assert Journal(tmp_path).get("a") is not None  # the batch before
    again = Journal(tmp_path)
    assert (again.get("a"), again.get("b"), len(again)) == ({"text": "2"}, {"text": "3"}, 2)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(CulturevalError, match="disk full.*Make room"), journal.appending() as append:
        append({"c": {"text": "4"}})


def test_a_folder_that_cannot_be_used_is_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CulturevalError, match="CULTUREVAL_JOURNAL"):
        Journal(tmp_path / "file").append({"a": {}})
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(CulturevalError, match="CULTUREVAL_JOURNAL"):
        Journal(tmp_path)


def test_the_environment_names_the_folder_and_can_switch_resuming_off(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path))
    monkeypatch.delenv("CULTUREVAL_JOURNAL", raising=False)
    open_journal().append({"k": {}})
    assert (tmp_path / "journal").is_dir() and "k" in open_journal()
    monkeypatch.setenv("CULTUREVAL_RESUME", "0")
    assert "k" not in open_journal()
    monkeypatch.setenv("CULTUREVAL_RESUME", "maybe")
    with pytest.raises(CulturevalError, match="CULTUREVAL_RESUME"):
        open_journal()
    monkeypatch.setenv("CULTUREVAL_RESUME", "1")
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "elsewhere"))
    assert open_journal().folder == tmp_path / "elsewhere" and len(open_journal()) == 0


WRITER = """
import sys
from pathlib import Path
from cultureval.runtime.journal import Journal
journal, name, batches = Journal(Path(sys.argv[1])), sys.argv[2], int(sys.argv[3])
for batch in range(batches):
    journal.append({f"{name}-{batch}-{i}": {"text": "جواب " * 200, "batch": batch} for i in range(3)})
    print(batch, flush=True)
"""


def _start_writer(folder, name, batches):
    command = [sys.executable, "-c", WRITER, str(folder), name, str(batches)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_several_processes_write_at_once(tmp_path):
    writers = [_start_writer(tmp_path, f"p{number}", 20) for number in range(4)]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    journal = Journal(tmp_path)
    assert len(journal) == 4 * 20 * 3 and journal.dropped == 0
    assert len(list(tmp_path.glob("*.jsonl"))) == 4


def test_a_forked_child_and_threads_do_not_mix_their_lines(tmp_path):
    journal = Journal(tmp_path)
    journal.append({"parent": {}})
    child = os.fork()
    if child == 0:
        journal.append({"child": {"of": "parent"}})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: journal.append({f"t{number}": {"n": number}}), range(40)))
    again = Journal(tmp_path)
    assert len(again) == 42 and again.dropped == 0
    assert all(journal.get(f"t{number}") == {"n": number} for number in range(40))
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


@pytest.mark.parametrize("delay", [0.0, 0.011, 0.037])
def test_what_was_acknowledged_before_a_kill_is_there_after_it(tmp_path, delay):
    writer = _start_writer(tmp_path, "victim", 1_000_000)
    acknowledged = int(writer.stdout.readline())
    time.sleep(delay)
    os.kill(writer.pid, signal.SIGKILL)
    acknowledged = max([acknowledged, *map(int, writer.communicate()[0].split())])
    journal = Journal(tmp_path)
    for batch in range(acknowledged + 1):
        for i in range(3):
            assert journal.get(f"victim-{batch}-{i}") == {"text": "جواب " * 200, "batch": batch}
    assert journal.dropped <= 1
