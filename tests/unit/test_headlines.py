"""The headline tables of AL-QASIDA, JEEM and M2CQA: means, errors, coverage, judges, the paper's numbers."""

import math
from dataclasses import replace

import pytest
from rich.cells import cell_len
from summary_runs import run_of

from cultureval.reports.alqasida import table as alqasida
from cultureval.reports.jeem import table as jeem
from cultureval.reports.m2cqa import table as m2cqa
from cultureval.reports.summary_text import table_lines
from cultureval.runs.table import MOST_LINES, Cell, Column, names_of_columns, suite_tables

SUITES = ("alqasida", "jeem", "m2cqa")
WITHOUT_FIDELITY = ("_to_eng", "_to_msa")


def rows_of(table):
    return {row.label: row.cells for row in table.rows}


def judged(run, judge, scores, scored=40):
    """The run with scores of a judge: template -> criteria."""
    for name, values in run.scores.items():
        for template, criteria in scores(name).items():
            prefix = f"judge_{judge}_{template}"
            values |= {f"{prefix}_n_parsed": scored, f"{prefix}_n_items": 50, f"{prefix}_n_unscored": 50 - scored}
            values |= {f"{prefix}_{criterion}": value for criterion, value in criteria.items()}
            values |= {f"{prefix}_{criterion}_stderr": 0.1 for criterion in criteria}
    return run


def jeem_judge(name):
    msa = None if ":msa" in name else 2.0
    criteria = {"consistency": 3.0, "relevance": 3.5, "fluency": 4.0, "dialect_authenticity": msa}
    if "vqa" in name:
        return {"vqa": criteria}
    return {"image_reference": criteria, "reference": criteria | {"fluency": 1.5}} if "_average" not in name else {}


def alqasida_score(task, metric):
    if metric == "adi2":
        return None if task.task.endswith(WITHOUT_FIDELITY) else 0.2 if "egy" in task.task else 0.1
    return {"spbleu": 30.0, "spbleu_zero": 12.0, "spbleu_gain": 18.0}.get(metric, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["my-lab/my-model", "gpt-4o", "AIN", "Llama-3.1-8B-Instruct"])
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("suite", SUITES)
def test_each_suite_has_at_most_25_lines_judged_or_not(suite, width, model):
    run = run_of([suite], lambda task, metric: 0.345 if metric == "adi2" else 12.345, model)
    judges = [None, "gpt-4o-2024-08-06"] if suite == "jeem" else [None]
    for judge in judges:
        run = judged(run, judge, jeem_judge) if judge else run
        lines = [line for table in suite_tables(run)[suite] for line in table_lines(table, width)]
        assert len(lines) <= MOST_LINES, "\n".join(lines)
        assert max(map(cell_len, lines)) <= width


def test_requests_have_means_by_dialect_and_genre_and_the_average_of_all_sets():
    run = run_of(["alqasida"], alqasida_score)
    requests, translations = alqasida.tables(run)
    rows = rows_of(requests)
    countries = ["Algeria", "Egypt", "Kuwait", "Morocco", "Palestine", "Saudi Arabia", "Sudan", "Syria"]
    assert list(rows)[:9] == [*countries, "Average"]
    assert [round(cell.value, 6) if isinstance(cell, Cell) else str(cell) for cell in rows["Egypt"]] == [
        20,
        "4/4",
        20,
        "3/3",
    ]
    assert rows["Algeria"][0].n == 287 and str(rows["Kuwait"][1]) == "2/2"
    # Genres of a dialect are independent; BTEC's sentences are the same in all dialects, lyrics are not.
    assert rows["Egypt"][0].stderr == pytest.approx(1 / 2)
    assert rows["BTEC"][0].stderr == pytest.approx(1) and rows["HABIBI"][0].stderr == pytest.approx(1 / math.sqrt(8))
    assert rows["BTEC"][0].value == pytest.approx((6 * 10 + 20) / 7) and rows["BTEC"][2:] == [None, ""]
    assert rows["Average"][0].value == pytest.approx((24 * 10 + 4 * 20) / 28) and str(rows["Average"][1]) == "28/28"
    assert rows["Average"][0].stderr == 100 * run.stderr("alqasida_mono:_average|0", "adi2")
    tasks_alone = replace(run, scores={name: run.scores[name] for name in run.record.tasks})
    average = rows_of(alqasida.tables(tasks_alone)[0])["Average"][0]  # an upper bound where the file has no average
    assert average.stderr == pytest.approx(math.sqrt(7**2 + 5**2 + 8 + 8) / 28)
    assert rows["Average"][2].n == 8 * 299 and str(rows["Okapi"][3]) == "8/8"
    rows = rows_of(translations)
    assert list(rows) == list(alqasida.DIRECTIONS.values())
    for cells in rows.values():
        assert [cell.value for cell in cells] == [30, 18, 30, 18]
        assert [cell.n for cell in cells] == [1400, 1400, 1000, 1000]
    assert translations.title.endswith("dialects: BTEC 7/7, FLORES 5/5")


