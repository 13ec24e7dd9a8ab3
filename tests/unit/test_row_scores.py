"""From columns of rows to results: what counts, errors by clusters, averages of groups, and what only details have."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
from lighteval.logging.info_loggers import MetricsLogger
from lighteval.metrics import apply_metric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.alqasida.lighteval import fidelity_metrics
from cultureval.metrics.declared import declare
from cultureval.metrics.jeem.caption import bleu_2
from cultureval.metrics.lighteval.row_scores import DetailsOnly, pass_metrics
from cultureval.runtime.patches.lighteval.group_averages import NotApplicable, NotApplicableStandardError, StandardError
from cultureval.runtime.patches.lighteval.refused_docs import values_of_unscored
from cultureval.tasks.catalogue import all_tasks, means_of_subsets, mixed_averages

NAN = math.nan
BLEU = "cultureval.metrics.jeem.caption:bleu_2"


def doc(**specific):
    return Doc(task_name="t", query="", choices=[], gold_index=0, specific=specific)


def results_of(tasks, declared, weighted=()):
    """LightEval's results, and the details of each row, of tasks: name -> (columns, docs)."""
    logger, rows, passes = MetricsLogger(), {}, {}
    for name, (columns, docs) in tasks.items():
        metrics = pass_metrics(declared, lambda *_, columns=columns: columns, "test", weighted)
        rows[name] = apply_metric([ModelResponse()] * len(docs), docs, metrics)
        for row in rows[name]:
            logger.log(name, row)
        functions = {key: one for metric in metrics for key, one in metric.get_corpus_aggregations().items()}
        passes[name] = SimpleNamespace(aggregation=lambda functions=functions: functions)
    logger.aggregate(passes)
    return logger.metric_aggregated, rows


def test_a_recall_counts_rows_as_often_as_they_have_queries():
    columns = {"recall": [1.0, 0.5, NAN, 0.0], "recall_den": [1, 2, 0, 3]}
    docs = [doc(cluster=name) for name in ("a", "a", "b", "c")]
    found, rows = results_of({"t|0": (columns, docs)}, declare("recall"), ["recall"])
    score = 2 / 6
    adds = [math.sqrt(1 / 2) * (2 - score * 3) / 3, math.sqrt(1 / 2) * (0 - score * 3) / 3]
    assert found["t|0"] == pytest.approx({"recall": score, "recall_stderr": math.hypot(*adds)})
    assert [row["recall_den"] for row in rows["t|0"]] == [1, 2, 0, 3]


def test_a_corpus_score_is_that_of_the_sums_and_its_error_leaves_out_a_cluster_at_a_time():
    draw = np.random.default_rng(0)
    sums = draw.integers(1, 9, (6, 10)).astype(float)
    docs = [doc(cluster=f"{place // 2}.jpg") for place in range(6)]
    declared = declare("bleu", ranges={"bleu": (0, 100)}, sums={"bleu": BLEU})
    found, rows = results_of({"t|0": ({"bleu": np.zeros(6), "bleu_sums": sums}, docs)}, declared)
    left_out = [bleu_2(np.delete(sums, [2 * place, 2 * place + 1], axis=0).sum(axis=0)) for place in range(3)]
    error = math.sqrt(2 / 3 * sum((bleu_2(sums.sum(axis=0)) - one) ** 2 for one in left_out))
    assert found["t|0"] == pytest.approx({"bleu": float(bleu_2(sums.sum(axis=0))), "bleu_stderr": error})
    assert rows["t|0"][1]["bleu_sums"] == sums[1].tolist()


@pytest.mark.parametrize(
    ("scores", "limits", "error"),
    [
        ([1.0] * 12, (0, 1), 0.2425 / 3.92),  # Wilson's interval of 0 of 12 ends at 0.242
        ([0.5] * 12, (0, 1), None),
        ([5.0] * 12, (1, 5), None),
        ([1.0], (0, 1), None),
    ],
)
def test_items_that_all_score_alike_tell_an_error_at_the_ends_of_a_share_alone(scores, limits, error):
    docs = [doc() for _ in scores]
    found, _ = results_of({"t|0": ({"x": scores}, docs)}, declare("x", ranges={"x": limits}))
    told = found["t|0"]["x_stderr"]
    assert math.isnan(told) if error is None else told == pytest.approx(error, abs=1e-4)


