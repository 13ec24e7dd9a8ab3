"""Our metrics beside LightEval's own, and inside LightEval's aggregation and result files."""

import copy
import json
import math
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as parquet
import pytest
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.metrics import apply_metric
from lighteval.metrics.metrics_sample import LoglikelihoodAcc, NormalizedMultiChoiceProbability
from lighteval.metrics.normalizations import LogProbCharNorm
from lighteval.metrics.utils.metric_utils import CorpusLevelMetricGrouping
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc
from lighteval.utils.utils import make_results_table

from cultureval.metrics.lighteval.multiple_choice import multi_select_metrics, multiple_choice_metrics
from cultureval.metrics.lighteval.row_scores import RowScore
from cultureval.metrics.likelihood import argmax_accuracy, char_normalized_accuracy, gold_probability_mass
from cultureval.metrics.qimma import lighteval as lighteval_metrics
from cultureval.metrics.semantic import bertscore, load_encoder
from cultureval.metrics.statistics import clustered_standard_error
from cultureval.runtime.errors import CulturevalError

LABELS = ["أ", "ب", "ج", "د", "هـ", "و"]
CHAR_NORM = LogProbCharNorm()


def choice_item(logprobs, gold, cluster="", number=0):
    specific = {"cluster": cluster}
    doc = Doc("سؤال", LABELS[: len(logprobs)], gold, specific=specific, id=str(number), task_name="group:subset|0")
    return doc, ModelResponse(logprobs=list(logprobs), output_tokens=[[0]] * len(logprobs))


def random_items(seed, count=300):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size = int(rng.integers(2, len(LABELS) + 1))
        # Some of them rounded, for ties.
        logprobs = np.round(rng.uniform(-9, 0, size), int(rng.integers(0, 16)))
        yield choice_item(logprobs.tolist(), int(rng.integers(size)))


def test_accuracies_equal_lightevals_item_by_item():
    normalized, plain = LoglikelihoodAcc(logprob_normalization=CHAR_NORM), LoglikelihoodAcc()
    metrics = multiple_choice_metrics()
    disagreements = 0
    for doc, response in random_items(1):
        theirs = {"acc_norm": normalized.compute(doc, response), "acc": plain.compute(doc, response)}
        (scored,) = apply_metric([response], [doc], metrics)
        assert scored == theirs
        assert char_normalized_accuracy(response.logprobs, doc.choices, doc.gold_index) == theirs["acc_norm"]
        assert argmax_accuracy(response.logprobs, doc.gold_index) == theirs["acc"]
        disagreements += theirs["acc"] != theirs["acc_norm"]
    assert disagreements > 10


def test_lighteval_too_favours_the_two_code_points_of_option_five():
    doc, response = choice_item([-3.5, -4, -5, -5, -6], 4)
    assert [len(label) for label in doc.choices] == [1, 1, 1, 1, 2]
    assert LoglikelihoodAcc(logprob_normalization=CHAR_NORM).compute(doc, response) == 1
    (scored,) = apply_metric([response], [doc], multiple_choice_metrics())
    assert scored == {"acc_norm": 1.0, "acc": 0.0}


@pytest.mark.parametrize("normalize", [True, False])
def test_probability_mass_equals_lightevals_multi_choice_probability(normalize):
    norm = CHAR_NORM if normalize else None
    one = NormalizedMultiChoiceProbability(log_prob_normalization=norm)
    several = NormalizedMultiChoiceProbability(log_prob_normalization=norm, aggregation_function=np.sum)
    for doc, response in random_items(2):
        mass = gold_probability_mass(response.logprobs, doc.choices, doc.gold_index, normalize)
        assert mass == pytest.approx(float(one.compute(doc, response)), abs=1e-12)
        doc.gold_index = [0, len(doc.choices) - 1]
        mass = gold_probability_mass(response.logprobs, doc.choices, doc.gold_index, normalize)
        assert mass == pytest.approx(float(several.compute(doc, response)), abs=1e-12)


@pytest.mark.parametrize("broken", [float("nan"), float("-inf")])
def test_lighteval_scores_broken_log_probabilities_and_ours_stop(broken):
    doc, response = choice_item([broken, broken], 0, number=7)
    assert LoglikelihoodAcc(logprob_normalization=CHAR_NORM).compute(doc, response) == 1
    for metric in multiple_choice_metrics() + multi_select_metrics():
        with pytest.raises(CulturevalError, match=r"group:subset\|0, item 7: the log-probability of choice 0 is"):
            apply_metric([response], [doc], [metric])


def test_log_probabilities_and_options_must_match():
    doc, response = choice_item([-1.0, -2.0], 0)
    response.logprobs.append(-3.0)
    for metric in multiple_choice_metrics():
        with pytest.raises(CulturevalError, match="3 choices that are not empty"):
            apply_metric([response], [doc], [metric])


