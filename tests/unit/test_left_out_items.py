"""No model gains by leaving items out: neither in a comparison of two, nor in ranks, nor in a table's order."""

import csv
from pathlib import Path

import numpy as np
import pytest
from board_runs import write_run
from hypothesis import given, settings
from hypothesis import strategies as st
from item_runs import METRIC, rank_runs, save_run

from cultureval.metrics.declared import Declared
from cultureval.metrics.item_statistics import of_mean
from cultureval.reports.comparison import paired_runs
from cultureval.reports.comparison.compared_models import ComparedTask
from cultureval.reports.comparison.paired_runs import PairedTask, Pairs
from cultureval.reports.comparison.report import compare_all
from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.ranks import SubsetScores, rank_models, resample
from cultureval.runs.files import SavedTask
from cultureval.runs.items import ItemScores, aligned
from cultureval.tasks.catalogue import groups

TASK = "cvlue_vg|0"  # METRIC is a share there


def items_of(scores: np.ndarray, lower: bool = False) -> ItemScores:
    """Items of a mean between 0 and 1; nan: without a score."""
    made = of_mean(scores, Declared(higher_is_better=not lower))
    count = len(scores)
    keys = tuple(map(str, range(count)))
    rows = tuple((row,) for row in range(count))
    return ItemScores(keys, (None,) * count, made.parts, made.score, rows, made.scored, made.worst, made.best)


def row_of(first: ItemScores, second: ItemScores):
    whole = aligned([first, second])
    both = [key for key, *known in zip(whole[0].keys, whole[0].scored, whole[1].scored, strict=True) if all(known)]
    side = ComparedTask(SavedTask(Path(), Path(), "", "", "t|0"), None)
    task = PairedTask("t|0", "m", whole[0].on(both), whole[1].on(both), (side, side), (whole[0], whole[1]))
    return next(iter(paired_runs.tested_differences([Pairs("a", "b", [task], [], [])], 500, 0)), None)


def told_first(row, lower: bool) -> bool:
    """Whether the row says that the first is better."""
    gain = -row.result.difference if lower else row.result.difference
    return row.p_holm is not None and row.p_holm < 0.05 and gain > 0


def without(scores: np.ndarray, dropped: np.ndarray) -> np.ndarray:
    return np.where(dropped, np.nan, scores)


@st.composite
def tables(draw):
    """Scores [N, M] of models on items, of right and wrong answers or of shares, and what the first one leaves out."""
    seed, count, models = draw(st.integers(0, 10**6)), draw(st.integers(8, 120)), draw(st.integers(2, 6))
    generator = np.random.default_rng(seed)
    skills = generator.normal(0, draw(st.sampled_from([0, 0.1, 0.5])), models)
    scores = 0.5 + skills + generator.normal(size=(count, 1)) + generator.normal(size=(count, models))
    right = draw(st.booleans())
    scores = (scores > 0.5).astype(float) if right else np.clip(0.25 * scores + 0.4, 0, 1)
    others = scores[:, 1:].mean(axis=1)
    # Most models that leave items out leave out those on which others are better.
    share = draw(st.sampled_from([0.01, 0.05, 0.3, 0.8]))
    bad = generator.random(count) < share * (np.where(scores[:, 0] < others, 2, 0.3) if draw(st.booleans()) else 1)
    bad[generator.integers(count)] = draw(st.booleans())
    bad[generator.choice(count, 2, replace=False)] = False
    return scores, bad, draw(st.booleans()), right


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tables())
def test_leaving_items_out_never_turns_a_comparison(drawn):
    scores, dropped, lower, right = drawn
    first, second = scores[:, 0], scores[:, 1]
    honest, gamed = (row_of(items_of(one, lower), items_of(second, lower)) for one in (first, without(first, dropped)))
    assert gamed.left_out == (int(dropped.sum()), 0)
    if not told_first(honest, lower):
        assert not told_first(gamed, lower)
    if dropped.any():
        assert gamed.lowest <= honest.result.difference + 1e-9 and honest.result.difference <= gamed.highest + 1e-9
        if right and not gamed.could_turn:
            assert gamed.p_left_out >= min(honest.result.p_value, 0.05)


