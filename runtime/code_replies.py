"""Replies of models that were asked for code: what follows a thought, and what stands in a fenced block."""

import re

FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", flags=re.DOTALL | re.MULTILINE)


def without_thoughts(reply: str, opening: str = "<think>", closing: str = "</think>") -> str:
    """What a thinking model says after its thoughts; nothing where these never end.

    Templates that open the thought themselves leave only its end in the reply.
    """
    _, closed, answer = reply.rpartition(closing)
    if closed:
        return answer.strip()
    return "" if opening in reply else reply.strip()


def first_code_block(text: str) -> str:
    """The content of the first fenced block, closed or not; the whole text where there is none."""
    block = FENCE.search(text)
    return block.group(1) if block else text
