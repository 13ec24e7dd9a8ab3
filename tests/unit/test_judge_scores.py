"""Judges' scores for headline tables, also of suites of other packages; and the order of a run's tasks."""

import pytest
from summary_runs import run_of

from cultureval.runs.judged import bounded_mean, by_judge, judge_scores
from cultureval.runs.means import Estimate
from cultureval.runs.task_records import task_records
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.new_suite import write_suite

TEMPLATE = """---
form: likert
judged: reply
criteria: [Fluency]
---
Question: $question
Answer: $reply
Fluency: X/5
"""
PREFIX = "judge_gpt-4o_wording_fluency"


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A judged run of a suite that is not installed."""
    folder = write_suite("urdu_sums", list("1234"), "ur", tmp_path) / "src" / "urdu_sums"
    (folder / "templates" / "wording.txt").write_text(TEMPLATE, encoding="utf-8")
    kinds = (folder / "kinds.py").read_text(encoding="utf-8")
    named = kinds.replace("multiple_choice_metrics)", 'multiple_choice_metrics, judge_templates=("NAME",))')
    (folder / "kinds.py").write_text(named.replace("NAME", "urdu_sums:templates/wording"), encoding="utf-8")
    monkeypatch.setenv("CULTUREVAL_CUSTOM_SUITES", str(folder))
    run = run_of(["urdu_sums"])
    run.scores["urdu_sums|0"] |= {PREFIX: 3.5, f"{PREFIX}_stderr": 0.5, "judge_gpt-4o_wording_n_parsed": 6}
    return run


def test_judges_with_a_template_of_another_package_have_their_scores(judged):
    (record,) = judged.tasks_of("urdu_sums")
    (score,) = judge_scores(judged, [record])
    assert by_judge([score]) == {"gpt-4o": [score]} and (score.template, score.scored) == ("wording", 6)
    assert score.criteria["fluency"].mean == Estimate(3.5, 0.5, 6) and list(score.criteria) == ["fluency"]
    judged.scores["urdu_sums|0"] |= {PREFIX: 3.125, f"{PREFIX}_missing_as_1": 1.125, f"{PREFIX}_missing_as_5": 4.875}
    assert bounded_mean([one.criteria["fluency"] for one in judge_scores(judged)]) == "3.13 [1.13, 4.88]", (
        "as summaries round"
    )


def test_a_suite_that_is_not_there_has_no_judges():
    run = run_of(["jeem_vqa:ma"])
    (record,) = run.tasks_of("jeem")
    run.scores[record.task] |= {"judge_x_vqa_n_parsed": 3.0}
    assert judge_scores(run, [record.model_copy(update={"suite": "not_there"})]) == []


def test_the_tasks_of_a_run_are_in_the_catalogues_order():
    names = [f"{name}|0" for name in all_tasks()][:12]
    assert list(task_records(dict.fromkeys(sorted(names, key=hash), {}), None)) == names
    assert list(task_records(dict.fromkeys(reversed(names), {}), None)) == names
