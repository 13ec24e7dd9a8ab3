"""Real rows: part of ArabicMMLU in its original columns, scored through the real command line.

Skipped where the rows are not at hand; they are third-party data and no part of this repository.
"""

import csv
import os
from collections import Counter
from pathlib import Path

import pytest
from forked_commands import run_forked
from parity_rows import TABLE
from result_files import details_of, results_of
from stock_lighteval import stock_lighteval

from benchmarks.end_to_end_runs import data_root, subject_of
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TABLE.is_file(), reason="real ArabicMMLU rows are not part of the repository"),
]


@pytest.fixture
def root(tmp_path):
    return data_root(tmp_path, TABLE)


def test_every_subject_is_scored_and_counted(tmp_path, root):
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2506
    asked = Counter(subject_of(row) for row in rows if row["is_few_shot"] == "0")
    model = build_tiny_causal_lm(tmp_path / "tiny-llama")
    command = ["eval", str(model), "qimma_arabicmmlu"]
    command += ["--data", root, "--output-dir", "out", "--model-args", "device=cpu"]
    command += ["--limit", "2", "--form", "original"]
    own = {"CULTUREVAL_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    run = run_forked("cultureval.scripts.main", command, tmp_path, os.environ | own, loaded="ours")
    assert run.returncode == 0, run.stderr[-3000:]
    scored = {name: len(rows) for name, rows in details_of(tmp_path / "out").items()}
    assert scored == {f"qimma_arabicmmlu:{subject}|0": min(count, 2) for subject, count in asked.items()}
    reports = {name: task["rows_report"] for name, task in results_of(tmp_path / "out")["config_tasks"].items()}
    counted = {name: report["rows"] for name, report in reports.items()}
    assert counted == {f"qimma_arabicmmlu:{subject}|0": count for subject, count in asked.items()}
    assert not any(report["skipped_rows"] for report in reports.values()), "repeated options are no fault of a row"


def test_both_stock_launchers_give_the_same_accuracies(tmp_path, root):
    """`lighteval custom SETTINGS.yaml hf.py` and `lighteval accelerate`: two real rows of each subject."""
    model = build_tiny_causal_lm(tmp_path / "tiny-llama")
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"model_name: {model}\ndtype: float32\ndevice: cpu\n", encoding="utf-8")
    with TABLE.open(encoding="utf-8", newline="") as file:
        subjects = sorted({subject_of(row) for row in csv.DictReader(file)})
    (tmp_path / "tasks.txt").write_text("".join(f"qimma_arabicmmlu:{name}\n" for name in subjects), encoding="utf-8")
    end = ("tasks.txt", "--custom-tasks", "cultureval.tasks", "--max-samples", "2", "--save-details", "--output-dir")
    data = {"CULTUREVAL_DATA": root, "CULTUREVAL_FORM": "original"}
    stock_lighteval(tmp_path, "custom", str(settings), str(ROOT / "models" / "hf.py"), *end, "custom", **data)
    stock = f"model_name={model},dtype=float32,batch_size=8"
    stock_lighteval(tmp_path, "accelerate", stock, *end, "accelerate", **data)
    ours, theirs = (results_of(tmp_path / side)["results"] for side in ("custom", "accelerate"))
    assert len(ours) == len(subjects) + 1  # and their average
    for name, scores in theirs.items():
        assert scores == pytest.approx(ours[name])
    details = [details_of(tmp_path / side) for side in ("custom", "accelerate")]
    for name in details[0]:
        for one, other in zip(details[0][name], details[1][name], strict=True):
            assert one["metric"] == other["metric"]
            assert one["model_response"]["logprobs"] == pytest.approx(other["model_response"]["logprobs"], abs=1e-4)
