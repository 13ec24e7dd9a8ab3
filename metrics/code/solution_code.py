"""From a model's reply to the judged program: EvalPlus's sanitiser, in processes with limits."""

import ast
import re
import resource
import signal
import symtable
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from cultureval.runtime.hostile_work import results
from cultureval.runtime.patches.evalplus import sanitize_with
from cultureval.runtime.progress import progressing

BYTE_ORDER_MARK = "\ufeff"
MOST_SECONDS = 10.0  # of CPU time, for one text
MOST_MEMORY = 4 << 30
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Text(NamedTuple):
    """A text with a program.

    Attributes:
        code: A program, or a reply with one.
        entry_point: The function that the problem asks for.
        prompt: The prompt that a reply without the entry point continues; "": none.
        as_it_is: Whether a text that is Python stays unchanged.
    """

    code: str
    entry_point: str
    prompt: str = ""
    as_it_is: bool = False


class Program(NamedTuple):
    """The program of a text.

    Attributes:
        code: The program.
        cut: Whether the sanitiser exceeded its limits; then the program is a fenced block or the whole text.
    """

    code: str
    cut: bool = False


def programs(texts: Sequence[Text], workers: int | None = None) -> list[Program]:
    """The program of each text, in order.

    Args:
        texts: Untrusted texts.
        workers: Number of processes; default: one for each CPU.
    """
    found = dict(progressing(results(_within_limits, texts, workers), len(texts), "reading answers", "answer"))
    return [
        program if isinstance(program := found[place], Program) else _unsanitized(text)
        for place, text in enumerate(texts)
    ]


def _within_limits(text: Text) -> Program | None:
    """`program_of` under limits; a text that exceeds them ends the process, or gives None."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # without a handler its signal ends the process
    try:
        return Program(program_of(text))
    except Exception:  # the text is untrusted: too large, nested too deeply, null characters
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _unsanitized(text: Text) -> Program:
    """The last fenced block with the entry point, else the whole text."""
    blocks = [block for block in FENCED.findall(text.code) if text.entry_point in block]
    return Program([text.code, *blocks][-1], cut=True)


def program_of(text: Text) -> str:
    """The program in a text: the code in it, or the prompt continued by it.

    As in EvalPlus, a chat model's reply is sanitised alone. A reply without the entry point continues the prompt, as
    replies of models without a chat template do.

    Raises:
        MemoryError, RecursionError: The text is too large or nested too deeply.
    """
    code = text.code.removeprefix(BYTE_ORDER_MARK)
    if text.as_it_is and is_program(code):
        return code
    program = _sanitized(code, text.entry_point)
    if not text.prompt or binds(program, text.entry_point) or (text.entry_point in code and is_program(code)):
        return program
    return _sanitized(f"{text.prompt.strip()}\n{code}", text.entry_point)


def _sanitized(code: str, entry_point: str) -> str:
    """EvalPlus's `sanitize`: the longest run of Python lines, reduced to the parts that the entry point needs.

    If the entry point is lost (as when it is defined in an `except`), the longest run is judged whole.
    """
    program = sanitize_with(longest_program, code, entry_point)
    if binds(program, entry_point):
        return program
    longest = longest_program(code)
    return longest if binds(longest, entry_point) else code if is_program(code) else program


@lru_cache(maxsize=4)  # EvalPlus asks twice for a text without a program
def longest_program(text: str) -> str:
    """The result of EvalPlus's `code_extract`: the first run of two or more lines that is Python and has the most
    non-blank lines; the first line if there is none.

    EvalPlus parses all runs. Here the longest run comes first, and the line of a syntax error excludes shorter runs
    from the same start.
    """
    lines = text.split("\n")
    filled = [0, *accumulate(bool(line.strip()) for line in lines)]
    last = [len(lines)] * len(lines)  # by start, the last end that may make a program
    for most in range(filled[-1], 0, -1):
        for start in range(bisect_right(filled, filled[-1] - most)):
            least, limit = filled[start] + most, last[start]
            for end in range(max(start + 2, bisect_left(filled, least)), min(bisect_right(filled, least), limit + 1)):
                wrong = _wrong_line(code := "\n".join(lines[start:end]))
                if wrong is None:
                    return code
                last[start] = min(last[start], start + wrong - 1)
    return lines[0]


def _wrong_line(code: str) -> int | None:
    """The line, from 1, of the syntax error; no beginning of the code beyond it is a program. None: no error."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of invalid escapes in strings
            ast.parse(code)
    except SyntaxError as error:
        # A \r ends a line for the parser, but not for EvalPlus.
        return error.lineno if error.lineno and "\r" not in code else code.count("\n") + 1
    except ValueError:  # null characters
        return code.count("\n") + 1
    return None


def is_program(code: str) -> bool:
    """Whether a text is Python; it may begin with a byte-order mark."""
    return _wrong_line(code.removeprefix(BYTE_ORDER_MARK)) is None


def binds(code: str, name: str) -> bool:
    """Whether a text is Python that binds a name at module level, also within a block."""
    if not is_program(code):
        return False
    with warnings.catch_warnings(action="ignore"):
        table = symtable.symtable(code.removeprefix(BYTE_ORDER_MARK), "<text>", "exec")
    symbol = table.lookup(name) if name in table.get_identifiers() else None
    return symbol is not None and (symbol.is_assigned() or symbol.is_imported())