def run_through_lighteval(folder, subsets, metrics):
    """What LightEval's pipeline does with scored items: per-item log, aggregation, results and details on disk."""
    tracker = EvaluationTracker(output_dir=str(folder), save_details=True)
    tracker.general_config_logger.model_name = "model"
    tracker.general_config_logger.model_config = SimpleNamespace(model_dump=dict)
    tasks = {}
    for name, items in subsets.items():
        config = LightevalTaskConfig(
            name=name.split("|")[0], prompt_function=print, hf_repo="x", hf_subset="x", metrics=metrics
        )
        aggregation = {key: value for metric in metrics for key, value in metric.get_corpus_aggregations().items()}
        tasks[name] = SimpleNamespace(aggregation=lambda found=aggregation: found, config=config)
        docs, responses = map(list, zip(*items, strict=True))
        for output, doc, response in zip(apply_metric(responses, docs, metrics), docs, responses, strict=True):
            tracker.metrics_logger.log(name, output)
            tracker.details_logger.log(name, doc, response, output)
    tracker.task_config_logger.log(tasks)
    tracker.metrics_logger.aggregate(tasks, bootstrap_iters=1000)
    tracker.details_logger.aggregate()
    tracker.save()
    (results,) = folder.glob("results/**/*.json")
    details = {path.name.split("_")[1]: path for path in folder.glob("details/**/*.parquet")}
    return json.loads(results.read_text()), details, make_results_table(tracker.generate_final_dict())


