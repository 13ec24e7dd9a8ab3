"""Suites' tables of planted runs: which cells there are, of which parts, with errors, notes and the paper's numbers."""

import dataclasses
import math

import numpy as np
import pytest
from planted import choice_row, plant, text_row

from cultureval.reports.cvlue.table import box_hints
from cultureval.runs import table
from cultureval.runs.loading import load
from cultureval.runs.table import judges_of, published, tables_of
from cultureval.tasks import catalogue
from cultureval.tasks.catalogue import all_suites, all_tasks
from cultureval.tasks.suite import Average

TRUST, EGYPT, JORDAN = "qimma_aratrust", "qimma_aradice:Egypt", "qimma_aradice:Jordan"
ARADICE = [name for name in all_tasks() if name.startswith("qimma_aradice")]
HALF = [0.0, 1.0]


def tables(folder, names, score, model="lab/model-7B", shots=0, details=False, **options):
    """The tables of a run of tasks whose items have the scores `score(task, metric)` (one number, or a list)."""
    tasks = {}
    for name in names:
        found = {metric: score(name, metric) for metric in all_tasks()[name].metrics}
        found = {metric: values if isinstance(values, list) else [values] for metric, values in found.items()}
        count = max(map(len, found.values()))
        rows = [{metric: values[at % len(values)] for metric, values in found.items()} for at in range(count)]
        tasks[f"{name}|{shots}"] = [text_row(at, row) for at, row in enumerate(rows)]
    plant(folder, tasks, model, details=details, **options)
    return tables_of(load(folder).runs[0])


def of_suite(suite, group=""):
    return [task.task for task in all_tasks().values() if task.suite == suite and task.group.startswith(group)]


def shown(table):
    """Row -> the values of its cells, or their words."""
    return {
        row: [
            cell.words if cell.value is None else round(cell.value, 4)
            for at, cell in table.cells.items()
            if at[0] == row
        ]
        for row in table.rows
    }


def test_a_part_of_qimma_has_its_subsets_and_needs_all_for_a_domain(tmp_path):
    names = [*ARADICE[:5], TRUST]
    reports = {f"{TRUST}|0": {"form": "curated", "parity": "sound"}}
    (found,) = tables(tmp_path, names, lambda name, metric: HALF, details=True, reports=reports)
    rows = shown(found)
    assert list(rows) == ["AraDiCE-Culture", *ARADICE[:5], "AraTrust", "Cultural", "Safety", "Average"]
    benchmark = found.cells["AraDiCE-Culture", "score"]
    assert (benchmark.value, benchmark.words, benchmark.n, benchmark.asked) == (50, "5/6", 10, 10)
    assert sum(benchmark.parts.values()) == pytest.approx(1)
    assert rows["Cultural"] == ["5/21"] and rows["Safety"] == [50] and rows["Average"] == ["6/109"]
    assert found.main == ("Average", "score") and found.cells[found.main].words == "6/109"
    assert found.notes[0] == "Data: curated (1 subsets), unknown (5 subsets)." and "apart, one BOS" in found.notes[1]


def test_what_a_stock_file_does_not_say_is_not_told(tmp_path):
    plant(tmp_path, {f"{TRUST}|0": [choice_row(at, at % 2 == 0) for at in range(4)]}, stock=True)
    (found,) = tables_of(load(tmp_path).runs[0])
    assert found.notes == ["Data: unknown."] and found.cells["AraTrust", "score"].value == 50
    (generated,) = tables(tmp_path / "generated", ["qimma_gen_aratrust"], lambda name, metric: HALF)
    assert generated.lower == {"invalid"} and shown(generated)["Average"] == ["1/103"] * 3


