"""No model gains by leaving items out: neither in a comparison of two, nor in ranks, nor in a table's order."""

import csv
import json
import re
from dataclasses import dataclass, replace
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
from cultureval.reports.leaderboard.site import write_site
from cultureval.reports.ranks import SubsetScores, rank_models, resample
from cultureval.runs.files import SavedTask
from cultureval.runs.items import ItemScores, aligned, note_lacking
from cultureval.runs.load_runs import load, scores_table
from cultureval.runs.warnings import run_warnings
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import groups

DRAWS = 1000
EXAMPLES = 100
GAMES = 3
TASK = "cvlue_vg|0"  # METRIC is a share there


def items_of(scores: np.ndarray, lower: bool = False) -> ItemScores:
    """Items of a mean between 0 and 1; nan: without a score."""
    made = of_mean(scores, Declared(higher_is_better=not lower))
    count = len(scores)
    keys = tuple(map(str, range(count)))
    rows = tuple((row,) for row in range(count))
    return ItemScores(keys, (None,) * count, made.parts, made.score, rows, made.scored, made.worst, made.best)


def paired(name: str, first: ItemScores, second: ItemScores) -> PairedTask:
    whole = aligned([first, second])
    both = [key for key, *known in zip(whole[0].keys, whole[0].scored, whole[1].scored, strict=True) if all(known)]
    side = ComparedTask(SavedTask(Path(), Path(), "", "", name), None)
    return PairedTask(name, "m", whole[0].on(both), whole[1].on(both), (side, side), (whole[0], whole[1]))


def row_of(tables: list["Table"], dropped, lower: bool):
    """The row that compares the first two models over all subsets, without what the first leaves out of each."""
    tasks = []
    for place, (table, out) in enumerate(zip(tables, dropped, strict=True)):
        first = np.where(out, np.nan, table.scores[:, 0])
        names = tuple(table.clusters.tolist()) if len(set(table.clusters)) < len(out) else (None,) * len(out)
        sides = (replace(items_of(one, lower), clusters=names) for one in (first, table.scores[:, 1]))
        tasks.append(paired(f"t:{place}|0", *sides))
    return next(iter(paired_runs.tested_differences([Pairs("a", "b", tasks, [], [])], DRAWS, 0)), None)


def told_first(row, lower: bool, level: float = 0.05) -> bool:
    """Whether the row says that the first is better."""
    gain = -row.result.difference if lower else row.result.difference
    return row.p_holm is not None and row.p_holm < level and gain > 0


@dataclass(frozen=True)
class Table:
    """A subset: scores [N, M] of models on items, their clusters [N], and what the first leaves out a game [N]."""

    scores: np.ndarray
    clusters: np.ndarray
    games: tuple[np.ndarray, ...]


def table_of(generator: np.random.Generator, models: int, count: int, right: bool) -> Table:
    """Of items that are alike for all but what the first is ahead or behind, in some clusters more, and some noise."""
    size = int(generator.choice([1, 1, 3, 20]))
    clusters = np.arange(count) // (size if count > size else 1)
    ahead = generator.choice([0, 0.1, 0.5, 2]) * generator.choice([-1, 1]) * (clusters >= 0)
    ahead = ahead + generator.choice([0, 0.5, 2]) * generator.normal(size=count)[clusters]
    scores = 0.5 + generator.normal(size=(count, 1)) + ahead[:, None] * (np.arange(models) == 0)
    scores = scores + generator.choice([0, 0, 0.1, 1]) * generator.normal(size=scores.shape)
    scores = (scores > 0.5).astype(float) if right else np.clip(0.25 * scores + 0.4, 0, 1)
    return Table(scores, clusters, tuple(game_of(generator, scores, clusters) for _ in range(GAMES)))


