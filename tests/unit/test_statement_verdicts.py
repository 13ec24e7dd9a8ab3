"""From verdicts of statements to the values that LightEval keeps: pairing, limits, undefined values, averages."""

import copy
import math
from types import SimpleNamespace

import pytest
from lighteval.logging.info_loggers import MetricsLogger
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.m2cqa.counterfactual import counterfactual_report
from cultureval.metrics.m2cqa.lighteval import ItemMetrics, statement_metrics
from cultureval.metrics.m2cqa.statement_items import ROLES
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.group_averages import Rate
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, leave_out

ANSWERS = {True: "The final answer is: True", False: "The final answer is: False", None: "I cannot tell."}


def statement(item, role, verdict, rows=0):
    """What the sample part gives for one output."""
    (metric,) = statement_metrics("tf")
    specific = {"item_id": item, "role": role, "language": "en", "rows_of_task": rows}
    doc = Doc(query="?", choices=["True", "False"], gold_index=0, specific=specific, task_name="m2cqa:tf_en|0")
    return metric.compute_sample(doc=doc, model_response=ModelResponse(text=[ANSWERS[verdict]]))


def strict(*items, rows=0, profile="strict"):
    samples = [
        statement(f"i{number}", role, verdict, rows)["verdict"]
        for number, verdicts in enumerate(items)
        for role, verdict in zip(ROLES, verdicts, strict=False)
    ]
    return ItemMetrics(profile).compute_corpus(samples)


def test_items_are_brought_together_whatever_the_order():
    values = strict((True, False, False), (True, True, False), (False, False, False), (True, None, False))
    right = counterfactual_report([1, 1, 0, 1], [[1, 1], [0, 1], [1, 1], [0, 1]])
    assert values["cfhr"] == pytest.approx(2 / 3) == right["cfhr"]
    assert values["invalid_rate"] == pytest.approx(1 / 12)
    assert values["cfhr_valid_only"] == pytest.approx(1 / 2)
    assert values["cfhr_stderr"] == pytest.approx(right["cfhr_stderr"])
    samples = [statement(f"i{n}", role, True)["verdict"] for role in reversed(ROLES) for n in (2, 0, 1)]
    assert ItemMetrics("strict").compute_corpus(samples)["cfhr"] == 1


def test_an_invalid_output_is_right_in_neither_direction():
    values = strict((None, None, None), (True, None, None))
    assert (values["q_plus_acc"], values["q_minus_acc"], values["cfhr"]) == (0.5, 0.0, 1.0)
    assert math.isnan(values["cfhr_valid_only"])


def test_an_item_with_a_refused_statement_is_left_out_whole_and_counted():
    """Three of its statements are one item; with two alone the scores of the whole task were refused."""
    places = [(item, role, {"source_row": f"a.jsonl:{item}", "id": item}) for item in "01" for role in ROLES]
    docs = [
        Doc(query="?", choices=[], gold_index=0, task_name="m2cqa:tf_en|0", specific=specific, id=item + role)
        for item, role, place in places
        for specific in [{"item_id": item, "role": role, "language": "en", "rows_of_task": 6, **place}]
    ]
    config = SimpleNamespace(rows_report={"row_counts": {"scored": 2}})
    tasks = {"m2cqa:tf_en|0": SimpleNamespace(config=config)}
    refused = [(docs[1], RefusedResponse(reason="a filter stopped it", kind="filter"))]
    kept, unanswered = leave_out(tasks, docs, refused)
    assert [doc.specific["item_id"] for doc in kept] == ["1"] * 3 and not unanswered
    assert config.rows_report["row_counts"] == {"scored": 1, "refused": 1}
    reasons = [row["reason"] for row in config.rows_report["refused_rows"]]
    assert len(reasons) == 3 and reasons.count("another statement of its item has no answer") == 2


