"""Generation in batches: stop strings are matched in text, not tokens; reasoning is separated from answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, PreTrainedTokenizerBase, StoppingCriteria

from cultureval.models.loading import LoadedModel
from cultureval.runtime.generation_hints import cut
from cultureval.runtime.onednn_products import fast_products
from cultureval.runtime.reasoning import Tags, split_reasoning

NEUTRAL = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None, "min_p": None}


@dataclass(frozen=True)
class Generation:
    """One generated answer.

    Attributes:
        text: Without reasoning, up to the first stop string.
        reasoning: The text between the tags, None without any.
        tokens: All generated tokens, without the end token.
        finish_reason: "stop" at an end token or a stop string, "length" at the limit of tokens.
    """

    text: str
    reasoning: str | None
    tokens: list[int]
    finish_reason: str


class RefuseNaN(LogitsProcessor):
    """Ends a generation with logits that are not numbers: greedy decoding would choose the first token."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Returns the scores unchanged."""
        if scores.isnan().any():
            raise self.loaded.not_numbers()
        return scores


class StopOnStrings(StoppingCriteria):
    """Ends each row of a batch at its stop strings, also across token boundaries; never within reasoning."""

    def __init__(self, ended: Callable[[list[int], int], bool], width: int) -> None:
        """Takes the width of the prompts; `ended(tokens of an answer, its row)` is true at its end."""
        self.ended, self.width = ended, width

    def __call__(self, input_ids: Tensor, scores: Tensor, **_: Any) -> Tensor:
        """Whether each row is done: bool [rows]."""
        answers = input_ids[:, self.width :].tolist()
        return torch.tensor([self.ended(row, place) for place, row in enumerate(answers)], device=input_ids.device)


def ends_with_stop(
    tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int], stops: Sequence[str], opened: str, tags: Tags
) -> bool:
    """Whether the last token of an answer completes a stop string outside its reasoning."""
    if not any(stops):
        return False
    # A token has at least one byte, so a stop string that ends now is within this many tokens.
    tail = tokenizer.decode(tokens[-max(len(stop.encode()) for stop in stops) - 1 :])
    if not any(stop in tail for stop in stops):
        return False
    answer, _ = split_reasoning(opened + tokenizer.decode(tokens), tags)
    return any(stop in answer for stop in stops)


def pad_left(prompts: Sequence[Sequence[int]], pad: int) -> dict[str, Tensor]:
    """Token ids and attention mask [prompts, longest], padded on the left."""
    width = max(map(len, prompts))
    ids = torch.tensor([[pad] * (width - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    return {"input_ids": ids, "attention_mask": mask}


def sampling_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `generate`: without a temperature (or with 0) the model's own sampling settings are ignored."""
    return {"do_sample": True, **settings} if settings.get("temperature") else {**settings, **NEUTRAL}


@torch.inference_mode()
def generate(
    loaded: LoadedModel,
    inputs: Mapping[str, Tensor],
    stops: Sequence[Sequence[str]],
    opened: Sequence[str],
    arguments: Mapping[str, Any],
    seed: int,
    tags: Tags,
) -> list[Generation]:
    """One answer to each prompt of a batch, by transformers' `generate`.

    Args:
        loaded: The model.
        inputs: `input_ids` and `attention_mask`, padded on the left, and the processor's outputs for images.
        stops: Stop strings of each prompt.
        opened: The start tag at the end of each prompt, or "".
        arguments: Of `generate`, with `max_new_tokens`.
        seed: The same batch and seed give the same samples.
        tags: Pairs of tags around reasoning.
    """
    width, device = inputs["input_ids"].shape[1], loaded.model.device
    pad, ends = loaded.tokenizer.pad_token_id, loaded.end_ids()

    def ended(row: list[int], place: int) -> bool:
        return ends_with_stop(loaded.tokenizer, row, stops[place], opened[place], tags)

    with torch.random.fork_rng([] if device.type == "cpu" else [device]), fast_products(device):
        torch.manual_seed(seed)
        output = loaded.model.generate(
            **{name: value.to(device) for name, value in inputs.items()},
            **arguments,
            pad_token_id=pad,
            eos_token_id=ends or None,
            logits_processor=[RefuseNaN(loaded)],
            stopping_criteria=[StopOnStrings(ended, width)] if any(stops) else [],
        )
    answers = output[:, width:].tolist()
    for row in answers if pad not in ends else ():
        while row and row[-1] == pad:  # padding to the length of the longest row
            row.pop()
    return [read_answer(*row, loaded, tags) for row in zip(answers, stops, opened, strict=True)]


def read_answer(row: Sequence[int], stops: Sequence[str], opened: str, loaded: LoadedModel, tags: Tags) -> Generation:
    """The answer of a row of generated tokens, up to the end token; arguments as of `generate`."""
    ends = loaded.end_ids()
    last = next((place for place, token in enumerate(row) if token in ends), len(row))
    tokens = list(row[:last])
    # Tags that are special tokens are needed for the split.
    special = set(loaded.tokenizer.all_special_tokens)
    keep = any(tag in special for pair in tags for tag in pair)
    text, reasoning = split_reasoning(opened + loaded.tokenizer.decode(tokens, skip_special_tokens=not keep), tags)
    for token in special if keep else ():
        text = text.replace(token, "")
    ended = last < len(row) or any(stop in text for stop in stops)
    return Generation(cut(text, stops), reasoning, tokens, "stop" if ended else "length")
