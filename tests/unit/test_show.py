"""`cultureval show`: items and pictures of a task; what is drawn where, and that hostile text stays text."""

import json
import math
import os
from xml.etree import ElementTree

import pyarrow
import pyarrow.parquet
import pytest
from board_runs import write_run
from PIL import Image
from typer.testing import CliRunner

from cultureval.reports.cvlue.boxes import boxes_as_svg, draw_boxes
from cultureval.reports.item_view import describe, items_table
from cultureval.runs.files import SavedTask, find_details, output_folder
from cultureval.runs.rows import places_of, rows_of
from cultureval.runs.writing import write_details
from cultureval.runtime.data.image_store import store_image, stored_image
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app
from cultureval.scripts.show import show

HOSTILE = '<script>alert(1)</script>&"\x1b[31m\x00'


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


def test_boxes_stand_where_they_should(row):
    svg = ElementTree.fromstring(boxes_as_svg(row))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [shape.attrib for shape in svg.iter(f"{space}rect")][1:]
    found = [tuple(float(box[name]) for name in ("x", "y", "width", "height")) for box in boxes]
    assert found == [(10, 20, 50, 30), (20, 20, 50, 40), (1, 1, 4, 4)]
    assert [box["stroke"] for box in boxes] == ["#1a9850", "#d73027", "#d73027"]
    assert {element.tag for element in svg.iter()} == {f"{space}{name}" for name in ("svg", "rect", "image", "text")}
    words = [element.text for element in svg.iter(f"{space}text")]
    assert "<script>" in words[0] and "标注 gold" in words
    assert not any(ord(letter) < 32 for word in words for letter in word)


def test_text_and_png(row, tmp_path):
    assert "\x1b" not in describe(row, "iou") and "iou 0.5" in describe(row, "iou")
    cut = row | {"model_response": row["model_response"] | {"truncated_tokens_count": 1}}
    assert describe(cut, "iou").startswith("prompt (without its first 1 token, since more is too long for the model):")
    draw_boxes(row, tmp_path / "boxes.png")
    with Image.open(tmp_path / "boxes.png") as picture:
        assert picture.getpixel((10, 35)) == (26, 152, 80) and picture.getpixel((70, 35)) == (215, 48, 39)
    row["model_response"]["text"] = ["我看不到"]
    assert "no readable box" in boxes_as_svg(row)


def test_a_metric_may_be_a_word(row):
    row["metric"] = {"verdict": "true", "hallucinated": 1}
    assert "scores: verdict true, hallucinated 1" in describe(row, "iou")


def test_a_judge_s_verdict_is_told_in_a_line_of_its_own(row):
    verdict = {"outcome": "unscored", "reason": "unreadable", "label": None, "flags": [], "reply": "Fluency:\nX/5"}
    row["metric"] = {"judge_j_vqa": verdict, "judge_j_vqa_fluency": math.nan, "other": None, "iou": 0.5}
    assert describe(row, "iou").endswith(
        "judge_j_vqa: unscored; unreadable; Fluency: / X/5\nscores: judge_j_vqa_fluency nan, iou 0.5"
    )
    del row["metric"]["judge_j_vqa_fluency"]
    row["metric"]["other"] = 0.25
    assert items_table([row], "a_task_of_another_package", "", None, 1).splitlines()[2].endswith("0.25")


def test_an_item_without_the_headline_s_score_shows_no_other_score_unless_it_is_of_another_kind(row):
    """Another metric's 1 stood below the headline for an item that is not scored."""
    scores = [{"iou": 0.5, "other": 0.25}, {"iou": None, "other": 1.0}, {"iou": None, "other": None, "recall": 0.75}]
    lines = items_table([row | {"metric": one} for one in scores], "cvlue_vg", "", None, 3).splitlines()[2:5]
    assert [line.split()[-1] for line in lines] == ["0.5", "n/a", "0.75"]


def test_what_is_not_there_is_named(row, tmp_path, monkeypatch):
    with pytest.raises(CulturevalError, match="has no details of LightEval"):
        find_details(tmp_path, "cvlue_vg")
    monkeypatch.setattr(
        "cultureval.runs.files.find_details", lambda *names: SavedTask(tmp_path, tmp_path, "m", "1", "cvlue_vg|0")
    )
    monkeypatch.setattr("cultureval.runs.rows.rows_with_judgements", lambda saved: [row])
    with pytest.raises(CulturevalError, match="must end in .svg or .png"):
        show(tmp_path, "cvlue_vg", "7", output=tmp_path / "x.gif")
    for path, sentence in ((tmp_path / "a.png", "does not name a stored image"), (f"{'0' * 64}.png", "is missing")):
        row["doc"]["images"] = [str(path)]
        with pytest.raises(CulturevalError, match=sentence):
            show(tmp_path, "cvlue_vg", "7")


