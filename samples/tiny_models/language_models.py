"""Tiny models with random weights, built on the fly: for the demo, the tests and the benchmark.

They answer nonsense, but everything else is real: a folder that `from_pretrained` reads, a byte-level tokenizer
trained on a few Arabic and Chinese sentences of our own, a chat template where one is wanted. The same arguments give
the same files.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cultureval.samples.tiny_models.text_parts import (
    IMAGE,
    VISION_END,
    VISION_START,
    text_config,
    train_tokenizer,
)
from cultureval.samples.tiny_models.vision_families import BUILDERS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

TextFamily = Literal["llama", "qwen2", "gemma3"]
VisionFamily = Literal[
    "llava", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "gemma3_vision", "internvl", "idefics3", "smolvlm"
]

IMAGE_SIZE, PATCH_SIZE = 32, 8


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
        family: Architecture; gemma3 has sliding-window layers with a window of 8 tokens.
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
        family: See `vision_families`; llava sees every image as 16 tokens.
        tokenizer: One of `train_tokenizer`, with a chat template that writes `image_slot(family)` for an image.
        image_size: Side of the images that llava sees, in pixels.
        patch_size: Side of a patch of an image, in pixels.
        **sizes: Settings of the text model's configuration that differ from the tiny ones.

    Returns:
        The folder.
    """
    import torch
    from transformers import AutoModelForImageTextToText

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
    """The placeholder of an image in a prompt of a family."""
    if family == "gemma3_vision":
        return VISION_START  # its processor inserts the image's tokens after this start token
    return VISION_START + IMAGE + VISION_END if family.startswith("qwen") else IMAGE
