"""Correlations, analysis of variance, trees, and the tables and figures of `cultureval show --figures`."""

import csv
import math
import statistics

import numpy as np
import pandas
import pytest
from planted import plant, text_row
from scipy import stats

from cultureval.metrics.alqasida.feature_analysis import one_way, regression_tree, spearman
from cultureval.reports.alqasida.analysis import mean_rows, write_analysis
from cultureval.runtime.errors import CulturevalError


def test_eta_squared_by_hand_and_f_by_least_squares():
    values, labels = [1.0, 2.0, 3.0, 6.0, 7.0, 8.0, math.nan], ["a", "a", "a", "b", "b", "b", "a"]
    found = one_way(values, labels)
    between, total = 2 * 3 * 2.5**2, sum((value - 4.5) ** 2 for value in values[:6])
    assert found["eta_squared"] == pytest.approx(between / total)
    assert found["f"] == pytest.approx((between / 1) / ((total - between) / 4))
    assert (found["groups"], found["count"]) == (2, 6)
    assert math.isnan(one_way([1.0, 1.0, 1.0], ["a", "b", "a"])["eta_squared"])
    assert math.isnan(one_way([1.0, 2.0], ["a", "a"])["f"])


def test_spearman_leaves_out_nan_and_says_nothing_of_constants():
    found = spearman([1, 2, 3, 4, math.nan], [2, 1, 4, 3, 9])
    assert (found["rho"], found["count"]) == (pytest.approx(0.6), 4)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3])["rho"])


def test_the_tree_finds_the_features_that_made_the_score():
    random = np.random.default_rng(0)
    length, dialect = random.integers(10, 200, 400), random.choice(["egy", "mar", "syr"], 400)
    score = 0.5 * (dialect == "mar") + 0.2 * (length > 100)
    features = pandas.DataFrame({"prompt_length": length.astype(float), "dialect": dialect})
    nodes = regression_tree(features, score, depth=3)
    root, *rest = nodes
    assert (root["count"], root["value"], root["depth"]) == (400, pytest.approx(score.mean()), 0)
    assert {node["rule"] for node in rest if node["depth"] == 1} == {"dialect = mar", "not dialect = mar"}
    assert all(node["rule"].startswith("prompt_length") for node in rest if node["depth"] == 2)
    assert sum(node["count"] for node in nodes if node["is_leaf"]) == 400
    assert regression_tree(features[:1], [math.nan]) == []


def request_rows(task, random):
    """Twelve rows of a task with made-up scores; six requests at two places each."""
    kind, dialect = task.partition(":")[0].rpartition("_")[2], task.partition("|")[0][-3:]
    rows = []
    for number in range(12):
        nadi, aldi = float(random.random()), float(random.random())
        metric = {"adi2": nadi * aldi, "adi2_macro": nadi * aldi, "nadi": nadi, "aldi": aldi, "arabic_rate": 1.0}
        metric |= {"prompt_aldi": float(random.random())} if kind == "mono" else {}
        if kind == "mt":
            metric |= {f"{name}_den": float(dialect not in ("eng", "msa")) for name in metric}
            sums = [9.0, 6.0, 4.0, 2.0, 10.0, 9.0, 8.0, 7.0, 10.0, 10.0 + number]
            metric |= {"spbleu": 20.0, "spbleu_sums": sums, "spbleu_zero": 5.0, "spbleu_zero_sums": sums}
        about = {"template": f"type_{number % 8}", "location": ("beginning", "end")[number % 2], "phrasing": ""}
        rows.append(text_row(number, metric, cluster=f"r{number // 2}", prompt_length=10 + number, **about))
    return rows


def rows_of(file):
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_tables_and_figures_of_saved_runs(tmp_path):
    tasks = ["alqasida_mono:habibi_egy|0", "alqasida_mono:btec_syr|5", "alqasida_cross:okapi_egy|0"]
    tasks += [f"alqasida_mt:btec_{pair}|0" for pair in ("egy_to_eng", "eng_to_egy", "egy_to_msa", "msa_to_egy")]
    for seed, model in enumerate(("first", "second")):
        random = np.random.default_rng(seed)
        plant(tmp_path / "out", {task: request_rows(task, random) for task in tasks}, model=model)
    text = write_analysis([tmp_path / "out"], tmp_path / "an")
    assert "cross-lingual (24 samples), ADI2 by feature:" in text
    assert "monolingual (48 samples), regression tree:" in text
    every = rows_of(tmp_path / "an" / "samples.csv")
    assert all((row["adi2"] == "") == (row["target"] in ("eng", "msa")) for row in every)
    samples = [row for row in every if row["kind"] == "mono"]
    assert len(samples) == 48 and {row["n_shots"] for row in samples} == {"0", "5"}
    adi2, aldi = ([float(row[name]) for row in samples] for name in ("adi2", "prompt_aldi"))
    correlations = {(row["feature"], row["score"]): row for row in rows_of(tmp_path / "an" / "mono_spearman.csv")}
    assert float(correlations["prompt_aldi", "adi2"]["rho"]) == pytest.approx(stats.spearmanr(aldi, adi2).statistic)
    variances = {(row["feature"], row["score"]): row for row in rows_of(tmp_path / "an" / "mono_anova.csv")}
    groups = [[a for a, row in zip(adi2, samples, strict=True) if row["model"] == name] for name in ("first", "second")]
    assert float(variances["model", "adi2"]["p"]) == pytest.approx(stats.f_oneway(*groups).pvalue)
    trees = rows_of(tmp_path / "an" / "mono_tree_depth_3.csv")
    assert {row["score"] for row in trees} == {"adi2", "adi2_macro", "nadi", "aldi", "arabic_rate"}
    figures = {path.stem for path in (tmp_path / "an").glob("*.png")}
    assert {"mono_by_dialect", "cross_by_genre", "mono_dialectness", "cross_dialectness"} <= figures
    assert {"mono_prompt_and_output_dialectness", "translation_spbleu"} <= figures


def test_results_of_other_suites_are_nothing_to_analyse(tmp_path):
    plant(tmp_path, {"jeem_vqa:jo|0": [text_row(0, {"bleu": 1.0})]})
    with pytest.raises(CulturevalError, match="No details of AL-QASIDA's tasks"):
        write_analysis([tmp_path], tmp_path / "an")


def test_means_count_a_request_once_at_all_its_places_and_in_all_dialects():
    scores = dict.fromkeys(("adi2_macro", "nadi", "aldi", "arabic_rate"), 1.0)
    about = {"kind": "cross", "model": "m", "n_shots": 0, "genre": "okapi"} | scores
    samples = pandas.DataFrame(
        about | {"dialect": dialect, "cluster": f"okapi:{request}", "adi2": 0.2 * request}
        for dialect in ("egy", "mar")
        for request in range(4)
        for _ in range(3)
    )
    rows = {(row["dialect"], row["genre"]): row for row in mean_rows(samples)}
    assert rows["all", "all"]["samples"] == 24
    once = statistics.stdev([0.2 * request for request in range(4)]) / 2
    for key in (("all", "all"), ("egy", "okapi"), ("all", "okapi")):
        assert rows[key]["adi2"] == pytest.approx(0.3) and rows[key]["adi2_stderr"] == pytest.approx(once)
    alone = mean_rows(samples.assign(cluster=range(24)))[0]
    assert alone["adi2_stderr"] < once / 2
