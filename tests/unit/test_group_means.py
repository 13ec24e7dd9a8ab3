"""Averages of results: what does not apply or is of another kind enters none, and no error is lost for one subset."""

import copy
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from lighteval.logging.info_loggers import MetricsLogger
from lighteval.tasks.requests import Doc
from summary_runs import run_of

from cultureval.metrics.alqasida.lighteval import fidelity_metrics
from cultureval.metrics.jeem.lighteval import BleuScore, CorpusBleu
from cultureval.metrics.lighteval.clustered_means import ClusteredMean, ClusteredScore, MeanOfScored, MeanWhereItApplies
from cultureval.reports.qimma.table import tables
from cultureval.runs.means import estimate, mean_of
from cultureval.runtime.patches.lighteval.group_averages import (
    NotApplicable,
    NotApplicableStandardError,
    StandardError,
    Total,
)
from cultureval.tasks.catalogue import all_tasks, means_of_subsets, mixed_averages

NAN = math.nan


def averages_of(scores, corpus, metric="adi2"):
    """LightEval's results of tasks with these sample scores of a metric."""
    logger = MetricsLogger()
    for name, values in scores.items():
        for value in values:
            logger.log(name, {metric: value})
    logger.aggregate(dict.fromkeys(scores, SimpleNamespace(aggregation=lambda: {metric: corpus.compute_corpus})))
    return logger.metric_aggregated


def test_a_metric_that_does_not_apply_to_a_subset_is_in_no_average():
    scores = {"g:egy_to_eng|0": [NAN] * 2, "g:eng_to_egy|0": [0.1, 0.3], "g:msa_to_egy|0": [0.6, 0.6]}
    found = averages_of(scores, MeanWhereItApplies("adi2"))
    assert math.isnan(found["g:egy_to_eng|0"]["adi2"]) and math.isnan(found["g:egy_to_eng|0"]["adi2_stderr"])
    assert found["g:_average|0"]["adi2"] == found["all"]["adi2"] == pytest.approx(0.4)
    assert found["g:_average|0"]["adi2_stderr"] == pytest.approx(math.hypot(0.1, 0.1) / 2)  # 0.6 and 0.6 tell no error
    undefined = averages_of(scores, MeanOfScored("adi2"))  # applies, but no row was scored: the group has no average
    assert math.isnan(undefined["g:_average|0"]["adi2"])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_one_subset_without_an_error_varies_as_the_others(order):
    errors = [StandardError(NAN), StandardError(0.3), StandardError(0.4)]
    average = sum(copy.deepcopy(errors[place]) for place in order) / 3
    assert average == pytest.approx(math.sqrt((0.3**2 + 0.4**2) * 3 / 2) / 3)
    mixed = [NotApplicableStandardError(), *errors]
    assert sum([*mixed[::-1]]) / 4 == sum(mixed) / 4 == pytest.approx(average)
    assert math.isnan(sum([StandardError(NAN)] * 2) / 2)
    assert copy.deepcopy(NotApplicable() + 2.0) / 3 == 1.0


def test_a_request_that_several_subsets_share_is_one_cluster_of_their_average():
    """The error of the average is that of the pooled scores, clustered by request."""
    random = np.random.default_rng(0)
    effect, tasks = random.normal(size=20), ("g:egy|0", "g:mar|0", "g:syr|0")
    scores = {name: np.repeat(effect, 3) + random.normal(size=60) for name in tasks}
    clusters = [f"okapi:{place}" for place in range(20) for _ in range(3)]
    docs = [Doc(task_name="", query="", choices=[], gold_index=0, specific={"cluster": one}) for one in clusters]
    shared = {name: list(map(ClusteredScore.of, values, docs)) for name, values in scores.items()}
    found = averages_of(shared, MeanOfScored("adi2"))["g:_average|0"]
    pooled = np.concatenate(list(scores.values()))
    assert found["adi2"] == pytest.approx(pooled.mean())
    centred = np.concatenate([values - values.mean() for values in scores.values()])
    by_hand = math.sqrt(
        20 / 19 * sum(centred[np.tile(np.repeat(np.arange(20), 3), 3) == g].sum() ** 2 for g in range(20))
    )
    assert found["adi2_stderr"] == pytest.approx(by_hand / 180)
    alone = averages_of({name: list(values) for name, values in scores.items()}, MeanOfScored("adi2"))["g:_average|0"]
    assert alone["adi2_stderr"] == pytest.approx(
        math.hypot(*(values.std(ddof=1) / math.sqrt(60) for values in scores.values())) / 3
    )
    assert found["adi2_stderr"] > 2 * alone["adi2_stderr"]
    errors = [StandardError(0.5, clusters={"a": 0.3, "b": 0.4}), StandardError(0.5, clusters={"a": -0.3, "c": 0.4})]
    assert copy.deepcopy(errors[0]) + errors[1] == pytest.approx(math.sqrt(0.32))


