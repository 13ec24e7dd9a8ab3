"""`cultureval score`: official submission files against gold files, as people type it."""

import csv
import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cultureval.runs.loading import load
from cultureval.runs.table import tables_of
from cultureval.scripts.main import app

EXAMPLE = Path(__file__).parents[2].resolve().parent / "shared" / "data" / "cvlue" / "test_example"
FOLDERS = ("84-suona", "1-panda", "<b>&x")


def image(folder, number):
    return f"images/test/A/{folder}/A-{number}.png"


@pytest.fixture
def files(tmp_path):
    """Gold and submission files of our own in the official formats: 12 questions, boxes, rounds and images."""
    places = [image(FOLDERS[number % 3], number) for number in range(12)]
    gold = {
        "IC": [{"image": path, "caption": [f"第{n}张图,{c}" for c in range(5)]} for n, path in enumerate(places)],
        "VQA": [
            {"image": path, "question_id": n, "question": "几个？", "answer": "2"} for n, path in enumerate(places)
        ],
        "VG": [{"ref_id": n, "image": path, "text": "狗", "bbox": [0, 0, 10, 10]} for n, path in enumerate(places)],
        "VD": [
            {"image_id": n, "image": path, "question": 7, "answer_options": [*range(100)], "answer": n}
            for n, path in enumerate(places)
        ],
    }
    pred = {
        "VQA": [row | {"answer": "2个" if row["question_id"] % 2 else None} for row in gold["VQA"]],
        "VG": [row | {"bbox": [5, 0, 10, 10] if row["ref_id"] % 2 else []} for row in gold["VG"]],
        "VD": [{"image_id": r["image_id"], "question": 7, "answer_sort": [*range(100)]} for r in gold["VD"]],
        "i2t": {row["image"]: [gold["IC"][0]["caption"][0], *row["caption"]] for row in gold["IC"]},
        "t2i": {text.replace(",", " \u3000 "): places for row in gold["IC"] for text in row["caption"]},
    }
    random.Random(0).shuffle(pred["VQA"])  # joined by id, not by position
    for name, content in [*((f"gold_{k}", v) for k, v in gold.items()), *pred.items()]:
        (tmp_path / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    contest = [
        {"image_id": r["image_id"], "dialog": [{"question": 7, "answer_sort": [*range(100)]}]} for r in pred["VD"]
    ]
    (tmp_path / "VD_contest.json").write_text(json.dumps(contest), encoding="utf-8")
    (tmp_path / "gold_VD_data.json").write_text(json.dumps({"data": gold["VD"]}), encoding="utf-8")
    return tmp_path


def totals(folder, task):
    rows = json.loads((folder / "results" / "score" / f"cvlue-{task}.json").read_text(encoding="utf-8"))
    with (folder / "results" / "score" / f"cvlue-{task}.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == [row["name"] for row in rows]
    return rows


def test_each_task_by_id_with_categories(cultureval, files):
    for task, gold, preds in (
        ("vqa", "gold_VQA", ["VQA"]),
        ("vg", "gold_VG", ["VG"]),
        ("itr", "gold_IC", ["t2i", "i2t"]),
        ("vd", "gold_VD", ["VD_contest"]),
        ("vd", "gold_VD_data", ["VD"]),
    ):
        options = [part for name in preds for part in ("--pred", f"{name}.json")]
        run = cultureval("score", f"cvlue-{task}", "--gold", f"{gold}.json", *options)
        assert run.returncode == 0, run.stderr
        assert "乐器 Instruments" in run.stdout
        table = (files / "results" / "score" / f"cvlue-{task}.csv").read_text(encoding="utf-8-sig")
        assert "唢呐 suona horn" in table and "乐器 Instruments" in table
    every, *_ = totals(files, "vqa")
    assert (every["accuracy_loose"], every["accuracy_exact"]) == (0.5, 0)
    assert every["accuracy_loose_stderr"] == pytest.approx(0.5 / 11**0.5)  # twelve images, one question each
    assert totals(files, "vg")[0]["iou"] == pytest.approx(0.375 / 2)
    assert totals(files, "vg")[0]["unpredicted"] == 0.5
    every = totals(files, "vd")[0]
    assert (every["R@1"], every["R@5"], every["R@10"], every["mean_rank"]) == pytest.approx(
        (1 / 12, 5 / 12, 10 / 12, 6.5)
    )
    every = totals(files, "itr")[0]
    assert (every["TR@1"], every["TR@5"], every["IR@5"]) == pytest.approx((1 / 12, 1, 5 / 12))
    assert_results_files(cultureval, files)


def assert_results_files(cultureval, files):
    """Each submission's scores are a run that all readers of runs take."""
    runs = {next(iter(run.record.tasks)): run for run in load(files / "results" / "score").runs}
    assert {*runs} == {"cvlue_vd|0", "cvlue_itr|0", "cvlue_vg|0", "cvlue_vqa|0"}
    run = runs["cvlue_vqa|0"]
    record, signature = run.record.tasks["cvlue_vqa|0"], run.record.signatures[0]
    assert (run.model, record.rows, record.metrics[0]) == ("VQA", 12, "accuracy_loose")
    assert run.error("cvlue_vqa|0", "accuracy_loose") == pytest.approx(0.5 / 11**0.5) and not run.unverified
    assert signature.fields["gold"].startswith("gold_VQA.json@") and run.record.model.backend == "submission files"
    assert run.record.command[1:3] == ("score", "cvlue-vqa") and run.record.versions["cultureval"]
    shown = cultureval("show", "results/score").stdout
    assert "50.0" in shown and "TR, recall" in shown, shown


@pytest.mark.skipif(not EXAMPLE.is_dir(), reason="the authors' sample data are not here")
def test_the_released_example_as_a_whole(cultureval, tmp_path):
    """Published verdicts: TR .5/1/1, IR .6/1/1, VQA 6/9, VG 0.4777310067517693, VD .5/1/1 (spec, section 2)."""
    whole = ("--gold", EXAMPLE, "--pred", EXAMPLE, "--model-name", "Qwen2-VL-7B-Instruct")
    run = cultureval("score", "cvlue", *whole)
    assert run.returncode == 0, run.stderr
    (saved,) = load(tmp_path / "results" / "score").runs
    (table,) = tables_of(saved)
    assert len(saved.record.tasks) == 4 and saved.model == "Qwen2-VL-7B-Instruct"
    written = json.loads((tmp_path / "results" / "score" / "cvlue.json").read_text(encoding="utf-8"))
    eleven = [0.5, 1, 1, 0.6, 1, 1, 6 / 9, 0.4777310067517693, 0.5, 1, 1]
    assert (
        written["macro_average"]
        == pytest.approx(sum(eleven) / 11)
        == pytest.approx(table.cells[table.main].value / 100)
    )
    contest = sum(eleven) - 6 / 9 - 0.4777310067517693 + 4 / 9 + written["tasks"]["vg"]["iou_continuous"]
    assert written["macro_average_contest_2024"] == pytest.approx(contest / 11)


@pytest.mark.parametrize(
    ("task", "gold", "pred", "change", "sentence"),
    [
        ("vqa", "gold_VQA", "VQA", lambda rows: rows[1:], "missing from the predictions"),
        ("vqa", "gold_VQA", "VQA", lambda rows: [*rows, rows[0]], "is duplicated in the prediction file"),
        ("vqa", "gold_VQA", "VQA", lambda rows: [rows[0] | {"image": "x.png"}, *rows[1:]], "is of another image"),
        ("vd", "gold_VD", "VD", lambda rows: [rows[0] | {"answer_sort": [*"abc"]}, *rows[1:]], "as integers"),
        ("itr", "gold_IC", "i2t", lambda ranked: dict(list(ranked.items())[1:]), "missing from the predictions"),
    ],
)
def test_files_that_do_not_fit_are_refused(files, task, gold, pred, change, sentence):
    content = json.loads((files / f"{pred}.json").read_text(encoding="utf-8"))
    (files / "bad.json").write_text(json.dumps(change(content)), encoding="utf-8")
    paths = ["--gold", files / f"{gold}.json", "--pred", files / "bad.json", "--output-dir", files]
    done = CliRunner().invoke(app, ["score", f"cvlue-{task}", *map(str, paths)])
    assert done.exit_code
    assert sentence in f"{done.exception}{done.output}"
