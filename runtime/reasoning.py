"""Separation of a reply into reasoning and answer: one rule for models, generated code and judges.

The rule; only the pairs of tags are settings:

1. An end tag before any start tag closes reasoning that the prompt opened: all before it is reasoning. Templates like
   DeepSeek-R1's write `<think>` into the prompt themselves, so that the reply holds only `</think>`.
2. Otherwise a start tag opens reasoning, which continues to the next end tag. There may be several such passages.
3. Reasoning without an end was cut off: text after its start tag is no answer, text before it is.
4. A further end tag is text of the answer, such as code that prints one. White space before an answer is stripped if
   reasoning was removed; an answer without tags is unchanged.
5. Words that only reasoning kept apart are kept apart by a space: `4<think>or</think>5` is `4 5`, never `45`.

vLLM's parsers for DeepSeek-R1 and Qwen3 do 1 likewise. LightEval's `remove_reasoning_tags` does 2, but leaves reasoning
of 1 and 3 in the answer, where it would be scored, and joins words (5).
"""

import unicodedata
from collections.abc import Sequence

Tags = Sequence[tuple[str, str]]

THINK_TAGS: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)


def split_reasoning(text: str, tags: Tags = THINK_TAGS) -> tuple[str, str | None]:
    """Splits a model's reply into answer ("" for none) and reasoning, joined by blank lines (None for none).

    `tags` are pairs of non-empty start and end tags, applied one pair after the other.
    """
    passages: list[str] = []
    for start, end in tags:
        text, found = _split(text, start, end)
        passages += found
    filled = [passage.strip() for passage in passages if passage.strip()]
    return (text.lstrip() if passages else text), ("\n\n".join(filled) or None)


def _split(text: str, start: str, end: str) -> tuple[str, list[str]]:
    """The text without the reasoning between one pair of tags, and its passages in order."""
    passages, kept = [], []
    head, closed, rest = text.partition(end)
    if closed and start not in head:
        passages.append(head)
        text = rest
    while True:
        before, opened, after = text.partition(start)
        kept.append(before)
        if not opened:
            return _joined(kept), passages
        passage, _, text = after.partition(end)
        passages.append(passage)


def _joined(parts: list[str]) -> str:
    """The parts of an answer in one text, with a space where two words would become one."""
    text = ""
    for part in parts:
        text += " " + part if _is_of_word(text[-1:]) and _is_of_word(part[:1]) else part
    return text


def _is_of_word(character: str) -> bool:
    # Marks too: an Arabic word may end with a vowel sign.
    return character != "" and unicodedata.category(character)[0] in "LMN"