def ranking_of(scores: np.ndarray, dropped: np.ndarray, lower: bool, clusters=None):
    spans = np.zeros_like(scores)
    spans[:, 0] = dropped
    filled = scores.copy()
    filled[dropped, 0] = float(lower)
    names = [f"model {place}" for place in range(scores.shape[1])]
    resamples = resample([SubsetScores(filled, clusters, spans=spans)], 400)
    rows = rank_models(names, resamples, higher_is_better=not lower).rows
    (place,) = [place for place, row in enumerate(rows) if row.model == "model 0"]
    return rows[place].low, rows[place].high, rows[place].rank, place


@settings(max_examples=60, deadline=None, derandomize=True)
@given(tables(), st.sampled_from([1, 3]))
def test_leaving_items_out_never_raises_a_rank(drawn, size):
    scores, dropped, lower, _ = drawn
    clusters = [place // size for place in range(len(scores))] if size > 1 else None
    honest = ranking_of(scores, np.zeros(len(scores), bool), lower, clusters)
    gamed = ranking_of(scores, dropped, lower, clusters)
    assert all(after >= before for before, after in zip(honest, gamed, strict=True)), (honest, gamed)


def saved(root: Path, name: str, scores, refused=(), **record):
    rows = [(f"test:{place}", None, None if np.isnan(one) else float(one)) for place, one in enumerate(scores)]
    known = {"task": TASK, "suite": "cvlue", "benchmark": "VG", "group": "cvlue_vg", "subset": "VG", "rows_hash": "ab"}
    section = {"schema": 1, "tasks": {TASK: known | {"refused": len(refused)} | record}}
    return save_run(
        root / name, name, {TASK: [row for at, row in enumerate(rows) if at not in refused]}, record=section
    )


def hidden_losses():
    """The issue's case: worse on nearly every shared item, .818 against .911 of 314, and its hard items unscored."""
    generator = np.random.default_rng(0)
    worse, better = np.zeros(500), np.zeros(500)
    worse[:257], better[:286] = 1, 1
    better[314:] = generator.random(186) < 0.1
    worse[314:] = np.nan
    return worse, better


@pytest.mark.parametrize("how", ["unscored", "refused"])
def test_the_worse_of_two_models_does_not_win_by_what_it_leaves_out(tmp_path, how):
    worse, better = hidden_losses()
    refused = np.flatnonzero(np.isnan(worse)) if how == "refused" else ()
    runs = [saved(tmp_path, "leaver", worse, refused), saved(tmp_path, "honest", better)]
    found = compare_all(
        [tmp_path / "leaver", tmp_path / "honest"], tmp_path / "out", [METRIC], draws=300, allowed=["items"]
    )
    (row,) = found.document["differences"]
    assert (row["items"], row["left_out_first"], row["left_out_second"]) == (314, 186, 0)
    assert (row["first_score"], row["second_score"]) == pytest.approx((257 / 314, 286 / 314))
    assert row["difference"] < 0 < row["highest"] and row["lowest"] < row["difference"] and row["p_value"] < 0.001
    assert row["p_holm"] == row["p_left_out"] == 1 and "314, 186 left out" in found.text
    text = " ".join(found.text.split())
    assert (
        "leaver has no score for 186 items, honest for 0 items" in text
        and "items left out could turn it: from -0.0" in text
    )
    with (tmp_path / "out" / "differences.csv").open(encoding="utf-8") as file:
        (line,) = csv.DictReader(file)
    assert (line["left_out_first"], line["left_out_second"]) == ("186", "0")
    assert (float(line["lowest"]), float(line["highest"])) == pytest.approx((row["lowest"], row["highest"]))
    ranking, notes = rank_runs(runs, {TASK: METRIC}, iterations=300)
    assert [entry.model for entry in ranking.rows] == ["honest", "leaver"] and ranking.rows[1].low == 2
    assert "leaver: 186 items without a score (186 of 500 of VG) count as wrong in its rank." in notes


@pytest.mark.parametrize("right", [False, True])
def test_a_difference_that_no_left_out_item_could_turn_is_told(tmp_path, right):
    """Where the other model has the left-out items right, the difference is less than that of the shared ones."""
    generator = np.random.default_rng(1)
    good, bad = (generator.random(400) < 0.9).astype(float), (generator.random(400) < 0.5).astype(float)
    good[:4], bad[:4], bad[7] = np.nan, bad[:4] + right * (1 - bad[:4]), np.nan
    for name, scores in (("good", good), ("bad", bad)):
        saved(tmp_path, name, scores)
    found = compare_all([tmp_path / "good", tmp_path / "bad"], tmp_path / "out", [METRIC], draws=300)
    (row,) = found.document["differences"]
    assert (row["items"], row["left_out_first"], row["left_out_second"]) == (395, 4, 1)
    assert 0 < row["lowest"] < row["difference"] and row["p_holm"] < 0.001
    assert (row["highest"] < row["difference"]) == right
    known = ~np.isnan(good + bad)
    shared = row_of(items_of(good[known]), items_of(bad[known])).result
    assert (row["low"] < shared.low) == right and row["high"] == pytest.approx(shared.high)
    assert "with them the difference is from +0." in " ".join(found.text.split())


def test_items_of_other_data_are_not_left_out_and_have_no_common_rank(tmp_path):
    generator = np.random.default_rng(2)
    scores = (generator.random((3, 60)) < 0.6).astype(float)
    runs = [saved(tmp_path, name, one) for name, one in zip("ab", scores, strict=False)]
    runs.append(saved(tmp_path, "c", scores[2][:40], rows_hash="cd"))
    found = compare_all([tmp_path / "a", tmp_path / "c"], tmp_path / "out", [METRIC], draws=200, allowed=["items"])
    (row,) = found.document["differences"]
    assert (row["items"], row["left_out_first"], row["left_out_second"], row["lowest"]) == (40, 0, 0, None)
    ranking, notes = rank_runs(runs, {TASK: METRIC}, iterations=200)
    assert [row.model for row in ranking.rows] != ["c"] and len(ranking.rows) == 2
    assert f"c has no rank: it has other rows of {TASK}." in notes


def test_a_metric_that_is_better_if_lower_has_its_worst_at_the_top():
    scores = np.array([0.0, np.nan, 1.0])
    for lower, worst in ((False, [[0, 1], [0, 1], [1, 1]]), (True, [[0, 1], [1, 1], [1, 1]])):
        assert items_of(scores, lower).filled().tolist() == worst
    assert of_mean(scores, None).worst is None and of_mean(scores, Declared(range=(0, np.inf))).best is None
    dense = of_mean([np.nan, 0.5], Declared(), [0.0, 1.0])  # NDCG of an item without relevances
    assert dense.scored.all() and dense.parts.tolist() == [[0, 0], [0.5, 1]]


def test_the_page_marks_a_model_that_leaves_items_out_and_its_rank_and_place_count_them(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["m2cqa:tf_en", "m2cqa:tf_msa", "m2cqa:tf_ajp", "m2cqa:tf_arz"]
    for model, ability in (("lab/a", 0.2), ("lab/b", 0.5), ("lab/c", 0.8)):
        write_run(tmp_path, model, names, ability, 60, signed={})
    for file in (tmp_path / "details" / "lab" / "c").rglob("*.parquet"):  # fooled items become unscored: CFHR 0
        table = pq.read_table(file)
        kept = [{**row, "cfhr": None if row["cfhr"] else 0.0} for row in table["metric"].to_pylist()]
        pq.write_table(table.set_column(table.column_names.index("metric"), "metric", pa.array(kept)), file)
    file = next((tmp_path / "results" / "lab" / "c").glob("*.json"))
    import json

    content = json.loads(file.read_text("utf-8"))
    for scores in content["results"].values():
        scores |= {"cfhr": 0.0, "cfhr_stderr": None}
    file.write_text(json.dumps(content), "utf-8")
    (section,) = read_board([tmp_path]).sections
    table = next(table for table in section.tables if table.main is not None and len(table.rows) == 3)
    assert [row.label for row in table.rows] == ["a", "b", "c"] and [row.top for row in table.rows] == [
        True,
        False,
        False,
    ]
    assert table.rows[2].cells[table.main].value == 0 and table.rows[2].rank == "3"
    assert any("items without a score" in note and "count as wrong in its rank" in note for note in table.rows[2].notes)
    assert not table.rows[0].notes


def test_a_subset_without_any_score_counts_in_what_its_group_could_be(tmp_path):
    """A model that is a little better in one subset, and has no score in the other, wins nothing."""
    generator = np.random.default_rng(3)
    tasks = ("cvlue_vg:a|0", "cvlue_vg:b|0")
    shares = {"leaver": (0.9, None), "honest": (0.6, 0.6)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cultureval.runs.items.declared_metric", lambda task, metric: Declared())
        for name, (one, other) in shares.items():
            values = [generator.random(200) < share if share else [None] * 200 for share in (one, other)]
            rows = {
                task: [(f"test:{at}", None, None if score is None else float(score)) for at, score in enumerate(scores)]
                for task, scores in zip(tasks, values, strict=True)
            }
            save_run(tmp_path / name, name, rows, **({} if other else {tasks[1]: None}))
        found = compare_all([tmp_path / "leaver", tmp_path / "honest"], tmp_path / "out", [METRIC], draws=300)
    group, *subsets = found.document["differences"]
    assert (group["level"], group["items"], group["left_out_first"]) == ("group", 200, 200)
    assert group["lowest"] < 0 < group["difference"] < group["highest"] + 1 and group["p_holm"] == 1
    assert [row["name"] for row in subsets] == [tasks[0]] and subsets[0]["p_holm"] < 0.001
    assert any(f"not compared: {tasks[1]}: the two have no item" in note for note in found.notes)


@pytest.mark.parametrize("lost", ["details", "run", "both"])
def test_a_subset_that_a_side_lost_counts_in_what_its_group_could_be(lost, tmp_path):
    """A model that is better but for one subset does not win by deleting that subset's details, or not running it."""
    names = [f"qimma_aradice:{name}" for name in ("Egypt", "Jordan", "Syria")]
    files = {}
    for place, model in enumerate(("leaver", "honest")):
        kept = names[1:] if (lost, model) == ("run", "leaver") else names
        files[model] = write_run(
            tmp_path / "out", model, kept, 0.95 - 0.5 * place, 60, date=f"2026-01-0{place + 1}T00-00-00", signed={}
        )
    for model in {"details": ["leaver"], "both": ["leaver", "honest"]}.get(lost, []):
        next((tmp_path / "out/details" / model).rglob("*Egypt*")).unlink()
    found = compare_all(list(files.values()), tmp_path / "cmp", draws=300)
    group, *subsets = found.document["differences"]
    whole = len(groups()["qimma_aradice"])
    count = 2 if lost == "both" else 3
    assert group["name"] == f"qimma_aradice|0 ({count} of {whole} subsets)" and group["difference"] > 0.3
    assert group["left_out_first"] == (60 if count == 3 else 0) and len(subsets) == 2
    assert group["lowest"] is None if count == 2 else group["lowest"] < group["difference"]
    assert (group["p_left_out"] == 1) == (count == 2) and ("decides nothing" in found.text) == (count == 2)
