"""Leaderboards of planted runs: who is ranked, who stands below and why, exports, and what is refused."""

import csv
import json
import re
import subprocess
import sys

import pytest
from PIL import Image
from planted import choice_row, plant, text_row

from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.exports import as_csv, as_latex, as_markdown
from cultureval.reports.leaderboard.site import PARTS, write_site
from cultureval.runtime.data.image_store import store_image, stored_image
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks

CFHR = [f"m2cqa:tf_{one}|0" for one in ("en", "msa", "ajp", "arz")]
HOSTILE = "</script><script>alert(1)</script>\u202e$_{%}&|`*\n\x00\x0b"


def captions(right, count=40):
    """Rows of CFHR: so many of the items are fooled."""
    return [text_row(number, {"cfhr": float(number >= right), "q_plus_acc": 1.0}) for number in range(count)]


def model(root, name, right, tasks=CFHR, **options):
    date = options.pop("date", "2026-11-01T10-00-00.000000")
    return plant(root, {task: captions(right, options.pop("count", 40)) for task in tasks}, name, date, **options)


def the_table(root, **options):
    (section,) = read_board([root], **options).sections
    return section.tables[0]


@pytest.fixture
def board(tmp_path):
    """Two good models that cannot be told apart, a bad one, and five that must not be ranked with them."""
    root = tmp_path / "results"
    model(root, "lab/good", 36)
    model(root, "lab/also-good", 35)
    model(root, "lab/سيّئ", 4)
    model(root, "lab/unverified", 40, details=False)
    model(root, "lab/lacks-one", 40, CFHR[:3])
    model(root, "lab/limited", 40, limit=5, count=5)
    model(root, "lab/other", 40, reports={task: {"prompt": "another prompt"} for task in CFHR})
    model(root, "lab/stock", 40, stock=True)
    return root


def test_runs_of_the_shared_protocol_are_ranked_and_others_stand_below_with_what_differs(board):
    table = the_table(board)
    rows = {row.name: row for row in table.rows}
    assert [row.name for row in table.ranked] == ["lab/good", "lab/also-good", "lab/سيّئ"]
    assert [row.interval for row in table.ranked] == ["1–2", "1–2", "3"], "lower is better"
    assert rows["lab/unverified"].unranked == "unverified" and rows["lab/lacks-one"].unranked == "tasks missing"
    assert [row.name for row in table.rows if row.differs] == [row.name for row in table.rows[5:]]
    assert "prompt: another prompt here" in rows["lab/other"].differs[0]
    assert any(one.startswith("limit: 5 here, none there") for one in rows["lab/limited"].differs)
    assert any("unknown here" in one for one in rows["lab/stock"].differs), "what a file does not say is no default"
    assert table.columns[0] == table.main and table.main in table.lower
    best = {row.name for row in table.rows if table.is_best(row, table.main)}
    assert best == {"lab/good"}, "only ranked rows are the best"
    assert any("lab/unverified (unverified)" in note for note in table.notes)


def test_runs_that_are_all_limited_are_ranked_with_their_mark(tmp_path):
    for name, right in (("a", 5), ("b", 1)):
        model(tmp_path, name, right, limit=5, count=5)
    table = the_table(tmp_path)
    assert [row.name for row in table.ranked] == ["a", "b"]
    assert all("limit 5" in [one.mark for one in row.warnings] for row in table.ranked)


def test_nobody_gains_by_leaving_items_out(tmp_path):
    model(tmp_path, "whole", 30)
    answers = {task: [text_row(number, {"cfhr": 0.0}) for number in range(20)] for task in CFHR}
    refused = {
        task: [text_row(number, {"cfhr": None}, unscored="refused") for number in range(20, 40)] for task in CFHR
    }
    plant(tmp_path, {task: [*answers[task], *refused[task]] for task in CFHR}, "picky")
    table = the_table(tmp_path)
    rows = {row.name: row for row in table.ranked}
    shown = {name: row.cells[table.main].value for name, row in rows.items()}
    assert shown["picky"] < shown["whole"] and rows["whole"].rank.rank == 1 and rows["picky"].rank.rank == 2


def test_a_suite_without_tables_of_its_own_and_one_task_have_a_page(tmp_path):
    rows = [choice_row(number, number % 2 == 0) for number in range(20)]
    plant(tmp_path / "results", {"qimma_aratrust|0": rows, "other_task|0": rows}, "lab/a", stock=True)
    board = read_board([tmp_path / "results"])
    assert {section.suite for section in board.sections} == {"qimma", "other tasks"}
    write_site(board, tmp_path / "site", "Board", ())
    text = (tmp_path / "site" / "index.html").read_text()
    assert "other tasks" in text and "other_task" in text and "50.00" in text


