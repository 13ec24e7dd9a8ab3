"""Tiny models with random weights, built on the fly: for the demo, the tests and the benchmark.

They answer nonsense, but all their files are real: a folder for `from_pretrained`, a byte-level tokenizer trained on a
few Arabic and Chinese sentences of our own, an optional chat template. The same arguments give the same files.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cultureval.samples.tiny_models.text_parts import IMAGE, text_config, train_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

TextFamily = Literal["llama", "qwen2", "gemma3"]
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
    chat_template: bool = True,
    seed: int = 0,
    tokenizer: "PreTrainedTokenizerFast | None" = None,
    image_size: int = IMAGE_SIZE,
    patch_size: int = PATCH_SIZE,
    **sizes: int,
) -> Path:
    """Write a LLaVA with random weights and its processor into a folder; it sees every image as 16 tokens.

    Args:
        tokenizer: One of `train_tokenizer`, with a chat template that writes `IMAGE` for an image.
        image_size: Side of the images that it sees, in pixels.
        patch_size: Side of a patch of an image, in pixels.
        **sizes: Settings of the text model's configuration that differ from the tiny ones.

    Returns:
        The folder.
    """
    from transformers import CLIPImageProcessorPil, CLIPVisionConfig, LlavaConfig, LlavaProcessor

    tokenizer = tokenizer or train_tokenizer(chat_template=chat_template, image_slot=IMAGE)
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**tower(image_size, patch_size), projection_dim=32),
        text_config=text_config("llama", tokenizer, **sizes),
        image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
        image_seq_length=(image_size // patch_size) ** 2,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
    )
    size = {"height": image_size, "width": image_size}
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": image_size}, crop_size=size),
        tokenizer=tokenizer,
        patch_size=patch_size,
        vision_feature_select_strategy="default",
        chat_template=tokenizer.chat_template,
        image_token=IMAGE,
        num_additional_image_tokens=1,
    )
    return write_vision_lm(folder, config, processor, seed)


def tower(image_size: int, patch_size: int) -> dict[str, Any]:
    """Settings of the configuration of a tiny vision tower."""
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": image_size,
        "patch_size": patch_size,
        "initializer_range": 0.2,
    }


def write_vision_lm(folder: Path, config: Any, processor: Any, seed: int = 0) -> Path:
    """Write an image-text-to-text model of a configuration, with random weights, and its processor into a folder."""
    import torch
    from transformers import AutoModelForImageTextToText

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForImageTextToText.from_config(config)
    model.generation_config.eos_token_id = processor.tokenizer.eos_token_id
    for part in (model, processor):
        part.save_pretrained(folder)
    return Path(folder)
