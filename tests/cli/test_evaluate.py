"""`cultureval eval` as people type it: shipped samples, a tiny model, no network."""

import json
import math
import re

import numpy as np
import pytest
from result_files import details_of, results_of, summary_of

from cultureval import load_results
from cultureval.tasks.catalogue import all_suites, all_tasks, groups

ROW = {"Question": "ما عاصمة الأردن؟", "A": "عمّان", "B": "إربد", "C": "العقبة", "Answer": "أ", "Category": "Ethics"}


def test_the_whole_suite_runs_offline_and_writes_lightevals_files(cultureval, tiny_lm, tmp_path):
    run = cultureval(
        *("eval", tiny_lm, "qimma", "--data", "samples", "--output-dir", "out"),
        CULTUREVAL_MODEL_SETTINGS='{"generation_parameters": {"max_new_tokens": 32}}',
    )
    assert run.returncode == 0, run.stderr
    results, details = results_of(tmp_path / "out"), details_of(tmp_path / "out")
    qimma = {name: task for name, task in all_tasks().items() if task.suite == "qimma"}
    assert set(details) == {f"{name}|0" for name in qimma}
    scores = results["results"]
    for name, task in qimma.items():
        assert {*task.metrics, *(f"{metric}_stderr" for metric in task.metrics)} == set(scores[f"{name}|0"])
        means = {metric: np.mean([row["metric"][metric] for row in details[f"{name}|0"]]) for metric in task.metrics}
        assert means == pytest.approx({metric: scores[f"{name}|0"][metric] for metric in task.metrics})
        report = results["config_tasks"][f"{name}|0"]["rows_report"]
        assert report["rows"] == len(details[f"{name}|0"]) >= 2
    for group, members in groups("qimma").items():
        if len(members) > 1:  # the macro average of QIMMA
            metric = all_tasks()[members[0]].metrics[0]
            mean = np.mean([scores[f"{name}|0"][metric] for name in members])
            assert scores[f"{group}:_average|0"][metric] == pytest.approx(mean)
    assert not any(math.isnan(value) for values in scores.values() for value in values.values())
    assert "Signatures:" in summary_of(tmp_path / "out")
    assert re.search(r"^  Average +\d+\.\d\d ±\d+\.\d\d +305$", run.stdout, re.MULTILINE)
    (line,) = [line for line in summary_of(tmp_path / "out").splitlines() if "task:qimma_fannorflop/0-shot/v0|" in line]
    assert "|scorer:BERTScore(" in line and "|limit:" not in line
    assert "|model:tiny-llama@" in line
    assert "|backend:transformers|dtype:float32|chat:off|" in line
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"results", "details"}
    (saved,) = load_results(tmp_path / "out").runs
    assert saved.record.command[:2] == ("cultureval", "eval") and saved.record.versions["lighteval"] == "0.13.0"
    assert {name: record.rows for name, record in saved.record.tasks.items()} == {
        name: len(rows) for name, rows in details.items()
    }
    assert line.strip() in {signature.text for signature in saved.record.signatures}


def write_aratrust(root, rows):
    folder = root / "asas-ai" / "AraTrust"
    folder.mkdir(parents=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "test.jsonl").write_text(text, encoding="utf-8")


def test_a_broken_row_is_listed_and_a_copy_that_is_not_there_ends_the_run(cultureval, refusal, tiny_lm, tmp_path):
    write_aratrust(tmp_path / "root", [ROW, ROW | {"Question": "سؤال؟", "Answer": "د"}, ROW | {"Question": "ثالث؟"}])
    command = ("eval", tiny_lm, "qimma_aratrust", "--data", "root", "--output-dir", "out", "--model-args", "device=cpu")
    told = refusal(*command)
    assert "qimma/MCQ_AraTrust" in told and "--form original" in told and "--form mixed" in told
    command += ("--form", "original")
    skipped = cultureval(*command)
    assert skipped.returncode == 0, skipped.stderr
    report = results_of(tmp_path / "out")["config_tasks"]["qimma_aratrust|0"]["rows_report"]
    assert (report["rows"], [row["row"] for row in report["skipped_rows"]]) == (2, [1])
    assert "broken rows left out: qimma_aratrust|0 1" in " ".join(skipped.stdout.split())


def test_few_shot_examples_stand_before_the_question(cultureval, refusal, tiny_lm, tmp_path):
    name, other = "qimma_arabicmmlu:Biology (High School)", "qimma_arabicmmlu:Driving Test"
    original = ("--data", "samples", "--form", "original")
    run = cultureval("eval", tiny_lm, name, f"{other}|0", "--num-fewshot", 2, *original, "--output-dir", "out")
    assert run.returncode == 0, run.stderr
    details = details_of(tmp_path / "out")
    assert {*details} == {f"{name}|2", f"{other}|0"}
    row = details[f"{name}|2"][0]
    doc = row["doc"]
    assert len(doc["fewshot_samples"]) == 2
    assert all(example["query"] != doc["query"] for example in doc["fewshot_samples"])
    fewer = refusal("eval", tiny_lm, f"{name}|3", *original)  # LightEval would show two and call the score three-shot
    assert "has 2 few-shot examples: run it with |2" in fewer


