"""Tiny models for the tests, built once a session, and the plain way of scoring that everything is compared with."""

import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from PIL import Image
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from vision_families import VISION, build_vision_lm

from cultureval.models.loading import load_processor
from cultureval.models.scoring.packed import ScoringRequest
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

torch.set_num_threads(1)
_ROOT = tempfile.TemporaryDirectory(prefix="tiny-models-")


@cache
def folder_of(family, chat_template=False):
    folder = Path(_ROOT.name) / f"{family}-{'chat' if chat_template else 'plain'}"
    build = build_vision_lm if family in VISION else build_tiny_causal_lm
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
    return load_processor(folder, AutoConfig.from_pretrained(folder))


def picture(width, height, seed=0):
    """A picture of coloured noise."""
    numbers = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (height, width, 3), generator=numbers, dtype=torch.uint8)
    return Image.fromarray(pixels.numpy())


@contextmanager
def tokens_fed(model):
    """A list of how many tokens each forward pass inside the context feeds."""
    fed = []

    def count(_, args, given):
        fed.append(given["input_ids"].numel())

    hook = model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield fed
    finally:
        hook.remove()


def image_requests(family, sizes, texts, choices):
    """Requests about the same images, with different texts behind them."""
    processor, requests = vision_processor(family), []
    images = [picture(*size, seed=number) for number, size in enumerate(sizes)]
    for text, of_one in zip(texts, choices, strict=True):
        parts = [{"type": "image"}] * len(sizes) + [{"type": "text", "text": text}]
        prompt = processor.apply_chat_template([{"role": "user", "content": parts}], add_generation_prompt=True)
        inputs = dict(processor(text=[prompt], images=[images], return_tensors="pt"))
        del inputs["attention_mask"]
        requests.append(ScoringRequest(inputs.pop("input_ids")[0].tolist(), of_one, vision=inputs, images=str(sizes)))
    return requests


@torch.inference_mode()
def plain_scores(model, prompt, choices, **inputs):
    """Every choice by a forward pass of its own, log-softmax over everything: sums, and whether all are the argmax.

    Inputs of one number a token are of the prompt, and are 0 for the choice; or of both.
    """
    scores = []
    for choice in choices:
        per_token = {
            name: torch.nn.functional.pad(value, (0, len(choice))) if value.shape[1:] == (len(prompt),) else value
            for name, value in inputs.items()
        }
        logits = model(input_ids=torch.tensor([[*prompt, *choice]]), use_cache=False, **per_token).logits[0]
        rows = logits[len(prompt) - 1 : len(prompt) - 1 + len(choice)].double().log_softmax(-1)
        picked = [row[token].item() for row, token in zip(rows, choice, strict=True)]
        scores.append((sum(picked), rows.argmax(-1).tolist() == list(choice)))
    return scores
