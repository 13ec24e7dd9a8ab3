"""Scores as others' files: the Every Eval Ever schema by its own check, model cards by the hub's own reader."""

import json

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from planted import choice_row, plant, text_row
from typer.testing import CliRunner

from cultureval.reports.leaderboard.travelling import export
from cultureval.runs.loading import load
from cultureval.runs.record import ModelRecord, SignatureRecord, TimingRecord
from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.main import app

CFHR = [f"m2cqa:tf_{one}|0" for one in ("en", "msa", "ajp", "arz")]
TRUST, REPO = "qimma_aratrust|0", "asas-ai/AraTrust-categorized"


@pytest.fixture
def runs(tmp_path):
    """Of a hub's model and a folder's: a choice task of the hub at a commit, a part of a group, and captions."""
    report = {TRUST: {"source": REPO, "revision": "5a1b", "fingerprint": "f1", "form": "original", "prompt": "p1"}}
    record = {
        "signatures": (SignatureRecord(group=TRUST, fields={}, text="task:aratrust|rows:40"),),
        "timing": TimingRecord(started="2026-11-01T10:00:00+00:00"),
        "versions": {"cultureval": "0.3.0", "transformers": "5.18.0"},
    }
    about = ModelRecord(
        backend="transformers",
        dtype="bfloat16",
        settings={"temperature": 0.6, "max_new_tokens": 64, "adapter": "/home/x"},
    )
    rows = {TRUST: [choice_row(number, number % 3 > 0) for number in range(40)]}
    rows |= {
        task: [text_row(number, {"cfhr": float(number % 2), "q_plus_acc": 1.0}) for number in range(9)] for task in CFHR
    }
    plant(tmp_path, rows, "lab/model-7B", record=record, about=about, reports=report)
    file = plant(tmp_path, {TRUST: rows[TRUST]}, "folder", record=record, about=about, reports=report)
    content = json.loads(file.read_text(encoding="utf-8"))
    content["config_general"]["model_name"] = "/home/someone/final"
    file.write_text(json.dumps(content), encoding="utf-8")
    return load(tmp_path).runs


def test_an_every_eval_ever_file_has_the_runs_numbers_and_no_text_or_path(runs, tmp_path):
    files, left_out = export(runs, tmp_path / "out", "eee")
    assert len(files) == 2 and left_out == []
    for run in runs:
        (file,) = (file for file in files if run.model.rpartition("/")[2] in file.parts)
        text = file.read_text(encoding="utf-8")
        found = {
            (one["evaluation_name"], one["metric_config"]["metric_name"]): one
            for one in json.loads(text)["evaluation_results"]
        }
        assert {place for place in found if "_average" not in place[0]} == {
            (task, metric) for task, scores in run.scores.items() for metric in scores
        }
        for (task, metric), one in found.items():
            score, told = run.score(task, metric), one["score_details"]
            assert told["score"] == score.value and told["uncertainty"]["num_samples"] == score.n
            if score.error is not None:
                assert told["uncertainty"]["standard_error"]["value"] == score.error
                interval = told["uncertainty"]["confidence_interval"]
                assert (interval["lower"], interval["upper"]) == (score.low, score.high)
        one = found[TRUST, "acc_norm"]
        assert one["source_data"]["hf_repo"] == REPO and one["source_data"]["additional_details"]["revision"] == "5a1b"
        assert one["score_details"]["details"]["signature"] == "task:aratrust|rows:40"
        assert one["generation_config"]["additional_details"]["rows"] == "f1"
        assert one["generation_config"]["generation_args"] == {}, "choices are scored, not generated"
        assert all(private not in text for private in ("سؤال", "خيار", "صف الصورة", "جواب", "/home"))
        if run.model == "lab/model-7B":
            captions = found[CFHR[0], "cfhr"]
            assert captions["metric_config"]["lower_is_better"]
            assert captions["generation_config"]["generation_args"] == {"temperature": 0.6, "max_tokens": 64}
    assert export(runs, tmp_path / "out", "eee")[0] == files, "a second export replaces the first"


def test_the_command_writes_files_alone(runs, tmp_path):
    line = ["leaderboard", str(tmp_path), "--out", str(tmp_path / "out"), "--export", "model-card"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0 and "2 files of model-card" in done.stdout and not (tmp_path / "out/index.html").exists()
    with pytest.raises(CulturevalError, match="--export writes files alone"):
        CliRunner().invoke(app, [*line, "--publish", "lab"], catch_exceptions=False)


def test_every_eval_ever_takes_the_files(runs, tmp_path):
    """Its package is no dependency of developers: 0.3 needs rich below 15. By PYTHONPATH it runs on any Python."""
    checks = pytest.importorskip("every_eval_ever.validator.validation_core", reason="every-eval-ever is not there")
    for file in export(runs, tmp_path, "eee")[0]:
        place = file.relative_to(tmp_path).as_posix()
        report = checks.validate_file(file, repo_path=place, run_semantic_checks=True)
        assert report.valid and report.errors == []


def test_a_model_card_has_whole_benchmarks_of_the_hub(runs, tmp_path):
    files, left_out = export(runs, tmp_path / "out", "model-card")
    for file in files:
        assert file.parent.name == ".eval_results"
        entries = parse_eval_result_entries(yaml.safe_load(file.read_text(encoding="utf-8")))
        entry = next(entry for entry in entries if entry.task_id == "qimma_aratrust")
        score = runs[0].score(TRUST, "acc_norm")
        assert (entry.dataset_id, entry.dataset_revision, entry.value) == (REPO, "5a1b", score.value)
        assert entry.date == "2026-11-01T10:00:00+00:00"
        assert "task:aratrust|rows:40" in entry.notes and f"{score.error:.6g}" in entry.notes


def test_parts_of_benchmarks_samples_and_limited_rows_are_on_no_card(tmp_path):
    task = "qimma_arabculture:Algeria|0"
    rows = [choice_row(number, True) for number in range(5)]
    plant(tmp_path / "part", {task: rows}, reports={task: {"source": "MBZUAI/ArabCulture"}})
    plant(tmp_path / "limit", {TRUST: rows}, reports={TRUST: {"source": REPO}}, limit=5)
    for name, reason in (("part", ""), ("limit", "--limit")):
        with pytest.raises(CulturevalError, match=f"no recorded score.*{reason}"):
            export(load(tmp_path / name).runs, tmp_path / "out", "model-card")
    assert not (tmp_path / "out").exists()
    (file,), _ = export(load(tmp_path / "part").runs, tmp_path / "out", "eee")
    names = {one["evaluation_name"] for one in json.loads(file.read_text())["evaluation_results"]}
    assert names == {task}, "a part has no average of its group"
