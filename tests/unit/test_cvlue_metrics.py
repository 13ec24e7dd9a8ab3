"""The LightEval metrics of CVLUE on responses made by hand."""

import math

import pytest
from lighteval.metrics import apply_metric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.cvlue.grounding import predicted_boxes
from cultureval.metrics.cvlue.lighteval import (
    dialogue_metrics,
    gallery_metrics,
    grounding_metrics,
)
from cultureval.runtime.errors import CulturevalError

DIALOGUE = {"relevance": [], "id": "1/0", "cluster": "a"}


def dialogue_doc(**specific):
    return Doc(task_name="cvlue_vd", query="", choices=["一", "二二", "三"], gold_index=1, specific=DIALOGUE | specific)


def scored(doc, response, dense=False):
    (scores,) = apply_metric([response], [doc], dialogue_metrics(dense))
    return scores


def test_four_ways_of_scoring_candidates():
    """Sums -2, -3, -2.5 over 1, 2, 1 tokens; ends -1, -9, -0.1: the gold one is first by mean alone."""
    tokens = [[1], [2, 3], [4]]
    response = ModelResponse(logprobs=[-2.0, -3.0, -2.5], output_tokens=tokens, logits=[[-1.0], [-9.0], [-0.1]])
    scores = scored(dialogue_doc(relevance=[0.5, 1.0, 0.0]), response, dense=True)
    ranks = {suffix: scores[f"mean_rank{suffix}"] for suffix in ("", "_sum", "_mean_end", "_sum_end")}
    assert ranks == {"": 1, "_sum": 3, "_mean_end": 3, "_sum_end": 3}
    assert scores["NDCG"] == 1 and scores["NDCG_sum"] < 1 and scores["R@1"] == 1 and scores["R@1_sum"] == 0
    assert scores["R@1"].cluster == "a"
    tied = ModelResponse(logprobs=[-1.0, -2.0, -3.0], output_tokens=tokens, logits=[[0.0]] * 3)
    assert (scored(dialogue_doc(), tied)["gold_ties"], scored(dialogue_doc(), tied)["mean_rank"]) == (1, 2)


def test_what_a_backend_does_not_say_is_undefined_or_an_error():
    response = ModelResponse(logprobs=[-2.0, -3.0, -2.5], output_tokens=[[1], [2, 3], [4]])
    scores = scored(dialogue_doc(), response)
    assert scores["R@1"] == 1 and math.isnan(scores["R@1_mean_end"]) and math.isnan(scores["gold_ties_sum_end"])
    (metric,) = (one for one in dialogue_metrics() if one.metric_name == "R@1_mean_end")
    average = metric.get_corpus_aggregations()["R@1_mean_end"]([scores["R@1_mean_end"]])
    assert math.isnan(average["R@1_mean_end"])
    with pytest.raises(CulturevalError, match="cvlue_vd, item 1/0: the model's backend returns"):
        scored(dialogue_doc(), ModelResponse(logprobs=[-2.0, -3.0, -2.5], output_tokens=[[1]]))


def test_recall_within_galleries_by_hand():
    """Two images, three captions, the second one shared: image 0 finds its own at rank 2, image 1 at rank 1."""
    docs = [
        Doc(task_name="t", query="", choices=list("abc"), gold_index=gold, specific={"gallery": 0, "id": str(gold)})
        for gold in ([0, 1], [1, 2])
    ]
    tables = ([-2.0, -1.5, -1.0], [-3.0, -1.0, -2.0])
    responses = [ModelResponse(logprobs=row, output_tokens=[[1]] * 3) for row in tables]
    values = {}
    for metric in gallery_metrics():
        samples = metric.compute_sample(docs=docs, responses=responses)[metric.metric_name]
        values |= metric.get_corpus_aggregations()[metric.metric_name](samples)
    assert (values["TR@1"], values["TR@5"], values["gallery_images"], values["gallery_captions"]) == (0.5, 1, 2, 3)
    # Caption a asks: image 0 is first, and right; b: image 1, and both are right; c: image 0, which is wrong.
    assert values["IR@1"] == pytest.approx(2 / 3)


def test_the_first_box_counts_and_none_is_unparsable():
    specific = {"box": [0.0, 0.0, 10.0, 10.0], "size": [100, 100], "box_format": "xyxy", "box_pixels": "3136-12845056"}
    doc = Doc(task_name="t", query="", choices=[""], gold_index=0, specific=specific | {"id": "1"})

    def scored_box(text):
        return apply_metric([ModelResponse(text=text)], [doc], grounding_metrics())[0]

    scores = scored_box(["[0, 0, 10, 10] [5, 5, 6, 6]"])
    assert scores["iou"] == scores["acc@0.5_continuous"] == 1 and scores["unparsable"] == 0
    text = "[0, 0, 10, 10] [5, 5, 6, 6]"  # a string, as of LightEval's vision backend
    assert scored_box(text) == scores
    scores = scored_box(["没有"])
    assert scores["iou"] == 0 and scores["unparsable"] == 1
    seen = {"box_format": "qwen2.5_vl", "box_pixels": "3136-12845056", "size": [100, 100]}
    reply = '{"bbox_2d": [0, 0, 56, 112]}'
    assert predicted_boxes(reply, seen) == [pytest.approx([0, 0, 50, 100])]
    assert predicted_boxes(reply, seen | {"box_pixels": "50176-50176"}) == [pytest.approx([0, 0, 25, 50])]
