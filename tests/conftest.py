"""What several tests share. Its first lines hold for every process that the tests start: no hub, one thread."""

import os
import signal

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # started in the background: the processes of tests would ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before the first import of a library that reads them; tests of the hub's client set their own.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"  # the tests run in as many processes as there are cores

import hypothesis
import pytest
from forked_commands import forking_server

# Other tests share the machine; CI judges a commit by the same examples each time, a developer's run draws others.
hypothesis.settings.register_profile("parallel", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("parallel")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: some tests wait, for servers that start and for programs that hang."""
    return (os.cpu_count() or 1) + 1


def pytest_configure(config):
    """The server of forked commands is one for all test processes."""
    if not hasattr(config, "workerinput"):
        server = forking_server()
        server.__enter__()
        config.add_cleanup(lambda: server.__exit__(None, None, None))


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))


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