def test_a_part_of_the_sets_has_its_numbers_the_coverage_and_no_average():
    names = ["alqasida_mono:habibi_egy", "alqasida_mono:btec_egy", "alqasida_mt:btec_egy_to_msa"]
    requests, translations = alqasida.tables(run_of(names, alqasida_score))
    assert requests.columns == ("Dialect, genre", "monolingual", Column("sets", "monolingual"))
    rows = rows_of(requests)
    assert str(rows["Egypt"][1]) == "2/4" and rows["Egypt"][0].n == 200
    assert [rows["Average"][0].words, str(rows["Average"][1])] == ["no average", "2/28"]
    assert list(rows_of(translations)) == ["dialect to MSA"] and rows_of(translations)["dialect to MSA"][0].value == 30
    assert "BTEC 1/7" in translations.title and "FLORES" not in translations.title
    assert alqasida.tables(run_of([names[2]], alqasida_score)) == [translations]


def test_a_missing_error_bar_and_files_without_the_gain():
    run = run_of(["alqasida"], alqasida_score)
    run.scores["alqasida_mono:tweet_egy|0"]["adi2_stderr"] = None
    for values in run.scores.values():
        values.pop("spbleu_gain", None)
    requests, translations = alqasida.tables(run)
    assert rows_of(requests)["Egypt"][0].stderr == pytest.approx(1 / 2)
    gain = rows_of(translations)["dialect to English"][1]
    assert (gain.value, gain.stderr) == (18, None)


def test_the_papers_numbers_are_of_the_same_sets_and_say_of_what_kind_they_are():
    names = ["alqasida_mono:habibi_egy", "alqasida_mono:tweet_egy", "alqasida_cross:okapi_egy"]
    (table,) = alqasida.tables(run_of(names, model="openai/gpt-4o"))
    cells = rows_of(table)
    published = alqasida.published_scores(alqasida.PUBLISHED, "gpt-4o")
    assert cells["Egypt"][0].published == pytest.approx(sum(published[name] for name in names[:2]) / 2)
    assert cells["HABIBI"][0].published == published[names[0]]
    assert table.notes == ["[ ] cross-lingual leaves replies without a line of five words out."]
    (table,) = alqasida.tables(run_of(names, model="Llama-3.1-8B-Instruct"))
    assert rows_of(table)["Egypt"][2].published and not table.notes
    (few_shot,) = alqasida.tables(run_of(names, model="gpt-4o", shots=5))
    assert rows_of(few_shot)["Egypt"][0].published is None and few_shot.title.endswith("5-shot")


def test_sets_with_other_prompts_than_the_papers_are_named():
    names = [f"alqasida_mono:btec_{code}" for code in ("dza", "egy", "mar", "pse", "sau")]
    run = run_of([*names, "alqasida_cross:okapi_egy"], alqasida_score)
    for name in names:
        record = run.record.tasks[f"{name}|0"].model_copy(update={"prompt_hash": "not the published prompts"})
        run.record.tasks[f"{name}|0"] = record
    (table,) = alqasida.tables(run)
    assert table.notes == [
        "Not the published prompts: mono:btec_dza, mono:btec_egy, mono:btec_mar and 2 more (5 of 6 sets)."
    ]


def test_the_development_sets_have_tables_of_their_own():
    run = run_of(["alqasida_dev"], alqasida_score)
    ((requests, _),) = suite_tables(run).values()
    assert str(rows_of(requests)["Average"][1]) == "17/17" and requests.columns[1:] == (
        "monolingual",
        Column("sets", "monolingual"),
    )