def test_the_papers_rows_stand_among_ours_marked_and_unranked(tmp_path):
    tasks = [f"{task.task}|0" for task in all_tasks().values() if task.suite == "qimma"]
    metrics = {task: all_tasks()[task.partition("|")[0]].metrics for task in tasks}
    plant(tmp_path, {task: [text_row(0, dict.fromkeys(metrics[task], 0.6))] * 4 for task in tasks}, "lab/ours-7B")
    table = the_table(tmp_path, papers=True)
    papers = [row for row in table.rows if row.entry is None]
    assert (
        len(papers) == 14 and not any(row.rank for row in papers) and "(paper)" in as_markdown(table).replace("\\", "")
    )
    values = [row.cells[table.main].value for row in table.rows]
    assert values == sorted(values, reverse=True)


def test_exports_hold_the_same_numbers_and_hostile_names_as_text(tmp_path):
    root, site = tmp_path / "results", tmp_path / "site"
    for name, right in ((HOSTILE, 30), ("=1+1", 10)):
        file = model(root, "x", right, date=f"2026-11-0{1 + right // 20}T10-00-00.000000")
        content = json.loads(file.read_text())
        content["config_general"]["model_name"] = name
        file.write_text(json.dumps(content))
    table = the_table(root)
    lines = list(csv.DictReader(as_csv(table).splitlines()))
    assert {line["model"][0] for line in lines} == {"'", "<"}, "no formula"
    column = table.title(table.main)
    assert [float(line[column]) for line in lines] == [row.cells[table.main].value for row in table.rows]
    write_site(read_board([root]), site, HOSTILE, ("svg",))
    data = json.loads((site / "leaderboard.json").read_text())
    assert [row["cells"][0]["value"] for row in data["tables"][0]["rows"]] == [float(line[column]) for line in lines]
    for file in (file for file in site.rglob("*") if file.is_file()):
        text = file.read_text("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", text), file
        assert "<script>alert" not in text or file.suffix in (".json", ".csv", ".tex") or file.name == "README.md", file
    assert r"\$\_\{\%\}\&" in as_latex(table) and r"\toprule" in as_latex(table)


def test_a_site_that_cannot_be_written_leaves_the_earlier_one_as_it_was(tmp_path, monkeypatch):
    model(tmp_path / "results", "a", 5, count=8)
    board, site = read_board([tmp_path / "results"]), tmp_path / "site"
    write_site(board, site, "Board", ())
    (site / "models" / "gone.html").write_text("")
    earlier = {file: file.read_bytes() for file in site.rglob("*") if file.is_file()}
    with monkeypatch.context() as broken:
        broken.setattr("cultureval.reports.leaderboard.site.space_card", lambda title: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_site(board, site, "Other", ())
    assert {file: file.read_bytes() for file in site.rglob("*") if file.is_file()} == earlier
    write_site(board, site, "Other", ())
    assert not (site / "models" / "gone.html").exists() and "<title>Other" in (site / "index.html").read_text()


def test_a_folder_of_others_is_refused(tmp_path):
    model(tmp_path / "results", "a", 5, count=8)
    board, site = read_board([tmp_path / "results"]), tmp_path / "site"
    site.mkdir()
    (site / "mine.txt").write_text("")
    with pytest.raises(CulturevalError, match="has other files"):
        write_site(board, site, "Board", ())
    (site / "mine.txt").unlink()
    (site / PARTS[0]).symlink_to(tmp_path)
    (site / ".cultureval-leaderboard").touch()
    with pytest.raises(CulturevalError, match="is a link"):
        write_site(board, site, "Board", ())
    assert (tmp_path / "results").is_dir()


VIEWS = """
import sys
from pathlib import Path
from typer.testing import CliRunner
from cultureval.scripts.main import app
root = sys.argv[1]
for words in (["leaderboard", root, "--out", f"{root}/site"], ["show", root], ["show", root, "cvlue_vg"],
              ["show", root, "cvlue_vg", "0"], ["compare", root],
              ["show", root, "cvlue_vg", "--gated", "--bundle", f"{root}/answers"]):
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert not done.exit_code, done.output
    assert not {"torch", "transformers", "lighteval"} & set(sys.modules), words
"""


def test_no_view_loads_torch_or_transformers(tmp_path, monkeypatch):
    """Nor do boxes, whose formats in pixels of a resized image need transformers: those are not tried."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    Image.new("RGB", (200, 100)).save(tmp_path / "image.png")
    image = str(stored_image(store_image((tmp_path / "image.png").read_bytes())))
    boxes = {
        "box": [10.0, 20.0, 50.0, 30.0],
        "size": [200, 100],
        "box_format": "qwen_vl",
        "box_pixels": "3136-12845056",
    }
    for name in "ab":
        rows = {}
        for task in (task for task in all_tasks().values() if task.suite in ("cvlue", "jeem")):
            metrics = {
                one: 0.5 for one in task.metrics if not (known := task.kind.declared.get(one)) or not known.of_sums
            }
            rows[f"{task.task}|0"] = [text_row(at, metrics, "(50,100),(250,500)", **boxes) for at in range(2)]
        for row in rows["cvlue_vg|0"]:
            row["doc"]["images"] = [image]
        plant(tmp_path / "runs", rows, name)
    command = [sys.executable, "-c", VIEWS, str(tmp_path / "runs")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode and [*(tmp_path / "runs" / "pictures").glob("*.png")], done.stderr
