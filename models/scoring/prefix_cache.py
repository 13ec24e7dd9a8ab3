"""The prompt whose keys and values are kept, so that the next prompts go on from what they share with it."""

from collections.abc import Sequence

from transformers import DynamicCache, PreTrainedModel

from cultureval.models.scoring.lm_head import Rows
from cultureval.models.scoring.token_tree import common_length
from cultureval.runtime.transformers_patches import keep_columns


class PrefixCache:
    """The tokens that the model has seen last, with their keys and values.

    Attributes:
        tokens: In their order.
        images: Tells the images apart that stand among the tokens, "" for text alone.
        offset: How far positions behind the images are from the token count (M-RoPE), 0 for text alone.
        cache: Keys and values of all tokens, in sliding-window layers too, since masks address them all.
        last: What the model makes of the last token, if it is known.
    """

    def __init__(self, images: str = "") -> None:
        """Start without tokens."""
        self.tokens: list[int] = []
        self.images = images
        self.offset = 0
        self.cache = DynamicCache()
        self.last: Rows | None = None

    def cut_to(self, prompts: Sequence[Sequence[int]], images: str, images_end: int) -> bool:
        """Cut the prefix to what prompts can go on from: of a prompt that lies on it, the last token is needed again.

        Args:
            prompts: That come next.
            images: Tells their images apart.
            images_end: Tokens up to the end of their last image, which they all share.

        Returns:
            Whether the prefix can be used at all.
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
            self.follow(range(keep), self.tokens[:keep], None)
        return True

    def extend(self, tokens: Sequence[int], last: Rows, offset: int) -> None:
        """Note that an empty prefix's cache has taken these tokens."""
        self.tokens, self.last, self.offset = list(tokens), last, offset

    def follow(self, columns: Sequence[int], tokens: Sequence[int], last: Rows | None) -> None:
        """Keep some columns of the cache.

        Args:
            columns: In order; they hold the keys and values of `tokens`.
            tokens: The new prefix.
            last: What the model made of its last token, if known.
        """
        self.tokens, self.last = list(tokens), last
        keep_columns(self.cache, columns)


def steady_length(model: PreTrainedModel) -> int | None:
    """The longest sequence whose rotary positions are those of a shorter one; None where length changes nothing.

    Behind it, longrope and dynamic scaling turn every key otherwise, also those of the tokens before it.
    """
    config = model.config.get_text_config(decoder=True)
    ropes = getattr(config, "rope_parameters", None) or {}
    kinds = [rope for rope in ropes.values() if isinstance(rope, dict)] or [ropes]
    limits = {"longrope": "original_max_position_embeddings", "dynamic": "max_position_embeddings"}
    names = [(rope, limits.get(rope.get("rope_type"))) for rope in kinds]
    return min((rope.get(name) or getattr(config, name) for rope, name in names if name), default=None)
