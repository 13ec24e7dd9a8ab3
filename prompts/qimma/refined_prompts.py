"""QIMMA's refined prompts of code problems: accepted only if nothing but the docstring's Arabic differs.

QIMMA section 4 (code prompts of its audit): the Arabic inside the docstring may change; signature, code, examples,
formatting and English text stay unchanged. In lines with Arabic only the counts of numbers and Latin words are
compared, since an edit of the Arabic also changes their order and the punctuation.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import BadRow, CulturevalError, shorten

ARABIC = re.compile(r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff]")
EXAMPLE_STARTS = (">>>", "...", "assert ")


def read_refined(file: Path, prompts: Mapping[str, str]) -> dict[str, str]:
    """Task id -> prompt, for prompts that differ from the source's; the file has the columns `task_id` and `prompt`.

    Raises:
        CulturevalError: A cell is missing, a task is unknown or repeated, or more than a docstring's Arabic differs.
    """
    found: dict[str, str] = {}
    for number, row in enumerate(read_rows(file), start=1):
        name, prompt = row.get("task_id"), row.get("prompt")
        place = f"{file}, row {number}"
        if not isinstance(prompt, str) or not prompt.strip():
            raise CulturevalError(f"{place} has no text in the column `prompt`.")
        if not isinstance(name, str) or name not in prompts or name in found:
            raise CulturevalError(f"{place}: task_id is {shorten(name)}, which is unknown or duplicated.")
        found[name] = prompt.replace("\r\n", "\n")
        try:
            check_refinement(prompts[name], found[name])
        except BadRow as error:
            raise CulturevalError(f"{place}: {error} Only the Arabic of a docstring may differ.") from error
    return {name: prompt for name, prompt in found.items() if prompt != prompts[name]}


def check_refinement(original: str, refined: str) -> None:
    """Checks that only the Arabic of docstrings differs in a refined prompt.

    Raises:
        BadRow: Something else differs, or the refined prompt is not Python; the message shows both texts.
    """
    (code, docstrings), (new_code, new_docstrings) = code_and_docstrings(original), code_and_docstrings(refined)
    if code.strip() != new_code.strip():
        _refuse("code outside the docstring", code.strip().splitlines(), new_code.strip().splitlines())
    for docstring, new_docstring in zip(docstrings, new_docstrings, strict=True):
        (examples, words), (new_examples, new_words) = _parts(docstring), _parts(new_docstring)
        if examples != new_examples:
            _refuse("an example or another line without Arabic", examples, new_examples)
        if words != new_words:
            _refuse("a Latin word or number", sorted(words - new_words), sorted(new_words - words))


def code_and_docstrings(prompt: str) -> tuple[str, list[str]]:
    """The prompt's code with a placeholder for each docstring, and the docstrings as written.

    Raises:
        BadRow: It is not Python.
    """
    try:
        tree = ast.parse(prompt)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadRow("prompt", prompt, f"is not Python ({error})") from error
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    lines = prompt.encode("utf-8").splitlines(keepends=True)  # ast counts columns in bytes
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    source, code, docstrings, position = b"".join(lines), b"", [], 0
    for node in sorted(texts, key=lambda node: (node.lineno, node.col_offset)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        code += source[position:start] + b'""'
        docstrings.append(source[start:end].decode("utf-8"))
        position = end
    return (code + source[position:]).decode("utf-8"), docstrings


def _parts(docstring: str) -> tuple[list[str], Counter[str]]:
    """The fixed lines (examples, their outputs, lines without Arabic), and the Latin words of all other lines."""
    fixed, words, after_example = [], Counter[str](), False
    for line in docstring.splitlines():
        text = line.strip()
        is_example = text.startswith(EXAMPLE_STARTS)
        if is_example or (after_example and text) or not ARABIC.search(text):
            fixed += [line.rstrip()] if text else []
        else:
            words.update(re.findall(r"[A-Za-z0-9_]+", text))
        after_example = is_example and not text.startswith("assert ")
    return fixed, words


def _refuse(part: str, original: Sequence[str], refined: Sequence[str]) -> None:
    for before, after in zip([*original, ""], [*refined, ""], strict=False):
        if before != after:
            raise BadRow("prompt", after, f"differs in {part}, where the original has {shorten(before)}")
    raise BadRow("prompt", "", f"differs in {part}")