def test_a_missing_or_doubled_statement_is_an_error():
    with pytest.raises(CulturevalError, match="item 'i0' lacks its statement q_minus_2"):
        strict((True, False), (True, False, False))
    with pytest.raises(CulturevalError, match="item 'i1' lacks its statement q_minus_1 and q_minus_2"):
        strict((True, False, False), (True,))  # nothing says that a limit was set
    once = statement("i0", "q_plus", True)["verdict"]
    with pytest.raises(CulturevalError, match="'i0' has a duplicated statement q_plus"):
        ItemMetrics("strict").compute_corpus([once, once])


def test_a_limit_leaves_the_cut_item_out_and_says_so(caplog):
    values = strict((True, False, False), (True,), rows=36)
    assert (values["n_items"], values["cfhr"]) == (1, 0)
    assert "cuts the item 'i1'" in caplog.text
    with pytest.raises(CulturevalError, match="lacks"):
        strict((True, False), (True, False, False), rows=36)
    nothing = strict((True,), rows=36)
    assert all(math.isnan(value) for value in nothing.values())


def test_the_lax_profiles_stand_beside_the_strict_one():
    (metric,) = statement_metrics("tf")
    sample = statement("a", "q_plus", True)
    assert {name: str(value) for name, value in sample.items()} == dict.fromkeys(metric.corpus_level_fn, "true")
    values = {}
    for key, aggregate in metric.get_corpus_aggregations().items():
        values |= aggregate([statement("a", role, role == "q_plus")[key] for role in ROLES])
    assert set(metric.metric_name) == {name for name in values if not name.endswith("_stderr")}
    assert set(values) == {f"{name}{end}" for name in metric.metric_name for end in ("", "_stderr")}
    assert not metric.higher_is_better["cfhr"] and metric.higher_is_better["q_plus_acc"]


def test_a_response_is_a_list_or_the_string_of_lightevals_vision_backend():
    (metric,) = statement_metrics("tf")
    specific = {"item_id": "a", "role": "q_plus", "language": "en"}
    doc = Doc(query="?", choices=["True", "False"], gold_index=0, specific=specific)
    words = "The final answer is: True"
    response = ModelResponse(text=words, text_post_processed=list(words))  # what its pipeline makes of a string
    verdict = metric.compute_sample(doc=doc, model_response=response)["verdict"]
    assert copy.deepcopy(verdict) == "true" and copy.deepcopy(verdict).item_id == "a"
    assert metric.compute_sample(doc=doc, model_response=ModelResponse(text=[""]))["verdict"] == "invalid"
    with pytest.raises(CulturevalError, match="has no text"):
        metric.compute_sample(doc=doc, model_response=ModelResponse(text=[]))


def test_lightevals_averages_leave_undefined_values_out():
    """A group of three tasks, one without a CFHR: the mean is that of the two, never with a 0 for the third."""
    logger = MetricsLogger()
    (metric,) = statement_metrics("tf")
    task = SimpleNamespace(aggregation=metric.get_corpus_aggregations)
    cells = {
        "m2cqa:tf_en|0": (True, True, True),
        "m2cqa:tf_msa|0": (False,) * 3,
        "m2cqa:tf_ajp|0": (True, False, False),
    }
    for name, verdicts in cells.items():
        for role, verdict in zip(ROLES, verdicts, strict=True):
            logger.log(name, statement("a", role, verdict))
    logger.aggregate(dict.fromkeys(cells, task))
    scores = logger.metric_aggregated
    assert math.isnan(scores["m2cqa:tf_msa|0"]["cfhr"])
    assert scores["m2cqa:_average|0"]["cfhr"] == scores["all"]["cfhr"] == 0.5
    assert scores["m2cqa:_average|0"]["q_plus_acc"] == pytest.approx(2 / 3)
    assert math.isnan(scores["m2cqa:_average|0"]["cfhr_stderr"])


def test_rates_add_up_with_plain_numbers_and_survive_copies():
    total = sum([Rate.of(None), Rate.of(0.0), 0.5, Rate.of(1.0)])
    assert total / 4 == 0.5
    assert math.isnan(sum([Rate.of(None), Rate.of(None)]) / 2)
    assert copy.deepcopy(total) / 4 == 0.5
