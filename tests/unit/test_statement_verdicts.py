"""From verdicts of statements to what details and results keep of items: pairing, limits, undefined values."""

import math
from types import SimpleNamespace

import pytest
from lighteval.metrics import apply_metric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.m2cqa.counterfactual import counterfactual_report
from cultureval.metrics.m2cqa.lighteval import statement_metrics
from cultureval.metrics.m2cqa.statement_items import ROLES
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, leave_out, values_of_unscored

ANSWERS = {True: "The final answer is: True", False: "The final answer is: False", None: "I cannot tell."}
ITEMS = ((True, False, False), (True, True, False), (False, False, False), (True, None, False), (None, False, True))


def asked(item, role, rows=0):
    specific = {"item_id": item, "role": role, "language": "en", "rows_of_task": rows}
    return Doc(query="?", choices=["True", "False"], gold_index=0, specific=specific, task_name="m2cqa:tf_en|0")


def scored(items, rows=0, order=slice(None)):
    """The results of items' verdicts, Q+ first, and the details of their rows."""
    metrics = statement_metrics("tf")
    pairs = [
        (asked(f"i{number}", role, rows), ModelResponse(text=[ANSWERS[verdict]]))
        for number, verdicts in enumerate(items)
        for role, verdict in zip(ROLES, verdicts, strict=False)
    ][order]
    details = apply_metric([answer for _, answer in pairs], [doc for doc, _ in pairs], metrics)
    return totals(metrics, details), details


def totals(metrics, details):
    found = {}
    for metric in metrics:
        for name, function in metric.get_corpus_aggregations().items():
            found |= function([row[name] for row in details])
    return found


def test_results_are_those_of_the_report_whatever_the_order():
    values, _ = scored(ITEMS)
    right = [verdicts[0] is True for verdicts in ITEMS], [[one is False for one in row[1:]] for row in ITEMS]
    report = counterfactual_report(*right, [[one is None for one in row] for row in ITEMS])
    for name in ("cfhr", "f1", "q_minus_acc", "invalid_rate", "cfhr_valid_only", "combined_acc"):
        assert [values[name], values[f"{name}_stderr"]] == pytest.approx([report[name], report[f"{name}_stderr"]])
    assert (values["n_items"], values["n_q_plus"]) == (5, 3) == (report["n_items"], report["n_q_plus"])
    assert scored(ITEMS, order=slice(None, None, -1))[0]["cfhr"] == pytest.approx(values["cfhr"])


def test_details_hold_what_each_score_is_made_of_in_the_row_of_the_true_statement():
    _, details = scored(ITEMS)
    first = details[:: len(ROLES)]
    assert [(row["cfhr_den"], row["q_minus_acc_den"], row["invalid_rate_den"]) for row in first[:3]] == [
        (1, 2, 3),
        (1, 2, 3),
        (0, 2, 3),
    ]
    assert [float(row["cfhr"]) for row in first[:2]] == [0, 1] and first[0]["f1_sums"] == [1, 1, 2, 2]
    assert first[4]["cfhr_den"] == 1 and math.isnan(first[4]["cfhr"])  # nobody knows whether it counts
    assert math.isnan(first[3]["cfhr_valid_only"]) and first[3]["cfhr_valid_only_den"] == 1
    others = [row for place, row in enumerate(details) if place % len(ROLES)]
    assert {row["cfhr_den"] for row in others} == {0} and others[0]["verdict"] == "false"


def test_a_statement_without_an_answer_counts_as_its_item_would():
    metrics = statement_metrics("tf")
    plus, minus = (values_of_unscored(metrics, asked("a", role)) for role in ROLES[:2])
    assert plus["cfhr"] is None and (plus["cfhr_den"], plus["q_minus_acc_den"], plus["invalid_rate_den"]) == (1, 2, 3)
    assert {value for name, value in minus.items() if name.endswith("_den")} == {0}


def test_an_item_with_a_refused_statement_is_left_out_whole_and_counted():
    """Three of its statements are one item; with two alone the scores of the whole task were refused."""
    docs = [asked(item, role, 6) for item in "01" for role in ROLES]
    for doc in docs:
        doc.specific |= {"source_row": f"a.jsonl:{doc.specific['item_id']}", "id": doc.specific["item_id"]}
    config = SimpleNamespace(rows_report={"row_counts": {"scored": 2}})
    tasks = {"m2cqa:tf_en|0": SimpleNamespace(config=config)}
    refused = [(docs[1], RefusedResponse(reason="a filter stopped it", kind="filter"))]
    kept, unanswered = leave_out(tasks, docs, refused)
    assert [doc.specific["item_id"] for doc in kept] == ["1"] * 3 and not unanswered
    assert [doc.specific.get("unscored") for doc in docs] == ["refused"] * 3 + [None] * 3
    reasons = [row["reason"] for row in config.rows_report["refused_rows"]]
    assert len(reasons) == 3 and reasons.count("another statement of its item has no answer") == 2


def test_an_item_that_the_limit_cuts_does_not_count():
    values, details = scored([(True, False, False), (True,)], rows=36)
    assert (values["n_items"], values["cfhr"], details[3]["cfhr_den"]) == (1, 0, 0)
    assert math.isnan(scored([(True,)], rows=36)[0]["q_plus_acc"])


def test_a_response_is_a_list_or_the_string_of_lightevals_vision_backend():
    metrics, words = statement_metrics("tf"), "The final answer is: True"
    doc = asked("a", "q_plus")
    response = ModelResponse(text=words, text_post_processed=list(words))  # what its pipeline makes of a string
    assert apply_metric([response], [doc], metrics)[0]["verdict"] == "true"
    assert apply_metric([ModelResponse(text=[""])], [doc], metrics)[0]["verdict"] == "invalid"
    with pytest.raises(CulturevalError, match="has no text"):
        apply_metric([ModelResponse(text=[])], [doc], metrics)
