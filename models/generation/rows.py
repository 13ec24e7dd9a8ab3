"""Rows of a batch of generations: each one answer in the making."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from torch import Tensor


@dataclass(eq=False)
class DecodingRow:
    """One answer in the making.

    Attributes:
        owner: What it is an answer of.
        prompt: The prompt's tokens.
        limit: Most tokens of the answer.
        numbers: Random numbers for sampling, its own, so that its answer does not depend on the rows beside it.
        number: Which of its owner's answers this is.
        stops: Stop strings.
        opened: The start tag of reasoning that the prompt ends with, "" for none.
        images: Hash of the prompt's images, "" for text alone.
        images_end: Tokens of the prompt up to the end of its last image.
        vision: The processor's outputs for the images; dropped once they are read.
        offset: How far positions are ahead of the number of tokens before (negative in models with M-RoPE).
        tokens: The answer so far.
        ended: Whether the answer is complete.
        processors: What changes its scores before a token is chosen, where that depends on its tokens.
    """

    owner: Any
    prompt: Sequence[int]
    limit: int
    numbers: Random
    number: int = 0
    stops: Sequence[str] = ()
    opened: str = ""
    images: str = ""
    images_end: int = 0
    vision: Mapping[str, Tensor] | None = None
    offset: int = 0
    tokens: list[int] = field(default_factory=list)
    ended: bool = False
    processors: Any = None

    def __len__(self) -> int:
        """Tokens so far, the prompt's included."""
        return len(self.prompt) + len(self.tokens)

    def last(self, count: int) -> list[int]:
        """The last tokens so far, fewer where there are fewer."""
        if count <= len(self.tokens):
            return self.tokens[len(self.tokens) - count :]
        return [*self.prompt[max(len(self) - count, 0) :], *self.tokens]

    def vision_of(self, length: int) -> dict[str, Tensor]:
        """The processor's outputs for the images of the prompt's first tokens, which hold all of them."""
        whole = (1, len(self.prompt))
        given = self.vision or {}
        return {name: value[:, :length] if value.shape == whole else value for name, value in given.items()}

    def to_be_read(self) -> list[int]:
        """All tokens so far: the prompt's, and those of an answer that was interrupted."""
        return [*self.prompt, *self.tokens]
