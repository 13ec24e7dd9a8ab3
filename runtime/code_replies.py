"""Replies of models that were asked for code: the content of a fenced block."""

import re

FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```|\Z)", flags=re.DOTALL | re.MULTILINE)


def first_code_block(text: str) -> str:
    """The content of the first fenced block, closed or not; all of the text where there is none."""
    block = FENCE.search(text)
    return block.group(1) if block else text
