"""The frame of planted runs: what is read, loaded and computed."""

import math

import numpy as np
import pytest
from planted import choice_row, judge, plant, text_row, verdict

from cultureval.runs import pairs
from cultureval.runs.loading import load
from cultureval.runs.record import ModelRecord

TRUST = "qimma_aratrust|0"
EGYPT, JORDAN = "qimma_aradice:Egypt|0", "qimma_aradice:Jordan|0"


def rows(*right, **specific):
    return [choice_row(number, one, **specific) for number, one in enumerate(right)]


def test_a_mean_has_the_items_value_and_error(tmp_path):
    plant(tmp_path, {TRUST: rows(1, 1, 0, 1, None)})
    score = load(tmp_path).runs[0].score(TRUST, "acc_norm")
    assert (score.value, score.n, score.asked) == (0.75, 4, 5)
    assert score.error == pytest.approx(np.std([1, 1, 0, 1], ddof=1) / 2)
    assert 0 <= score.low < 0.75 < score.high <= 1


def test_a_ratio_counts_by_den_and_a_row_without_meaning_not(tmp_path):
    metrics = [{"cfhr": 1.0, "cfhr_den": 1.0}, {"cfhr": 0.0, "cfhr_den": 3.0}, {"cfhr": None, "cfhr_den": 0.0}]
    plant(tmp_path, {"m2cqa:tf_en|0": [text_row(at, one) for at, one in enumerate(metrics)]})
    score = load(tmp_path).runs[0].score("m2cqa:tf_en|0", "cfhr")
    assert (score.value, score.n, score.asked) == (0.25, 2, 2)


def test_subsets_that_share_clusters_vary_together(tmp_path):
    shared = {task: [choice_row(at, at % 3 > 0, cluster=f"image {at}") for at in range(12)] for task in (EGYPT, JORDAN)}
    plant(tmp_path / "a", shared)
    alone = {task: rows(*(at % 3 > 0 for at in range(12))) for task in (EGYPT, JORDAN)}
    plant(tmp_path / "b", alone)
    name = "qimma_aradice:_average|0"
    together, apart = (load(tmp_path / one).runs[0].score(name, "acc_norm") for one in "ab")
    one = load(tmp_path / "a").runs[0].score(EGYPT, "acc_norm")
    assert together.error == pytest.approx(one.error)
    assert apart.error == pytest.approx(one.error / math.sqrt(2))


def test_the_newest_results_of_each_task_are_one_run_and_a_limit_stands_alone(tmp_path):
    plant(tmp_path, {TRUST: rows(1, 1), EGYPT: rows(0, 1)}, date="2026-11-01T10-00-00.000000")
    plant(tmp_path, {TRUST: rows(0, 0)}, date="2026-11-02T10-00-00.000000")
    plant(tmp_path, {TRUST: rows(1)}, date="2026-11-03T10-00-00.000000", limit=1)
    limited, whole = load(tmp_path).runs
    assert limited.value(TRUST, "acc") == 1 and whole.value(TRUST, "acc") == 0 and whole.value(EGYPT, "acc") == 0.5
    assert "limit" in limited.name and limited.name != whole.name


def test_two_checkpoints_of_one_name_are_two_runs(tmp_path):
    for number, version in enumerate(("one", "two")):
        about = ModelRecord(backend="transformers", version=version)
        plant(tmp_path, {TRUST: rows(1, number)}, date=f"2026-11-0{number + 1}T10-00-00.000000", about=about)
    assert sorted(run.name for run in load(tmp_path).runs) == [
        "lab/model-7B (version one)",
        "lab/model-7B (version two)",
    ]


def test_judgements_are_scores_of_the_run_with_reasons(tmp_path):
    name = "judge_gpt_image_reference"
    captions = [text_row(at, {"cider": 1.0}) for at in range(3)]
    file = plant(tmp_path, {"jeem_caption:eg|0": captions})
    scores = (4.0, None, 2.0)
    later = [text_row(at, {name: verdict(one, "malformed"), f"{name}_fluency": one}) for at, one in enumerate(scores)]
    judge(file, "jeem_caption:eg|0", later)
    run = load(tmp_path).runs[0]
    score = run.score("jeem_caption:eg|0", f"{name}_fluency")
    assert (score.value, score.n, score.asked) == (3.0, 2, 3)
    assert set(run.items["reason"]) == {"", "malformed"}
    assert run.value("jeem_caption:eg|0", "cider") == 1


def test_without_details_a_score_is_unverified_and_an_edited_one_differs(tmp_path):
    plant(tmp_path / "a", {TRUST: rows(1, 0)}, details=False)
    plant(tmp_path / "b", {TRUST: rows(1, 0)}, edited={TRUST: {"acc": 0.9}})
    (unverified,), (edited,) = load(tmp_path / "a").runs, load(tmp_path / "b").runs
    assert unverified.unverified and unverified.score(TRUST, "acc").error is None
    assert [(one.metric, one.in_file, one.of_items) for one in edited.differs] == [("acc", 0.9, 0.5)]
    assert edited.value(TRUST, "acc") == 0.5


def test_a_stock_file_is_read_and_a_broken_one_is_left_out_by_name(tmp_path):
    plant(tmp_path, {TRUST: rows(1, 0)}, stock=True)
    broken = tmp_path / "results" / "lab" / "results_x.json"
    broken.write_text('{"results": ', encoding="utf-8")
    found = load(tmp_path)
    assert found.runs[0].value(TRUST, "acc_norm") == 0.5
    assert [one.file for one in found.left_out] == [broken]


def test_nobody_gains_by_leaving_items_out(tmp_path):
    whole, less = rows(1, 0, 1, 0, 1, 1), rows(1, 1, 1, 1)
    plant(tmp_path, {TRUST: whole}, model="lab/whole")
    plant(tmp_path, {TRUST: less}, model="lab/less")
    items, parts = load(tmp_path).items, {(TRUST, "acc_norm"): 1.0}
    by_run = {one.run: one for one in pairs.ranks(items, parts)}
    assert by_run["lab/less"].score.value == pytest.approx(4 / 6)
    assert pairs.pair(items, "lab/less", "lab/whole", parts).difference == 0


def test_an_item_with_two_metrics_is_one_item_of_a_difference(tmp_path):
    for model, right in (("lab/a", (1, 0, 1)), ("lab/b", (0, 0, 1, None))):
        plant(tmp_path, {TRUST: rows(*right)}, model)
    parts = {(TRUST, "acc_norm"): 0.5, (TRUST, "acc"): 0.5}
    found = pairs.pair(load(tmp_path).items, "lab/a", "lab/b", parts)
    assert (found.items, found.missing) == (4, (1, 1))
