"""AL-QASIDA by the real command line: samples, a tiny model, classifiers built here in the models' architecture."""

import csv
import json
import math

import numpy as np
import pytest
from result_files import details_of, results_of, summary_of

from cultureval.runs.loading import load
from cultureval.runs.table import tables_of
from cultureval.runtime.data_options import samples_root
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm
from cultureval.tasks.catalogue import all_tasks

SHORT = {"CULTUREVAL_MODEL_SETTINGS": json.dumps({"generation_parameters": {"max_new_tokens": 16}})}
TASKS = ("alqasida_mono:habibi_egy|0", "alqasida_mono:btec_syr|5", "alqasida_mt:btec_eng_to_egy|0")


@pytest.fixture(scope="module")
def prefix():
    file = samples_root() / "JHU-CLSP" / "al-qasida" / "eval" / "5shot_prefixes.json"
    return json.loads(file.read_text(encoding="utf-8"))["monolingual"]["syr"]


def test_requests_and_translations_are_asked_and_scored(cultureval, tiny_lm, tmp_path, instrument_variables, prefix):
    command = ("eval", tiny_lm, *TASKS, "--data", "samples", "--output-dir", "out", "--model-args", "device=cpu")
    run = cultureval(*command, **instrument_variables | SHORT)
    assert run.returncode == 0, run.stderr
    scores, details = results_of(tmp_path / "out")["results"], details_of(tmp_path / "out")
    for name in TASKS:
        metrics = all_tasks()[name.partition("|")[0]].metrics
        assert set(scores[name]) == {*metrics, *(f"{metric}_stderr" for metric in metrics)}
        rows = [row["metric"] for row in details[name]]
        for metric in set(metrics) & {"adi2", "nadi_macro", "prompt_aldi", "empty_rate"}:
            values = np.array([row[metric] for row in rows], dtype=float)
            kept = values[~np.isnan(values)]
            assert scores[name][metric] == pytest.approx(kept.mean() if kept.size else math.nan, nan_ok=True)
            assert ((kept >= 0) & (kept <= 1)).all()
        for row in rows:
            assert row["adi2"] == pytest.approx(row["nadi"] * row["aldi"])
    first = details[TASKS[0]][0]["doc"]["specific"]
    assert {"dialect", "genre", "template", "location", "prompt_length"} <= set(first)
    assert (first["dialect"], first["genre"]) == ("egy", "habibi")
    asked = details[TASKS[1]][0]
    assert asked["model_response"]["input"] == prefix + asked["doc"]["specific"]["prompt"] + "\nA:"
    assert scores[TASKS[2]]["spbleu_zero"] >= 0 and scores[TASKS[2]]["chrf_plus_plus_stderr"] > 0
    summary = summary_of(tmp_path / "out")
    (line,) = [line for line in summary.splitlines() if "task:alqasida_mt/0-shot" in line]
    assert "|scorer:spBLEU(flores200@" in line and "NADI=tiny-nadi@" in line and "LID=tiny-lid@" in line
    assert "|prompt:not the published prompts|" in summary and "Not the published prompts: mono:" in summary
    scored = scores_of_outputs_made_elsewhere(cultureval, tmp_path, details, instrument_variables)
    for name in (TASKS[0], TASKS[2]):
        assert scored["results"][name] == pytest.approx(scores[name], nan_ok=True)
    assert "adi2" in scored["results"]["alqasida_mono:own_egy|0"]
    records = scored["cultureval"]["tasks"]
    assert {one["form"] for one in records.values()} == {"given"} and records[TASKS[0]]["expected_rows"] == 100


