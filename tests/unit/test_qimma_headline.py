"""QIMMA's headline table: merged benchmarks, domains, coverage, forms, standard errors, the paper's numbers."""

import math

import pytest
from summary_runs import run_of

from cultureval.runs.paper_numbers import published_scores
from cultureval.reports.qimma.table import COVERAGE, PUBLISHED, tables
from cultureval.reports.summary_text import table_lines
from cultureval.runs.means import Estimate, mean_of
from cultureval.runs.record import TaskRecord
from cultureval.runs.table import suite_rows
from cultureval.tasks.catalogue import all_tasks

JAIS = "inceptionai/Jais-2-70B-Chat"


def by_benchmark(table):
    return {str(row.cells[0]): row for row in table.rows}


def test_a_whole_run_has_fourteen_benchmarks_seven_domains_and_the_average():
    (table,) = tables(run_of(["qimma"], lambda task, metric: 0.25 if "qa" in task.group else 0.5, model=JAIS))
    rows = by_benchmark(table)
    assert len(table.rows) == 15 and [row.label for row in table.rows if row.label][-1] == "Average"
    assert rows["MedArabiQ"].cells[1].value == pytest.approx((3 * 50 + 2 * 25) / 5)
    assert (
        rows["MedArabiQ"].cells[1].stderr == pytest.approx(1 / math.sqrt(5))
        and str(rows["MedArabiQ"].cells[3]) == "5/5"
    )
    assert rows["MedArabiQ"].cells[2].value == pytest.approx((40 + 50) / 2)
    assert rows["MedAraBench"].cells[2] is None and rows["MedAraBench"].label == ""
    assert rows["HumanEval+"].cells[2].published == 31.58 and rows["MBPP+"].cells[1].published == 43.65
    average = rows["14/14"].cells[1]
    assert average.n == sum(row.cells[1].n for row in table.rows[:-1]), "n beside every score"
    assert rows["MedArabiQ"].cells[2].n == rows["MedArabiQ"].cells[1].n + rows["MedAraBench"].cells[1].n
    assert average.value == pytest.approx((11 * 50 + 2 * 25 + 40) / 14) and average.published == 65.81
    assert table.notes == ["Data: original."]


def test_a_part_has_coverage_and_no_average():
    names = [name for name in all_tasks() if name.startswith(("qimma_aradice", "qimma_palmx", "qimma_aratrust"))]
    score = {"qimma_aradice:Egypt": None}.get
    run = run_of(names, lambda task, metric: score(task.task, 0.5))
    run.record.tasks["qimma_aratrust|0"] = run.record.tasks["qimma_aratrust|0"].model_copy(update={"form": "curated"})
    (table,) = tables(run)
    rows = by_benchmark(table)
    assert list(rows) == ["AraDiCE-Culture", "PalmX", "AraTrust", "2/14"]
    assert str(rows["AraDiCE-Culture"].cells[3]) == "5/6" and rows["AraDiCE-Culture"].cells[1].value == 50
    assert rows["AraDiCE-Culture"].cells[2].value is None, "a domain needs all of its benchmarks"
    assert rows["2/14"].cells[1].words == "no average" and "coverage 2/14    no average" in "".join(
        table_lines(table, 90)
    )
    assert table.notes == ["Data: curated for AraTrust; original for the others."]


def test_a_benchmark_in_two_forms_is_said_to_be_in_both():
    """ArabicMMLU with 8 curated of 40 subsets was "original", as if none of it were curated."""
    run = run_of([name for name in all_tasks() if name.startswith("qimma_arabicmmlu")])
    tasks = run.record.tasks
    tasks |= {name: task.model_copy(update={"form": "curated"}) for name, task in list(tasks.items())[:8]}
    both = f"curated (8 subsets) and original ({len(tasks) - 8} subsets)"
    assert tables(run)[0].notes == [f"Data: {both}."]
    tasks |= run_of(["qimma_aratrust", "qimma_fannorflop"], form="curated").record.tasks
    assert tables(run)[0].notes == [f"Data: {both} for ArabicMMLU; curated for the others."]


def test_the_coverage_of_generated_answers_is_on_the_page_too():
    (row,) = suite_rows(run_of(["qimma_gen_aratrust"]), "qimma_gen")
    assert row.cells[COVERAGE] == "1/10"


def test_the_summary_says_how_prompts_became_tokens():
    run = run_of(["qimma_aratrust", "qimma_fannorflop"], lambda task, metric: 0.5)
    for parity, words in (("paper", "together, as by `lighteval vllm`"), ("sound", "apart, one BOS")):
        asked = run.record.tasks["qimma_aratrust|0"].model_copy(update={"parity": parity})
        run.record.tasks["qimma_aratrust|0"] = asked
        note = tables(run)[0].notes[-1]
        assert note.startswith(f"Parity: {parity} (prompt and label tokenised {words}") and len(note) < 118
    asked = run.record.tasks["qimma_aratrust|0"]
    older = asked.model_dump(by_alias=True) | {"parity": "paper", "routes": {"first token": 7}}
    asked = TaskRecord(**older)  # of a file from before the field said it
    run.record.tasks["qimma_aratrust|0"] = asked
    notes = tables(run)[0].notes
    assert "of the first token: not comparable" in notes[-1] and not any(note.startswith("Parity") for note in notes)


def test_a_subset_without_an_error_bar_does_not_take_it_from_the_mean():
    known = [Estimate(50, 2.0, 100), Estimate(60, 1.0, 300)]
    assert mean_of(known) == (55, pytest.approx(math.sqrt(5) / 2), 400)
    variance = (100 * 400 + 300 * 300) / 400  # of an item, pooled by the counts
    assert mean_of([*known, Estimate(0, None, 1)]).stderr == pytest.approx(math.sqrt(4 + 1 + variance) / 3)
    assert mean_of([*known, Estimate(0)]).stderr == pytest.approx(math.sqrt(4 + 1 + 2.5) / 3)
    assert mean_of([Estimate(1), Estimate(2)]) == (1.5, None, None)


def test_the_papers_numbers_are_those_of_a_model_of_the_same_name():
    assert len(published_scores(PUBLISHED, "/models/qwen2.5-72b-instruct/")) == 22
    assert published_scores(PUBLISHED, "Qwen2.5-72B") == {}
