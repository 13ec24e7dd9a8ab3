"""Tiny models for the tests, built once a session, and the plain way of scoring that everything is compared with."""

import tempfile
from functools import cache
from pathlib import Path

import torch
from PIL import Image
from transformers import (
    AutoImageProcessor,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
    Qwen2VLProcessor,
)

from cultureval.scripts.tiny_model import IMAGE, build_tiny_causal_lm, build_tiny_vision_lm

__all__ = ["build_tiny_causal_lm", "build_tiny_vision_lm"]

torch.set_num_threads(1)
_ROOT = tempfile.TemporaryDirectory(prefix="tiny-models-")


class ImagesOnlyQwen2VLProcessor(Qwen2VLProcessor):
    """Qwen2-VL's own processor without its part for videos, which needs torchvision."""

    def __init__(self, image_processor=None, tokenizer=None, chat_template=None):
        tokenizer.image_token = IMAGE
        super().__init__(image_processor, tokenizer, None, chat_template=chat_template or tokenizer.chat_template)

    @classmethod
    def get_attributes(cls):
        return ["image_processor", "tokenizer"]

    def check_argument_for_proper_class(self, argument_name, argument):
        return type(argument)

    @property
    def model_input_names(self):
        return ["input_ids", "attention_mask", "pixel_values", "image_grid_thw", "mm_token_type_ids"]


@cache
def folder_of(family, chat_template=False):
    folder = Path(_ROOT.name) / f"{family}-{'chat' if chat_template else 'plain'}"
    build = build_tiny_vision_lm if family in ("llava", "qwen2_vl") else build_tiny_causal_lm
    return build(folder, family, chat_template=chat_template)


@cache
def text_model(family):
    return AutoModelForCausalLM.from_pretrained(folder_of(family)).eval()


@cache
def vision_model(family):
    return AutoModelForImageTextToText.from_pretrained(folder_of(family, True)).eval()


@cache
def vision_processor(family):
    folder = folder_of(family, True)
    if family == "llava":
        return AutoProcessor.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return ImagesOnlyQwen2VLProcessor(AutoImageProcessor.from_pretrained(folder), tokenizer)


def picture(width, height, seed=0):
    """A picture of coloured noise."""
    numbers = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (height, width, 3), generator=numbers, dtype=torch.uint8)
    return Image.fromarray(pixels.numpy())


@torch.inference_mode()
def plain_scores(model, prompt, choices, **inputs):
    """Every choice by a forward pass of its own, log-softmax over everything: sums, and whether all are the argmax."""
    scores = []
    for choice in choices:
        per_token = {
            name: torch.nn.functional.pad(value, (0, len(choice))) if name.endswith("token_type_ids") else value
            for name, value in inputs.items()
        }
        logits = model(input_ids=torch.tensor([[*prompt, *choice]]), use_cache=False, **per_token).logits[0]
        rows = logits[len(prompt) - 1 : len(prompt) - 1 + len(choice)].double().log_softmax(-1)
        picked = [row[token].item() for row, token in zip(rows, choice, strict=True)]
        scores.append((sum(picked), rows.argmax(-1).tolist() == list(choice)))
    return scores
