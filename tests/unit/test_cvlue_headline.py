"""CVLUE's headline tables: one row a task, Chinese and English apart, the macro-average, the paper's numbers."""

import csv
import math

import pytest
from summary_runs import run_of

from cultureval.reports.cvlue.table import PUBLISHED, macro_estimate, tables
from cultureval.runs.means import Estimate

NUMBERS = [*(f"itr:{way}@{k}" for way in ("TR", "IR") for k in (1, 5, 10)), "vqa:accuracy_loose", "vg:iou"]
NUMBERS += [f"vd:R@{k}" for k in (1, 5, 10)]


def test_chinese_and_english_are_two_tables_of_a_row_a_task():
    score = {"cvlue_vg": 0.4, "cvlue_en_vg": 0.8}
    run = run_of(["cvlue"], lambda task, metric: score.get(task.task, 0.25), model="Qwen/Qwen-VL-Chat")
    chinese, english = tables(run)
    assert [row.label for row in chinese.rows] == ["VQA", "VG", "VD", "TR", "IR", "Macro"]
    assert [row.label for row in english.rows] == ["VQA", "VG", "VD", "TR", "IR"]
    shown = {row.label: row.cells[1:] for row in chinese.rows}
    assert (shown["VG"][0].value, shown["VG"][0].published) == (40, 39.5) and shown["VG"][1] is None
    assert [cell.published for cell in shown["VD"]] == [33.0, 45.3, 50.9] and shown["TR"][0].published is None
    assert shown["Macro"][0].value == pytest.approx((10 * 25 + 40) / 11)
    assert shown["Macro"][0].stderr == pytest.approx(math.hypot(6, 1, 1, 3) / 11)
    assert english.rows[1].cells[1].published == 80.1 and "not released" in chinese.notes[-1]


def test_a_part_has_no_macro_average():
    (table,) = tables(run_of(["cvlue_vqa", "cvlue_vd"]))
    assert table.rows[-1].label == "Macro" and [str(table.rows[-1].cells[0]), table.rows[-1].cells[1].words] == [
        "4/11",
        "no average",
    ]
    (english,) = tables(run_of(["cvlue_en_vqa"]))
    assert [row.label for row in english.rows] == ["VQA"] and english.notes == []
    assert macro_estimate({name: Estimate(50) for name in NUMBERS}) == Estimate(50)
    assert macro_estimate({name: Estimate(50) for name in NUMBERS[1:]}) is None
    asked = {"itr": 10, "vqa": 10, "vg": 10, "vd": 10}
    for rows, n in ((10, 40), (20, 50)):  # of a gallery, which has both directions; of a dual encoder
        assert macro_estimate({name: Estimate(50, n=10) for name in NUMBERS}, asked | {"itr": rows}).n == n


def test_the_papers_table_10():
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    rows = {row["model"]: row for row in csv.DictReader(lines[1:])}
    assert len(rows) == 5 and sum(bool(cell) for row in rows.values() for cell in row.values()) - 5 == 22 * 2 + 30 - 2
    assert rows["X2VLM"]["cvlue_vd:R@1"] == "5.4" and rows["mPLUG-Owl2"]["cvlue_vg:iou"] == ""
