"""What the tests of the real command line share: tiny models, a runner with the network cut, and readers of results."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cultureval.scripts.tiny_encoder import build_tiny_encoder
from cultureval.scripts.tiny_model import build_tiny_causal_lm


@pytest.fixture(scope="session")
def tiny_lm(tmp_path_factory):
    return build_tiny_causal_lm(tmp_path_factory.mktemp("models") / "tiny-llama", max_position_embeddings=2048)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    return build_tiny_encoder(tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture(scope="session")
def no_network():
    """A command prefix that cuts the network, where the machine permits it."""
    command = ["unshare", "--map-root-user", "--net"]
    permitted = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if permitted else []


@pytest.fixture
def cultureval(tmp_path, tiny_bert, no_network):
    """Runs `cultureval ARGS` with the network cut, in a folder and with a cache of its own."""

    def run(*args: object, **environment: str) -> subprocess.CompletedProcess:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "CULTUREVAL_"))}
        own = {"CULTUREVAL_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf"), "COLUMNS": "200"}
        own["CULTUREVAL_BERTSCORE_MODEL"] = str(tiny_bert)
        command = [*no_network, sys.executable, "-m", "cultureval.scripts.main", *map(str, args)]
        variables = kept | own | environment
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)

    return run


def results_of(folder: Path) -> dict:
    """The one results file below an output folder."""
    (file,) = folder.glob("results/**/results_*.json")
    return json.loads(file.read_text(encoding="utf-8"))


def details_of(folder: Path) -> dict[str, list[dict]]:
    """Rows of each task's details file: `doc`, `model_response` and `metric`, in LightEval's order."""
    import pyarrow.parquet

    files = folder.glob("details/**/details_*.parquet")
    return {
        file.name.removeprefix("details_").rpartition("_")[0]: pyarrow.parquet.read_table(file).to_pylist()
        for file in files
    }
