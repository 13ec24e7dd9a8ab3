"""Tokenization of prompts and choices by LightEval's functions: sound, or as `lighteval vllm` does.

With "paper" in `specific["parity"]`, a Doc gets the tokens of `lighteval vllm` (LightEval 0.13, `tok_encode_pair` with
the defaults of its vLLM backend). Prompt and choice are encoded together; tokens after the length of the encoded prompt
are the choice. So a choice may contain a piece of the prompt (Llama 2's tokenizer merges some ends of prompts with
labels), lose all but its last token, or have no token and score 0. BOS is added even after a chat template's BOS. All
other Docs get sound tokens: prompt and choice are encoded apart, with one BOS.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lighteval.models.abstract_model import LightevalModel
from lighteval.tasks.requests import Doc

from cultureval.runtime.doc_fields import PAPER, specific_of
from cultureval.runtime.errors import CulturevalError


def require_whole_letters(doc: Doc, *texts: str) -> None:
    """Refuses texts with half of a letter (a lone surrogate, from cut emojis), which no tokenizer reads."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = f"U+{ord(text[error.start]):04X}"
            raise CulturevalError(
                f"{doc.task_name}, item {doc.id}: its text holds half of a letter ({half}, a lone surrogate, after "
                f"{text[max(0, error.start - 20) : error.start]!r}), which no tokenizer reads. Mend this row."
            ) from error


class TokenSettings(Protocol):
    """The settings of a model that tokens depend on; see `HFModelSettings`."""

    add_special_tokens: str
    pairwise_tokenization: bool | None


@dataclass(frozen=True)
class Encoder:
    """LightEval's encoding of prompts (`tok_encode`) and of prompts with choices (`tok_encode_pair`).

    Attributes:
        add_special_tokens: Whether a prompt gets special tokens, such as BOS.
        apart: Whether choices are encoded apart from their prompt.
    """

    tokenizer: Any
    add_special_tokens: bool
    apart: bool

    tok_encode = LightevalModel.tok_encode
    tok_encode_pair = LightevalModel.tok_encode_pair

    @property
    def adds_bos(self) -> bool:
        """Whether a prompt begins with BOS; some tokenizers have none, or do not add it."""
        return self.add_special_tokens and self.tokenizer.bos_token_id in self.tokenizer("")["input_ids"]


@dataclass(frozen=True)
class _Together(Encoder):
    """An encoder that looks up `found` (special tokens or not -> text -> tokens) and adds new texts without tokens."""

    found: dict[bool, dict[str, list[int]]]

    def tok_encode(self, text: str, add_special_tokens: bool | None = None) -> list[int]:  # type: ignore[override]
        """The tokens of a text."""
        special = self.add_special_tokens if add_special_tokens is None else add_special_tokens
        return self.found[special].setdefault(text, [])


def encode_pairs(
    asked: Iterable[tuple[Encoder, str, Sequence[str]]],
) -> list[tuple[list[list[int]], list[list[int]]]]:
    """As `tok_encode_pair` of each encoder, with one fast call of the tokenizer for all texts.

    Args:
        asked: (encoder, prompt, choices); the encoders have the same tokenizer.

    Returns:
        For each prompt (tokens before each choice, tokens of each choice).
    """
    found: dict[bool, dict[str, list[int]]] = {True: {}, False: {}}
    pairs = [(_Together(**vars(encoder), found=found), prompt, list(choices)) for encoder, prompt, choices in asked]
    for encoder, prompt, choices in pairs:
        encoder.tok_encode_pair(prompt, choices, pairwise=encoder.apart)
    for special, texts in found.items():
        if texts:
            encoded = pairs[0][0].tokenizer(list(texts), add_special_tokens=special, return_attention_mask=False)
            texts.update(zip(texts, encoded["input_ids"], strict=True))
    return [encoder.tok_encode_pair(prompt, choices, pairwise=encoder.apart) for encoder, prompt, choices in pairs]


def prompts_with_choices(doc: Doc, prompt: str, choices: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each prompt of a doc with its choices: one, unless choices have prompts of their own (`contexts`)."""
    prompts = specific_of(doc).get("contexts")
    if not prompts:
        return [(prompt, list(choices))]
    return [(own, [choice]) for own, choice in zip(prompts, choices, strict=True)]


def encoder_of(tokenizer: Any, settings: TokenSettings, writes_bos: bool, parity: str | None = None) -> Encoder:
    """The encoder of a Doc.

    Args:
        settings: They take precedence over `parity`.
        writes_bos: Whether the chat template writes BOS.
        parity: `specific["parity"]` of the Doc.
    """
    paper, switch, apart = parity == PAPER, settings.add_special_tokens, settings.pairwise_tokenization
    special = paper or not writes_bos if switch == "auto" else switch == "on"
    return Encoder(tokenizer, special, not paper if apart is None else apart)


def tokens_read(count: int, longest: int, wanted: int | None) -> int:
    """The number of last tokens of a prompt that are read: all if a further one fits, else so that the answer fits.

    Args:
        count: Tokens of the prompt.
        longest: Tokens that prompt and answer may have together.
        wanted: Limit of the answer's tokens, if any; at least half of `longest` is left to the prompt.
    """
    return count if count < longest else longest - min(wanted or 1, max(longest // 2, 1))


_numbers: dict[int, int] = {}


def kept(tokens: Iterable[int]) -> list[int]:
    """Tokens for results; equal numbers are one object, so that a token takes 8 bytes instead of 40."""
    return [_numbers.setdefault(token, token) for token in tokens]
