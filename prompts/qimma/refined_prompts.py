"""QIMMA's refined prompts of code problems: used only where nothing but the docstring's Arabic differs.

QIMMA section 4 (code prompts of its audit): the Arabic inside the docstring may change; signature, code, examples,
formatting and English text stay unchanged. Within Arabic lines, only the counts of numbers and Latin words are
compared, not their order or the punctuation, because these are edited together with the Arabic.
"""

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cultureval.runtime.errors import BadRow, CulturevalError, shorten

PROMPT_COLUMNS = ("prompt", "Fixed", "fixed", "refined_prompt")
ID_COLUMNS = ("task_id", "id", "ID")
ARABIC = re.compile(r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufeff]")
WORD = re.compile(r"[A-Za-z0-9_]+")
# Letters of Arabic; no digits, invisible marks, symbols (٪ ﷼) or separators of decimals and thousands (٫ ٬).
_LETTERS = (
    r"\u0620-\u063f\u0641-\u064a\u066e\u066f\u0671-\u06d3\u06d5\u06e5\u06e6\u06ee\u06ef\u06fa-\u06fc\u06ff"
    r"\u0750-\u077f\u08a0-\u08c9\ufb50-\ufbb1\ufbd3-\ufd3d\ufd50-\ufd8f\ufd92-\ufdc7\ufdf0-\ufdf9\ufe70-\ufe74\ufe76-\ufefc"
)
_MARKS = (
    r"\u060c\u0610-\u061b\u061f\u0640\u064b-\u065f\u0670\u06d4\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    r"\u08d3-\u08e1\u08e3-\u08ff"
)  # vowel marks, tatweel and punctuation: without a letter beside them (the comma of 1، 2) they are no words
_HAS_LETTER = re.compile(rf"[{_LETTERS}]")
_ARABIC_WORDS = re.compile(rf"[{_LETTERS}{_MARKS}]+(?: [{_LETTERS}{_MARKS}]+)*")
_MARK = "\0"  # which no Python source may hold
EXAMPLE_STARTS = (">>>", "...", "assert ")


def match_prompts(rows: Sequence[Mapping[str, Any]], task_ids: Sequence[str]) -> dict[str, str]:
    """The refined prompt of each problem in the rows.

    Args:
        rows: Rows of a file with a column `prompt` or `Fixed` (QIMMA's name) and, where it does not hold one row a
            problem in the problems' order, a column `task_id`.

    Raises:
        CulturevalError: No such column, a wrong number of rows without task ids, an unknown or duplicated task id.
    """
    if not rows:
        raise CulturevalError("the file of refined prompts holds no row.")
    text_column = next((name for name in PROMPT_COLUMNS if name in rows[0]), None)
    if text_column is None:
        found = ", ".join(map(str, rows[0]))
        raise CulturevalError(f"no column {' or '.join(map(repr, PROMPT_COLUMNS))} in it; columns found: {found}.")
    id_column = next((name for name in ID_COLUMNS if name in rows[0]), None)
    if id_column is None and len(rows) != len(task_ids):
        raise CulturevalError(
            f"it names no task_id and holds {len(rows)} rows for {len(task_ids)} problems: add a column task_id."
        )
    names = [row.get(id_column) for row in rows] if id_column else list(task_ids)
    matched: dict[str, str] = {}
    for number, (name, row) in enumerate(zip(names, rows, strict=True)):
        if name not in task_ids:
            raise CulturevalError(f"row {number} names {shorten(name)}, which is not one of the problems.")
        if name in matched:
            raise CulturevalError(f"{name} is duplicated in it.")
        if not isinstance(row.get(text_column), str) or not row[text_column].strip():
            raise CulturevalError(f"the prompt of {name} is empty.")
        matched[name] = row[text_column]
    return matched


