"""The QIMMA paper's Tables 3 and 4 (arXiv 2604.03395; reports/qimma/published.csv), through the code of our summary.

Table 3's fourteen benchmark scores of each of fourteen models give its averages and all of Table 4.
"""

import pytest
from planted import plant, text_row

from cultureval.reports.qimma.table import PUBLISHED
from cultureval.runs.loading import load
from cultureval.runs.table import AVERAGE, published, published_rows, tables_of
from cultureval.runtime.rounding import printed
from cultureval.tasks.qimma.benchmarks import benchmark_tasks

ROWS = published_rows(PUBLISHED)
JAIS = "inceptionai/Jais-2-70B-Chat"


def cells(model):
    (table,) = published("qimma")[model]
    return {row: cell.value for (row, _), cell in table.cells.items()}


def test_table_3_gives_its_averages_and_table_4():
    checked = {"benchmarks": 0, "domains": 0, "averages": 0}
    for row in ROWS:
        found = cells(row["model"])
        for name, value in found.items():
            kind = "benchmarks" if name in benchmark_tasks() else "averages" if name == AVERAGE else "domains"
            tolerance = 1e-9 if kind == "benchmarks" else 0.0051
            assert value == pytest.approx(float(row[name]), abs=tolerance), (row["model"], name)
            checked[kind] += 1
    assert checked == {"benchmarks": 14 * 14, "domains": 98, "averages": 14}


def test_all_but_three_are_printed_as_the_paper_prints_them():
    """Those three lie in the middle between two numbers; the paper rounds what its benchmark scores no longer tell."""
    pairs = [(value, row[name]) for row in ROWS for name, value in cells(row["model"]).items()]
    others = sorted(pair for pair in pairs if printed(pair[0], 2) != pair[1])
    assert others == [(pytest.approx(25.965), "25.96"), (pytest.approx(59.705), "59.70"), (67.115, "67.11")]


def test_a_results_file_with_the_papers_numbers_has_its_tables(tmp_path):
    (row,) = (row for row in ROWS if row["model"] == JAIS)
    scores = {
        f"{task.task}|0": [text_row(0, {task.metrics[0]: float(row[name]) / 100})]
        for name, tasks in benchmark_tasks().items()
        for task in tasks
    }
    plant(tmp_path, scores, JAIS, details=False)
    (table,) = tables_of(load(tmp_path).runs[0])
    assert {label: cell.value for (label, _), cell in table.cells.items()} == pytest.approx(cells(JAIS))
    assert all(cell.value == pytest.approx(cell.published) for cell in table.cells.values())
    average = table.cells[table.main]
    assert average.value == pytest.approx(65.81, abs=0.0051), "of fourteen benchmarks, not of seven domains (65.15)"
    assert len(average.parts) == 109 and sum(average.parts.values()) == pytest.approx(1)
