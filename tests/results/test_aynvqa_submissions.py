"""AynVQA's submissions: scored as the organisers do, written from runs, and runs of their own."""

import csv
import json
import random
from pathlib import Path

import pytest
from planted import plant, text_row

from cultureval.metrics.m2cqa.counterfactual import WORDS
from cultureval.metrics.m2cqa.statement_verdicts import organisers_verdict
from cultureval.reports.m2cqa.submissions import METRICS, score_aynvqa
from cultureval.reports.submissions import save_submissions
from cultureval.runs.loading import load
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError

FOLDER = samples_root() / "QCRI/ImageEval-ArabicNLP26"
GOLD = FOLDER / "task1b/test_en.jsonl"
TASK = "m2cqa_aynvqa:en|0"


def as_the_organisers_count(gold, predictions):
    """Their five numbers, item by item, without arrays; verdicts by the profile `organisers`."""
    plus = minus = whole = partly = fooled = 0
    for row in gold:
        verdicts = [organisers_verdict(predictions.get((row["id"], place), "")) for place in range(3)]
        right = [verdict is label for verdict, label in zip(verdicts, row["labels"], strict=True)]
        plus += right[row["labels"].index(True)]
        minus += sum(right) - right[row["labels"].index(True)]
        whole += all(right)
        partly += any(right)
        fooled += right[row["labels"].index(True)] and not all(right)
    count = len(gold)
    return [1 - whole / partly, whole / count, fooled / plus, plus / count, minus / (2 * count)]


def test_a_submission_is_scored_as_the_organisers_do_and_its_gaps_are_told(tmp_path):
    draw = random.Random(1)
    words = ["true", "False", "yes", "no", "صح", "خطأ", "غير صحيح", "الخطأ", "maybe", ""]
    gold = [{"id": f"i{n}", "labels": draw.sample([True, False, False], 3), "statements": []} for n in range(300)]
    predictions = {(row["id"], place): draw.choice(words) for row in gold for place in range(3)}
    del predictions["i7", 1], predictions["i9", 0]
    lines = [("i3", 2, "true"), *((item, place, text) for (item, place), text in predictions.items())]
    lines = [(item, draw.choice(["{}", " {}", "0{}", "+{}"]).format(place), text) for item, place, text in lines]
    lines += [("nobody", 0, "true"), ("i1", "x", "true"), ("i1", 3, "true")]
    for name, rows in {"pred.csv": lines, "other.csv": lines[:30]}.items():
        with (tmp_path / name).open("w", newline="", encoding="utf-8-sig") as file:
            csv.writer(file).writerows([("id", "statement_index", "prediction"), *rows])
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, gold)), encoding="utf-8")
    files = [tmp_path / "pred.csv", tmp_path / "other.csv"]
    scored = score_aynvqa(tmp_path / "gold.jsonl", files, tmp_path / "out")
    printed = scored.text
    for told in ("3 of 902 rows are of no statement", "1 of 902 rows are repeated", "2 of 900 predictions are missing"):
        assert f"pred.csv: {told}" in printed
    assert "other.csv: 871 of 900 predictions are missing" in printed
    save_submissions(scored, tmp_path / "gold.jsonl", tmp_path / "out", 0.0)
    runs = {run.model: run for run in load(tmp_path / "out").runs}
    run = runs["pred"]
    assert runs["other"].value(TASK, "q_plus_acc") < 0.1
    scores = run.scores[TASK]
    assert [scores[name].value for name in METRICS] == pytest.approx(as_the_organisers_count(gold, predictions))
    assert all(f"{scores[name].value:.4f} ± {scores[name].error:.4f}" in printed for name in METRICS)
    verdicts = {row["id"]: [organisers_verdict(predictions.get((row["id"], n), "")) for n in range(3)] for row in gold}
    partly = sum(any(v is label for v, label in zip(verdicts[row["id"]], row["labels"], strict=True)) for row in gold)
    plus = [verdicts[row["id"]][row["labels"].index(True)] for row in gold]
    assert (scores["contrastive_instability"].n, scores["combined_acc"].n) == (partly, 300)
    assert scores["cfhr"].n == plus.count(True) and scores["cfhr"].asked == plus.count(True) + plus.count(None)
    unread = sum(found.count(None) for found in verdicts.values())
    assert scores["invalid_rate"].value == pytest.approx(unread / 900)
    assert not run.differs


def test_what_is_no_submission_or_no_gold_file_is_told(tmp_path):
    file = tmp_path / "pred.csv"
    file.write_text("id,prediction\na,1\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match="has no column statement_index; columns found: id, prediction"):
        score_aynvqa(GOLD, [file], tmp_path / "out")
    blind = tmp_path / "blind.jsonl"
    blind.write_text('{"id": "a", "statements": ["x", "y", "z"]}', encoding="utf-8")
    with pytest.raises(CulturevalError, match="Give a split with labels"):
        score_aynvqa(blind, [file], tmp_path / "out")


def test_a_run_becomes_a_submission(tmp_path):
    """English statements are no submission for the MSA gold file."""
    rows = []
    for row in map(json.loads, GOLD.read_text(encoding="utf-8").splitlines()):
        for place, statement in enumerate(row["statements"]):
            reply = "I like it" if not rows else "Yes." if row["labels"][place] else "no"
            metric = {"verdict_organisers": WORDS[organisers_verdict(reply)], "combined_acc": 1.0}
            about = {"item_id": row["id"], "statement_index": place, "statement": statement}
            rows.append(text_row(len(rows), metric, reply, **about))
    plant(tmp_path / "run", {TASK: rows})
    printed = score_aynvqa(GOLD, [tmp_path / "run"], tmp_path / "out").text
    written = Path(printed.split("Submission of a run: ")[1].split("\n")[0])
    with written.open(encoding="utf-8") as stream:
        content = list(csv.DictReader(stream))
    assert sorted({line["prediction"] for line in content}) == ["", "false", "true"] and len(content) == 12
    assert "1 of 12 predictions hold no verdict" in printed
    again = score_aynvqa(GOLD, [written], tmp_path / "again").text
    assert again.split("AynVQA")[1].split("\n")[2] == printed.split("AynVQA")[1].split("\n")[2]
    with pytest.raises(CulturevalError, match="Is it the same"):
        score_aynvqa(FOLDER / "task1b/test_msa.jsonl", [tmp_path / "run"], tmp_path / "o")
