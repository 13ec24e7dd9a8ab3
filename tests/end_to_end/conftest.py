"""What the tests of the real command line share: tiny models, and a runner with the network cut."""

import os
import subprocess
import sys

import pytest
from network import without_network

from cultureval.samples.tiny_models.encoder import build_tiny_encoder
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm, build_tiny_vision_lm


@pytest.fixture(scope="session")
def tiny_lm(tmp_path_factory):
    return build_tiny_causal_lm(tmp_path_factory.mktemp("models") / "tiny-llama", max_position_embeddings=2048)


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory):
    return build_tiny_vision_lm(tmp_path_factory.mktemp("models") / "tiny-llava", max_position_embeddings=2048)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    return build_tiny_encoder(tmp_path_factory.mktemp("models") / "tiny-bert")


@pytest.fixture(scope="session")
def no_network():
    """A command prefix that cuts the network."""
    return without_network()


@pytest.fixture
def cultureval(tmp_path, tiny_bert, no_network):
    """Runs `cultureval ARGS` with the network cut, in a folder and with a cache of its own."""

    def run(*args: object, **environment: str) -> subprocess.CompletedProcess:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "CULTUREVAL_"))}
        own = {"CULTUREVAL_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf"), "COLUMNS": "200"}
        own["CULTUREVAL_BERTSCORE_MODEL"] = own["CULTUREVAL_CAPTION_BERTSCORE_MODEL"] = str(tiny_bert)
        own["CULTUREVAL_CAPTION_BERTSCORE_LAYER"] = "2"
        command = [*no_network, sys.executable, "-m", "cultureval.scripts.main", *map(str, args)]
        variables = kept | own | environment
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)

    return run