def test_what_subsets_share_varies_together_in_scores_of_sums():
    """BLEU's error was added as of other images where two countries describe the same ones."""
    docs = [Doc(task_name="", query="", choices=[], gold_index=0, specific={"cluster": f"{n}.jpg"}) for n in range(9)]
    items = [BleuScore.of(0.0, doc) for doc in docs]
    for place, item in enumerate(items, start=1):
        item.statistics = np.array([place] * 8 + [2 * place] * 2, float) + np.arange(place, place + 10) % 3
    error, other = (CorpusBleu("bleu_4", 4).compute_corpus(some)["bleu_4_stderr"] for some in (items, items[:8]))
    assert error > 0 and (error + error) / 2 == pytest.approx(error)
    assert math.hypot(error, other) < error + other < float(error) + float(other)
    unknown = StandardError.of_whole(NAN, 9, [f"{n}.jpg" for n in range(9)])
    assert unknown + error == error


def test_a_task_without_a_usable_line_costs_no_other_tasks_average(monkeypatch):
    monkeypatch.setenv("CULTUREVAL_PROFILES", "released")
    means = {metric.metric_name: metric.corpus_level_fn for metric in fidelity_metrics()}
    found = averages_of({"g:egy|0": [NAN] * 2, "g:mar|0": [0.1, 0.3]}, means["adi2_released"])
    assert math.isnan(found["g:egy|0"]["adi2_released"])
    assert found["g:_average|0"]["adi2_released"] == pytest.approx(0.2)
    assert found["g:_average|0"]["adi2_released_stderr"] == pytest.approx(0.1)


def test_an_average_has_one_error_in_the_file_and_in_the_table():
    """One subset holds a single row, which has no error: it varies as the others' rows do."""
    random = np.random.default_rng(1)
    names = [name for name in all_tasks() if name.startswith("qimma_aradice")]
    scores = {
        f"{name}|0": list(random.integers(0, 2, 10 * place + 1).astype(float)) for place, name in enumerate(names)
    }
    found = averages_of(scores, ClusteredMean("acc_norm"), "acc_norm")
    found = {
        name: {metric: None if value != value else value for metric, value in one.items()}
        for name, one in found.items()
    }
    run = replace(run_of(names), scores=found)
    records = {name: task.model_copy(update={"rows": len(scores[name])}) for name, task in run.record.tasks.items()}
    run = replace(run, record=run.record.model_copy(update={"tasks": records}))
    (table,) = tables(run)
    cell = table.rows[0].cells[1]
    single, *others = scores.values()
    squares = [np.var(values, ddof=1) / len(values) for values in others]
    pooled = sum(len(values) * np.var(values, ddof=1) for values in others) / sum(map(len, others))
    assert len(single) == 1 and table.rows[0].cells[0] == "AraDiCE-Culture"
    assert cell.stderr == 100 * found["qimma_aradice:_average|0"]["acc_norm_stderr"]
    assert cell.stderr == pytest.approx(100 * math.sqrt(sum(squares) + pooled) / len(names))
    by_estimates = mean_of([estimate(run, record, "acc_norm", 100) for record in records.values()])
    assert cell.value == pytest.approx(by_estimates.value) and cell.stderr == pytest.approx(by_estimates.stderr)


def test_tables_with_means_of_their_own_have_no_average_of_the_group():
    results = dict.fromkeys(["all", "m2cqa:_average|0", "alqasida_mt:_average|5", "alqasida_mono:_average|0", "other"])
    assert mixed_averages(results) == ["all", "m2cqa:_average|0", "alqasida_mt:_average|5"]


def test_translations_are_averaged_over_dialects_in_each_direction():
    parts = [name for name, task in all_tasks().items() if task.mean == "alqasida_mt:_flores_eng_to_dialect"]
    assert parts == [f"alqasida_mt:flores_eng_to_{code}" for code in ("egy", "mar", "pse", "sau", "syr")]
    values = {"spbleu": 10.0, "spbleu_stderr": 2.0, "n": Total(200)}
    results = {f"{name}|0": values | {"spbleu": 10.0 * place} for place, name in enumerate(parts)}
    results[f"{parts[0]}|0"]["spbleu_stderr"] = NAN
    (found,) = means_of_subsets(results).values()
    assert found == {"spbleu": 20.0, "spbleu_stderr": 2.0, "n": 1000}
    del results[f"{parts[0]}|0"]
    assert not means_of_subsets(results)
    directions = {task.mean for task in all_tasks().values() if task.group == "alqasida_mt"}
    assert len(directions) == 8 and "alqasida_mt:_btec_dialect_to_msa" in directions
