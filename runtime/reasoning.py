"""Where a reply's reasoning ends and its answer begins: one rule for models, generated code and judges.

The rule, of which only the pairs of tags are a setting:

1. An end tag before any start tag closes reasoning that the prompt opened: all before it is reasoning. Templates like
   DeepSeek-R1's write `<think>` into the prompt themselves, so that the reply holds only `</think>`.
2. Elsewhere a start tag opens reasoning, which goes on to the next end tag. There may be several such passages.
3. Reasoning without an end was cut off: there is no answer after its start tag, but what stands before it is one.
4. A further end tag is text of the answer, such as code that prints one. White space before an answer goes if
   reasoning was taken out; an answer without tags stays as it is.

vLLM's parsers for DeepSeek-R1 and Qwen3 do 1 likewise: the first end tag ends the reasoning, so that an answer may name
the tag again. LightEval's `remove_reasoning_tags` does 2, pair by pair, but leaves an end tag without a start (1) and a
start tag without an end (3) in the answer, where reasoning would be scored.
"""

from collections.abc import Sequence

Tags = Sequence[tuple[str, str]]

THINK_TAGS: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)


def split_reasoning(text: str, tags: Tags = THINK_TAGS) -> tuple[str, str | None]:
    """Split what a model wrote into its answer and its reasoning.

    Args:
        text: The reply; where the prompt ends with a start tag, that tag may stand before it.
        tags: Pairs of start and end tags, neither empty, which are looked for one pair after the other.

    Returns:
        (the answer, "" where there is none; the passages of reasoning joined by blank lines, None where they are blank
        or there are none).
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
            return "".join(kept), passages
        passage, _, text = after.partition(end)
        passages.append(passage)