def test_a_judge_of_alqasida_replaces_the_papers_people():
    run = run_of(["alqasida_mono:habibi_egy", "alqasida_mono:btec_egy", "alqasida_mt:btec_eng_to_egy"], alqasida_score)
    judged(
        run,
        "j_1",
        lambda name: {
            "fluency": {"fluency": 4.0 if "btec" in name else 3.0},
            **({"adequacy": {"adequacy": 2.0}} if "_mt" in name else {"adherence": {"adherence": 2.0}}),
            **({} if "_mt" in name else {"fulfilment": {"fulfilment": 4.5}}),
        },
    )
    table = alqasida.tables(run)[-1]
    assert table.title == "AL-QASIDA, judge j_1, 1 to 5"
    rows = rows_of(table)
    assert list(rows) == ["monolingual", "translation"]
    assert table.columns[:3] == ("Task", "Adherence (1-3)", "Fulfilment")
    assert [cell and cell.value for cell in rows["monolingual"]] == [2, 4.5, None, 3.5, None]
    assert rows["monolingual"][3].n == 80 and [cell and cell.value for cell in rows["translation"]][:3] == [
        None,
        None,
        2,
    ]
    assert all(cell_len(line) <= 80 for line in table_lines(table, 80))


def test_jeem_has_the_papers_columns_and_its_numbers():
    captions, answers = jeem.tables(run_of(["jeem"], lambda task, metric: 7.5, "my/AIN"))
    rows = rows_of(captions)
    assert list(rows) == ["MSA", "Jordan", "Emirates", "Egypt", "Morocco"]
    assert [cell.published for cell in rows["Egypt"]] == [2.08, 0.31, 5.20, 79.60]
    assert rows["MSA"][0].n == 2178 and list(rows_of(answers)) == ["Jordan", "Emirates", "Egypt", "Morocco"]
    assert all(cell.published is None for cells in rows_of(answers).values() for cell in cells)


def test_jeem_s_judge_is_the_papers_three_settings_and_answers_have_no_other_score():
    run = judged(run_of(["jeem"], lambda task, metric: 7.5, "GPT-4o"), "gpt-4o", jeem_judge)
    _, table = jeem.tables(run)
    rows = rows_of(table)
    assert len(rows) == 5 + 5 + 4
    assert [cell and cell.value for cell in rows["MSA, with image"]] == [3, 3.5, 4, None]
    assert rows["Egypt, reference only"][2] == Cell(1.5, 0.1, 40, 4.38)
    assert [cell.published for cell in rows["Morocco, answers"]] == [3.52, 3.71, 4.58, 4.56]


def test_m2cqa_has_prompts_by_varieties_and_the_papers_dialect():
    def score(task, metric):
        if metric == "cfhr" and "reason_first_ajp" in task.task:
            return None
        return {"n_items": 300.0, "cfhr": 0.5 if "ajp" in task.task else 0.25}.get(metric, 0.8)

    run = run_of(["m2cqa"], score, model="QCRI/AIN")
    run.scores["m2cqa:tf_arz|0"]["cfhr_stderr"] = None
    tables = m2cqa.tables(run)
    assert [tuple(names_of_columns(table)) for table in tables] == [("Variety", "CFHR", "Q+", "F1", "invalid")] * 3
    first = rows_of(tables[0])
    assert list(first) == ["English", "MSA", "Levantine", "Egyptian", "Dialect"]
    assert "[0.79]" in "".join(table_lines(tables[0], 120))
    assert first["Dialect"][0] == Cell(
        0.375, 0.01, 2 * run.record.tasks["m2cqa:tf_ajp|0"].n, 0.79, digits=3, published_digits=2
    )
    assert [cell.published for cell in first["Levantine"]] == [0.76, 0.96, 0.58, None]
    last = rows_of(tables[2])
    assert last["Levantine"][0] == Cell(None, published=0.63, digits=3, published_digits=2)
    assert last["Dialect"][0].value is None and last["Dialect"][1].value == pytest.approx(0.8)
    (alone,) = m2cqa.tables(run_of(["m2cqa:tf_ajp"], score))
    assert list(rows_of(alone)) == ["Levantine"]
    assert alone.notes == [
        "Parsing profiles differ, so output formats matter: m2cqa:tf_ajp CFHR 0.500, tolerant 0.800."
    ]
    assert tables[0].notes == () and tables[2].notes[0].endswith("; 8 more.")
    same = m2cqa.tables(run_of(["m2cqa:tf_ajp"], lambda task, metric: 0.81 if "lenient" in metric else 0.8))
    assert same[0].notes == []
