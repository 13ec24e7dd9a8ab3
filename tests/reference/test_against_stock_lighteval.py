"""Our scores against stock LightEval's: its own command lines, backend and metrics, on the same model and rows.

The model is a tiny one in float32, so that the log-probabilities of the two backends agree to 1e-4.
"""

from pathlib import Path

import pytest
from result_files import details_of, results_of
from stock_lighteval import stock_lighteval

from cultureval import load_results
from cultureval.reports.settings_diff import compare_runs
from cultureval.reports.summary_text import summary_data
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

# Our tasks with stock LightEval's metrics beside ours, under names of their own.
BOTH_METRICS = """
import numpy as np
from lighteval.metrics.dynamic_metrics import LogLikelihoodAccMetric, NormalizedMultiChoiceProbMetric
from lighteval.metrics.metrics_sample import LoglikelihoodAcc
from lighteval.metrics.normalizations import LogProbCharNorm
from cultureval.tasks import TASKS_TABLE as OURS

def stock(metric, name):
    metric.metric_name = name
    return metric

TASKS_TABLE = [config for config in OURS if config.name.startswith(("qimma_arabicmmlu", "qimma_aratrust"))]
for config in TASKS_TABLE:
    config.metrics = (*config.metrics,
        stock(LogLikelihoodAccMetric(LogProbCharNorm()), "stock_acc_norm"),
        stock(LogLikelihoodAccMetric(), "stock_acc"))
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stock")
    build_tiny_causal_lm(folder / "tiny-llama")
    (folder / "both_metrics.py").write_text(BOTH_METRICS, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_accuracy_equals_stock_metrics_and_backend_sample_by_sample(bench):
    """The stock command lines of both launchers, run on the original ArabicMMLU samples (five options among them)."""
    data = {"CULTUREVAL_FORM": "original"}
    tasks = ("qimma_arabicmmlu", "--custom-tasks", "both_metrics.py", "--save-details", "--output-dir")
    model = f"model_name={bench / 'tiny-llama'},dtype=float32,batch_size=4"
    stock_lighteval(bench, "accelerate", model, *tasks, "stock", **data)
    model_file = Path(__file__).parents[2] / "models" / "hf.py"
    stock_lighteval(bench, "custom", str(bench / "tiny-llama"), str(model_file), *tasks, "ours", **data)
    stock, ours = details_of(bench / "stock"), details_of(bench / "ours")
    assert len(stock) == len(ours) == 40
    labels = set()
    for task in stock:
        for left, right in zip(stock[task], ours[task], strict=True):
            assert left["doc"]["query"] == right["doc"]["query"]
            assert right["model_response"]["logprobs"] == pytest.approx(left["model_response"]["logprobs"], abs=1e-4)
            assert left["metric"] == right["metric"]
            for row in (left, right):
                assert row["metric"]["acc_norm"] == row["metric"]["stock_acc_norm"]
                assert row["metric"]["acc"] == row["metric"]["stock_acc"]
            labels.update(left["doc"]["choices"])
    assert "هـ" in labels
    average = "qimma_arabicmmlu:_average|0"
    scores = [results_of(bench / side)["results"][average] for side in ("stock", "ours")]
    assert scores[0]["acc_norm"] == scores[1]["acc_norm"] == pytest.approx(scores[0]["stock_acc_norm"])


@pytest.mark.slow
def test_stock_command_lines_of_the_documentation(bench):
    """`lighteval accelerate` and `lighteval custom` with --custom-tasks cultureval.tasks, as README has them."""
    model_file = Path(__file__).parents[2] / "models" / "hf.py"
    end = ("--custom-tasks", "cultureval.tasks", "--output-dir")
    model = f"model_name={bench / 'tiny-llama'},batch_size=8"
    one = stock_lighteval(bench, "accelerate", model, "qimma_arabicmmlu", *end, "a")
    two = stock_lighteval(bench, "custom", str(bench / "tiny-llama"), str(model_file), "qimma_aratrust", *end, "b")
    assert "qimma_arabicmmlu:_average" in one.stdout
    assert "qimma_aratrust" in two.stdout
    report = results_of(bench / "b")["config_tasks"]["qimma_aratrust|0"]["rows_report"]
    assert (report["form"], report["source"]) == ("curated", "qimma/MCQ_AraTrust")


@pytest.mark.slow
def test_their_results_files_are_complete(bench):
    """What `show`, `doctor` and notebooks read, also in files of LightEval's own commands (the runs above)."""
    (one,), (two,) = load_results(bench / "a").runs, load_results(bench / "b").runs
    model, tasks = one.record.model, one.record.tasks
    assert model.backend == "TransformersModel" and len(model.version) == 64 and model.settings["batch_size"] == 8
    assert model.version == two.record.model.version
    assert len(tasks) == 40 and all(task.rows and task.rows_hash and task.tokens_in for task in tasks.values())
    (signature,) = one.record.signatures
    assert signature.group == "qimma_arabicmmlu|0"
    assert "|backend:TransformersModel|chat:off|settings:" in signature.text
    assert one.record.command[:2] == ("lighteval", "accelerate") and two.record.command[:2] == ("lighteval", "custom")
    assert one.record.seeds == two.record.seeds and one.record.machine.cpu and one.record.timing.total > 0
    assert "all" not in one.scores and "Infinity" not in one.file.read_text() and "NaN" not in one.file.read_text()
    (cell,) = [cell for cell in summary_data(one)["suites"]["qimma"][0]["cells"] if cell["row"] == "ArabicMMLU"]
    assert cell["value"] == pytest.approx(100 * one.value("qimma_arabicmmlu:_average|0", "acc_norm"))
    assert compare_runs(bench / "a", bench / "a") == ("Nothing differs.", True)