def game_of(generator: np.random.Generator, scores: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Some items or none, of one cluster or of all, on which the first is worse, better, like the others, or any."""
    others = scores[:, 1:].mean(axis=1)
    kinds = (np.ones(len(scores)), scores[:, 0] < others, scores[:, 0] > others, scores[:, 0] == others)
    wanted = kinds[generator.integers(4)] > 0
    if generator.random() < 0.4:
        wanted &= clusters == generator.choice(clusters)
    return wanted & (generator.permutation(len(scores)) < len(scores) * generator.choice([0, 0.02, 0.1, 0.5, 1]))


@st.composite
def boards(draw, fewest=2):
    """One to four subsets of unlike sizes and numbers of clusters; whether lower is better; whether right or wrong."""
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = draw(st.lists(st.integers(fewest, 60), min_size=1, max_size=4))
    models, lower, right = draw(st.sampled_from([2, 2, 3, 5])), draw(st.booleans()), draw(st.booleans())
    return [table_of(generator, models, size, right) for size in sizes], lower, right


def of_flips(*subsets: tuple[int, int, int]) -> list[Table]:
    """Subsets of N items, some right by the first alone, some by the second; an item of the second is left out."""
    tables = []
    for count, first, second in subsets:
        scores = np.zeros((count, 2))
        scores[:first, 0] = scores[first : first + second, 1] = scores[first + second : count // 2 + 8] = 1
        game = (np.arange(count) == 0) & (len(tables) == 1)
        tables.append(Table(scores, np.arange(count), (game,)))
    return tables


def of_clusters(wins: list[int], size: int, out: int) -> list[Table]:
    """Clusters of which the first alone has so many right; it leaves some of the first cluster out."""
    scores = np.zeros((len(wins) * size, 2))
    clusters = np.arange(len(scores)) // size
    scores[:, 0] = np.arange(len(scores)) % size < np.array(wins)[clusters]
    return [Table(scores, clusters, (np.arange(len(scores)) < out,))]


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 4, deadline=None, derandomize=True)
@given(boards(fewest=1))
def test_leaving_items_out_never_turns_a_comparison(drawn):
    tables, lower, right = drawn
    nothing = [np.zeros(len(table.scores), bool) for table in tables]
    honest = row_of(tables, nothing, lower)
    noise = 4 * np.sqrt(0.05 * 0.95 / DRAWS) * (honest.result.test == "permutation")  # of a p-value near the edge
    for dropped in zip(*(table.games for table in tables), strict=True):
        gamed = row_of(tables, dropped, lower)
        if gamed is None:
            continue
        assert gamed.left_out == (sum(int(one.sum()) for one in dropped), 0)
        assert not told_first(gamed, lower) or told_first(honest, lower, 0.05 + noise)
        if any(gamed.left_out):
            assert gamed.lowest - 1e-9 <= honest.result.difference <= gamed.highest + 1e-9
            if right and not gamed.could_turn and honest.result.p_value is not None:
                assert gamed.p_left_out >= min(honest.result.p_value - noise, 0.05)


def ranking_of(tables: list[Table], dropped, lower: bool, draws: int):
    subsets = []
    for place, (table, out) in enumerate(zip(tables, dropped, strict=True)):
        spans, filled = np.zeros_like(table.scores), table.scores.copy()
        filled[out, 0], spans[out, 0] = float(lower), 1 - 2 * float(lower)
        subsets.append(SubsetScores(filled, [(place, name) for name in table.clusters.tolist()], spans=spans))
    names = [f"model {place}" for place in range(subsets[0].scores.shape[1])]
    rows = rank_models(names, resample(subsets, draws), higher_is_better=not lower).rows
    (place,) = [place for place, row in enumerate(rows) if row.model == "model 0"]
    return rows[place].low, rows[place].high, rows[place].rank, place


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(boards())
def test_leaving_items_out_never_raises_a_rank(drawn):
    no_game_is_won(*drawn[:2], draws=200)


def no_game_is_won(tables: list[Table], lower: bool, draws: int) -> None:
    honest = ranking_of(tables, [np.zeros(len(table.scores), bool) for table in tables], lower, draws)
    for dropped in zip(*(table.games for table in tables), strict=True):
        gamed = ranking_of(tables, dropped, lower, draws)
        assert all(after >= before for before, after in zip(honest, gamed, strict=True)), (honest, gamed)


@pytest.mark.parametrize(
    "known",
    [
        of_flips((10, 5, 0), (1000, 0, 0)),  # five items differ, and six with one that is taken to be wrong
        of_flips((10, 0, 5), (1000, 1, 0)),  # six differ, and five without it
        of_clusters([9, 0, 1, 0, 1, 2, 2, 2, 1, 1], 10, out=1),  # the first is less ahead, but more evenly so
    ],
)
def test_games_that_were_won_are_lost(known):
    no_game_is_won(known, lower=False, draws=2000)


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
    assert "leaver: 186 items without a score (186 of 500 of CVLUE VG) count as wrong in its rank." in notes


def test_runs_with_examples_and_without_are_compared_each_with_its_like(tmp_path):
    """A model with runs of 0 and of 3 examples was refused beside one with 3, though the page ranks the two there."""
    tasks, out = groups("qimma")["qimma_aradice"], tmp_path / "out"
    for model, shots, some in (("lab/a", 0, tasks), ("lab/a", 3, tasks[1:]), ("lab/b", 3, tasks)):
        write_run(out, model, some, 0.6, 30, signed={}, shots=shots, date=f"2026-11-0{shots + 1}T10-00-00")
    found = compare_all([out], tmp_path / "c", draws=300)
    rows = [row for row in found.document["differences"] if row["level"] == "group"]
    assert [(row["name"], row["items"], row["left_out_first"]) for row in rows] == [("qimma_aradice|3", 150, 30)]
    assert any(f"lab/a has, and lab/b not, {tasks[0]}|0" in note for note in found.document["notes"])
    write_run(out, "lab/b", ["qimma_aratrust"], 0.6, 30, signed={}, shots=3, date="2026-11-05T10-00-00")
    write_run(out, "lab/a", ["qimma_aratrust"], 0.6, 30, signed={}, date="2026-11-05T10-00-00")
    again = compare_all([out], tmp_path / "d", draws=300)
    assert [row["name"] for row in again.document["differences"] if row["level"] == "group"] == ["qimma_aradice|3"]


def test_of_several_numbers_of_examples_none_is_compared_with_another_by_chance(tmp_path):
    """The one named first decided whether 0 or 3 examples were compared with 5, and who was better."""
    for model, shots, ability in (("lab/a", 0, 0.9), ("lab/a", 3, 0.3), ("lab/b", 5, 0.6)):
        folder = tmp_path / model[-1]
        write_run(
            folder,
            model,
            ["qimma_aratrust"],
            ability,
            30,
            signed={},
            shots=shots,
            date=f"2026-11-0{shots + 1}T00-00-00",
        )
    told = "lab/a has it with several numbers of examples, lab/b with none of them. Name the results file of one."
    for names in ("ab", "ba"):
        with pytest.raises(CulturevalError, match=told):
            compare_all([tmp_path / name for name in names], tmp_path / "c", draws=100, allowed=["prompts"])


def test_an_item_is_left_out_once_whatever_the_metrics_of_its_task():
    """Of R@1, R@5 and R@10 of a dialogue without ranks it told three items."""
    found = {}
    for scores in ([1, np.nan, 0], [np.nan, np.nan, 1]):
        note_lacking(found, "cvlue_vd|0", items_of(np.array(scores)))
    assert [lacking.tolist() for lacking in found.values()] == [[True, True, False]]


def test_rows_that_both_runs_were_refused_are_left_out_though_no_details_have_them(tmp_path):
    """30 of 60 rows, which both servers refused, were counted nowhere: p was below 0.001, and no rank told it."""
    known = {"refused": range(30, 60), "rows": 30}
    runs = [saved(tmp_path, name, np.arange(60) < right, **known) for name, right in (("good", 30), ("poor", 8))]
    found = compare_all([tmp_path / "good", tmp_path / "poor"], tmp_path / "out", [METRIC], draws=300)
    (row,) = found.document["differences"]
    assert (row["items"], row["left_out_first"], row["left_out_second"], row["p_holm"]) == (30, 30, 30, 1)
    assert (row["lowest"], row["highest"]) == pytest.approx((-8 / 60, 52 / 60))
    ranking, notes = rank_runs(runs, {TASK: METRIC}, iterations=300)
    assert [entry.score for entry in ranking.rows] == pytest.approx([0.5, 8 / 60])
    told = "30 items without a score (30 of 60 of CVLUE VG) count as wrong in its rank."
    assert notes == [f"good: {told}", f"poor: {told}"]


def test_subsets_that_both_runs_were_refused_are_left_out_though_no_details_have_them(tmp_path):
    """Four of six subsets without any answer left nothing out of `compare`, and the average's coverage was 1."""
    tasks = [name for name in groups("qimma")["qimma_aradice"]]
    for name, ability in (("good", 0.62), ("poor", 0.5)):
        file = write_run(tmp_path, name, tasks[:2], ability, 300, signed={})
        content = json.loads(file.read_text("utf-8"))
        known = content["cultureval"]["tasks"][f"{tasks[0]}|0"] | {"rows": 0, "refused": 300, "scored": {}}
        lacking = {f"{task}|0": known | {"task": f"{task}|0", "bounds": {"acc_norm": [0, 1]}} for task in tasks[2:]}
        content["cultureval"] |= {"unanswered": lacking, "unscorable": dict.fromkeys(lacking, "No row has an answer.")}
        file.write_text(json.dumps(content), "utf-8")
    (row,) = (
        one
        for one in compare_all([tmp_path], tmp_path / "out", draws=300).document["differences"]
        if one["level"] == "group"
    )
    count = 300 * len(tasks[2:])
    assert (row["left_out_first"], row["left_out_second"], row["p_holm"]) == (count, count, 1)
    share = 2 / len(tasks)
    ends = [share * row["difference"] + side * (1 - share) for side in (-1, 1)]
    assert (row["lowest"], row["highest"]) == pytest.approx(ends) and row["p_value"] < 0.01
    for run in load(tmp_path):
        table = scores_table([run]).set_index(["task", "metric"])
        average = table.loc["qimma_aradice:_average|0", "acc_norm"]
        assert average.n == 600 and average.coverage == pytest.approx(share)
        told = [one for one in run_warnings(run) if one.kind in ("refused", "unscorable")]
        assert len(told) == 2 and all(one in average.warnings for one in told)


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
    alone = Table(np.column_stack([good, bad])[known], np.arange(known.sum()), ())
    shared = row_of([alone], [np.zeros(known.sum(), bool)], lower=False).result
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


def test_a_score_that_no_items_prove_stands_below_others_on_the_pages_of_tasks_and_subsets_too(tmp_path):
    """A claim of .99 without details stood first there, and last in the main table."""
    out, tasks = tmp_path / "out", [*groups("qimma")["qimma_aradice"]]
    for model, ability, details in (("lab/low", 0.3, True), ("lab/high", 0.6, True), ("lab/claim", 0.9, False)):
        write_run(out, model, tasks, ability, 30, signed={}, details=details)
    (one,) = (table for table in read_board([out], ranks=False).sections[0].tables)
    assert [row.label for row in one.rows] == ["high", "low", "claim"], "also without ranks"
    write_site(read_board([out]), tmp_path / "site", "Board", ())
    names = re.findall(r"<bdi>(low|high|claim)<", next((tmp_path / "site/tasks").glob("*Egypt*")).read_text("utf-8"))
    assert names[:3] == ["high", "low", "claim"]
    data = re.search(r'<script[^>]*id="subset-data">(.*?)</script>', (tmp_path / "site/index.html").read_text("utf-8"))
    orders = {one["label"]: one["orders"] for one in json.loads(data[1])[0]["models"]}
    assert {*orders["claim"]} == {None} and None not in orders["high"]


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
