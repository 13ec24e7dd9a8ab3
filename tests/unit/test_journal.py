"""The journal: what was told as written is found again, whatever happened in between."""

import json
import multiprocessing
import os
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal, answer_key, open_journal
from cultureval.runtime.settings import current_settings, use_settings

TEXTS = st.text(st.characters(codec=None, exclude_categories=()))  # with lone surrogates, U+2028 and line ends


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.delenv("CULTUREVAL_RESUME", raising=False)


def key(number):
    return answer_key(question=number)


@given(st.lists(st.dictionaries(st.integers(0, 9), TEXTS, max_size=4), max_size=8))
def test_the_last_answer_to_each_key_is_found_now_and_later(tmp_path_factory, batches):
    folder = tmp_path_factory.mktemp("j")
    journal, expected = Journal(folder), {}
    for number, batch in enumerate(batches):
        journal.append({key(name): {"text": text} for name, text in batch.items()})
        expected |= batch
        if number == 3:
            journal = Journal(folder)
    for one in (journal, Journal(folder)):
        assert {name: one.get(key(name))["text"] for name in expected} == expected
        assert one.get(key(99)) is None and key(99) not in one


def test_a_file_cut_anywhere_has_what_stands_before_the_cut(tmp_path):
    Journal(tmp_path).append({key(number): {"n": number} for number in range(4)})
    (file,) = tmp_path.glob("*.jsonl")
    whole = file.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        file.write_bytes(whole[:cut])
        found, complete = Journal(tmp_path), sum(end <= cut for end in ends)
        assert sum(key(number) in found for number in range(4)) == complete and found.torn == (cut not in (0, *ends))
        assert all(found.get(key(number)) == {"n": number} for number in range(complete))


def write_until_killed(folder, first, told):
    journal = Journal(folder)
    for number in range(first, first + 10_000):
        journal.append({key(number): {"n": number}})
        with open(told, "a") as file:
            file.write(f"{number}\n")


def test_two_writers_that_are_killed_lose_nothing_that_they_were_told_is_written(tmp_path):
    context = multiprocessing.get_context("fork")
    for turn in range(3):
        told = [tmp_path / f"told-{turn}-{place}" for place in range(2)]
        starts = [(turn * 2 + place) * 100_000 for place in range(2)]
        writers = [
            context.Process(target=write_until_killed, args=(tmp_path / "j", start, file))
            for start, file in zip(starts, told, strict=True)
        ]
        for writer in writers:
            writer.start()
        while not all(file.exists() and file.stat().st_size > 200 for file in told):
            time.sleep(0.01)
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.join()
    journal = Journal(tmp_path / "j")
    numbers = [int(line) for file in tmp_path.glob("told-*") for line in file.read_text().splitlines()]
    assert len(numbers) > 100 and all(journal.get(key(number)) == {"n": number} for number in numbers)


def test_a_full_disk_is_a_sentence_and_takes_none_of_the_batch(tmp_path, monkeypatch):
    journal, write = Journal(tmp_path), os.write
    journal.append({key(1): {"n": 1}})
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:20]))
    with pytest.raises(CulturevalError, match="no room is left.*the same command goes on"):
        journal.append({key(2): {"n": 2}})
    monkeypatch.undo()
    journal.append({key(3): {"n": 3}})
    found = Journal(tmp_path, resume=True)
    assert (found.get(key(1)), found.get(key(2)), found.get(key(3)), found.torn) == ({"n": 1}, None, {"n": 3}, 0)


def test_each_model_has_a_folder_that_says_whose_it_is(tmp_path):
    one = open_journal("org/Model é", revision="a", dtype="float32")
    one.append({key(1): {"n": 1}})
    assert open_journal("org/Model é", revision="a", dtype="float32").get(key(1)) == {"n": 1}
    for name, identity in [("org/Model é", {"revision": "b"}), ("../../x", {}), ("x", {}), ("", {})]:
        other = open_journal(name, **identity)
        assert key(1) not in other and other.folder.parent == tmp_path / "journal"
    about = json.loads((one.folder / "about.json").read_text("utf-8"))
    assert about == {"name": "org/Model é", "revision": "a", "dtype": "float32"}


def test_no_resume_passes_over_earlier_answers_and_keeps_new_ones(tmp_path):
    Journal(tmp_path).append({key(1): {"n": "old"}, key(2): {"n": "old"}})
    with use_settings(current_settings().with_(resume=False)):
        journal = Journal(tmp_path)
        assert key(1) not in journal
        journal.append({key(1): {"n": "new"}})
    found = Journal(tmp_path)
    assert [found.get(key(number))["n"] for number in (1, 2)] == ["new", "old"]


def test_answers_that_were_there_at_opening_are_earlier_ones(tmp_path):
    before = time.time_ns()
    Journal(tmp_path).append({key(1): {"n": 1}})
    journal = Journal(tmp_path)
    journal.append({key(2): {"n": 2}})
    assert before < journal.earlier(key(1)) < time.time_ns() and journal.earlier(key(2)) is None


def test_files_that_are_deleted_meanwhile_are_a_sentence(tmp_path):
    journal = Journal(tmp_path)
    journal.append({key(1): {"n": 1}})
    next(tmp_path.glob("*.jsonl")).unlink()
    with pytest.raises(CulturevalError, match="deleted or changed"):
        journal.get(key(1))


def test_a_key_covers_every_part_and_refuses_what_json_cannot_hold():
    keys = [answer_key(a=1), answer_key(a="1"), answer_key(a=[1]), answer_key(b=1), answer_key(a=1, b=None)]
    assert len(set(keys)) == 5 and answer_key(a=1, b=2) == answer_key(b=2, a=1) and len(keys[0]) == 32
    for wrong in (object(), float("nan")):
        with pytest.raises((TypeError, ValueError)):
            answer_key(a=wrong)
