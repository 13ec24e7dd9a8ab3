"""The journal keeps what was written, whatever kills the writer and however many write."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal, answer_key, open_journal

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
    Journal(tmp_path).append({"a": {"text": "نعم"}})
    (file,) = tmp_path.glob("*.jsonl")
    (record,) = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert record["key"] == "a" and record["answer"] == {"text": "نعم"}


def test_the_newer_record_wins_within_and_across_files(tmp_path):
    first, second = Journal(tmp_path), Journal(tmp_path)
    second.append({"k": {"turn": 0}})
    first.append({"k": {"turn": 1}})
    first.append({"k": {"turn": 2}})
    assert Journal(tmp_path).get("k") == {"turn": 2}
    second.append({"k": {"turn": 3}})
    assert Journal(tmp_path).get("k") == {"turn": 3}
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


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
