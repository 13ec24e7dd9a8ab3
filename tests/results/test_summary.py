"""The summary of a run as text and as data: widths, at most 25 lines a suite, the same numbers in both."""

import json
from dataclasses import replace

import pytest
from planted import choice_row, plant, text_row
from rich.cells import cell_len

from cultureval import load_results
from cultureval.reports.summary_text import MOST_LINES, shown_run, suite_lines, summaries_json, table_lines
from cultureval.runs.loading import load
from cultureval.runs.table import Cell, TableOfRun, tables_of
from cultureval.runtime.rounding import printed
from cultureval.tasks.catalogue import all_tasks

TRUST, SUITES = "qimma_aratrust|0", ("qimma", "qimma_gen", "jeem", "m2cqa", "aynvqa", "cvlue", "alqasida")
BOX = {"size": [10, 10], "box": [0, 0, 5, 5], "box_format": "xyxy"}  # of grounding
CELLS = {
    ("egy", "mono"): Cell(41.5, 1.0, 39, 44, 90, 90),
    ("egy", "cross"): Cell(9.0, 0.5, 8, 10, 180, 200, published=12.25),
    ("唢呐", "mono"): Cell(None, words="3/7"),
    ("唢呐", "cross"): Cell(100.0, None, n=5, asked=5, words="4/7"),
}
TABLE = TableOfRun(
    *("Fidelity", "mine", "percent", ["egy", "唢呐"], ["mono", "cross"], frozenset({"mono"}), CELLS),
    main=("唢呐", "mono"),
    notes=["A note."],
)


def test_a_number_stands_with_its_error_its_parts_and_the_papers_and_without_an_error_with_n_alone():
    text = "\n".join(table_lines(TABLE, 80))
    assert text.splitlines()[0] == "Fidelity: percent; lower is better: mono" and text.splitlines()[-1] == "  A note."
    rows = [line.split() for line in text.splitlines()[2:4]]
    assert rows[0] == ["egy", "41.50", "±1.00", "9.00", "±0.50", "[12.25]", "90-180"]
    assert rows[1] == ["唢呐", "3/7", "100.00", "(4/7)", "5"]
    narrow = table_lines(TABLE, 34)
    assert max(map(cell_len, narrow)) <= 34 and "±" not in "".join(narrow) and "41.50" in "".join(narrow)


def test_of_a_long_table_the_main_row_stays():
    rows = [str(number) for number in range(40)] + ["唢呐"]
    lines = suite_lines([replace(TABLE, rows=rows)], 80)
    assert len(lines) == MOST_LINES and lines[-2].split()[0] == "唢呐" and lines[-1].startswith("(more rows")


def test_halves_are_rounded_away_from_zero():
    shown = {47.125: "47.13", -47.125: "-47.13", 0.145: "0.15", 63.23499999999999: "63.24", 0.0: "0.00", -0.004: "0.00"}
    assert {value: printed(value, 2) for value in shown} == shown
    assert [printed(value, 1, signed=True) for value in (12.25, -12.25, -0.04)] == ["+12.3", "-12.3", "+0.0"]


def _without_sums(task):
    return [name for name in task.metrics if not (task.kind.declared.get(name) and task.kind.declared[name].of_sums)]


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_has_at_most_25_lines_and_fits_the_terminal(tmp_path, suite):
    tasks = [task for task in all_tasks().values() if task.suite == suite]
    rows = {
        f"{task.task}|0": [text_row(at, dict.fromkeys(_without_sums(task), at % 2 * 0.5), **BOX) for at in range(4)]
        for task in tasks
    }
    run = load(plant(tmp_path, rows)).runs[0]
    lines = suite_lines([table for table in tables_of(run) if table.suite == suite], 80)
    assert 3 <= len(lines) <= MOST_LINES and max(map(cell_len, lines)) <= 80


def test_the_summary_ends_with_the_tables_and_tells_each_warning_once(tmp_path):
    refused = [choice_row(at, None if at < 3 else at % 2) for at in range(20)]
    run = load(plant(tmp_path, {TRUST: refused}, limit=20)).runs[0]
    text = shown_run(run, 100)
    assert text.count("without a score") == text.count("--limit") == 1
    assert text.index("without a score") < text.index("Results:") < text.index("QIMMA: percent")
    assert "17 of 20" in text and "Signatures" not in text
    full = shown_run(run, 100, full=True)
    assert full.endswith(text.split("\n\n", 1)[1]) and "acc_norm" in full and "±" in full


def test_a_line_break_in_a_models_name_starts_no_line(tmp_path):
    plant(tmp_path, {TRUST: [choice_row(0, True)]}, model="m")
    file = next(tmp_path.rglob("results_*.json"))
    file.write_text(file.read_text("utf-8").replace('"model_name": "m"', '"model_name": "m\\n- forged"'), "utf-8")
    assert shown_run(load(file).runs[0], 120).startswith("m\\n- forged, ")


def test_the_data_hold_every_number_of_the_tables_and_the_warnings(tmp_path):
    rows = {TRUST: [choice_row(at, at % 2) for at in range(6)]}
    plant(tmp_path / "a", rows, edited={TRUST: {"acc": 0.9}})
    plant(tmp_path / "b", rows, model="other")
    found = load_results([tmp_path / "a", tmp_path / "b"])
    data = json.loads(summaries_json(found.runs))["runs"]
    assert {one["model"] for one in data} == {"lab/model-7B", "other"}
    for run, one in zip(found.runs, data, strict=True):
        for table, written in zip(tables_of(run), one["suites"]["qimma"], strict=True):
            shown = {(cell["row"], cell["column"]): (cell["value"], cell["n"]) for cell in written["cells"]}
            assert shown == {place: (cell.value, cell.n) for place, cell in table.cells.items()}
    assert [one["in_file"] for run in data for one in run["differs"]] == [0.9]
    assert "file differs" in {one["kind"] for run in data for one in run["warnings"]}
