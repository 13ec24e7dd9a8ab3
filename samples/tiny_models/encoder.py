"""A tiny BERT with random weights, built on the fly: BERTScore's model in the demo and the tests."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.samples.tiny_models.text_parts import CORPUS, WORDPIECE_SPECIAL

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def build_tiny_encoder(folder: Path, corpus: Sequence[str] = CORPUS, seed: int = 0) -> Path:
    """Writes a two-layer BERT and a WordPiece tokenizer of the corpus into a folder.

    Args:
        folder: Created if need be.
        corpus: What the tokenizer is made of.
        seed: Of the weights; the same arguments give the same files.

    Returns:
        The folder.
    """
    import torch
    from transformers import BertConfig, BertModel

    tokenizer = wordpiece_of(corpus)
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(folder)
    return Path(folder)


def wordpiece_of(corpus: Sequence[str] = CORPUS, most: int = 500) -> "PreTrainedTokenizerFast":
    """A BERT-like WordPiece tokenizer, which cuts at 512: the corpus's letters, then its words, `most` pieces in all.

    The tokenizers package's own trainer gives other pieces at every run.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    cut = pre_tokenizers.BertPreTokenizer()
    counts = Counter(word for text in corpus for word, _ in cut.pre_tokenize_str(text))
    letters = sorted({letter for word in counts for letter in word})
    words = sorted(counts, key=lambda word: (-counts[word], word))
    pieces = list(dict.fromkeys([*WORDPIECE_SPECIAL, *letters, *(f"##{letter}" for letter in letters), *words]))[:most]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = cut
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, mask_token="[MASK]", model_max_length=512, **names)
