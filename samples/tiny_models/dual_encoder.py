"""Tiny dual encoders with random weights, built on the fly: for the demo and the tests of retrieval."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cultureval.samples.tiny_models.text_parts import CORPUS, WORDPIECE_SPECIAL

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Family = Literal["chinese_clip", "clip", "siglip", "siglip2", "altclip"]
SIDE, PATCH, LONGEST = 32, 8, 64


def build_tiny_dual_encoder(folder: Path, family: Family = "chinese_clip", corpus: Sequence[str] = CORPUS) -> Path:
    """Writes a dual encoder with random weights and its processor into a folder.

    Args:
        family: Architecture; siglip2 is SigLIP 2 of any resolution (of a fixed one it is siglip).
        corpus: Texts with the letters of the tokenizer.

    Returns:
        The folder.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    tokenizer = _letters_tokenizer(corpus)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModel.from_config(AutoConfig.for_model(family, **_sizes(family, tokenizer)))
    model.save_pretrained(folder)
    _processor(family, tokenizer).save_pretrained(folder)
    return Path(folder)


def _letters_tokenizer(corpus: Sequence[str]) -> "PreTrainedTokenizerFast":
    """A WordPiece tokenizer of single letters, Latin and those of the corpus."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = sorted({letter for text in corpus for letter in text if not letter.isspace()})
    letters = list(dict.fromkeys([*"abcdefghijklmnopqrstuvwxyz0123456789", *letters]))
    words = {
        word: number
        for number, word in enumerate([*WORDPIECE_SPECIAL, *letters, *(f"##{letter}" for letter in letters)])
    }
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LONGEST,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        bos_token="[CLS]",
        eos_token="[SEP]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def _sizes(family: Family, tokenizer: "PreTrainedTokenizerFast") -> dict[str, Any]:
    common = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    common |= {"initializer_range": 0.3}  # larger than usual, so that random features differ
    text = common | {"vocab_size": len(tokenizer), "max_position_embeddings": LONGEST + 2, "projection_dim": 32}
    text |= {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "project_dim": 32, "projection_size": 32}
    vision = common | {"image_size": SIDE, "patch_size": PATCH, "projection_dim": 32}
    if family in ("siglip", "siglip2"):
        # SigLIP 2's processor makes 256 patches of 16 pixels a side, whatever its settings say.
        vision |= {"patch_size": 16, "num_patches": 256} if family == "siglip2" else {}
        text["max_position_embeddings"] = LONGEST
        return {"text_config": text, "vision_config": vision}
    return {"text_config": text, "vision_config": vision, "projection_dim": 32}


def _processor(family: Family, tokenizer: "PreTrainedTokenizerFast") -> Any:
    import transformers as hf

    size = {"height": SIDE, "width": SIDE}
    if family == "chinese_clip":
        return hf.ChineseCLIPProcessor(hf.ChineseCLIPImageProcessorPil(size=size, do_center_crop=False), tokenizer)
    if family == "siglip":
        return hf.SiglipProcessor(hf.SiglipImageProcessorPil(size=size), tokenizer)
    if family == "siglip2":
        return hf.Siglip2Processor(hf.Siglip2ImageProcessorPil(), tokenizer)
    images = hf.CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size=size)
    return (hf.CLIPProcessor if family == "clip" else hf.AltCLIPProcessor)(images, tokenizer)