@pytest.fixture
def no_bootstrap(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("LightEval's own standard error was asked for")

    monkeypatch.setattr("lighteval.logging.info_loggers.get_stderr_function", refuse)


def test_results_hold_means_clustered_errors_and_the_macro_average(tmp_path, no_bootstrap):
    right, wrong = [-1.0, -2.0], [-2.0, -1.0]
    first = [right, right, wrong, wrong, right, wrong, right]
    clusters = ["p", "p", "q", "q", "", "", "r"]
    second = [wrong, right, right, right]
    subsets = {
        "group:one|0": [choice_item(logprobs, 0, cluster) for logprobs, cluster in zip(first, clusters, strict=True)],
        "group:two|0": [choice_item(logprobs, 0) for logprobs in second],
    }
    metrics = multiple_choice_metrics()
    results, details, table = run_through_lighteval(tmp_path, subsets, metrics)

    one, two, average = (results["results"][name] for name in ("group:one|0", "group:two|0", "group:_average|0"))
    assert set(one) == {"acc_norm", "acc_norm_stderr", "acc", "acc_stderr"}
    assert one["acc"] == one["acc_norm"] == pytest.approx(4 / 7)
    expected = clustered_standard_error([1, 1, 0, 0, 1, 0, 1], ["p", "p", "q", "q", 1, 2, "r"])
    assert one["acc_stderr"] == pytest.approx(expected)
    assert two["acc_stderr"] == pytest.approx(np.std([0, 1, 1, 1], ddof=1) / 2)
    assert average["acc"] == pytest.approx((4 / 7 + 3 / 4) / 2)
    macro_error = math.hypot(one["acc_stderr"], two["acc_stderr"]) / 2
    assert average["acc_stderr"] == pytest.approx(macro_error)
    assert results["results"]["all"]["acc_stderr"] == pytest.approx(macro_error)
    assert f"{macro_error:.4f}" in table

    column = parquet.read_table(details["group:one|0"]).column("metric")
    assert str(column.type) == "struct<acc_norm: double, acc: double>"
    assert [row["acc"] for row in column.to_pylist()] == [1, 1, 0, 0, 1, 0, 1]


def test_a_subset_of_one_item_keeps_the_group_s_average_without_an_error(tmp_path):
    right, wrong = choice_item([-1.0, -2.0], 0), choice_item([-2.0, -1.0], 0)
    subsets = {"group:one|0": [right], "group:two|0": [wrong, wrong, right, wrong]}
    results, _, _ = run_through_lighteval(tmp_path, subsets, multi_select_metrics())
    average = results["results"]["group:_average|0"]
    assert average["gold_set_match"] == 0.625
    assert math.isnan(results["results"]["group:one|0"]["gold_set_match_stderr"])
    assert math.isnan(average["gold_set_match_stderr"])  # that of the one item is unknown


def test_a_score_keeps_its_cluster_when_copied():
    doc, _ = choice_item([-1.0, -2.0], 0, "passage")
    score = copy.deepcopy({"acc": RowScore.of(0.5, doc)})["acc"]
    assert (score, score.cluster) == (0.5, "passage")


@pytest.fixture
def bertscore_on_tiny_model(arabic_bert, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_BERTSCORE_MODEL", arabic_bert)
    calls = []
    hook = load_encoder(arabic_bert, None, lighteval_metrics.scoring_device())[1].register_forward_pre_hook(
        lambda *_: calls.append(1)
    )
    yield calls
    hook.remove()


def test_bertscore_through_lighteval(tmp_path, no_bootstrap, arabic_bert, bertscore_on_tiny_model):
    replies = [" {عاصمة مصر القاهرة}\n", "", "لا أعرف"]
    golds = [["{القاهرة عاصمة مصر}", "بغداد"], ["نعم"], ["لا أعرف"]]
    items = [
        (Doc("سؤال", gold, list(range(len(gold))), id=str(number)), ModelResponse(text=[reply, "ليس هذا"]))
        for number, (gold, reply) in enumerate(zip(golds, replies, strict=True))
    ]
    metrics = lighteval_metrics.bertscore_metrics()
    results, details, _ = run_through_lighteval(tmp_path, {"qa:one|0": items}, metrics)
    # One pass for the three metrics, and its five distinct texts fit in one batch.
    assert len(bertscore_on_tiny_model) == 1

    expected = bertscore(
        ["عاصمة مصر القاهرة", "", "لا أعرف"], [["القاهرة عاصمة مصر", "بغداد"], "نعم", "لا أعرف"], arabic_bert
    )
    scores = results["results"]["qa:one|0"]
    rows = parquet.read_table(details["qa:one|0"]).column("metric").to_pylist()
    for name, part in (("BERTScore-P", "precision"), ("BERTScore-R", "recall"), ("BERTScore-F", "f1")):
        assert [row[name] for row in rows] == pytest.approx(expected[part].tolist(), abs=1e-6)
        assert scores[name] == pytest.approx(expected[part].mean(), abs=1e-6)
        assert scores[f"{name}_stderr"] == pytest.approx(np.std(expected[part], ddof=1) / math.sqrt(3), abs=1e-6)
    definition = json.dumps(results["config_tasks"], ensure_ascii=False)
    assert f"BERTScore-F(model={arabic_bert}, layer=last" in definition
    assert " at 0x" not in definition


def test_the_shared_pass_starts_anew_with_other_responses(bertscore_on_tiny_model):
    metrics = lighteval_metrics.bertscore_metrics()
    for reply, expected in (("نعم", 1.0), ("", 0.0), ("نعم", 1.0)):
        docs, responses = [Doc("سؤال", ["نعم"], 0)], [ModelResponse(text=[reply])]
        (scored,) = apply_metric(responses, docs, metrics)
        assert scored["BERTScore-F"] == pytest.approx(expected, abs=1e-6)
    headline = [metric for metric in metrics if metric.metric_name == "BERTScore-F"]
    alone = apply_metric([ModelResponse(text=[reply])], docs, copy.deepcopy(headline))
    assert alone[0]["BERTScore-F"] == scored["BERTScore-F"]


def test_fannorflop_through_lighteval(tmp_path, no_bootstrap, bertscore_on_tiny_model):
    gold = [{"verse": "بيت", "explanation": "يصف الشاعر الليل"}]
    replies = [json.dumps(gold), "ليس قائمة"]
    items = [
        (Doc("قصيدة", ["شرح"], 0, specific={"gold_explanations": gold, "cluster": ""}), ModelResponse(text=[reply]))
        for reply in replies
    ]
    results, _, _ = run_through_lighteval(tmp_path, {"poem:one|0": items}, lighteval_metrics.fannorflop_metrics())
    scores = results["results"]["poem:one|0"]
    assert scores["parse_rate"] == 0.5
    assert scores["parse_rate_stderr"] == pytest.approx(0.5)
    assert scores["BERTScore-F"] == pytest.approx(0.5, abs=1e-6)


def test_a_response_without_any_text_stops_the_run(arabic_bert, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_BERTSCORE_MODEL", arabic_bert)
    doc = Doc("سؤال", ["نعم"], 0, id="4", task_name="qa:one|0")
    with pytest.raises(CulturevalError, match=r"qa:one\|0, item 4: the model's response has no text"):
        apply_metric([ModelResponse(text=[])], [doc], lighteval_metrics.bertscore_metrics())


def test_lighteval_itself_has_no_batched_grouping():
    """Why three metrics share a pass; when this fails, LightEval can do it and `SharedPass` may go."""
    (metric, *_) = lighteval_metrics.bertscore_metrics()
    grouping = CorpusLevelMetricGrouping(
        metric_name=["a", "b"],
        higher_is_better={"a": True, "b": True},
        category=metric.category,
        sample_level_fn=SimpleNamespace(compute=None),
        corpus_level_fn={},
        batched_compute=True,
    )
    grouping.compute_sample = lambda **_: {"a": [1.0], "b": [1.0]}
    with pytest.raises(TypeError, match="unhashable"):
        apply_metric([ModelResponse()], [Doc("", [""], 0)], [grouping])
