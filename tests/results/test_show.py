"""`cultureval show`: items and pictures of a task; what is drawn where, and that hostile text stays text."""

import json
import re

import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image
from planted import choice_row, judge, plant, text_row, verdict
from rich.cells import cell_len
from typer.testing import CliRunner

from cultureval.reports.cvlue.boxes import draw_boxes
from cultureval.reports.item_view import describe, items_table, places_of
from cultureval.runs.loading import load
from cultureval.runs.record import ModelRecord
from cultureval.runs.rows import find_task, names_of, rows_of, saved_image
from cultureval.runtime.data.image_store import store_image, stored_image
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app

HOSTILE = '<script>alert(1)</script>&"\x1b[31m\x00'
TRUST, VG = "qimma_aratrust|0", "cvlue_vg|0"


def show(*words):
    found = CliRunner().invoke(app, ["show", *map(str, words)])
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.fixture
def row(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    Image.new("RGB", (200, 100), "white").save(tmp_path / "picture.png")
    image = stored_image(store_image((tmp_path / "picture.png").read_bytes()))
    specific = {"id": "7", "box": [10.0, 20.0, 50.0, 30.0], "size": [200, 100], "box_format": "xyxy"}
    return {
        "doc": {
            "query": f"框出图中{HOSTILE}的位置",
            "choices": ["[10, 20, 50, 30]"],
            "gold_index": 0,
            "images": [str(image)],
            "specific": specific | {"box_pixels": "3136-12845056"},
        },
        "model_response": {"text": [f"[20, 20, 70, 60] [1, 1, 5, 5] {HOSTILE}"], "logprobs": []},
        "metric": {"iou": 0.5, "iou_continuous": 0.4},
    }


def test_boxes_stand_where_they_should(row, tmp_path):
    draw_boxes(row, tmp_path / "boxes.png")
    with Image.open(tmp_path / "boxes.png") as picture:
        assert picture.getpixel((10, 35)) == (26, 152, 80) and picture.getpixel((70, 35)) == (215, 48, 39)


def test_right_to_left_lines_are_isolated_and_control_characters_are_escapes(row):
    row["doc"]["query"] = "سؤال\u202e\x1b[2J\nline"
    text = describe(row, "iou", isolate=True)
    assert "\u2068سؤال\\u202e\\x1b[2J\u2069\nline\n" in text and not {"\x1b", "\u202e"} & set(text)


def test_tasks_items_and_one_item_are_shown_with_their_picture(row, tmp_path):
    plant(tmp_path, {VG: [row]})
    lines = show(tmp_path, "cvlue_vg").splitlines()
    first = next(line for line in lines if line.split()[0] == "7")
    assert first.endswith("0.5") and "\x1b" not in first and lines[-1].endswith("'cvlue_vg|0' 7")
    assert "iou 0.5" in show(tmp_path, "cvlue_vg", "7") and (tmp_path / "pictures" / "cvlue_vg-7.png").is_file()
    data = json.loads(show(tmp_path, "cvlue_vg", "row 1", "--json"))
    assert (data["item"], data["row"], data["scores"]["iou"]) == ("7", 1, 0.5)


def test_items_are_those_of_the_newest_run_with_later_judgements(tmp_path):
    task = "jeem_caption:eg|0"
    plain = [text_row(at, {"cider": 1.0}) for at in range(2)]
    file = plant(tmp_path, {task: plain}, model="new", date="2026-11-02")
    plant(tmp_path, {task: plain}, model="old", date="2026-11-01")
    name = "judge_j_reference"
    judge(file, task, [text_row(1, {name: verdict(4.0), f"{name}_fluency": 4.0})], date="2026-11-03")
    run, found = find_task(tmp_path, "jeem_caption:eg")
    assert (run.model, found) == ("new", task)
    rows = rows_of(run.details[found], run.judgements[found])
    assert [row["metric"].get(f"{name}_fluency") for row in rows] == [None, 4.0]
    assert f"{name}: scored; 4.0" in describe(rows[1], "cider") and "judge" not in describe(rows[0], "cider")
    with pytest.raises(CulturevalError, match="has no details of jeem_vqa:eg"):
        find_task(tmp_path, "jeem_vqa:eg")


def test_a_row_is_found_by_its_id_its_place_and_what_it_shares(tmp_path):
    rows = [choice_row(at, True, item_id="pair") for at in range(3)]
    for row in rows[1:]:
        row["doc"]["specific"] |= {"id": None, "source_row": None}
    assert names_of(rows) == ["row 1", "row 2", "row 3"]
    assert [places_of(name, rows, TRUST) for name in ("row 2", "3", "pair")] == [[1], [2], [0, 1, 2]]
    rows = [choice_row(at, True, id=None, source_row=f"data.csv:{at + 998}") for at in range(2)]
    assert names_of(rows) == ["data.csv row 999", "data.csv row 1000"]
    assert places_of("data.csv row 1000", rows, TRUST) == places_of("data.csv:999", rows, TRUST) == [1]
    with pytest.raises(
        CulturevalError, match=r"no item 'row 3' among its 2: .*Write 'row 1' \(in quotes\) for the first"
    ):
        places_of("row 3", rows, TRUST)


def test_a_refused_item_has_no_score_and_says_so(tmp_path):
    plant(tmp_path, {TRUST: [choice_row(0, True), choice_row(1, None)]})
    shown = show(tmp_path, "qimma_aratrust").splitlines()
    assert [line.split()[-1] for line in shown[-3:-1]] == ["1", "n/a"]
    assert "no score: refused" in show(tmp_path, "qimma_aratrust", "1")


@pytest.mark.parametrize(
    "first, second, seen",
    [("Ask: 20 + 1", "Ask: 21 + 2", ["20", "21"]), ("السؤال: كتاب", "السؤال: كتب", ["كتاب", "كتب"])]
    + [
        ("请回答问题：我", "请回答问题：你", ["我", "你"]),
        ("x" * 100_000 + " 20", "x" * 100_000 + " 21", ["20", "21"]),
    ],
    ids=["numbers", "Arabic", "Chinese", "one long word"],
)
def test_the_words_with_which_all_prompts_begin_are_left_out_and_no_word_is_cut(row, first, second, seen):
    rows = [row | {"doc": row["doc"] | {"query": query}} for query in (first, second)]
    lines = items_table(rows, VG, "", None, 2, "out").splitlines()[2:4]
    assert [re.split(r"\s{2,}", line)[1].split()[0] for line in lines] == seen


def test_cells_that_are_cut_close_their_isolates(row):
    row["doc"]["query"] = "السؤال … " * 50
    for line in items_table([row], VG, "", 60, 1, "out").splitlines():
        assert line.count("\u2068") == line.count("\u2069") and cell_len(line) <= 60 or "show" in line
    assert "…\u2069  " in items_table([row], VG, "", 60, 1, "out")


WRONG = {"doc": {"query": None}, "metric": {"a": 1.0}, "model_response": {"text": ["x"]}}


@pytest.mark.parametrize("rows", [None, [{"x": 1}], [WRONG]], ids=["cut", "other columns", "no prompt"])
def test_details_that_are_cut_or_of_another_kind_are_named(tmp_path, rows):
    file = load(plant(tmp_path, {TRUST: [choice_row(0, True)]})).runs[0].details[TRUST]
    if rows is None:
        file.write_bytes(file.read_bytes()[:-5])
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    with pytest.raises(CulturevalError, match="details") as error:
        rows_of(file)
    assert str(file) in str(error.value)


def test_an_image_is_read_only_where_its_name_is_the_hash_of_its_content(row, tmp_path):
    assert saved_image(row["doc"]["images"][0]).is_file()
    (tmp_path / "secret.png").write_text("secret")
    assert not saved_image(str(tmp_path / "secret.png")).is_file()


def test_models_of_one_name_in_several_output_folders_are_all_shown(tmp_path):
    for folder, date in (("base", "2026-01-01"), ("tuned", "2026-01-02"), ("tuned", "2026-01-03")):
        plant(tmp_path / folder, {TRUST: [choice_row(0, True)]}, date=date, about=ModelRecord(version=folder))
    shown = json.loads(show(tmp_path, "--json"))["runs"]
    assert [run["date"] for run in shown] == ["2026-01-03", "2026-01-01"]
