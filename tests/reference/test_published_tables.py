"""The papers' tables that headlines quote, against each other, the papers' statements and the released files."""

import csv
from pathlib import Path

import pytest
from planted import plant, text_row

from cultureval.reports.alqasida import table as alqasida
from cultureval.reports.cvlue import table as cvlue
from cultureval.reports.jeem import table as jeem
from cultureval.reports.m2cqa import table as m2cqa
from cultureval.runs.loading import load
from cultureval.runs.table import published, published_rows, tables_of

RELEASED = sorted((Path(__file__).parents[2] / "../shared/data/alqasida/llm_outputs").glob("*/*_metrics.csv"))
ALQASIDA = alqasida.published_numbers()
HALF = 0.005 + 1e-9  # of a unit of the last digit
VARIETIES = {"EN": "en", "MSA": "msa", "Dialect": "dialect", "AJP": "ajp", "ARZ": "arz"}
PROMPTS = ("tf", "answer_reason", "reason_first")
# M2CQA's Table 2, row by row: Q+, Q-, F1, CFHR under A (True or False), B (Answer then Reason), C (Reasoning First).
TABLE_2 = """
EN      Qwen3-VL-32B 0.93 0.94 0.93 0.10  0.91 0.95 0.93 0.08  0.93 0.93 0.93 0.12
EN      Gemma-3-27B  0.94 0.88 0.91 0.19  0.92 0.89 0.90 0.18  0.92 0.90 0.91 0.16
EN      FanarOryx-v1 0.94 0.93 0.93 0.12  0.94 0.93 0.93 0.12  0.91 0.92 0.92 0.13
EN      AIN          0.93 0.91 0.92 0.14  0.88 0.93 0.90 0.11  0.85 0.84 0.85 0.25
MSA     Qwen3-VL-32B 0.88 0.91 0.90 0.14  0.85 0.93 0.89 0.11  0.86 0.91 0.89 0.15
MSA     Gemma-3-27B  0.93 0.81 0.86 0.30  0.92 0.83 0.87 0.27  0.90 0.86 0.88 0.23
MSA     FanarOryx-v1 0.74 0.92 0.82 0.14  0.64 0.95 0.76 0.11  0.77 0.78 0.78 0.34
MSA     AIN          0.95 0.60 0.74 0.55  0.92 0.77 0.84 0.35  0.71 0.54 0.61 0.66
Dialect Qwen3-VL-32B 0.88 0.90 0.88 0.17  0.85 0.92 0.88 0.14  0.87 0.90 0.88 0.17
Dialect Gemma-3-27B  0.93 0.79 0.86 0.32  0.93 0.81 0.86 0.31  0.91 0.85 0.88 0.24
Dialect FanarOryx-v1 0.71 0.92 0.80 0.15  0.59 0.95 0.73 0.11  0.76 0.74 0.75 0.39
Dialect AIN          0.97 0.38 0.56 0.79  0.91 0.72 0.80 0.43  0.65 0.58 0.61 0.63
"""
# Table 10, row by row: Q+, Q-, F1, CFHR under A and under B; CFHR under C; CFHR(C) - CFHR(B).
TABLE_10 = """
AJP Qwen3-VL-32B 0.89 0.89 0.89 0.17  0.86 0.92 0.89 0.13  0.16 +0.03
AJP Gemma-3-27B  0.94 0.79 0.86 0.32  0.93 0.80 0.86 0.30  0.23 -0.07
AJP FanarOryx-v1 0.73 0.92 0.82 0.15  0.62 0.95 0.75 0.11  0.37 +0.26
AJP AIN          0.96 0.41 0.58 0.76  0.89 0.75 0.81 0.39  0.63 +0.24
ARZ Qwen3-VL-32B 0.87 0.90 0.88 0.17  0.83 0.92 0.87 0.14  0.17 +0.03
ARZ Gemma-3-27B  0.93 0.79 0.86 0.32  0.92 0.81 0.86 0.31  0.24 -0.07
ARZ FanarOryx-v1 0.68 0.92 0.79 0.15  0.56 0.95 0.70 0.11  0.40 +0.29
ARZ AIN          0.97 0.36 0.53 0.81  0.92 0.69 0.79 0.47  0.62 +0.15
"""


