"""What a reader must know of planted runs: each kind of warning where it should stand, and nowhere else."""

import pytest
from planted import choice_row, plant, text_row, verdict

from cultureval.runs.loading import load
from cultureval.runs.record import SAMPLE_ROWS, ModelRecord
from cultureval.runs.warnings import KINDS, warnings
from cultureval.tasks.catalogue import all_tasks

TRUST, EGYPT = "qimma_aratrust|0", "qimma_aradice:Egypt|0"
CURATED = {"form": "curated", "fingerprint": "1" * 16}


def rows(right=45, wrong=15, refused=0, **more):
    return [
        choice_row(at, [True, False, None][kind], **more)
        for kind, n in enumerate((right, wrong, refused))
        for at in range(n)
    ]


def numbered(some):
    for at, row in enumerate(some):
        row["doc"]["specific"]["id"] = row["doc"]["id"] = str(at)
    return some


def told(tmp_path, tasks=None, reports=None, tell=None, **given):
    tasks = tasks or {TRUST: numbered(rows())}
    expected = all_tasks()["qimma_aratrust"].expected("curated")
    if "limit" not in given and not given.get("stock") and TRUST in tasks:  # as many rows as published, for its record
        record = load(plant(tmp_path / "probe", tasks, reports=reports or {TRUST: CURATED})).runs[0].record
        whole = record.tasks[TRUST].model_copy(update={"rows": expected or 0})
        given["record"] = {"tasks": {**record.tasks, TRUST: whole}} | given.get("record", {})
    run = load(plant(tmp_path, tasks, reports=reports or {TRUST: CURATED}, **given)).runs[0]
    return {one.kind: one for one in warnings(run, tell)}


def test_a_whole_run_has_nothing_to_tell(tmp_path):
    assert told(tmp_path) == {}


def test_details_that_are_missing_and_scores_that_differ_are_told(tmp_path):
    assert "not verified" in told(tmp_path / "a", details=False)
    found = told(tmp_path / "b", edited={TRUST: {"acc_norm": 0.9}})
    assert list(found) == ["file differs"] and "acc_norm 0.9, of the items 0.75" in found["file differs"].sentence


def test_a_limit_samples_and_other_rows_are_told(tmp_path):
    limited = told(tmp_path / "a", limit=60)
    assert limited["limit"].mark == "limit 60"
    sample = SAMPLE_ROWS.read_text("utf-8").split()[0]
    assert list(told(tmp_path / "b", reports={TRUST: CURATED | {"fingerprint": sample}})) == ["samples"]
    original = told(tmp_path / "c", reports={TRUST: CURATED | {"form": "original"}})
    assert "in the form 'original'" in original["other rows"].sentence
    broken = told(tmp_path / "d", reports={TRUST: CURATED | {"skipped_rows": [{"row": 1}, {"row": 2}]}})
    assert f"broken rows left out: {TRUST} 2" in broken["other rows"].sentence


def test_a_stock_file_does_not_tell_a_limit_and_its_rows_are_those_of_its_items(tmp_path):
    found = told(tmp_path, stock=True)
    assert "limit" not in found and "file differs" not in found
    assert f"numbers of rows: {TRUST} 60 of" in found["other rows"].sentence


def test_missing_tasks_and_subsets_are_told_of_a_run_and_not_of_a_task(tmp_path):
    found = told(tmp_path, {EGYPT: numbered(rows())}, {EGYPT: CURATED}, record={"missing": ("qimma_palmx:culture",)})
    sentence = found["tasks missing"].sentence
    assert "no data of qimma_palmx" in sentence and "qimma_aradice 1 of 6 subsets" in sentence
    assert "tasks missing" not in {one.kind for one in warnings(load(tmp_path).runs[0], [EGYPT])}


def test_the_unscored_share_is_of_the_asked_items_and_told_from_one_percent(tmp_path):
    other = {EGYPT: numbered(rows(900, 900))}  # whose items do not dilute the share
    found = told(tmp_path / "a", {TRUST: numbered(rows(45, 45, 10)), **other})
    assert "10.0% of qimma_aratrust (10 refused)" in found["items without score"].sentence
    assert "items without score" not in told(tmp_path / "b", {TRUST: numbered(rows(100, 45, 1))})


def test_a_judge_that_judged_in_part_is_told_with_the_reasons(tmp_path):
    metrics = [
        {"cider": 1.0, "judge_j_reference": verdict(score, "not_asked"), "judge_j_reference_fluency": score}
        for score in (1.0, 2.0, None, 4.0)
    ]
    found = told(tmp_path, {"jeem_caption:eg|0": [text_row(at, one) for at, one in enumerate(metrics)]})
    assert "25.0% of jeem_caption (1 not asked)" in found["judged in part"].sentence
    assert "items without score" not in found  # the headline is not the judge's


def test_cut_texts_and_unreadable_replies_are_told_from_two_percent(tmp_path):
    task = "qimma_gen_aratrust|0"
    metrics = [{"acc_strict": float(at > 1), "invalid_strict": float(at < 2)} for at in range(40)]
    replies = [text_row(at, one) for at, one in enumerate(metrics)]
    run = load(plant(tmp_path, {task: replies})).runs[0]
    cut = run.record.tasks[task].model_copy(update={"truncated": 4, "rows": 40})
    found = told(tmp_path, {task: replies}, record={"tasks": {task: cut}})
    assert "qimma_gen_aratrust 5.0%" in found["unreadable replies"].sentence
    assert "qimma_gen_aratrust 10.0%" in found["cut texts"].sentence


def test_mixed_models_are_told(tmp_path):
    about = ModelRecord(backend="server", served_models=("a", "b"))
    found = told(tmp_path, about=about)
    assert list(found) == ["mixed models"]


@pytest.mark.parametrize("right, chance", [(15, True), (30, False), (2, False)])
def test_a_choice_task_is_at_chance_where_its_interval_holds_one_of_k(tmp_path, right, chance):
    found = told(tmp_path, {TRUST: numbered(rows(right, 60 - right))})
    assert ("at chance" in found) is chance
    if chance:
        assert "qimma_aratrust 0.25 (guessing gives 0.25)" in found["at chance"].sentence


def test_two_numbers_of_few_shot_examples_are_at_chance_apart(tmp_path):
    shots = TRUST.replace("|0", "|3")
    found = told(
        tmp_path, {TRUST: numbered(rows(45, 15)), shots: numbered(rows(15, 45))}, {TRUST: CURATED, shots: CURATED}
    )
    assert "At chance: qimma_aratrust|3 0.25 (" in found["at chance"].sentence


def test_every_kind_is_tried_here():
    text = open(__file__, encoding="utf-8").read()
    assert all(f'"{kind}"' in text for kind in KINDS) and len(KINDS) == 12
