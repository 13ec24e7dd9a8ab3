"""Correlations, analysis of variance, trees, and the tables and plots that `cultureval analyze alqasida` makes."""

import csv
import json
import math
import statistics

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from scipy import stats
from typer.testing import CliRunner

from cultureval.metrics.alqasida.feature_analysis import one_way, regression_tree, spearman
from cultureval.reports.alqasida.analysis import mean_rows
from cultureval.runtime.data_options import samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app

HUMAN = samples_root() / "JHU-CLSP" / "al-qasida" / "humevals" / "results" / "egy_mt_humeval.csv"


def test_eta_squared_by_hand_and_f_by_least_squares():
    values, labels = [1.0, 2.0, 3.0, 6.0, 7.0, 8.0, math.nan], ["a", "a", "a", "b", "b", "b", "a"]
    found = one_way(values, labels)
    between, total = 2 * 3 * 2.5**2, sum((value - 4.5) ** 2 for value in values[:6])
    assert found.eta_squared == pytest.approx(between / total)
    assert found.f == pytest.approx((between / 1) / ((total - between) / 4))
    assert (found.groups, found.count) == (2, 6)
    assert math.isnan(one_way([1.0, 1.0, 1.0], ["a", "b", "a"]).eta_squared)
    assert math.isnan(one_way([1.0, 2.0], ["a", "a"]).f)
    with pytest.raises(ValueError, match="2 values and 1 labels"):
        one_way([1.0, 2.0], ["a"])


def test_spearman_leaves_out_nan_and_says_nothing_of_constants():
    found = spearman([1, 2, 3, 4, math.nan], [2, 1, 4, 3, 9])
    assert (found.rho, found.count) == (pytest.approx(0.6), 4)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]).rho)


def test_the_tree_finds_the_features_that_made_the_score():
    random = np.random.default_rng(0)
    length, dialect = random.integers(10, 200, 400), random.choice(["egy", "mar", "syr"], 400)
    score = 0.5 * (dialect == "mar") + 0.2 * (length > 100)
    nodes = regression_tree({"prompt_length": length}, {"dialect": list(dialect)}, score, depth=3)
    root, *rest = nodes
    assert (root.count, root.value, root.depth) == (400, pytest.approx(score.mean()), 0)
    assert {node.rule for node in rest if node.depth == 1} == {"dialect = mar", "not dialect = mar"}
    assert all(node.rule.startswith("prompt_length") for node in rest if node.depth == 2)
    assert max(node.depth for node in nodes) <= 3
    assert sum(node.count for node in nodes if node.is_leaf) == 400
    assert regression_tree({}, {"dialect": ["egy"]}, [math.nan]) == []


