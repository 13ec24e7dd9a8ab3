"""LightEval's own upload of results and details, to a local server with the hub's endpoints."""

import json
import os
import subprocess
import sys

from writable_hub import serve_writable_hub

# The library checks a card at a fixed address, whatever HF_ENDPOINT is.
UPLOAD = """
import os
from types import SimpleNamespace
import huggingface_hub.repocard as cards
from lighteval.models.abstract_model import ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from cultureval.runtime.lighteval_patches.recording_tracker import recording_tracker
from cultureval.runtime.saving import Saving

session, here = cards.get_session(), os.environ["HF_ENDPOINT"]
post = lambda url, **more: session.post(url.replace("https://huggingface.co", here), **more)
cards.get_session = lambda: SimpleNamespace(post=post)
saving = Saving(push_to_hub=True, results_org="lab")
saving.check()
tracker = recording_tracker(output_dir="out", **saving.tracker_options())
tracker.general_config_logger.log_model_info(ModelConfig(model_name="org/model"))
tracker.metrics_logger.metric_aggregated["task|0"] = {"acc": 0.5}
doc = Doc(query="سؤال", choices=["a"], gold_index=0)
tracker.details_logger.log("task|0", doc, ModelResponse(text=["a"]), {"acc": 1})
tracker.sections["cultureval"] = {"schema": 1}
tracker.save()
print(*tracker.failed_uploads)
"""


def test_results_and_details_arrive_as_they_are_saved(tmp_path):
    import pyarrow.parquet

    with serve_writable_hub() as (address, hub):
        variables = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        variables |= {"HF_ENDPOINT": address, "HF_TOKEN": "hf_test", "HF_HOME": str(tmp_path / "hf")}
        variables |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0", "CULTUREVAL_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(
            [sys.executable, "-c", UPLOAD], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300
        )
    assert done.stdout == "\n" and done.returncode == 0, done.stdout + done.stderr
    (asked,) = hub.created
    assert asked["visibility"] == "private" and hub.tokens == {"Bearer hf_test"}
    ((name, files),) = hub.files.items()
    assert name == "datasets/lab/details_org__model_private"
    (saved,) = tmp_path.glob("out/results/org/model/results_*.json")
    (details,) = tmp_path.glob("out/details/org/model/*/details_*.parquet")
    assert json.loads(files[saved.name]) == json.loads(saved.read_text(encoding="utf-8"))
    assert json.loads(files[saved.name])["cultureval"] == {"schema": 1}
    (tmp_path / "sent.parquet").write_bytes(files[f"{details.parent.name}/{details.name}"])
    sent, kept = (pyarrow.parquet.read_table(file).to_pylist() for file in (tmp_path / "sent.parquet", details))
    assert sent == kept and sent[0]["doc"]["query"] == "سؤال"
    assert "config_name: results" in files["README.md"].decode() and saved.with_suffix(".parquet").name in files
