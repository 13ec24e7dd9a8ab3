"""Parts of all tiny models: our own sentences, a tokenizer trained on them, the text model's sizes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerFast

BOS, EOS, PAD, IMAGE = "<s>", "</s>", "<pad>", "<image>"
WORDPIECE_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VISION_START, VISION_END = "<|vision_start|>", "<|vision_end|>"

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
        vocabulary: Its size at most; a small corpus gives fewer tokens.
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