def save_run(root, model, seed, tasks):
    """Details and results as LightEval writes them, with made-up scores."""
    random, date, results = np.random.default_rng(seed), "2026-11-21T10-00-00.000000", {}
    for task in tasks:
        genre, dialect = task.rpartition(":")[2].partition("|")[0].split("_", 1)
        rows = []
        for number in range(12):
            nadi, aldi = float(random.random()), float(random.random())
            metric = {"adi2": nadi * aldi, "adi2_macro": nadi * aldi, "nadi": nadi, "aldi": aldi, "arabic_rate": 1.0}
            metric |= {"prompt_aldi": float(random.random())} if "mono" in task else {}
            specific = {"dialect": dialect[-3:], "genre": genre, "template": f"type_{number % 8}"}
            specific |= {"location": ("beginning", "end")[number % 2], "phrasing": "", "prompt_length": 10 + number}
            rows.append({"doc": {"specific": specific}, "metric": metric, "model_response": {"text": ["x"]}})
        file = root / "details" / model / date / f"details_{task}_{date}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
        results[task] = {"spbleu": 20.0 + seed, "spbleu_zero": 5.0, "adi2": 0.1}
    file = root / "results" / model / f"results_{date}.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"config_general": {"model_name": model}, "results": results}), encoding="utf-8")


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_tables_and_plots_of_saved_runs(tmp_path):
    tasks = ["alqasida_mono:habibi_egy|0", "alqasida_mono:btec_syr|5", "alqasida_cross:okapi_egy|0"]
    tasks += [f"alqasida_mt:btec_{pair}|0" for pair in ("egy_to_eng", "eng_to_egy", "egy_to_msa", "msa_to_egy")]
    for seed, model in enumerate(("first", "second")):
        save_run(tmp_path / "out", model, seed, tasks)
    command = [
        "analyze",
        "alqasida",
        str(tmp_path / "out"),
        "--human",
        str(HUMAN),
        "--output-dir",
        str(tmp_path / "an"),
        "--figures",
        "png",
    ]
    run = CliRunner().invoke(app, command, catch_exceptions=False)
    assert run.exit_code == 0, run.output
    samples = [row for row in rows_of(tmp_path / "an" / "samples.csv") if row["kind"] == "mono"]
    assert len(samples) == 48 and {row["n_shots"] for row in samples} == {"0", "5"}
    adi2, aldi = ([float(row[name]) for row in samples] for name in ("adi2", "prompt_aldi"))
    correlations = {(row["feature"], row["score"]): row for row in rows_of(tmp_path / "an" / "mono_spearman.csv")}
    assert float(correlations["prompt_aldi", "adi2"]["rho"]) == pytest.approx(stats.spearmanr(aldi, adi2).statistic)
    variances = {(row["feature"], row["score"]): row for row in rows_of(tmp_path / "an" / "mono_anova.csv")}
    groups = [[a for a, row in zip(adi2, samples, strict=True) if row["model"] == name] for name in ("first", "second")]
    assert float(variances["model", "adi2"]["p"]) == pytest.approx(stats.f_oneway(*groups).pvalue)
    trees = rows_of(tmp_path / "an" / "mono_tree_depth_3.csv")
    assert {row["score"] for row in trees} == {"adi2", "adi2_macro", "nadi", "aldi", "arabic_rate"}
    assert max(int(row["depth"]) for row in trees) == 3
    (means,) = [
        row
        for row in rows_of(tmp_path / "an" / "means.csv")
        if (row["kind"], row["model"], row["n_shots"], row["dialect"], row["genre"])
        == ("cross", "first", "0", "egy", "okapi")
    ]
    assert int(means["samples"]) == 12 and 0 < float(means["adi2_stderr"]) < 1
    (first,) = [row for row in rows_of(tmp_path / "an" / "human_judgements.csv") if row["model"] == "model-a"]
    judged = [row for row in rows_of(HUMAN) if row["Model"] == "model-a"]
    fluency, fidelity = ([int(row[name]) for row in judged] for name in ("Fluency", "Dialectal Accuracy"))
    assert float(first["Adequacy"]) == pytest.approx(np.mean([int(row["Adequacy"]) for row in judged]))
    assert float(first["Fluency_Fidelity_SpearmanR"]) == pytest.approx(stats.spearmanr(fluency, fidelity).statistic)
    plots = {path.name for path in (tmp_path / "an").glob("*.png")}
    assert {"mono_by_dialect.png", "cross_by_genre.png", "mono_dialectness.png", "radar_egy.png"} <= plots
    assert "mono_prompt_and_output_dialectness.png" in plots and "radar_syr.png" not in plots
    assert {"translation_spbleu.png", "mono_tree.png", "cross_tree.png"} <= plots
    assert not [*(tmp_path / "an").glob("*.svg"), *(tmp_path / "an").glob("*.pdf")]


def test_nothing_to_analyse_is_said(tmp_path):
    for arguments in ([], [str(tmp_path / "none")]):
        with pytest.raises(CulturevalError):
            CliRunner().invoke(app, ["analyze", "alqasida", *arguments], catch_exceptions=False)


def test_means_count_a_request_once_at_all_its_places_and_in_all_dialects():
    scores = dict.fromkeys(("adi2_macro", "nadi", "aldi", "arabic_rate"), 1.0)
    about = {"kind": "cross", "model": "m", "n_shots": 0, "genre": "okapi"} | scores
    samples = [
        about | {"dialect": dialect, "cluster": f"okapi:{request}", "adi2": 0.2 * request}
        for dialect in ("egy", "mar")
        for request in range(4)
        for _ in range(3)
    ]
    rows = {(row["dialect"], row["genre"]): row for row in mean_rows(samples)}
    assert rows["all", "all"]["samples"] == 24
    once = statistics.stdev([0.2 * request for request in range(4)]) / 2
    for key in (("all", "all"), ("egy", "okapi"), ("all", "okapi")):
        assert rows[key]["adi2"] == pytest.approx(0.3) and rows[key]["adi2_stderr"] == pytest.approx(once)
    alone = mean_rows([sample | {"cluster": None} for sample in samples])[0]
    assert alone["adi2_stderr"] < once / 2
