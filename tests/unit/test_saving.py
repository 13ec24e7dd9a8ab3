"""LightEval's options on what is kept and uploaded: refused before the run where they cannot be fulfilled."""

import json
from dataclasses import asdict

import pytest
from datasets import Dataset

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.tracker import Tracker
from cultureval.runtime.saving import Saving

WANDB = """
logged = []
def login(): pass
def init(project, resume): return Run(project)
class Run:
    def __init__(self, project): self.project = project
    def log(self, scores): logged.append((self.project, scores))
    def finish(self): logged.append("finished")
"""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))


@pytest.mark.parametrize(
    "saving, words",
    [
        (Saving(push_to_hub=""), ["--push-to-hub needs the name", "login", "HF_HUB_OFFLINE"]),
        (Saving(wandb=True), ["pip install trackio", "WANDB_PROJECT"]),
    ],
)
def test_what_cannot_be_done_is_said_before_the_run_all_at_once(saving, words):
    with pytest.raises(CulturevalError) as error:
        saving.check()
    assert all(word in str(error.value) for word in words)


def tracker_of(folder, saving):
    from lighteval.models.abstract_model import ModelConfig

    saving.check()
    tracker = Tracker(output_dir=str(folder), **saving.tracker_options())
    tracker.general_config_logger.log_model_info(ModelConfig(model_name="org/model"))
    tracker.metrics_logger.metric_aggregated["task|0"] = {"acc": 0.5}
    return tracker


def test_results_and_summary_stand_together_without_details_that_nobody_wants(tmp_path):
    tracker = tracker_of(tmp_path, Saving(log_samples=False))
    tracker.save()
    summary = tracker.save_summary("a table")
    assert tracker.results_file.parent == summary.parent == tmp_path / "results" / "org" / "model"
    assert json.loads(tracker.results_file.read_text())["results"] == {"task|0": {"acc": 0.5}}
    assert not (tmp_path / "details").exists()


def test_a_run_that_is_stopped_while_it_saves_leaves_no_part_of_it(tmp_path, monkeypatch):
    class Stopped:
        def to_parquet(self, file):
            file.write(b"half")
            raise KeyboardInterrupt

    tracker = tracker_of(tmp_path, Saving())
    tracker.details_logger.details |= {"one|0": [], "two|0": []}
    found = iter([Dataset.from_list([{"doc": 1}]), Stopped()])
    monkeypatch.setattr("cultureval.runtime.patches.lighteval.tracker.as_dataset", lambda _: next(found))
    with pytest.raises(KeyboardInterrupt):
        tracker.save()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


def test_scores_are_logged_where_it_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "wandb.py").write_text(WANDB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("WANDB_PROJECT", "arabic")
    tracker_of(tmp_path / "out", Saving()).save()
    import wandb

    assert wandb.logged == []
    tracker = tracker_of(tmp_path / "out", Saving(wandb=True))
    tracker.save()
    assert wandb.logged == [("arabic", {"task|0": {"acc": 0.5}}), "finished"] and tracker.failed_uploads == []


def test_a_failed_upload_loses_nothing_that_was_saved(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")  # the library itself, which was imported earlier, stays offline
    tracker = tracker_of(tmp_path, Saving(push_to_hub="me"))
    tracker.save()
    assert tracker.results_file.is_file()
    assert len(tracker.failed_uploads) == 1 and tracker.failed_uploads[0].startswith("--push-to-hub failed (Offline")


def test_details_of_gated_data_are_not_uploaded_and_results_without_details_are(caplog):
    from cultureval.runtime.patches.lighteval.tracker import public_details, upload_public

    details = {"jeem_vqa:ma|0": 1, "qimma_gat|0": 2}
    assert public_details(details, {"jeem_vqa:ma|0"}) == {"qimma_gat|0": 2} and "gated" in caplog.text
    assert public_details(details, None) == {} and public_details(details, ()) == details
    upload_public(lambda: [][0], {})
    with pytest.raises(IndexError):
        upload_public(lambda: [][0], details)


def test_details_are_those_of_asdict_whose_tokens_are_not_copied():
    from lighteval.logging.info_loggers import DetailsLogger
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    from cultureval.runtime.patches.lighteval.tracker import as_dataset, as_dict

    example = Doc(query="سؤال", choices=["أ", "ب"], gold_index=0, specific={"place": {"row": 1}})
    doc = Doc(query="سؤال آخر", choices=["أ", "ب"], gold_index=[0, 1], id="1", fewshot_samples=[example])
    response = ModelResponse(input_tokens=[[1, 2], [1, 3]], output_tokens=[[4], [5]], logprobs=[-1.0, None])
    detail = DetailsLogger.Detail(doc=doc, model_response=response, metric={"acc": 1.0, "judged": {"text": "نعم"}})
    found = as_dict(detail)
    assert found == asdict(detail)
    assert found["model_response"]["input_tokens"][0] is response.input_tokens[0]
    assert as_dataset([detail]).column_names == ["doc", "metric", "model_response"]