def test_the_error_of_a_mean_follows_from_items_and_tasks_that_share_images_vary_together(tmp_path):
    def planted(folder, cluster):
        rows = [choice_row(at, at % 3 > 0, **cluster(at)) for at in range(12)]
        plant(tmp_path / folder, {f"{name}|0": rows for name in ARADICE})
        (found,) = tables_of(load(tmp_path / folder).runs[0])
        return found.cells["AraDiCE-Culture", "score"], found.cells[EGYPT, "score"]

    together, one = planted("a", lambda at: {"cluster": f"poem {at}"})
    apart, _ = planted("b", lambda at: {})
    assert one.error == pytest.approx(100 * np.std([0, 1, 1] * 4, ddof=1) / math.sqrt(12))
    assert together.error == pytest.approx(one.error) and apart.error == pytest.approx(one.error / math.sqrt(6))
    assert 0 < together.low < together.value < together.high < 100


def test_a_run_with_and_without_examples_has_two_tables_and_one_of_them_the_papers_numbers(tmp_path):
    rows = [choice_row(0, True), choice_row(1, False)]
    plant(tmp_path, {f"{TRUST}|0": rows, f"{TRUST}|3": rows}, "Qwen/qwen2.5-72b-instruct")
    plain, few_shot = tables_of(load(tmp_path).runs[0])
    assert (plain.name, few_shot.name) == ("QIMMA", "QIMMA, 3-shot")
    assert plain.cells["AraTrust", "score"].published == pytest.approx(88.51)
    assert few_shot.cells["AraTrust", "score"].published is None


def cfhr(name, metric):
    if metric == "cfhr" and name == "m2cqa:reason_first_ajp":
        return None
    return {"cfhr": 0.5 if "ajp" in name else 0.25, "cfhr_lenient": 0.75}.get(metric, 0.8)


def test_m2cqa_has_prompts_by_varieties_the_papers_dialect_and_a_mean(tmp_path):
    found = tables(tmp_path, of_suite("m2cqa"), cfhr, "QCRI/AIN")
    assert [one.columns for one in found] == [["CFHR", "Q+", "F1", "invalid"]] * 3
    first, last = found[0], found[2]
    assert first.rows == ["English", "MSA", "Levantine", "Egyptian", "Dialect", "Mean"]
    assert first.lower == {"CFHR", "invalid"} and "strict reading" in first.unit
    dialect = first.cells["Dialect", "CFHR"]
    assert (dialect.value, dialect.published, dialect.digits) == (0.375, 0.79, 3)
    assert first.main == ("Mean", "CFHR") and first.cells[first.main].value == pytest.approx(0.3125)
    assert first.cells[first.main].published is None, "the paper has no such mean"
    missing = last.cells["Levantine", "CFHR"], last.cells["Dialect", "CFHR"]
    assert [(one.value, one.words) for one in missing] == [(None, "n/a"), (None, "1/2")]
    assert missing[0].published == 0.63 and last.cells["Dialect", "Q+"].value == pytest.approx(0.8)
    (note,) = first.notes
    assert "English 0.250, " in note and note.endswith("1 more.") and "read" in note


def test_a_mean_over_some_rows_says_which_and_a_single_row_is_its_own(tmp_path):
    (two,) = tables(tmp_path / "two", ["m2cqa:tf_en", "m2cqa:tf_msa"], cfhr)
    assert two.main == ("Mean of English, MSA", "CFHR") and not any(row == "Dialect" for row in two.rows)
    (undefined,) = tables(tmp_path / "none", ["m2cqa:tf_en"], lambda name, metric: None if "cfhr" in metric else 0.0)
    assert undefined.cells["English", "CFHR"].words == "n/a" and undefined.main == ("English", "CFHR")
    (one,) = tables(tmp_path / "one", ["m2cqa:tf_arz"], cfhr)
    assert one.rows == ["Egyptian"] and one.main == ("Egyptian", "CFHR")


def test_aynvqa_is_in_the_organisers_order_and_its_joint_form_apart(tmp_path):
    forms, joint = tables(tmp_path, of_suite("aynvqa"), lambda name, metric: 0.5)
    assert forms.columns[0] == "instability" and forms.rows[:2] == ["One word, English", "One word, MSA"]
    assert len(forms.rows) == 9 and forms.main == ("Mean", "instability") and "instability" in forms.lower
    assert joint.rows == ["English", "MSA", "Mean"] and joint.columns == ["accuracy", "invalid"]


