"""From a model's reply to the program that is judged: EvalPlus's sanitiser, made safe for any text."""

import ast
import warnings
from itertools import accumulate, combinations

from cultureval.runtime.evalplus_patches import sanitize_with

# The sanitiser tries all ranges of lines of a text that is not a program, which is slow for long texts.
MOST_LINES = 250
MOST_CHARACTERS = 200_000


def sanitize_solution(code: str, entry_point: str) -> str:
    """EvalPlus's `sanitize`: the longest run of lines that is Python, reduced to what the entry point needs.

    Also from a program, top-level statements that are not an import, class, assignment or function with a return are
    removed. Of a text of more than 250 lines the first 250 are read; a longer program is not changed, nor is a text
    that the sanitiser cannot read (null bytes, thousands of brackets).
    """
    if len(code) > MOST_CHARACTERS:
        return code
    if not is_program(code):
        code = "\n".join(code.split("\n")[:MOST_LINES])
    elif code.count("\n") >= MOST_LINES:
        return code
    try:
        return sanitize_with(longest_program, code, entry_point)
    except Exception:  # the text is untrusted and must not end the run
        return code


def longest_program(text: str) -> str:
    """The result of EvalPlus's `code_extract`, found faster: the first run of two or more lines that is Python and has
    the most non-blank lines; the first line if there is none.

    EvalPlus parses all runs; here the longest is parsed first, up to the first that is Python.
    """
    lines = text.split("\n")
    filled = [0, *accumulate(bool(line.strip()) for line in lines)]
    runs = [(filled[start] - filled[end], start, end) for start, end in combinations(range(len(lines) + 1), 2)]
    for count, start, end in sorted(runs):
        if end - start > 1 and count and is_program("\n".join(lines[start:end])):
            return "\n".join(lines[start:end])
    return lines[0]


def program_of(reply: str, prompt: str, entry_point: str) -> str:
    """The program in a model's reply: the code in it, or the prompt continued by it.

    As in EvalPlus, a chat model's reply is sanitised alone. A reply without the entry point continues the prompt, as
    replies of models without a chat template do.
    """
    reply = reply.replace("\t", "    ")
    program = sanitize_solution(reply, entry_point)
    if is_program(program, entry_point):
        return program
    return sanitize_solution(f"{prompt.strip()}\n{reply}", entry_point)


def is_program(code: str, entry_point: str | None = None) -> bool:
    """Whether a text is Python and, if an entry point is given, defines or imports that name at its top level."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of invalid escapes in untrusted strings
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return entry_point is None or entry_point in _names(body)


def _names(body: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in statement.names)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
        else:  # a definition inside a condition or a `try`
            names |= _names([child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)])
    return names
