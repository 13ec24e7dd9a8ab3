"""From prompts and choices to tokens: the example of docs/qimma.md, and what takes precedence."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, models, normalizers
from transformers import PreTrainedTokenizerFast

from cultureval.models.tokens import encode_pairs, encoder_of

PAGE = Path(__file__).parents[2] / "docs" / "qimma.md"
SETTINGS = SimpleNamespace(add_special_tokens="auto", pairwise_tokenization=None)


@pytest.fixture(scope="module")
def tokenizer():
    """The tokenizer of the example: of its merges, those at the end of the prompt come before that of its beginning."""
    merges = [("▁", "س"), ("▁", "أ"), ("▁", "ب"), ("▁", "ج"), (":", "أ"), (":", "ج"), ("▁س", ":ج")]
    tokens = ["▁", "س", "أ", "ب", "ج", ":", *("".join(pair) for pair in merges)]
    bpe = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    bpe.normalizer = normalizers.Prepend("▁")
    return PreTrainedTokenizerFast(tokenizer_object=bpe)


def test_the_example_of_the_documentation(tokenizer):
    table = re.findall(r"^\| `([أبج])` \| (.*?) \| (.*?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    labels = [label for label, *_ in table]
    assert labels == ["أ", "ب", "ج"]
    for column, parity in enumerate(("paper", "sound"), start=1):
        encoder = encoder_of(tokenizer, SETTINGS, False, parity)
        pairs = zip(*encoder.tok_encode_pair("س:", labels, encoder.apart), strict=True)
        for line, tokens in zip(table, pairs, strict=True):
            context, choice = map(tokenizer.convert_ids_to_tokens, tokens)
            written = re.findall(r"(\*\*)?`([^`]+)`", line[column])
            assert context == [token for bold, token in written if not bold]
            assert choice == [token for bold, token in written if bold]


@pytest.mark.parametrize("parity", [None, "sound", "paper"])
@pytest.mark.parametrize("writes_bos", [True, False])
def test_settings_come_before_parity(tokenizer, parity, writes_bos):
    def made(switch, pairwise):
        settings = SimpleNamespace(add_special_tokens=switch, pairwise_tokenization=pairwise)
        encoder = encoder_of(tokenizer, settings, writes_bos, parity)
        return encoder.add_special_tokens, encoder.apart

    paper = parity == "paper"
    assert made("auto", None) == (paper or not writes_bos, not paper)
    assert made("on", True) == (True, True) and made("off", False) == (False, False)


def test_texts_encoded_together_have_the_tokens_of_each(tokenizer):
    encoders = [encoder_of(tokenizer, SETTINGS, False, parity) for parity in ("paper", "sound")]
    asked = [(encoder, prompt, ["أ", "ج", ""]) for encoder in encoders for prompt in ("س:", "س: ", "بس:", "")]
    apart = [encoder.tok_encode_pair(prompt, choices, encoder.apart) for encoder, prompt, choices in asked]
    assert encode_pairs(asked) == apart
    assert len({str(pair) for pair in apart}) > 4