def scores_of_outputs_made_elsewhere(cultureval, tmp_path, details, instrument_variables):
    """The results file of the run's outputs, and one more, from a CSV file; it is analysed as a run's is."""
    rows = []
    for name in (TASKS[0], TASKS[2]):
        for row in details[name]:
            doc, (text,) = row["doc"], row["model_response"]["text"]
            about = {"dialect": doc["specific"]["dialect"], "genre": doc["specific"]["genre"]}
            about |= {"reference": doc["choices"][0]} if "_mt" in name else {}
            rows.append({"prompt": doc["query"], "completion": text, "model": "org/elsewhere"} | about)
    rows.append({"prompt": "قول كلام", "completion": "كلام", "dialect": "egy", "model": "org/elsewhere"})
    with (tmp_path / "outputs.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["prompt", "completion", "dialect", "genre", "reference", "model"])
        writer.writeheader()
        writer.writerows(rows)
    command = ("score", "alqasida", "--pred", "outputs.csv", "--output-dir", "scored")
    run = cultureval(*command, **instrument_variables)
    assert run.returncode == 0, run.stderr
    assert "own" in run.stdout
    assert cultureval("show", "scored", "--figures", "analysed").returncode == 0
    with (tmp_path / "analysed" / "samples.csv").open(encoding="utf-8", newline="") as stream:
        assert {row["model"] for row in csv.DictReader(stream)} == {"org/elsewhere"}
    return results_of(tmp_path / "scored")


@pytest.mark.slow
def test_further_profiles_are_chosen_and_translations_out_of_dialect_have_no_fidelity(
    cultureval, tiny_lm, tmp_path, instrument_variables
):
    mono, cross = "alqasida_mono:habibi_egy|0", "alqasida_cross:okapi_egy|0"
    translations = [f"alqasida_mt:btec_{pair}|0" for pair in ("egy_to_eng", "egy_to_msa", "msa_to_egy")]
    command = ("eval", tiny_lm, mono, cross, *translations, "--data", "samples", "--output-dir", "out")
    run = cultureval(*command, "--task-args", "profiles=released", **instrument_variables | SHORT)
    assert run.returncode == 0, run.stderr
    results, details = results_of(tmp_path / "out"), details_of(tmp_path / "out")
    scores = results["results"]
    assert "adi2_released" not in scores[mono] and "too_few_rate" not in scores[mono]
    kept = [row["metric"]["adi2_released"] for row in details[cross] if not np.isnan(row["metric"]["adi2_released"])]
    assert len(kept) == round((1 - scores[cross]["too_few_rate"]) * len(details[cross]))
    assert scores[cross]["adi2_released"] == (pytest.approx(np.mean(kept)) if kept else None)
    summary = summary_of(tmp_path / "out")
    assert "profiles=paper+released" in summary and "profiles=paper|" in summary
    for name in translations:
        applies = name.endswith("_to_egy|0")
        for metric in ("adi2", "nadi", "aldi", "arabic_rate", "adi2_stderr"):
            assert (scores[name][metric] is not None) == applies, (name, metric)
        assert all(np.isnan(row["metric"]["adi2"]) != applies for row in details[name])
        assert scores[name]["spbleu_gain"] == pytest.approx(scores[name]["spbleu"] - scores[name]["spbleu_zero"])
    assert not {"all", "alqasida_mt:_average|0"} & set(scores)  # directions differ in kind
    requests, directions = tables_of(load(tmp_path / "out").runs[0])
    egy = [requests.cells["Egypt", column] for column in requests.columns]
    assert [cell.value for cell in egy] == pytest.approx([100 * scores[name]["adi2"] for name in (mono, cross)])
    assert egy[0].n == len(details[mono]) and [cell.words for cell in egy] == ["1/4", "1/3"]
    assert directions.rows == ["dialect to English", "dialect to MSA", "MSA to dialect"]
    gain = directions.cells["MSA to dialect", "BTEC gain"]
    assert gain.value == pytest.approx(scores[translations[2]]["spbleu_gain"]) and gain.error
    (record,) = [row for row in means_of(cultureval, tmp_path) if (row["kind"], row["dialect"]) == ("mt", "all")]
    assert float(record["adi2"]) == pytest.approx(scores[translations[2]]["adi2"])
    assert int(record["samples"]) == len(details[translations[2]])


def means_of(cultureval, folder):
    """The rows of the analysis's means over all genres."""
    assert cultureval("show", "out", "--figures", "analysis").returncode == 0
    with (folder / "analysis" / "means.csv").open(encoding="utf-8", newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["genre"] == "all"]


@pytest.mark.slow
def test_chat_models_get_the_examples_as_turns(cultureval, tmp_path, instrument_variables, prefix):
    model = build_tiny_causal_lm(tmp_path / "chat", max_position_embeddings=2048, chat_template=True)
    command = ("eval", model, "alqasida_mono:btec_syr|5", "--data", "samples", "--limit", 1, "--output-dir", "out")
    run = cultureval(*command, "--model-args", "device=cpu", **instrument_variables)
    assert run.returncode == 0, run.stderr
    (row,) = details_of(tmp_path / "out")["alqasida_mono:btec_syr|5"]
    text = row["model_response"]["input"]
    assert text.count("<|user|>") == 6 and text.count("<|assistant|>") == 6
    assert "Q: " not in text and "A:" not in text
    questions = [block.partition("\nA: ")[0] for block in prefix.split("Q: ")[1:-1]]
    positions = [text.index(question) for question in [*questions, row["doc"]["specific"]["prompt"]]]
    assert positions == sorted(positions)


@pytest.mark.slow
def test_a_missing_instrument_stops_before_the_model_runs(refusal, tiny_lm, instrument_variables):
    missing = instrument_variables | {"CULTUREVAL_LID_MODEL": "/no/such/file"}
    told = refusal("eval", tiny_lm, "alqasida_cross:okapi_egy", "--data", "samples", **missing)
    assert "CULTUREVAL_LID_MODEL" in told and "/no/such/file" in told and "Generating" not in told
