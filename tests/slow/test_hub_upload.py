"""LightEval's own upload of results and details, to a local server with the hub's endpoints."""

import io
import json

import pyarrow.parquet
import pytest
from forked_commands import own_variables, run_forked
from planted import choice_row, plant, text_row
from writable_hub import WritableHub

from cultureval.reports.leaderboard import publishing
from cultureval.reports.leaderboard.publishing import publications
from cultureval.runtime.errors import CulturevalError

# The library checks a card at a fixed address, whatever HF_ENDPOINT is.
UPLOAD = """
import os
from types import SimpleNamespace
import huggingface_hub.repocard as cards
from lighteval.models.abstract_model import ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from cultureval.runtime.patches.lighteval.tracker import Tracker
from cultureval.runtime.saving import Saving

session, here = cards.get_session(), os.environ["HF_ENDPOINT"]
post = lambda url, **more: session.post(url.replace("https://huggingface.co", here), **more)
cards.get_session = lambda: SimpleNamespace(post=post)
saving = Saving(push_to_hub="lab")
saving.check()
tracker = Tracker(output_dir="out", **saving.tracker_options())
tracker.general_config_logger.log_model_info(ModelConfig(model_name="org/model"))
tracker.metrics_logger.metric_aggregated["task|0"] = {"acc": 0.5}
doc = Doc(query="سؤال", choices=["a"], gold_index=0)
tracker.details_logger.log("task|0", doc, ModelResponse(text=["a"]), {"acc": 1})
tracker.details_logger.log("jeem_vqa:ma|0", doc, ModelResponse(text=["a"]), {"acc": 1})
tracker.withheld = {"jeem_vqa:ma|0"}
tracker.sections["cultureval"] = {"schema": 1}
tracker.save()
print(*tracker.failed_uploads)
"""


def run_at(address, folder, code, *arguments):
    """Runs a program that may reach the local hub, and is logged in there."""
    (folder / "program.py").write_text(code, encoding="utf-8")
    variables = own_variables(folder) | {"HF_ENDPOINT": address, "HF_TOKEN": "hf_test", "HF_HUB_OFFLINE": "0"}
    variables["HF_HUB_DISABLE_XET"] = "1"
    return run_forked("program", arguments, folder, variables, network=True, timeout=300, loaded="ours")


def test_results_and_details_arrive_as_they_are_saved(tmp_path):
    with WritableHub() as hub:
        done = run_at(hub.url, tmp_path, UPLOAD)
    assert done.stdout == "\n" and done.returncode == 0, done.stdout + done.stderr
    (asked,) = hub.created
    assert asked["visibility"] == "private" and hub.tokens == {"Bearer hf_test"}
    ((name, files),) = hub.files.items()
    assert name == "datasets/lab/details_org__model_private"
    (saved,) = tmp_path.glob("out/results/org/model/results_*.json")
    details, gated = sorted(tmp_path.glob("out/details/org/model/*/details_*.parquet"), reverse=True)
    assert gated.name.startswith("details_jeem") and not any("jeem" in file for file in files)
    assert json.loads(files[saved.name]) == json.loads(saved.read_text(encoding="utf-8"))
    assert json.loads(files[saved.name])["cultureval"] == {"schema": 1}
    (tmp_path / "sent.parquet").write_bytes(files[f"{details.parent.name}/{details.name}"])
    sent, kept = (pyarrow.parquet.read_table(file).to_pylist() for file in (tmp_path / "sent.parquet", details))
    assert sent == kept and sent[0]["doc"]["query"] == "سؤال"
    assert "config_name: results" in files["README.md"].decode() and saved.with_suffix(".parquet").name in files


PUSH = """
from pathlib import Path
from cultureval.reports.leaderboard import publishing
from cultureval.reports.leaderboard.publishing import publications
publishing.check_space("lab/board")
print(publishing.push_space(Path("site"), "lab/board", public=False))
"""


