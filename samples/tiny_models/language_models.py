"""Tiny models with random weights, built on the fly: for the demo, the tests and the benchmark.

They answer nonsense, but every part of the way is real: a folder that `from_pretrained` reads, a byte-level tokenizer
trained on a few Arabic and Chinese sentences of our own, a chat template where one is wanted. The same arguments give
the same files.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerFast

TextFamily = Literal["llama", "qwen2", "gemma3"]
VisionFamily = Literal[
    "llava", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "gemma3_vision", "internvl", "idefics3", "smolvlm"
]

BOS, EOS, PAD, IMAGE = "<s>", "</s>", "<pad>", "<image>"
VISION_START, VISION_END = "<|vision_start|>", "<|vision_end|>"
IMAGE_SIZE, PATCH_SIZE = 32, 8

CORPUS = (
    "السؤال: ما هي عاصمة المغرب؟ أ. الرباط ب. فاس ج. مراكش د. طنجة هـ. أكادير الإجابة:",
    "اقرأ الفقرة التالية ثم أجب عن السؤال باختيار الحرف الصحيح من بين الخيارات.",
    "يشرب الناس الشاي بالنعناع في الأعراس والمناسبات، ويقدمون التمر والحليب للضيوف.",
    "شنو كتاكلو نهار الجمعة؟ كناكلو الكسكس مع الدار كاملة.",
    "إيه اللي باين في الصورة؟ راجل قاعد على القهوة وبيشرب شاي.",
    "وش فيه بالصورة؟ فيه ناس لابسين ثوب وجالسين بالمجلس.",
    "春节的时候，北方人包饺子，南方人做年糕。图片里有几个人？",
    "Read the question and answer with one letter only. A. B. C. D. E. Answer:",
)

_TEXT_TURNS = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' }}"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}{{ '[IMAGE]' }}{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
    "{{ eos_token + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)


def train_tokenizer(
    corpus: Sequence[str] = CORPUS, vocabulary: int = 800, chat_template: bool = False, image_slot: str = ""
) -> "PreTrainedTokenizerFast":
    """A byte-level BPE tokenizer that encodes any string and puts BOS in front of it.

    Args:
        corpus: What it is trained on.
        vocabulary: Its size at most; a small corpus gives fewer tokens.
        chat_template: Whether it carries a chat template.
        image_slot: What the chat template writes for an image.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = [BOS, EOS, PAD, IMAGE, VISION_START, VISION_END, "<|system|>", "<|user|>", "<|assistant|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
    )
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BOS, eos_token=EOS, pad_token=PAD)
    if chat_template:
        wrapped.chat_template = _TEXT_TURNS.replace("[IMAGE]", image_slot)
    return wrapped


def build_tiny_causal_lm(
    folder: Path,
    family: TextFamily = "llama",
    chat_template: bool = False,
    seed: int = 0,
    tokenizer: "PreTrainedTokenizerFast | None" = None,
    **sizes: int,
) -> Path:
    """Write a text model with random weights and its tokenizer into a folder.

    Args:
        folder: Created if need be.
        family: Architecture; gemma3 has sliding-window layers with a window of 8 tokens.
        chat_template: Whether the tokenizer carries a chat template.
        seed: Of the weights.
        tokenizer: One of `train_tokenizer`; None trains the default one.
        **sizes: Settings of the transformers configuration that differ from the tiny ones, e.g. `hidden_size=512`.

    Returns:
        The folder.
    """
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = tokenizer or train_tokenizer(chat_template=chat_template)
    config = text_config(family, tokenizer, **sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Path(folder)


def build_tiny_vision_lm(
    folder: Path,
    family: VisionFamily = "llava",
    chat_template: bool = True,
    seed: int = 0,
    tokenizer: "PreTrainedTokenizerFast | None" = None,
    image_size: int = IMAGE_SIZE,
    patch_size: int = PATCH_SIZE,
    **sizes: int,
) -> Path:
    """Write an image-text-to-text model with random weights and its processor into a folder.

    Args:
        folder: Created if need be.
        family: See `vision_families`; llava sees every image as 16 tokens.
        chat_template: Whether the processor carries a chat template.
        seed: Of the weights.
        tokenizer: One of `train_tokenizer`, with a chat template that writes `image_slot(family)` for an image.
        image_size: Side of the images that llava sees, in pixels.
        patch_size: Side of a patch of an image, in pixels.
        **sizes: Settings of the text model's configuration that differ from the tiny ones.

    Returns:
        The folder.
    """
    import torch
    from transformers import AutoModelForImageTextToText

    from cultureval.samples.tiny_models.vision_families import BUILDERS

    tokenizer = tokenizer or train_tokenizer(chat_template=chat_template, image_slot=image_slot(family))
    config, readers = BUILDERS[family](tokenizer, image_size, patch_size, **sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForImageTextToText.from_config(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    for part in (model, *readers):
        part.save_pretrained(folder)
    return Path(folder)


def image_slot(family: VisionFamily) -> str:
    """What stands for an image in a prompt of a family."""
    if family == "gemma3_vision":
        return VISION_START  # its processor puts the image's tokens behind the token that begins it
    return VISION_START + IMAGE + VISION_END if family.startswith("qwen") else IMAGE


def text_config(family: str, tokenizer: "PreTrainedTokenizerFast", **sizes: int) -> "PreTrainedConfig":
    """The configuration of a tiny text model, also for the text part of a vision model."""
    from transformers import AutoConfig

    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 4096,
        "initializer_range": 0.2,  # larger than usual: with random weights every score would be the same otherwise
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
    }
    if family == "gemma3":
        settings |= {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
        return AutoConfig.for_model("gemma3_text", **settings | sizes)
    if family == "qwen2":
        del settings["head_dim"]
    return AutoConfig.for_model(family, **settings | sizes)
