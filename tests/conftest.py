"""What several tests share. Its first lines hold for every process that the tests start: no hub, one thread."""

import gc
import os
import signal
import subprocess
import sys

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # started in the background: the processes of tests would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before the first import of a library that reads them; tests of the hub's client set their own.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"  # the tests run in as many processes as there are cores
os.environ.pop("COLUMNS", None)  # of the developer: lines would be folded

import hypothesis
import pytest
from forked_commands import forking_server

# Other tests share the machine; CI judges a commit by the same examples each time, a developer's run draws others.
for name, examples in (("fast", 25), ("slow", 50)):
    hypothesis.settings.register_profile(name, deadline=None, derandomize="CI" in os.environ, max_examples=examples)
hypothesis.settings.load_profile("fast")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: some tests wait, for servers that start and for programs that hang."""
    return (os.cpu_count() or 1) + 1


def pytest_configure(config):
    """The server of forked commands is one for all test processes."""
    if not hasattr(config, "workerinput"):
        server = forking_server()
        server.__enter__()
        config.add_cleanup(lambda: server.__exit__(None, None, None))


def pytest_collection_finish(session):
    """Sets aside what is loaded, which Python would look through for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def run_here(tmp_path, monkeypatch, capsys):
    """Runs `cultureval ARGS` in this process, which takes no second; in a folder and with a cache of its own."""
    from cultureval.scripts import main

    def run(*args: object, **environment: str) -> subprocess.CompletedProcess:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("CULTUREVAL_")]:
                patch.delenv(name)
            own = {"CULTUREVAL_CACHE": str(tmp_path / "cache")}
            for name, value in (own | environment).items():
                patch.setenv(name, value)
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", ["cultureval", *map(str, args)])
            with pytest.raises(SystemExit) as ended:
                main.main()
        return subprocess.CompletedProcess(args, ended.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def refusal(run_here):
    """The sentence with which `cultureval ARGS` refuses them; nothing else is printed."""

    def run(*args: object, **environment: str) -> str:
        told = run_here(*args, **environment)
        assert told.returncode == 2 and told.stdout == "" and "Traceback" not in told.stderr, told
        return told.stderr

    return run


@pytest.fixture(scope="session")
def tiny_instruments(tmp_path_factory):
    """Places of AL-QASIDA's tiny instruments, by the names of their settings."""
    from cultureval.samples.tiny_models.classifiers import build_tiny_instruments

    return build_tiny_instruments(tmp_path_factory.mktemp("instruments"))


@pytest.fixture(scope="session")
def arabic_bert(tmp_path_factory):
    """Folder of a tiny BERT with fixed random weights and a WordPiece tokenizer of Arabic and Latin letters."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    letters = [chr(code) for code in range(0x0621, 0x064B)] + list("abcdefghijklmnopqrstuvwxyz0123456789.,؛{}")
    words = [*special.values(), "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    wordpiece = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer()
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    markers = [(word, words.index(word)) for word in ("[CLS]", "[SEP]")]
    wordpiece.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=markers)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=wordpiece, mask_token="[MASK]", **special)

    folder = tmp_path_factory.mktemp("arabic_bert")
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64
    )
    with torch.random.fork_rng():
        torch.manual_seed(20260403)
        BertModel(config).save_pretrained(folder)
    return str(folder)