def test_a_task_is_a_list_of_its_items_on_one_line_each(row, tmp_path, monkeypatch, capsys):
    arabic = {"query": "السؤال: ما عاصمة الأردن؟", "choices": ["أ", "ب"], "gold_index": 1, "specific": {}}
    scored = {"doc": arabic, "model_response": {"text": [], "logprobs": [-1.0, -2.0], "output_tokens": [[1], [2]]}}
    rows = [row, scored | {"metric": {"acc_norm": math.nan}}]
    monkeypatch.setattr("cultureval.runs.rows.rows_with_judgements", lambda saved: rows)
    details = tmp_path / "details" / "org" / "model" / "2026" / "details_cvlue_vg|0_2026.parquet"
    found = SavedTask(details, tmp_path, "org/model", "2026", "cvlue_vg|0")
    monkeypatch.setattr("cultureval.runs.files.find_details", lambda *names: found)
    show(tmp_path, "cvlue_vg")
    title, header, first, second, hint = capsys.readouterr().out.splitlines()
    assert title == "cvlue_vg, org/model, 2026: 2 of 2 items, score: iou" and hint.endswith(f" {tmp_path} cvlue_vg 7")
    assert first.split()[0] == "7" and first.endswith("0.5") and "\x1b" not in first
    assert second.split()[0] == "#1" and second.split()[-3:] == ["ب", "أ", "n/a"]
    show(tmp_path, "cvlue_vg", "#1", as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert data == {"item": "#1", "place": 1, "prompt": arabic["query"], "gold": "ب", "answer": "أ"} | {
        "scores": {"acc_norm": None}
    }
    assert "\u2068السؤال" in items_table(rows, "cvlue_vg", "", 100, 2)
    assert "\u2068" not in items_table(rows, "x", "", None, 2)
    assert [places_of(name, rows, "cvlue_vg") for name in ("7", "#0", "#1", "1")] == [[0], [0], [1], [1]]
    with pytest.raises(CulturevalError, match=r"no item '0' among its 2: 7, #1\. '#0' \(in quotes\) is the first"):
        show(tmp_path, "cvlue_vg", "0")


def test_prompts_and_answers_have_the_room_that_other_columns_leave(row):
    row["doc"] |= {"query": "word " * 40, "choices": ["A"], "gold_index": 0}
    row["model_response"] = {"text": ["B"]}
    lines = items_table([row], "cvlue_vg", "", 80, 1).splitlines()
    assert 76 <= max(map(len, lines)) <= 80 and lines[2].count("word") > 8


@pytest.mark.parametrize(
    "first, second, seen",
    [("Ask: 20 + 1", "Ask: 21 + 2", ["20", "21"]), ("السؤال: كتاب", "السؤال: كتب", ["كتاب", "كتب"])]
    + [("请回答问题：我", "请回答问题：你", ["我", "你"])]
    + [("x" * 100_000 + " 20", "x" * 100_000 + " 21", ["20", "21"])],  # at once
    ids=["numbers", "Arabic", "Chinese", "one long word"],
)
def test_the_words_with_which_all_prompts_begin_are_left_out_and_no_word_is_cut(row, first, second, seen):
    rows = [row | {"doc": row["doc"] | {"query": query, "specific": None}} for query in (first, second)]
    lines = items_table(rows, "cvlue_vg", "", None, 2).splitlines()[2:4]
    assert [line.split()[1] for line in lines] == seen


def test_right_to_left_lines_are_isolated_and_control_characters_are_escapes(row):
    row["doc"]["query"] = "سؤال\u202e\x1b[2J\nline"
    text = describe(row, "iou", isolate=True)
    assert "\u2068سؤال\\u202e\\x1b[2J\u2069\nline\n" in text and not {"\x1b", "\u202e"} & set(text)


def save_details(folder, model, date, rows):
    return write_details(folder, model, date, "cvlue_vg|0", pyarrow.Table.from_pylist(rows))


def test_items_are_those_of_the_newest_run_by_its_date(row, tmp_path):
    new = save_details(tmp_path, "org/new", "2026-02-01", [row])
    save_details(tmp_path, "old", "2026-01-01", [row])
    os.utime(new, (0, 0))  # as a copy of the folder may leave it
    assert find_details(tmp_path, "cvlue_vg").run_name == "org/new, 2026-02-01"


@pytest.mark.parametrize(
    "rows", [None, [{"x": 1}], [{"doc": 1, "metric": 1, "model_response": None}], [{"doc": {"query": None}}]]
)
def test_details_that_are_cut_or_of_another_kind_are_named(row, tmp_path, rows):
    file = save_details(tmp_path, "m", "2026-01-01", rows or [row])
    if rows is None:
        file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(CulturevalError, match="details") as error:
        rows_of(find_details(tmp_path, "cvlue_vg").file)
    assert str(file) in str(error.value)


def test_items_of_stock_lighteval_are_shown(row, tmp_path, capsys):
    doc = {"query": "q", "choices": ["a"], "gold_index": [5], "specific": None}
    other = {"doc": doc, "model_response": {"text": ["x"], "logprobs": []}, "metric": {"bleu": {"golds": ["a"]}}}
    save_details(tmp_path, "m", "2026-01-01", [other])
    show(tmp_path, "cvlue_vg")
    show(tmp_path, "cvlue_vg", "#0")
    assert "{'golds': ['a']}" in capsys.readouterr().out


def test_the_output_folder_of_a_results_file_may_be_named_results(tmp_path):
    file = tmp_path / "results" / "results" / "m" / "results_1.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    assert output_folder(file) == tmp_path / "results" and output_folder(tmp_path / "other" / "results_1.json") is None


def test_models_of_one_name_in_several_output_folders_are_all_shown(tmp_path):
    for folder, date in (("base", "2026-01-01"), ("tuned", "2026-01-02"), ("tuned", "2026-01-03")):
        write_run(tmp_path / folder, "final", ["qimma_aratrust"], 0.5, 3, date=f"{date}T00-00-00", signed={})
    shown = json.loads(CliRunner().invoke(app, ["show", str(tmp_path), "--json"]).stdout)["runs"]
    assert [run["date"][:10] for run in shown] == ["2026-01-03", "2026-01-01"]