def check_refinement(original: str, refined: str) -> None:
    """Checks that a refined prompt differs from the original in the Arabic of its docstrings only.

    Raises:
        BadRow: Something else differs, or the refined prompt is not Python; the message shows both texts.
    """
    (code, docstrings), (new_code, new_docstrings) = code_and_docstrings(original), code_and_docstrings(refined)
    if code.strip() != new_code.strip():
        _refuse("code outside the docstring", code.strip().splitlines(), new_code.strip().splitlines())
    for docstring, new_docstring in zip(docstrings, new_docstrings, strict=True):
        examples, prose = _lines(docstring)
        new_examples, new_prose = _lines(new_docstring)
        if examples != new_examples:
            _refuse("an example or another line without Arabic", examples, new_examples)
        words, new_words = Counter(WORD.findall(prose)), Counter(WORD.findall(new_prose))
        if words != new_words:
            _refuse("a Latin word or number", sorted(words - new_words), sorted(new_words - words))


def check_only_arabic_changed(original: str, refined: str) -> None:
    """Checks the strict rule: all but Arabic words in docstrings is byte-identical.

    That is code, signature, examples and their outputs, number and order of lines, indentation, and in a line with
    Arabic everything that is no Arabic word (with its vowel marks and punctuation), with the white space around it:
    English, digits of any script and what separates them, symbols, invisible marks. `check_refinement` is the lenient
    rule, by which prompts are scored.

    Raises:
        BadRow: Something else differs, or the refined prompt is not Python; the message shows both texts.
    """
    (code, docstrings), (new_code, new_docstrings) = code_and_docstrings(original), code_and_docstrings(refined)
    if code != new_code:
        _refuse("code outside the docstring", code.split("\n"), new_code.split("\n"))
    for docstring, new_docstring in zip(docstrings, new_docstrings, strict=True):
        frame, new_frame = _frame(docstring), _frame(new_docstring)
        if frame != new_frame:
            shown = [[line.replace(_MARK, "…") for line in one] for one in (frame, new_frame)]
            _refuse("more than the Arabic of its docstring", *shown)


def _frame(docstring: str) -> list[str]:
    """The lines of a docstring as they must stay: those with Arabic prose with a mark for each run of Arabic words."""
    lines, kept = docstring.split("\n"), _fixed_lines(docstring.split("\n"))
    return [line if fixed else _ARABIC_WORDS.sub(_framed, line) for line, fixed in zip(lines, kept, strict=True)]


def _framed(run: re.Match[str]) -> str:
    return _MARK if _HAS_LETTER.search(run[0]) else run[0]


def code_and_docstrings(prompt: str) -> tuple[str, list[str]]:
    """The prompt's code with a placeholder for each docstring, and the docstrings as written.

    Raises:
        BadRow: It is not Python.
    """
    try:
        tree = ast.parse(prompt)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadRow("prompt", prompt, f"is not Python ({error})") from error
    lines = prompt.encode("utf-8").splitlines(keepends=True)  # ast counts columns in bytes
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    spans = sorted(
        (starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    source = b"".join(lines)
    code, docstrings, position = b"", [], 0
    for start, end in spans:
        code += source[position:start] + b'""'
        docstrings.append(source[start:end].decode("utf-8"))
        position = end
    return (code + source[position:]).decode("utf-8"), docstrings


def _lines(docstring: str) -> tuple[list[str], str]:
    """The lines that must not change (examples, their outputs, lines without Arabic), and the others joined."""
    lines = docstring.splitlines()
    fixed = _fixed_lines(lines)
    kept = [line.rstrip() for line, stays in zip(lines, fixed, strict=True) if stays and line.strip()]
    return kept, "\n".join(line.strip() for line, stays in zip(lines, fixed, strict=True) if not stays)


def _fixed_lines(lines: Sequence[str]) -> list[bool]:
    """Whether each line of a docstring must not change: examples, their outputs, lines without Arabic."""
    fixed, after_example = [], False
    for line in lines:
        text = line.strip()
        is_example = text.startswith(EXAMPLE_STARTS)
        fixed.append(is_example or bool(after_example and text) or not ARABIC.search(text))
        after_example = is_example and not text.startswith("assert ")
    return fixed


def _refuse(what: str, original: Sequence[str], refined: Sequence[str]) -> None:
    for before, after in zip([*original, ""], [*refined, ""], strict=False):
        if before != after:
            raise BadRow("prompt", after, f"differs in {what}, where the original has {shorten(before)}")
    raise BadRow("prompt", "", f"differs in {what}")