def test_jeem_ranks_by_the_mean_of_cider_and_has_the_papers_numbers(tmp_path):
    captions, answers = tables(tmp_path, of_suite("jeem"), lambda name, metric: 7.5, "my/AIN")
    assert captions.rows == ["MSA", "Jordan", "Emirates", "Egypt", "Morocco", "Mean"]
    assert captions.main == ("Mean", "CIDEr") and len(captions.cells[captions.main].parts) == 5
    assert [captions.cells["Egypt", column].published for column in captions.columns] == [0.31, 2.08, 5.20, 79.60]
    assert answers.rows == ["Jordan", "Emirates", "Egypt", "Morocco", "Mean"]
    assert all(cell.published is None for cell in answers.cells.values())


def test_each_judge_has_a_table_of_its_own_that_says_how_much_is_missing(tmp_path):
    metrics = {f"judge_{judge}_vqa_{name}": 3.0 for judge in ("a_1", "b") for name in ("fluency", "relevance")}
    rows = [text_row(at, {"cider": 1.0} | metrics) for at in range(9)]
    rows.append(text_row(9, {"cider": 1.0} | metrics | {"judge_b_vqa_fluency": None}))
    plant(tmp_path, {"jeem_vqa:eg|0": rows}, "GPT-4o")
    first, second = tables_of(load(tmp_path).runs[0])
    assert (first.name, first.judge, second.judge) == ("JEEM by judge", "a_1", "b"), "answers have no other score then"
    assert first.columns == ["Relevance", "Fluency"] and first.notes == []
    assert not second.notes  # warnings tell it
    cell = second.cells["Egypt, answers", "Fluency"]
    assert (cell.value, cell.n, cell.asked, cell.published) == (3, 9, 10, 4.58)


def test_a_judges_name_may_end_as_a_template_does():
    given = {"jeem_caption:eg": ["judge_x_image_reference_fluency", "judge_x_reference_fluency", "cider"]}
    assert judges_of(given, ["reference_fluency", "image_reference_fluency"]) == ["x"]


def adi2(name, metric):
    return {"adi2": [0.2, 0.2] if "egy" in name else [0.0, 0.2], "spbleu": 30.0, "spbleu_gain": 18.0}.get(metric, 0.5)


def test_requests_have_means_by_dialect_and_genre_and_the_average_of_all_sets(tmp_path):
    requests, translations = tables(tmp_path, of_suite("alqasida"), adi2)
    rows = shown(requests)
    assert requests.columns == ["monolingual", "cross-lingual"] and list(rows)[7:9] == ["Syria", "Average"]
    assert rows["Egypt"] == [20, 20] and rows["BTEC"] == [pytest.approx((6 * 10 + 20) / 7, abs=1e-4)]
    assert rows["Average"][0] == pytest.approx((24 * 10 + 4 * 20) / 28, abs=1e-4)
    assert requests.main == ("Average", "monolingual") and len(requests.cells[requests.main].parts) == 28
    assert translations.columns == ["BTEC", "BTEC gain", "FLORES", "FLORES gain"]
    assert shown(translations)["MSA to dialect"] == [30, 18, 30, 18] and len(translations.rows) == 4


def test_a_part_of_the_sets_has_its_means_and_no_average(tmp_path):
    names = ["alqasida_mono:habibi_egy", "alqasida_mono:btec_egy", "alqasida_cross:okapi_egy"]
    reports = {f"{names[0]}|0": {"prompt": "not the published prompts"}}
    (found,) = tables(tmp_path, names, adi2, "openai/gpt-4o", details=True, reports=reports)
    egypt = found.cells["Egypt", "monolingual"]
    numbers = published("alqasida")["gpt-4o"][0].cells
    assert (round(egypt.value, 6), egypt.words, egypt.n) == (20, "2/4", 4)
    assert found.cells["Average", "monolingual"].words == "2/28" and found.cells[found.main].value is None
    assert found.cells["HABIBI", "monolingual"].published != numbers["HABIBI", "monolingual"].value, "of the same sets"
    assert "without a line of five words" in found.notes[0] and "(1 of 3 sets)" in found.notes[1]