def rows(table):
    for line in table.split("\n"):
        if line.strip():
            language, model, *numbers = line.split()
            yield (language, model), [float(number) for number in numbers]


def run_with(folder, numbers, model):
    """A run whose results file says a model's numbers: by task and metric."""
    tasks = {}
    for (task, metric), value in numbers.items():
        tasks.setdefault(f"{task}|0", {})[metric] = value
    plant(folder, {task: [text_row(0, scores)] for task, scores in tasks.items()}, model, details=False)
    return load(folder).runs[0]


@pytest.mark.parametrize("model", ALQASIDA)
def test_a_run_with_alqasidas_published_scores_shows_them_as_its_own(model, tmp_path):
    scores = {place: value / 100 if place[1] == "adi2" else value for place, value in ALQASIDA[model].items()}
    tables = tables_of(run_with(tmp_path, scores, model))
    known = [cell for table in tables for cell in table.cells.values() if cell.published is not None]
    assert len(known) > 20 and all(cell.value == pytest.approx(cell.published) for cell in known)
    requests = tables[0]
    assert all(requests.cells["Average", kind].words == "" for kind in requests.columns)
    # The means of the paper's own rows are those of the same sets.
    papers = {
        (table.name, place): cell.value for table in published("alqasida")[model] for place, cell in table.cells.items()
    }
    assert papers == pytest.approx(
        {
            (table.name, at): cell.published
            for table in tables
            for at, cell in table.cells.items()
            if cell.published is not None
        }
    )
    # Section 4.1: only GPT-4o exceeds 13 % in cross-lingual requests.
    cross = [value for (name, _), value in ALQASIDA[model].items() if "_cross:" in name]
    assert (max(cross) > 13) == (model == "gpt-4o")


def test_llama_writes_most_dialect_in_egyptian_tweets():
    egypt = "alqasida_mono:tweet_egy", "adi2"
    best = {model: numbers[egypt] for model, numbers in ALQASIDA.items()}
    assert best["Llama-3.1-8B-Instruct"] == max(best.values()) == pytest.approx(51.8, abs=0.05)
    over = [(model, place) for model, numbers in ALQASIDA.items() for place, value in numbers.items() if value > 50]
    # Section 4.1: almost all are below 50 %.
    assert [one for one in over if one[1][1] == "adi2"] == [("Llama-3.1-8B-Instruct", egypt)]


