"""Prefix cache: keys and values of the last prompt, of which the next prompts reuse their common prefix."""

from collections.abc import Sequence

import torch
from transformers import DynamicCache, PreTrainedModel

from cultureval.models.scoring.choice_scores import ScoringRequest
from cultureval.models.scoring.lm_head import LMHead, Rows
from cultureval.models.scoring.token_tree import common_length
from cultureval.runtime.patches.transformers import rope_offset


class PrefixCache:
    """A token sequence with its keys and values.

    Attributes:
        tokens: The sequence.
        images: Name of the images among the tokens; "" for text.
        offset: Positions after the images minus the token count (M-RoPE); 0 for text.
        cache: Keys and values of all tokens, in sliding-window layers too: masks cover all tokens.
        last: The model's output for the last token, if known.
    """

    def __init__(self, images: str = "") -> None:
        """Start without tokens."""
        self.tokens: list[int] = []
        self.images = images
        self.offset = 0
        self.cache = DynamicCache()
        self.last: Rows | None = None

    def cut_to(self, prompts: Sequence[Sequence[int]], images: str, images_end: int) -> bool:
        """Cuts the cache to the prefix that prompts can reuse; if it covers a prompt, the last token is fed again.

        Args:
            prompts: The next prompts.
            images: Name of their images.
            images_end: Number of tokens up to the end of their last image, which they all share.

        Returns:
            Whether the cache can be used.
        """
        lengths = [common_length(self.tokens, prompt) for prompt in prompts]
        keep = max(lengths)
        for length, prompt in zip(lengths, prompts, strict=True):
            is_last = length == len(self.tokens) and self.last is not None
            if length == len(prompt) and not is_last:
                keep = min(keep, length - 1)
        if not keep or self.images != images or min(*lengths, keep) < images_end:
            return False
        if keep < len(self.tokens):
            self.keep(range(keep), self.tokens[:keep], None)
        return True

    def fill(self, head: LMHead, request: ScoringRequest, length: int) -> None:
        """Feeds the first tokens of a prompt, with images, to an empty cache, by the model's own mask and positions."""
        device = head.model.device
        vision = {
            name: (value[:, :length] if request.is_per_token(value) else value).to(device)
            for name, value in (request.vision or {}).items()
        }
        self.tokens = list(request.prompt[:length])
        inputs = torch.tensor([self.tokens], device=device)
        self.last = head.rows(
            torch.tensor([length - 1]), input_ids=inputs, past_key_values=self.cache, use_cache=True, **vision
        )
        self.offset = rope_offset(head.model) if vision else 0

    def keep(self, columns: Sequence[int], tokens: Sequence[int], last: Rows | None) -> None:
        """Keeps the columns, in order, with keys and values of `tokens`; `last` is the output of the last token.

        Transformers can only crop a cache at its end.
        """
        self.tokens, self.last = list(tokens), last
        places = torch.tensor(list(columns), dtype=torch.long)
        for layer in self.cache.layers:
            if layer.is_initialized and len(places) < layer.keys.shape[-2]:
                index = places.to(layer.keys.device)
                layer.keys, layer.values = layer.keys[..., index, :], layer.values[..., index, :]


def images_end(model: PreTrainedModel, request: ScoringRequest) -> int:
    """Number of tokens of a prompt up to the end of its last image; 0 without images."""
    if not request.vision:
        return 0
    token = getattr(model.config, "image_token_id", None) or getattr(model.config, "image_token_index", None)
    places = [place for place, token_id in enumerate(request.prompt, start=1) if token_id == token]
    return places[-1] if places else len(request.prompt)  # without an image token, images may be anywhere


def longest_reusable(model: PreTrainedModel) -> int | None:
    """The longest sequence with reusable keys; None without a limit.

    Beyond it, longrope and dynamic scaling change the rotary embedding of every key, also of earlier tokens.
    """
    config = model.config.get_text_config(decoder=True)
    ropes = getattr(config, "rope_parameters", None) or {}
    kinds = [rope for rope in ropes.values() if isinstance(rope, dict)] or [ropes]
    limits = {"longrope": "original_max_position_embeddings", "dynamic": "max_position_embeddings"}
    names = [(rope, limits.get(rope.get("rope_type"))) for rope in kinds]
    return min((rope.get(name) or getattr(config, name) for rope, name in names if name), default=None)