def test_sets_of_other_prompts_have_rows_where_a_run_has_none_of_the_papers():
    def rows_of(*given):
        (requests, *_) = all_suites()["alqasida"].part("tables")({task: ["adi2"] for task in given})
        return [row for (row, _), mean in requests.cells.items() if ("alqasida_mono:own_egy", "adi2") in mean.parts]

    assert rows_of("alqasida_mono:own_egy") == ["Egypt", "Average", "own"]
    assert rows_of("alqasida_mono:own_egy", "alqasida_mono:btec_egy") == []


def test_alqasidas_judges_are_means_over_the_sets_that_they_judged(tmp_path):
    scores = {"judge_j_1_fluency_fluency": 3.0, "judge_j_1_adequacy_adequacy": 2.0}
    tasks = {
        f"alqasida_mono:{name}_egy|0": [text_row(0, {"adi2": 0.5, list(scores)[0]: at})]
        for name, at in (("btec", 4), ("habibi", 3))
    }
    plant(tmp_path, tasks | {"alqasida_mt:btec_eng_to_egy|0": [text_row(0, {"spbleu": 1.0} | scores)]})
    found = tables_of(load(tmp_path).runs[0])[-1]
    assert (found.name, found.judge, found.columns) == ("AL-QASIDA by judge", "j_1", ["Fluency", "Adequacy"])
    assert found.cells["monolingual", "Fluency"].value == 3.5 and found.cells["translation", "Adequacy"].value == 2


def test_cvlue_is_a_row_a_task_and_the_macro_average_of_the_contest(tmp_path):
    names = [name for name in of_suite("cvlue") if "vg" not in name]
    chinese, english = tables(tmp_path / "part", names, lambda name, metric: 0.25, "Qwen/Qwen-VL-Chat")
    assert chinese.rows == ["VQA, accuracy", "VD, recall", "TR, recall", "IR, recall", "Macro"]
    assert [chinese.cells["VD, recall", f"@{k}"].published for k in (1, 5, 10)] == [33.0, 45.3, 50.9]
    assert chinese.cells[chinese.main].words == "10/11" and english.main is None
    assert "galleries of 0.25 images" in chinese.notes[0] and "not released" in chinese.notes[-1]
    score = {"cvlue_vg": HALF}
    (whole, *_) = tables(tmp_path / "all", of_suite("cvlue"), lambda name, metric: score.get(name, 0.25))
    macro = whole.cells[whole.main]
    assert macro.value == pytest.approx((10 * 25 + 50) / 11) and macro.published is None


def test_an_item_with_several_metrics_counts_once_in_the_n_of_an_average(tmp_path):
    sides = [text_row(at, {"TR@1": 1.0, "TR@5": 1.0, "IR@1": 0.0}) for at in range(3)]
    plant(tmp_path, {"cvlue_itr|0": sides, "cvlue_vqa|0": [text_row(0, {"accuracy_loose": 1.0})]})
    run = load(tmp_path).runs[0]
    parts = dict.fromkeys([("cvlue_itr|0", "TR@1"), ("cvlue_itr|0", "IR@1"), ("cvlue_vqa|0", "accuracy_loose")], 1 / 3)
    assert run.mean(parts)[0] == pytest.approx(2 / 3) and run.mean(parts)[2:4] == (4, 4)


