"""What the tests of the real command line share: tiny models, and a runner with the network cut."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from forked_commands import run_forked
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
def vllm_python():
    """The Python of an environment with vLLM, which is made where there is none."""
    named = os.environ.get("CULTUREVAL_TEST_VLLM_PYTHON")
    if named:
        return named
    folder = Path(__file__).parents[2] / ".venv-vllm"
    script = Path(__file__).with_name("make_vllm_environment.sh")
    subprocess.run([script, folder], check=True, timeout=800, env={**os.environ, "PYTHON": sys.executable})
    return str(folder / "bin" / "python")


@pytest.fixture(scope="session")
def no_network():
    """A command prefix that cuts the network."""
    return without_network()


READ_LATE = ("CULTUREVAL_", "COLUMNS", "HF_HUB_OFFLINE", "JUDGED_ROWS", "OPENAI_API_KEY", "PATH", "PYTHONPATH")


@pytest.fixture
def cultureval(tmp_path, tiny_bert, no_network):
    """Runs `cultureval ARGS` with the network cut, in a folder and with a cache of its own.

    It is a process of its own, forked from one that has loaded our modules and what they need; with `from_scratch`, or
    a variable that an interpreter or those modules read when they start, it is a new one that loads everything.
    """

    def run(*args: object, from_scratch: bool = False, **environment: str) -> subprocess.CompletedProcess:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "CULTUREVAL_"))}
        own = {"CULTUREVAL_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hf"), "COLUMNS": "200"}
        own["CULTUREVAL_BERTSCORE_MODEL"] = own["CULTUREVAL_CAPTION_BERTSCORE_MODEL"] = str(tiny_bert)
        own["CULTUREVAL_CAPTION_BERTSCORE_LAYER"] = "2"
        variables, arguments = kept | own | environment, list(map(str, args))
        if not from_scratch and all(name.startswith(READ_LATE) for name in environment):
            main = "cultureval.scripts.main"
            return run_forked(main, arguments, tmp_path, variables, network=not no_network, loaded="ours")
        command = [*no_network, sys.executable, "-m", "cultureval.scripts.main", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)

    return run
