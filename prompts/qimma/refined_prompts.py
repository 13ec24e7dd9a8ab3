"""QIMMA's refined prompts of code problems: accepted only if nothing but the docstring's Arabic differs.

QIMMA section 4 (code prompts of its audit): the Arabic inside the docstring may change; signature, code, examples,
formatting and English text stay unchanged. In lines with Arabic only the counts of numbers and Latin words are
compared, since an edit of the Arabic also changes their order and the punctuation.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from cultureval.runtime.data.row_files import read_rows
from cultureval.runtime.errors import BadRow, CulturevalError, described, shorten

ARABIC = re.compile(r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff]")
EXAMPLE_STARTS = (">>>", "...", "assert ")


def refined_prompt(path: str, dataset: str, row: Mapping[str, Any]) -> str:
    """The prompt of a problem: the refined one if the file has one for it, else the source's.

    Args:
        path: A file with the columns `task_id` and `prompt`, or a folder of `cultureval audit code` with such a file
            for each data set; "": no prompts are refined.
        dataset: `humaneval` or `mbpp`.
        row: The problem as the source has it.

    Raises:
        CulturevalError: The file is unreadable, or the prompt differs in more than its docstrings' Arabic.
    """
    if not path:
        return str(row["prompt"])
    file = Path(path).expanduser()
    file = file / f"{dataset}.jsonl" if file.is_dir() else file
    found = _read_prompts(file, str(row["task_id"]).partition("/")[0], _changed_at(file)).get(row["task_id"])
    if found is None:
        return str(row["prompt"])
    try:
        check_refinement(row["prompt"], found)
    except BadRow as error:
        raise CulturevalError(
            f"{file}, {row['task_id']}: {error} Only the Arabic of a docstring may differ."
        ) from error
    return found


def _changed_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError as error:
        raise CulturevalError(f"{file} cannot be read as a file of refined prompts: {described(error)}.") from error


@lru_cache(maxsize=4)
def _read_prompts(file: Path, name: str, changed: int) -> dict[str, str]:
    """The prompts of a file by task id; `name` is what all ids of the data set begin with."""
    found: dict[str, str] = {}
    for number, row in enumerate(read_rows(file), start=1):
        task, prompt = row.get("task_id"), row.get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            raise CulturevalError(f"{file}, row {number} has no text in the column `prompt`.")
        if not isinstance(task, str) or not re.fullmatch(rf"{name}/\d+", task) or task in found:
            raise CulturevalError(f"{file}, row {number}: {shorten(task)} is no task_id of {name}, or a duplicate.")
        found[task] = prompt.replace("\r\n", "\n")
    return found


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
