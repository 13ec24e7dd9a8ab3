"""What the tests of the real command line share: tiny models, and a runner with the network cut."""

import subprocess
import sys

import pytest
from forked_commands import LIBRARIES, own_variables, run_forked
from network import without_network
from vllm_environment import python_with_vllm

from cultureval.runtime.settings import variable_of
from cultureval.samples.tiny_models.classifiers import build_tiny_encoder
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm, build_tiny_vision_lm
from cultureval.samples.tiny_models.text_parts import train_tokenizer


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
def tokenizer_folder(tmp_path_factory):
    """A tokenizer without a chat template."""
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def encoder_variables(tiny_bert):
    """The tiny encoder as every BERTScore's model, in environment variables."""
    names = ("CULTUREVAL_BERTSCORE_MODEL", "CULTUREVAL_CAPTION_BERTSCORE_MODEL")
    return dict.fromkeys(names, str(tiny_bert)) | {"CULTUREVAL_CAPTION_BERTSCORE_LAYER": "2"}


@pytest.fixture(scope="session")
def instrument_variables(tiny_instruments):
    """The tiny instruments in environment variables."""
    return {variable_of(name): place for name, place in tiny_instruments.items()}


@pytest.fixture(scope="session")
def vllm_python():
    return python_with_vllm()


@pytest.fixture
def own_folders(tmp_path, monkeypatch):
    """A cache and a journal of the test's own."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))


@pytest.fixture(scope="session")
def no_network():
    """A command prefix that cuts the network."""
    return without_network()


@pytest.fixture
def refusal(refusal, encoder_variables):
    """The sentence with which `cultureval ARGS` refuses them; every BERTScore's model is the tiny encoder."""
    return lambda *args, **environment: refusal(*args, **encoder_variables | environment)


READ_LATE = ("CULTUREVAL_", "COLUMNS", "HF_HUB_OFFLINE", "JUDGED_ROWS", "OPENAI_API_KEY", "PATH", "PYTHONPATH")


@pytest.fixture
def cultureval(tmp_path, encoder_variables, no_network):
    """Runs `cultureval ARGS` with the network cut, in a folder and with a cache of its own.

    It is a process of its own, forked from one that has loaded our modules and what they need; with `from_scratch`
    from one that has loaded torch and the like alone, so that it loads ours and LightEval by itself; with a variable
    that an interpreter or those modules read when they start it is a new one that loads everything.
    """

    def run(*args: object, from_scratch: bool = False, **environment: str) -> subprocess.CompletedProcess:
        variables, arguments = own_variables(tmp_path) | encoder_variables | environment, list(map(str, args))
        if all(name.startswith(READ_LATE) for name in environment):
            main, loaded = "cultureval.scripts.main", LIBRARIES if from_scratch else "ours"
            return run_forked(main, arguments, tmp_path, variables, network=not no_network, loaded=loaded)
        command = [*no_network, sys.executable, "-m", "cultureval.scripts.main", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)

    return run
