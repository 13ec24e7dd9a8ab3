"""Tiny replacements for BERTScore's encoder and AL-QASIDA's classifiers, for the demo and the tests.

NADI and ALDi: BERT sequence classifiers with their label order and random weights. The language model: a fastText
classifier of letters. The SentencePiece model of spBLEU: trained on a few sentences.
"""

import struct
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.alqasida.names import COUNTRY_NAMES
from cultureval.samples.tiny_models.text_parts import CORPUS, WORDPIECE_SPECIAL

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def build_tiny_encoder(folder: Path, seed: int = 0) -> Path:
    """Writes a two-layer BERT and a WordPiece tokenizer into a folder.

    Args:
        seed: Of the weights; the same arguments give the same files.

    Returns:
        The folder.
    """
    import torch
    from transformers import BertConfig, BertModel

    tokenizer = wordpiece_of()
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
    """A BERT-like WordPiece tokenizer of at most `most` pieces: the corpus's letters, then its words.

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


SENTENCES = (
    "ذهب الطالب إلى المدرسة صباح اليوم وقرأ كتابا عن تاريخ المدينة القديمة",
    "عايز اروح السوق دلوقتي عشان اجيب شوية حاجات للبيت إنت فين يا عم بقالي ساعة مستنيك",
    "بغيت نمشي للسوق دابا باش نشري شي حوايج للدار فين كنتي هادي ساعة وأنا كنتسناك",
    "بدي روح عالسوق هلق لجيب كم غرض للبيت وينك صرلي ساعة ناطرك",
    "ابي اروح السوق الحين عشان اجيب اغراض للبيت وينك لي ساعة انتظرك",
    "the student went to school this morning and read a book about the old city",
    "Translate into English. Output only the translation.",
)
BUCKETS = 2**16


def build_tiny_instruments(folder: Path) -> dict[str, str]:
    """Builds all four below a folder.

    Returns:
        Setting -> path, for the metrics.
    """
    return {
        "nadi_model": str(build_tiny_nadi(folder / "tiny-nadi")),
        "aldi_model": str(build_tiny_aldi(folder / "tiny-aldi")),
        "lid_model": str(build_tiny_language_model(folder / "tiny-lid")),
        "flores200_model": str(build_tiny_sentencepiece(folder / "tiny-flores200.model")),
    }


def build_tiny_nadi(folder: Path, seed: int = 0, labels: Sequence[str] = COUNTRY_NAMES, **sizes: float) -> Path:
    """A country classifier with NADI's 18 labels in their order, and random weights.

    Args:
        **sizes: Settings of the BERT configuration that differ from the tiny ones.
    """
    numbers = {name: number for number, name in enumerate(labels)}
    return _build_classifier(folder, seed, id2label=dict(enumerate(labels)), label2id=numbers, **sizes)


def build_tiny_aldi(folder: Path, seed: int = 1, **sizes: float) -> Path:
    """A regressor with one output, as ALDi's, and random weights; arguments as in `build_tiny_nadi`."""
    return _build_classifier(folder, seed, num_labels=1, problem_type="regression", **sizes)


def build_tiny_language_model(folder: Path) -> Path:
    """A folder with a fastText `model.bin` that tells Arabic, Latin and Han letters apart.

    The file is written in fastText's own format (version 12): a softmax classifier over single characters, which are
    hashed as fastText hashes them; its labels look like those of FLORES-200. Nothing is trained.
    """
    classes = {"arb_Arab": range(0x0600, 0x0700), "eng_Latn": range(0x41, 0x7B), "zho_Hans": range(0x4E00, 0x9FA6)}
    rows = {1 + _bucket(chr(code)): number for number, codes in enumerate(classes.values()) for code in codes}
    vectors = [[float(rows.get(row) == column) for column in range(3)] for row in range(1 + BUCKETS)]
    vectors[0] = [0.0, 0.1, 0.0]  # the end of a line: a text without letters is English
    words = [("</s>", 0), *((f"__label__{name}", 1) for name in classes)]
    entries = b"".join(word.encode() + b"\0" + struct.pack("<qb", 1, kind) for word, kind in words)
    # dim ws epoch minCount neg wordNgrams loss=softmax model=supervised bucket minn maxn lrUpdateRate, t
    arguments = struct.pack("<12id", 3, 5, 1, 1, 5, 1, 3, 3, BUCKETS, 1, 1, 100, 0.0)
    dictionary = struct.pack("<3i2q", len(words), 1, len(classes), len(words), -1) + entries
    output = [[20.0 * (row == column) for column in range(3)] for row in range(3)]
    matrices = b"".join(b"\0" + _dense(matrix) for matrix in (vectors, output))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.bin").write_bytes(struct.pack("<2i", 793712314, 12) + arguments + dictionary + matrices)
    return folder


def build_tiny_sentencepiece(file: Path) -> Path:
    """A tiny SentencePiece model to replace that of FLORES-200."""
    import sentencepiece

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter((*SENTENCES, *CORPUS)),
            model_writer=stream,
            vocab_size=200,
            hard_vocab_limit=False,
            character_coverage=1.0,
            num_threads=1,
            minloglevel=2,
        )
    return file


def _bucket(character: str) -> int:
    """FastText's hash of a character n-gram: FNV-1a over signed bytes."""
    value = 2166136261
    for byte in character.encode():
        value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return value % BUCKETS


def _dense(matrix: list[list[float]]) -> bytes:
    values = [value for row in matrix for value in row]
    return struct.pack(f"<2q{len(values)}f", len(matrix), len(matrix[0]), *values)


def _build_classifier(folder: Path, seed: int, **settings: Any) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokenizer = wordpiece_of((*SENTENCES, *CORPUS))
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 512,
        "initializer_range": 0.4,  # larger than usual, so that scores of different texts differ
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        BertForSequenceClassification(BertConfig(**sizes | settings)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Path(folder)