@pytest.mark.skipif(not RELEASED, reason="the released files are not here")
@pytest.mark.parametrize("path", RELEASED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_alqasidas_published_scores_are_the_released_metrics(path):
    names = {"command_r": "c4ai-command-r-v01", "command_r+": "c4ai-command-r-plus", "llama-base": "Llama-3.1-8B"}
    names |= {"command_r_base": "command-r-base", "command_r+_base": "command-r-plus-base"}
    names |= {"silma": "SILMA-9B-Instruct-v1.0", "acegpt": "AceGPT-7B-chat"}
    folder, kind = path.parent.name.rsplit("_", 1)
    if "5-shot" in kind:
        pytest.skip("the table is 0-shot")
    group = {"monolingual": "mono", "crosslingual": "cross", "mt": "mt"}[kind]
    corpus, _, languages = path.stem.removesuffix("_metrics").partition("_")[2].partition("_")
    with path.open(encoding="utf-8", newline="") as file:
        (metrics,) = csv.DictReader(file)
    score = float(metrics["SpBLEU_corpus_score" if group == "mt" else "score"])
    place = f"alqasida_{group}:{corpus.lower()}_{languages}", "spbleu" if group == "mt" else "adi2"
    assert ALQASIDA[names[folder]][place] == pytest.approx(100 * score, abs=HALF)


def test_m2cqas_table_is_that_of_the_paper():
    printed = {}
    for (variety, model), numbers in [*rows(TABLE_2), *rows(TABLE_10)]:
        for prompt, cell in zip(PROMPTS, (numbers[0:4], numbers[4:8], numbers[8:]), strict=True):
            printed[VARIETIES[variety], prompt, model] = cell if len(cell) == 4 else [None, None, None, cell[0]]
    metrics = ("q_plus_acc", "q_minus_acc", "f1", "cfhr")
    shipped = {
        (row["variety"], row["prompt"], row["model"]): [float(row[name]) if row[name] else None for name in metrics]
        for row in published_rows(m2cqa.PUBLISHED)
    }
    assert shipped == printed


@pytest.mark.parametrize("model", ["Qwen3-VL-32B", "Gemma-3-27B", "FanarOryx-v1", "AIN"])
def test_table_10s_dialects_give_table_2s_dialect(model, tmp_path):
    """A run with the paper's AJP and ARZ has its Dialect, within the rounding of the parts and the mean."""
    numbers = {
        (f"m2cqa:{row['prompt']}_{row['variety']}", metric): float(row[metric])
        for row in published_rows(m2cqa.PUBLISHED)
        for metric in m2cqa.COLUMNS
        if row["model"] == model and row["variety"] != "dialect" and row.get(metric)
    }
    tables = tables_of(run_with(tmp_path, numbers, model))
    cells = [cell for table in tables for (row, _), cell in table.cells.items() if row == "Dialect" and cell.value]
    assert len(cells) == 3 + 3 + 1
    assert all(cell.value == pytest.approx(cell.published, abs=2 * HALF) for cell in cells)
    assert [len(table.cells) for table in published("m2cqa")[model]] == [15, 15, 11]


def test_cvlues_table_10_has_every_printed_number(tmp_path):
    numbers = cvlue.published_numbers()
    assert [len(row) for row in numbers.values()] == [22, 22, 10, 10, 8]
    assert numbers["X2VLM"]["cvlue_vd", "R@1"] == 5.4 and ("cvlue_vg", "iou") not in numbers["mPLUG-Owl2"]
    shown = published("cvlue")["X2VLM"]
    assert sum(len(table.cells) for table in shown) == 22 and shown[0].main is None, "the paper has no macro-average"
    run = run_with(tmp_path, {place: value / 100 for place, value in numbers["X2VLM"].items()}, "X2VLM")
    chinese, english = tables_of(run)
    every = [*chinese.cells.values(), *english.cells.values()]
    assert all(cell.value == pytest.approx(cell.published) for cell in every if cell.published is not None)
    of_chinese = [value for (task, _), value in numbers["X2VLM"].items() if "_en_" not in task]
    assert chinese.cells[cvlue.MAIN].value == pytest.approx(sum(of_chinese) / 11)


def test_jeems_tables_have_every_printed_row():
    captions, answers = published_rows(jeem.CAPTIONS), published_rows(jeem.ANSWERS)
    models = ["AIN", "AyaV", "Maya", "Palo", "Peacock", "GPT-4o"]
    assert [row["model"] for row in answers] == models * 4
    assert [row["variety"] for row in answers] == [code for code in ("JO", "AE", "EG", "MA") for _ in models]
    assert [row["model"] for row in captions if row["model"] != "Human"] == models * 5
    # Section 5.2: GPT-4o scores best overall, and is worst in the Emirati dialect.
    best = {row["variety"]: float(row["dialect_authenticity"]) for row in answers if row["model"] == "GPT-4o"}
    assert min(best, key=best.get) == "AE"
    tables = published("jeem")["AIN"]
    assert [table.judge for table in tables] == ["", "GPT-4"]
    assert tables[0].cells["Egypt", "BERTScore"].value == 79.60
    assert (
        tables[1].cells["Jordan, answers", "Dialect"].value == 3.04
        and ("MSA, with image", "Dialect") not in tables[1].cells
    )
