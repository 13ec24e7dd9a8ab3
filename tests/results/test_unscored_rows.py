"""A row without a usable answer is in the details, has no score, and says why; results do not count it."""

from types import SimpleNamespace

import numpy as np
import pytest
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.cvlue.lighteval import cvlue_vqa_metrics
from cultureval.metrics.m2cqa.lighteval import statement_metrics
from cultureval.runs.frame import frame_of, read_items
from cultureval.runs.scores import fill, task_scores
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, leave_out
from cultureval.runtime.patches.lighteval.tracker import as_dataset
from cultureval.tasks.running import FinishedRun, _score

TF, VQA = "m2cqa:tf_en|0", "cvlue_vqa|0"


def run_of(tmp_path, name, metrics, docs, replies, refused):
    """The frame and the results of a run whose docs at some places are refused."""
    task = SimpleNamespace(
        config=SimpleNamespace(rows_report={"row_counts": {"scored": len(docs)}}),
        metrics=metrics,
        aggregation=lambda: {key: one for metric in metrics for key, one in metric.get_corpus_aggregations().items()},
    )
    run = FinishedRun({name: task}, None, None, EvaluationTracker(output_dir=str(tmp_path)))
    kept, _ = leave_out(run.tasks, docs, [(docs[place], RefusedResponse(kind=kind)) for place, kind in refused.items()])
    pairs = [(doc, ModelResponse(text=[reply])) for doc, reply in zip(docs, replies, strict=True) if doc in kept]
    _score(run, {SamplingMethod.GENERATIVE: pairs}, docs)
    run.tracker.metrics_logger.aggregate(run.tasks)
    file = tmp_path / "details.parquet"
    as_dataset(run.tracker.details_logger.details[name]).to_parquet(str(file))
    return frame_of([read_items(file, name)], "r"), run.tracker.metrics_logger.metric_aggregated[name]


def test_refused_and_failed_rows_stand_in_their_places(tmp_path):
    docs = [Doc(VQA, choices=["猫"], gold_index=0, id=str(n), specific={"id": n}, task_name=VQA) for n in range(4)]
    for doc in docs:
        doc.sampling_methods = [SamplingMethod.GENERATIVE]
    frame, results = run_of(
        tmp_path, VQA, cvlue_vqa_metrics(), docs, ["猫", "狗", "猫", "猫"], {1: "filter", 2: "undecided"}
    )
    own = frame[frame["metric"] == "accuracy_exact"]
    assert list(own["item"]) == ["0", "1", "2", "3"] and list(own["reason"]) == ["", "refused", "failed", ""]
    assert np.isnan(own["num"]).tolist() == [False, True, True, False]
    score = task_scores(frame)["r", VQA, "accuracy_exact"]
    assert (score.value, score.n, score.asked) == (1, 2, 4) and results["accuracy_exact"] == 1
    assert task_scores(fill(frame))["r", VQA, "accuracy_exact"].value == 0.5


def test_an_item_of_several_rows_that_is_refused_counts_as_one(tmp_path):
    docs, replies = [], []
    for item in "ab":
        for role in ("q_plus", "q_minus_1", "q_minus_2"):
            specific = {"item_id": item, "role": role, "language": "en", "rows_of_task": 6, "id": item + role}
            docs.append(Doc("?", choices=["True", "False"], gold_index=0, id=role, specific=specific, task_name=TF))
            docs[-1].sampling_methods = [SamplingMethod.GENERATIVE]
            replies.append(f"The final answer is: {role == 'q_plus'}")
    frame, results = run_of(tmp_path, TF, statement_metrics("tf"), docs, replies, {4: "server"})
    scores, filled = task_scores(frame), task_scores(fill(frame))
    assert (scores["r", TF, "cfhr"].value, scores["r", TF, "cfhr"].n, scores["r", TF, "cfhr"].asked) == (0, 1, 2)
    worst = {"cfhr": 0.5, "q_plus_acc": 0.5, "q_minus_acc": 0.5, "invalid_rate": 0.5}
    assert {name: filled["r", TF, name].value for name in worst} == pytest.approx(worst)
    assert results["n_items"] == 1 and results["cfhr"] == 0