def test_boxes_that_another_format_fits_better_are_told():
    box, size = [100.0, 50.0, 400.0, 200.0], (1000, 500)
    right = [{"iou": 0.0}, {"specific": {"box": box, "size": size, "box_format": "qwen_vl"}}]
    text = "<box>[[100, 100, 500, 500]]</box>"
    rows = [{"metric": right[0], "doc": right[1], "model_response": {"text": [text]}}] * 3
    (hint,) = box_hints(rows)
    assert "Mean IoU is 0.00 with boxes read as qwen_vl, and 1.00 with boxes read as " in hint and "run again" in hint
    assert box_hints([row | {"metric": {"iou": 0.9}} for row in rows]) == []
    assert box_hints([row | {"doc": {"specific": {"box": box}}} for row in rows]) == [], "their sizes are unknown"
    assert box_hints([rows[0], rows[1] | {"metric": {"iou": None}}]) == [hint], "refused rows have no IoU"
    assert box_hints([row | {"model_response": {"text": ["我看不到"]}} for row in rows]) == []


@pytest.fixture
def of_groups(monkeypatch):
    """QIMMA as a suite without tables of its own."""

    def changed(**fields):
        suites = all_suites() | {"qimma": dataclasses.replace(all_suites()["qimma"], tables=None, **fields)}
        monkeypatch.setattr(table, "all_suites", lambda: suites)

    return changed


def test_a_suite_without_tables_has_groups_their_subsets_and_the_averages_that_it_declares(tmp_path, of_groups):
    of_groups()
    (found,) = tables(tmp_path, [EGYPT, JORDAN, TRUST], lambda name, metric: HALF)
    assert found.rows[:4] == ["qimma_aradice", EGYPT, JORDAN, "qimma_aratrust"] and found.name == "qimma"
    group = found.cells["qimma_aradice", "acc_norm"]
    assert (group.value, group.words, group.digits) == (0.5, "2/6", 4)
    assert found.main == ("QIMMA", "score") and found.cells[found.main].words == "3/109"
    assert found.cells["Safety", "score"].value == 0.5


def test_a_suite_that_declares_no_average_has_that_of_its_groups_if_all_are_there(tmp_path, of_groups, monkeypatch):
    of_groups(averages=None)
    groups = catalogue.groups
    monkeypatch.setattr(
        catalogue, "groups", lambda suite=None: {"qimma_aradice": groups()["qimma_aradice"], TRUST: [TRUST]}
    )
    (found,) = tables(tmp_path / "part", [EGYPT, TRUST], lambda name, metric: HALF)
    assert found.cells["Average", "acc_norm"].words == "2/7"
    (found,) = tables(tmp_path / "all", [*ARADICE, TRUST], lambda name, metric: 1.0 if name == TRUST else 0.0)
    average = found.cells[found.main]
    assert average.value == 0.5 and average.parts[f"{EGYPT}|0", "acc_norm"] == pytest.approx(1 / 12)


def test_declared_averages_may_hold_groups_and_averages(tmp_path, of_groups):
    declared = [
        Average("pair", "Pair", {"qimma_aradice": "acc_norm", TRUST: "acc_norm"}, ()),
        Average("qimma", "All", {"pair": "score"}, ()),
    ]
    of_groups(averages=lambda: declared)
    (found,) = tables(tmp_path, [*ARADICE, TRUST], lambda name, metric: 1.0 if name == TRUST else 0.0)
    assert found.main == ("All", "score") and found.cells[found.main].value == 0.5


def test_an_error_of_a_suites_function_costs_a_finished_run_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("cultureval.reports.qimma.table.tables", lambda given: 1 / 0)
    found = tables(tmp_path, [TRUST, "cvlue_vqa"], lambda name, metric: HALF)
    assert found[0].cells[TRUST, "acc_norm"].value == 0.5 and "cannot be made" in found[0].notes[-1]
    assert found[1].name == "CVLUE, Chinese"


def test_tasks_that_nobody_describes_stand_behind_without_an_average(tmp_path):
    rows = [text_row(at, {"acc": float(at)}) for at in range(2)]
    plant(tmp_path, {"gsm8k|5": rows, "hellaswag|0": rows, f"{TRUST}|0": [choice_row(0, True)]}, stock=True)
    found = tables_of(load(tmp_path).runs[0])
    assert [(one.name, one.rows) for one in found[1:]] == [
        ("other tasks, 5-shot", ["gsm8k"]),
        ("other tasks", ["hellaswag"]),
    ]