def test_a_leaderboard_becomes_a_static_space(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<!doctype html>")
    (site / "README.md").write_text(publishing.space_card("---\nevil: 1\n"))
    with WritableHub() as hub:
        done = run_at(hub.url, tmp_path, PUSH)
    assert done.stdout == f"{hub.url}/spaces/lab/board\n", done.stderr
    (asked,) = hub.created
    assert (asked["type"], asked["sdk"], asked["visibility"]) == ("space", "static", "private")
    assert hub.files["spaces/lab/board"]["index.html"] == b"<!doctype html>"
    assert b'title: "---\\\\nevil: 1\\\\n"\nsdk: static' in hub.files["spaces/lab/board"]["README.md"]
    with pytest.raises(CulturevalError, match="ORG/NAME"):
        publishing.check_space("../../board")


PUBLISH = """
import os, sys
from types import SimpleNamespace
import huggingface_hub.repocard as cards
from cultureval.scripts.main import main
session, here = cards.get_session(), os.environ["HF_ENDPOINT"]
cards.get_session = lambda: SimpleNamespace(post=lambda url, **more: session.post(
    url.replace("https://huggingface.co", here), **more))
main()
"""
SECRET = "نص لا يجوز نشره"


def test_finished_results_are_published_when_asked_and_nothing_gated_with_them(tmp_path):

    root = tmp_path / "results"
    secret = [{**text_row(0, {"cider": 0.5, "cfhr": 0.5}), "model_response": {"text": [SECRET]}}]
    tasks = {"qimma_aratrust|0": [choice_row(0, True)], "jeem_vqa:ma|0": secret, "m2cqa:tf_en|0": secret}
    plant(root, tasks, "lab/a b", "2026-11-01T10-00-00")
    (saved,) = root.rglob("results_*.json")
    content = json.loads(saved.read_text(encoding="utf-8"))
    bad = {"skipped_rows": [{"file": "a.parquet", "row": 3, "value": SECRET, "reason": SECRET}]}
    content["config_tasks"]["jeem_vqa:ma|0"]["rows_report"] = bad
    saved.write_text(json.dumps(content), encoding="utf-8")
    plant(root, {"qimma_aratrust|0": [choice_row(0, True)]}, "lab/a b", "2026-11-02T10-00-00", stock=True)
    (second,) = root.rglob("results_2026-11-02*.json")
    content = json.loads(second.read_text(encoding="utf-8"))
    content["config_tasks"]["their_own_gated_suite|0"] = {"rows_report": bad}
    second.write_text(json.dumps(content), encoding="utf-8")
    (unknown,) = root.rglob("2026-11-02*/details_*")
    unknown.rename(unknown.with_name(unknown.name.replace("qimma_aratrust", "their_own_gated_suite")))

    told = "\n".join(one.sentence() for one in publications([root]))
    assert "not the details of jeem_vqa:ma|0, m2cqa:tf_en|0, whose data are gated" in told
    assert "not the details of their_own_gated_suite|0, whose data are gated, or which no suite here has" in told
    with WritableHub() as hub:
        done = run_at(hub.url, tmp_path, PUBLISH, "leaderboard", str(root), "--publish", "lab")
    assert done.returncode == 0 and done.stderr.count("sent to lab") == 2, done.stderr
    assert {asked["visibility"] for asked in hub.created} == {"private"}
    ((name, files),) = hub.files.items()
    assert name == "datasets/lab/details_lab__a_b_private"
    details = [path for path in files if "/details_" in path]
    assert details == ["2026-11-01T10-00-00/details_qimma_aratrust|0_2026-11-01T10-00-00.parquet"]
    assert {f"results_2026-11-0{day}T10-00-00.{kind}" for day in (1, 2) for kind in ("json", "parquet")} < {*files}
    kept = next(root.rglob("2026-11-01*/details_qimma*"))
    assert pyarrow.parquet.read_table(io.BytesIO(files[details[0]])).equals(pyarrow.parquet.read_table(kept))
    forms = (SECRET.encode(), json.dumps(SECRET)[1:-1].encode())
    assert not any(form in sent for form in forms for sent in files.values())
    sent = json.loads(files["results_2026-11-01T10-00-00.json"])
    assert sent["config_tasks"]["jeem_vqa:ma|0"]["rows_report"]["skipped_rows"] == [{"file": "a.parquet", "row": 3}]
    assert sent["results"] == json.loads(saved.read_text(encoding="utf-8"))["results"]
    assert "config_name: results" in files["README.md"].decode()
