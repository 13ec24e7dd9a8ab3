"""Drawn runs: summary, page, comparison, CSV, JSON and `load_results` say the same number, n and marks."""

import csv
import io
import json
import re
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from planted import choice_row, judge, plant, text_row, verdict

from cultureval import load_results
from cultureval.reports.comparison.differences import compare
from cultureval.reports.leaderboard.board import read_board
from cultureval.reports.leaderboard.exports import as_csv, as_data, as_json
from cultureval.reports.summary_text import shown_run, summaries_json
from cultureval.runs import pairs
from cultureval.runs.record import ModelRecord
from cultureval.runs.warnings import warnings
from cultureval.runtime.errors import CulturevalError

TRUST, METRIC = "qimma_aratrust|0", "acc_norm"
CAPTIONS, JUDGED = "jeem_caption:eg|0", "judge_gpt_image_reference"
MODELS = ("lab/a-7B", "نموذج", "lab/\u202eright", "=1+1")


@dataclass(frozen=True)
class Plan:
    """How a run is: answers (None: refused), and what is odd about it."""

    model: int
    right: tuple[bool | None, ...]
    limit: int | None = None
    stock: bool = False
    details: bool = True
    edited: bool = False
    judged: tuple[float | None, ...] = ()
    version: str = "one"


NO_SHRINKING = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.reuse, Phase.generate])
answers = st.lists(st.sampled_from([True, True, False, None]), min_size=3, max_size=8).map(tuple)
plans = st.builds(
    Plan,
    st.integers(0, len(MODELS) - 1),
    answers.filter(lambda right: set(right) != {None}),
    st.sampled_from([None, None, 5]),
    st.booleans(),
    st.sampled_from([True, True, False]),
    st.booleans(),
    st.lists(st.sampled_from([1.0, 4.0, None]), max_size=3).map(tuple),
    st.sampled_from(["one", "two"]),
)


def write(root, number, plan):
    rows = [choice_row(at, right) for at, right in enumerate(plan.right)]
    tasks = {TRUST: rows} | ({CAPTIONS: [text_row(at, {"cider": 1.0}) for at in range(3)]} if plan.judged else {})
    edited = {TRUST: {METRIC: 0.99}} if plan.edited else None
    about = ModelRecord(backend="transformers", version=plan.version, dtype="float32")
    date = f"2026-11-{number + 1:02}T10-00-00.000000"
    options = {"limit": plan.limit, "stock": plan.stock, "details": plan.details, "edited": edited}
    file = plant(root, tasks, MODELS[plan.model], date, about=None if plan.stock else about, **options)
    if plan.judged and plan.details:
        later = [text_row(at, {JUDGED: verdict(one), f"{JUDGED}_fluency": one}) for at, one in enumerate(plan.judged)]
        judge(file, CAPTIONS, later, date.replace("T10", "T11"))
    return file


def numbers(score):
    return None if score is None else tuple(getattr(score, name) for name in ("value", "n", "asked"))


def truth(plan):
    """What the run's answers give: value, n, asked; of an edited file without details what it states."""
    scored = [float(one) for one in plan.right if one is not None]
    value = 0.99 if plan.edited and not plan.details else sum(scored) / len(scored)
    return (value, len(scored), len(plan.right)) if plan.details else (value,)


@NO_SHRINKING
@given(st.lists(plans, min_size=1, max_size=4))
def test_every_view_says_the_same(tmp_path_factory, drawn):
    root = tmp_path_factory.mktemp("runs")
    planned = {write(root, number, plan): plan for number, plan in enumerate(drawn)}
    runs = load_results(root).runs
    for run in runs:
        known = numbers(run.score(TRUST, METRIC))
        assert known[: len(truth(planned[run.file]))] == pytest.approx(truth(planned[run.file]))
        of_captions = planned.get(run.files.get(CAPTIONS))
        judged = of_captions.judged if of_captions and of_captions.details else ()
        given = [one for one in judged if one is not None]
        found = run.score(CAPTIONS, f"{JUDGED}_fluency")
        assert numbers(found) == (pytest.approx((sum(given) / len(given), len(given), 3)) if given else None)
    shown = {one["model"]: one for one in json.loads(summaries_json(runs))["runs"]}
    board = read_board([root])
    tables = [table for section in board.sections for table in section.tables if table.suite == "qimma"]
    for run in runs:
        score, marks = run.score(TRUST, METRIC), [one.sentence for one in warnings(run)]
        assert [one["sentence"] for one in shown[run.name]["warnings"]] == marks
        cells = [
            one for table in shown[run.name]["suites"]["qimma"] for one in table["cells"] if one["value"] is not None
        ]
        assert {(one["value"], one["n"], one["asked"]) for one in cells} == {numbers(score.times(100))}
        text = re.sub(r"\s+", " ", shown_run(run, 100))
        assert f"{100 * score.value:.2f}" in text
        for table in tables:
            (row,) = [row for row in table.rows if row.entry and row.entry.run.name == run.name]
            assert [one.sentence for one in row.entry.warnings] == marks
            assert {numbers(cell) for cell in row.cells.values() if cell.value is not None} == {
                numbers(score.times(100))
            }
            assert as_json(as_data(table)) and "=1+1" not in [line[:4] for line in as_csv(table).splitlines()]
            lines = list(csv.DictReader(io.StringIO(as_csv(table).removeprefix("\ufeff"))))
            told = [float(value) for line in lines for name, value in line.items() if name.endswith(" n") and value]
            assert score.n in told
            assert row.rank is None or planned[run.file].details
    try:
        rows = compare(runs).rows if len(runs) > 1 else []
    except CulturevalError:  # nothing that may be compared
        rows = []
    of_run = {run.name: run for run in runs}
    for row in rows:
        for name, score in zip((row.first, row.second), row.scores, strict=True):
            if row.name.startswith("qimma_aratrust"):
                assert numbers(score) == numbers(of_run[name].score(TRUST, METRIC))


@NO_SHRINKING
@given(answers.filter(lambda one: len(one) > 3), answers.filter(lambda one: len(one) > 3), st.integers(0, 3))
def test_nobody_gains_by_leaving_an_item_out(tmp_path_factory, first, second, out):
    parts = {(TRUST, METRIC): 1.0}
    found = []
    for how in ("whole", "refused", "absent"):
        root = tmp_path_factory.mktemp("runs")
        rows = [choice_row(at, right) for at, right in enumerate(first)]
        if how == "refused":
            rows[out] = choice_row(out, None)
        plant(root, {TRUST: [row for at, row in enumerate(rows) if how != "absent" or at != out]}, "a")
        everything = [choice_row(at, right) for at, right in enumerate(second[: len(first)])]
        plant(root, {TRUST: everything + [choice_row(at, False) for at in range(len(second), len(first))]}, "b")
        items = load_results(root).items
        by_run = {one.run: one for one in pairs.ranks(items, parts)}
        found.append((pairs.pair(items, "a", "b", parts).difference, -by_run["a"].rank))
    assert found[1] <= found[0] and found[2] <= found[0]