def test_a_group_of_which_the_data_root_holds_a_part(cultureval, refusal, tiny_lm, tmp_path):
    folder = tmp_path / "root" / "MBZUAI" / "ArabicMMLU"
    (folder / "Driving Test").mkdir(parents=True)
    table = "Question,Context,Answer Key,Option 1,Option 2,Option 3,Option 4,Option 5\n"
    table += "".join(f"سؤال {number}؟,,A,نعم,لا,,,\n" for number in range(3))
    (folder / "Driving Test" / "test.csv").write_text(table, encoding="utf-8")
    files = [{"split": "test", "path": "Driving Test/test.csv"}]
    declared = json.dumps({"configs": [{"config_name": "Driving Test", "data_files": files}]})
    (folder / "README.md").write_text(f"---\n{declared}\n---\n", encoding="utf-8")
    original = ("--data", "root", "--form", "original")
    command = ("eval", tiny_lm, "qimma_arabicmmlu", *original, "--output-dir", "out", "--limit", 2)
    run = cultureval(*command)
    assert run.returncode == 0, run.stderr
    assert "39 of 40 tasks have no data" in run.stderr
    assert "WAS SET" not in run.stderr and "Executing custom" not in run.stderr  # LightEval's warnings of our own call
    told = " ".join(run.stdout.split())
    assert "Rows asked of a task: at most 2 (--limit)" in told
    assert "Tasks are missing, so averages are not comparable" in told and "qimma_arabicmmlu 1 of 40 subsets" in told
    assert "|subsets:1|rows:3|limit:2|" in summary_of(tmp_path / "out")
    assert {name: len(rows) for name, rows in details_of(tmp_path / "out").items()} == {
        "qimma_arabicmmlu:Driving Test|0": 2
    }
    assert "no data" in refusal("eval", tiny_lm, "qimma_arabicmmlu:Law (Professional)", *original)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("eval", "{model}", "qimma_aratrus", "--data", "samples"), "Did you mean qimma_aratrust"),
        (("eval", "{model}", "qimma_aratrust"), "cultureval fetch qimma --output-dir DIR"),
        (("eval", "typo.yaml", "qimma_aratrust", "--data", "samples"), "Did you mean dtype"),
        (("tasks", "quimma"), "qimma"),
        (("fetch", "qimmma", "--output-dir", "x"), "qimma"),
    ],
)
def test_bad_input_ends_with_one_clear_sentence(refusal, tiny_lm, tmp_path, command, sentence):
    (tmp_path / "typo.yaml").write_text(f"model_name: {tiny_lm}\ndtyp: float32\n", encoding="utf-8")
    assert sentence in refusal(*(part.format(model=tiny_lm) for part in command))


@pytest.mark.parametrize(
    "command",
    [
        ("eval", "{model}", "qimma_aratrust", "--data", "samples", "--output-dir"),
        ("eval", "{model}", "cvlue_itr", "--data", "samples", "--output-dir"),
    ],
)
def test_a_folder_that_cannot_be_written_stops_before_the_model_is_loaded(refusal, tmp_path, command):
    """The model is not there: whoever asks for it first complains of it."""
    (tmp_path / "file").write_bytes(b"")
    told = refusal(*(part.format(model=tmp_path / "nowhere") for part in command), "file/out")
    assert "Nothing can be written into --output-dir file/out (Not a directory)" in told


@pytest.mark.slow
def test_doctor_says_what_is_missing_and_what_it_costs(cultureval):
    run = cultureval("check", CULTUREVAL_DATA="samples", from_scratch=True)
    assert run.returncode == 0, run.stdout + run.stderr
    suites, rest = run.stdout.split("\n\n", 1)
    rows = [line.split() for line in suites.splitlines()[1:] if not line.startswith(" ")]
    states = {name: state for name, state, *_ in rows}
    assert list(states) == list(all_suites())
    assert {"qimma_gen", "jeem", "m2cqa", "aynvqa", "cvlue"} <= {name for name in states if states[name] == "ready"}
    assert states["alqasida"] == "missing" and "cultureval fetch alqasida --output-dir DIR" in rest
    assert "alqasida lacks dialect classifiers" in rest and "missing: hub" in rest and "ok: " not in rest
    assert "ok: lighteval 0.13.0" in cultureval("check", "--full", CULTUREVAL_DATA="samples").stdout