def test_a_metric_that_applies_to_no_row_of_a_subset_is_in_no_average_but_a_missing_score_is():
    docs, declared = [doc(), doc()], declare("adi2")
    tasks = {
        "g:to_eng|0": ({"adi2": [NAN, NAN], "adi2_den": [0, 0]}, docs),
        "g:to_egy|0": ({"adi2": [0.1, 0.3], "adi2_den": [1, 1]}, docs),
        "g:to_mar|0": ({"adi2": [0.5, 0.7], "adi2_den": [1, 1]}, docs),
    }
    found, _ = results_of(tasks, declared, ["adi2"])
    assert math.isnan(found["g:to_eng|0"]["adi2"]) and math.isnan(found["g:to_eng|0"]["adi2_stderr"])
    assert found["g:_average|0"]["adi2"] == found["all"]["adi2"] == pytest.approx(0.4)
    assert found["g:_average|0"]["adi2_stderr"] == pytest.approx(math.hypot(0.1, 0.1) / 2)
    tasks["g:to_mar|0"][0]["adi2"] = [0.6, 0.6]  # which tells no error
    found, _ = results_of(tasks, declared, ["adi2"])
    assert found["g:_average|0"]["adi2"] == pytest.approx(0.4) and math.isnan(found["g:_average|0"]["adi2_stderr"])
    tasks["g:to_eng|0"][0]["adi2_den"] = [1, 0]  # the model is not better off by leaving a subset unscored
    found, _ = results_of(tasks, declared, ["adi2"])
    assert math.isnan(found["g:_average|0"]["adi2"])


def test_a_request_that_several_subsets_share_is_one_cluster_of_their_average():
    """The error of the average is that of the pooled scores, clustered by request."""
    random = np.random.default_rng(0)
    effect, names = random.normal(size=20), ("g:egy|0", "g:mar|0", "g:syr|0")
    scores = {name: np.repeat(effect, 3) + random.normal(size=60) for name in names}
    docs = [doc(cluster=f"okapi:{place}") for place in range(20) for _ in range(3)]
    declared = declare("adi2", ranges={"adi2": (-math.inf, math.inf)})
    found, _ = results_of({name: ({"adi2": values}, docs) for name, values in scores.items()}, declared)
    centred = np.concatenate([values - values.mean() for values in scores.values()])
    groups = np.tile(np.repeat(np.arange(20), 3), 3)
    by_hand = math.sqrt(20 / 19 * sum(centred[groups == one].sum() ** 2 for one in range(20))) / 180
    assert found["g:_average|0"]["adi2_stderr"] == pytest.approx(by_hand)
    alone, _ = results_of({name: ({"adi2": values}, [doc()] * 60) for name, values in scores.items()}, declared)
    assert by_hand > 2 * alone["g:_average|0"]["adi2_stderr"]


def test_errors_add_through_copies_and_one_unknown_error_leaves_none():
    errors = [StandardError(0.5, {"a": 0.3, "b": 0.4}), StandardError(0.5, {"a": -0.3, "c": 0.4})]
    assert copy.deepcopy(errors[0]) + errors[1] == pytest.approx(math.sqrt(0.32))
    assert sum([NotApplicableStandardError(), *errors]) / 3 == pytest.approx(math.sqrt(0.32) / 2)
    assert math.isnan(sum([*errors, StandardError(NAN)]) / 3)
    assert copy.deepcopy(NotApplicable() + 2.0) / 3 == 1.0


def test_a_task_without_a_usable_line_costs_no_other_tasks_average(monkeypatch):
    monkeypatch.setenv("CULTUREVAL_PROFILES", "released")
    kept = {metric.metric_name for metric in fidelity_metrics() if isinstance(metric.corpus_level_fn, DetailsOnly)}
    assert "adi2_released_den" in kept and "adi2_den" not in kept


def test_a_row_without_an_answer_has_no_scores_and_counts_as_often_as_it_would():
    metrics = pass_metrics(declare("ndcg", "mrr"), dict, "test", ["ndcg"], lambda doc: {"ndcg": len(doc.choices)})
    assert values_of_unscored(metrics, doc()) == {"ndcg": None, "ndcg_den": 0, "mrr": None}


def test_tables_with_means_of_their_own_have_no_average_of_the_group():
    results = dict.fromkeys(["all", "m2cqa:_average|0", "alqasida_mt:_average|5", "alqasida_mono:_average|0", "other"])
    assert mixed_averages(results) == ["all", "m2cqa:_average|0", "alqasida_mt:_average|5"]


def test_translations_are_averaged_over_dialects_in_each_direction():
    parts = [name for name, task in all_tasks().items() if task.mean == "alqasida_mt:_flores_eng_to_dialect"]
    assert parts == [f"alqasida_mt:flores_eng_to_{code}" for code in ("egy", "mar", "pse", "sau", "syr")]
    results = {
        f"{name}|0": {"spbleu": 10.0 * place, "spbleu_stderr": StandardError(2.0, {"flores 1": 2.0})}
        for place, name in enumerate(parts)
    }
    (found,) = means_of_subsets(results).values()
    assert found == {"spbleu": 20.0, "spbleu_stderr": 2.0}  # they share their only sentence
    del results[f"{parts[0]}|0"]
    assert not means_of_subsets(results)
