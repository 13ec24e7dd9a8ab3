"""Which saved details are found from which path, and which images of theirs are opened."""

import errno
import io
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

from cultureval.runs.files import find_saved_tasks, read_details
from cultureval.runs.load_runs import read_file
from cultureval.runs.record import RunRecord
from cultureval.runs.rows import saved_image, saved_reply
from cultureval.runs.writing import write_derived, write_results
from cultureval.runtime.data.image_store import store_image, stored_image
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.selection import sampled_rows

ROW = {"doc": {"id": "0"}, "metric": {"bleu": 1.0}, "model_response": {"text": ["x"]}}


def save(root, model, date, task, rows=(ROW,)):
    folder = root / "details" / model / date
    folder.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), folder / f"details_{task}_{date}.parquet")


@pytest.fixture
def out(tmp_path):
    root = tmp_path / "out"
    for date in ("2026-01-01T00-00-00.1", "2026-01-02T00-00-00.1"):
        save(root, "org/m", date, "jeem_vqa:eg|0")
        (root / "results" / "org" / "m").mkdir(parents=True, exist_ok=True)
        (root / "results" / "org" / "m" / f"results_{date}.json").write_text('{"versions": {"jeem_vqa:eg|0": 1}}')
    save(root, "org/m", "2026-01-01T00-00-00.1", "jeem_caption:msa|0")
    save(root, "other", "2026-01-01T00-00-00.1", "jeem_vqa:eg|0")
    return root


def found(*paths):
    return {(task.model, task.task, task.date[:10]) for task in find_saved_tasks(paths)}


def test_the_newest_details_of_each_model_and_task_are_found_from_any_path(out):
    newest = {("org/m", "jeem_vqa:eg|0", "2026-01-02"), ("org/m", "jeem_caption:msa|0", "2026-01-01")}
    other = {("other", "jeem_vqa:eg|0", "2026-01-01")}
    assert found(out) == newest | other == found(out, out / "details")
    assert found(out / "details" / "org" / "m") == newest == found(out / "results" / "org" / "m", out / "results")
    old = out / "results" / "org" / "m" / "results_2026-01-01T00-00-00.1.json"
    assert found(old) == {(model, task, "2026-01-01") for model, task, _ in newest}
    file = next((out / "details" / "other").rglob("*.parquet"))
    assert found(file) == other
    (task,) = find_saved_tasks([file])
    assert task.root == out and not task.results_file.exists()


def test_what_was_derived_is_passed_over_and_nothing_is_replaced(out):
    before = found(out)
    (task,) = find_saved_tasks([out / "details" / "other"])
    write_derived(task, "2027", read_details(task.file), [{"judge_x": {"flags": [], "reason": ""}}])
    assert found(out) == before
    write_results(task.root, task.model, "2027", {"results": {}}, RunRecord())
    with pytest.raises(FileExistsError):
        write_results(task.root, task.model, "2027", {"results": {}}, RunRecord())


def test_a_file_whose_writing_is_broken_off_is_not_there(tmp_path, monkeypatch):
    def broken_off(self, text, encoding):
        self.write_bytes(text.encode(encoding)[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", broken_off)
    with pytest.raises(OSError, match="No space"):
        write_results(tmp_path, "m", "2027", {"results": {}}, RunRecord())
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("text", ["[]", '{"config_tasks": [1]}', '{"config_general": "x"}', "[" * 100_000])
def test_results_of_another_kind_are_named(out, text):
    (file,) = out.rglob("results_2026-01-02*.json")
    file.write_text(text)
    (task,) = (task for task in find_saved_tasks([out]) if task.date.startswith("2026-01-02"))
    with pytest.raises(CulturevalError, match=r"results_2026-01-02.*(no results file|cannot be read)"):
        read_file(task.results_file)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "nowhere", "does not exist"),
        (lambda folder: folder, "has no details"),
        (lambda folder: (folder / "x.json").write_text("{}") and folder / "x.json", "not a results file"),
        (lambda folder: save(folder, "m", "2026", "t|0", [{"doc": 1}]) or folder, "lacks metric, model_response"),
        (lambda folder: damaged(folder), "cannot be read as details"),
    ],
)
def test_other_paths_are_refused_in_one_sentence(tmp_path, make, words):
    with pytest.raises(CulturevalError, match=words):
        [read_details(task.file) for task in find_saved_tasks([make(tmp_path)])]


def damaged(folder):
    save(folder, "m", "2026", "t|0")
    file = next(folder.rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-20])
    return folder


def test_images_are_opened_by_their_content_s_name_only(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    stream = io.BytesIO()
    Image.new("RGB", (2, 2)).save(stream, "PNG")
    name = store_image(stream.getvalue())
    here = stored_image(name)
    assert saved_image(f"/another/machine/images/{name}") == here  # found in this machine's store
    assert saved_image({"bytes": b"abc", "path": None}) == b"abc"
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "other"))
    assert saved_image(str(here)) == here  # another store, but the name is that of the content
    private = tmp_path / "passport.png"
    private.write_bytes(stream.getvalue())
    disguised = tmp_path / ("0" * 64 + ".png")
    disguised.write_bytes(stream.getvalue())
    for path in (private, disguised, tmp_path / "gone.png"):
        assert not saved_image({"bytes": None, "path": str(path)}).exists()


def test_a_draw_is_the_same_for_all_models_and_grows(out):
    ids = [str(number) for number in range(100)]
    first = sampled_rows(ids, "t", 10, 1)
    assert len(set(first)) == 10 and first == sorted(first)
    assert {ids[place] for place in first} == {ids[::-1][place] for place in sampled_rows(ids[::-1], "t", 10, 1)}
    assert set(first) < set(sampled_rows(ids, "t", 20, 1))
    assert first != sampled_rows(ids, "t", 10, 2) and first != sampled_rows(ids, "u", 10, 1)
    assert sampled_rows(ids, "t", None, 1) == sampled_rows(ids, "t", 1000, 1) == list(range(100))


def test_the_saved_reply_is_the_one_that_was_scored():
    reasoned = {"text": ["<think>box [1, 1, 2, 2]</think>no"], "text_post_processed": ["no"]}
    assert saved_reply(reasoned) == "no"
    assert saved_reply({"text": ["yes"], "text_post_processed": None}) == "yes"
    of_lightevals_vision_backend = {"text": "a teapot", "text_post_processed": list("a teapot")}
    assert saved_reply(of_lightevals_vision_backend) == "a teapot"
    assert saved_reply({"text": [], "text_post_processed": []}) == saved_reply({"text": [None]}) == ""
