"""The summary of a run as text and as data: widths, what is left out for lack of it, at most 25 lines a suite."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from summary_runs import run_of

from cultureval.reports.leaderboard.tables import cell_text, whole_number
from cultureval.reports.summary_text import full_text, suite_lines, summaries_json, summary_text, table_lines
from cultureval.runs.table import MOST_LINES, Cell, Column, Row, SuiteTable, group_table, one_row, suite_tables
from cultureval.runtime.rounding import printed
from cultureval.tasks.catalogue import suites

TABLE = SuiteTable(
    "Fidelity, percent",
    "",
    ("Dialect", "monolingual", "cross-lingual", "note"),
    [
        Row("egy", (Cell(41.5, 1.25, 90), Cell(9.0, 0.5, 200, published=12.25), "original")),
        Row("唢呐", (Cell(None), Cell(100.0, None, 200), None)),
    ],
    ("Average (2/2): 25.25",),
)
WIDE = """\
Fidelity, percent
  Dialect  monolingual  cross-lingual         note           n
  egy      41.50 ±1.25    9.00 ±0.50 [12.25]  original  90-200
  唢呐       n/a        100.00                             200
  Average (2/2): 25.25"""


def test_values_stand_below_each_other_with_errors_counts_and_published_numbers():
    assert "\n".join(table_lines(TABLE, 80)) == WIDE
    for width, left_out in ((60, "n"), (46, "standard errors, n")):
        lines = table_lines(TABLE, width)
        assert max(map(cell_len, lines)) <= width
        assert f"Left out for lack of width: {left_out}." in " ".join(" ".join(lines).split())
    assert "41.50" in " ".join(table_lines(TABLE, 46)) and "±" not in "".join(table_lines(TABLE, 46))
    for width in range(12, 46):
        assert max(map(cell_len, table_lines(TABLE, width))) <= width


def test_a_row_s_count_is_not_that_of_a_mean_over_several_rows():
    rows = [Row("STEM", (Cell(1.0, n=86), Cell(2.0, n=135, spans=True)))]
    text = table_lines(SuiteTable("QIMMA", "percent", ("Domain", "score", "domain"), rows), 80)
    assert text[-1].split()[-1] == "86"


def test_halves_are_rounded_away_from_zero():
    shown = {47.125: "47.13", -47.125: "-47.13", 0.145: "0.15", 63.23499999999999: "63.24", 0.0: "0.00", -0.004: "0.00"}
    assert {value: printed(value, 2) for value in shown} == shown
    assert [printed(value, 0) for value in (0.5, 2.5, 1e20, float("nan"))] == ["1", "3", "1" + 20 * "0", "nan"]
    assert [printed(value, 1, signed=True) for value in (12.25, -12.25, -0.04)] == ["+12.3", "-12.3", "+0.0"]


def test_a_tables_name_and_unit_are_given_and_never_read_from_a_title():
    """A judge called `lab:gpt` lost the end of its name, which became the unit."""
    row = one_row(SuiteTable("Judge lab:gpt, 1 to 5", "", ("Task", "fluency"), [Row("captions", (Cell(3.0),))]))
    assert (row.table, row.unit, row.family) == ("Judge lab:gpt, 1 to 5", "", "Judge lab:gpt, 1 to 5")


def test_a_small_loss_is_not_minus_zero():
    table = SuiteTable("Gain", "", ("Direction", "gain"), [Row("egy", (Cell(-0.04, 0.02, 3, digits=1),))])
    assert table_lines(table, 80)[2].split() == ["egy", "0.0", "±0.0", "3"]


@pytest.mark.slow
@pytest.mark.parametrize("suite", suites())
@pytest.mark.parametrize("width", [80, 120])
def test_a_suite_has_at_most_25_lines_and_fits(suite, width):
    run = run_of([suite])
    (tables,) = suite_tables(run).values()
    lines = [line for table in tables for line in table_lines(table, width)]
    assert 3 <= len(lines) <= MOST_LINES
    assert lines == suite_lines(suite, tables, width)
    assert max(map(cell_len, summary_text(run, width).splitlines())) <= width


def test_a_line_break_in_a_model_s_name_starts_no_line():
    run = run_of(["qimma_aratrust"])
    file = Path("out/results/m\n- forged: path/results_2026.json")
    lines = summary_text(replace(run, model="m\n- forged: name", file=file), 120).splitlines()
    assert lines[0].startswith("m\\n- forged: name, ")
    assert not any("forged" in line and line.lstrip().startswith("- ") for line in lines)


def test_a_run_of_other_tasks_says_why_it_has_no_table():
    run = replace(run_of([]), scores={"mmlu:anatomy|5": {"acc": 0.5}})
    assert "None of its tasks is of a suite that is known here: --full has all scores." in summary_text(run, 120)
    assert "known here" not in summary_text(run_of(["qimma_aratrust"]), 120)


def test_longer_tables_are_cut_and_say_so():
    table = replace(TABLE, rows=TABLE.rows * 20)
    lines = suite_lines("mine", [table], 80)
    assert len(lines) == MOST_LINES and lines[-1] == "(19 more lines of mine: --full)"


def test_a_suite_without_a_headline_has_a_row_a_group():
    run = run_of(["qimma_aradice:Egypt", "qimma_aradice:Syria", "qimma_aratrust"], lambda task, metric: 0.25)
    table = group_table(run, "qimma")
    assert [
        (row.label, row.cells[0], row.cells[1].value, row.cells[2] and str(row.cells[2])) for row in table.rows
    ] == [
        ("qimma_aradice|0", "acc_norm", 0.25, "2/6"),
        ("qimma_aratrust|0", "acc_norm", 0.25, "1/1"),
        ("Average", "acc_norm", None, None),
    ]
    assert table.rows[-1].cells[1].words == "no average", "groups of the suite are missing"
    part, whole = (one_row(table).cells[Column("acc_norm", f"qimma_{name}|0")] for name in ("aradice", "aratrust"))
    assert (cell_text(part, errors=False), cell_text(whole, errors=False)) == ("0.2500 (2/6)", "0.2500"), "on the page"
    assert (whole_number(part), whole_number(whole)) == (None, 0.25), "a mean in part is never the best"


def test_an_error_in_a_suite_s_headline_is_told_and_fails_nothing(monkeypatch):
    monkeypatch.setattr("cultureval.reports.qimma.table.benchmark_scores", lambda subsets: 1 / 0)
    text = summary_text(run_of(["qimma_aratrust", "cvlue_vqa"]), 80)
    assert "qimma_aratrust|0  acc_norm" in text and "cannot be made: " in text and "CVLUE, Chinese" in text


def test_the_summary_as_data_holds_every_number_of_the_tables():
    run = run_of(["cvlue", "qimma_aratrust"])
    (data,) = json.loads(summaries_json([("", run)]))["runs"]
    assert data["results"].endswith("results_1.json") and list(data["suites"]) == ["qimma", "cvlue"]
    for suite, tables in suite_tables(run).items():
        for table, written in zip(tables, data["suites"][suite], strict=True):
            assert [row.label for row in table.rows] == [row[0] for row in written["rows"]]
            shown = [cell.value for row in table.rows for cell in row.cells if isinstance(cell, Cell)]
            assert shown == [cell["value"] for row in written["rows"] for cell in row[1:] if isinstance(cell, dict)]


@pytest.mark.slow
@pytest.mark.parametrize("suite", [*suites(), None])
def test_every_table_says_the_scale_of_its_numbers(suite):
    run = run_of([suite or "qimma_aratrust"])
    for table in suite_tables(run)[suite] if suite else [group_table(run, "qimma")]:
        assert re.search(r"percent|0 to 1\b|0 to 100|1 to 5|times 100", f"{table.name} {table.unit}"), table
        lower = [column.name for column in table.columns if isinstance(column, Column) and column.lower]
        assert not [name for name in lower if name in table.unit], "a page leaves out the columns without a number"
        assert table.heading or not lower or table.title.endswith(f"; lower is better: {', '.join(lower)}")
    assert "shares from 0 to 1" in full_text(run, None).splitlines()[0]


@pytest.mark.parametrize("suite", suites())
def test_no_two_columns_of_a_table_as_data_have_one_name(suite):
    """A frame made of AL-QASIDA's rows lost the gain over BTEC's source to FLORES'."""
    (run,) = json.loads(summaries_json([("m", run_of([suite]))]))["runs"]
    for table in run["suites"].get(suite, []):
        assert len({*table["columns"]}) == len(table["columns"])
