"""From a model's reply to the program that is judged: EvalPlus's sanitiser, made safe for any text."""

import ast
import io
import os
import re
import signal
import symtable
import threading
import tokenize
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import accumulate, repeat
from multiprocessing import get_context
from typing import Any, NamedTuple

from cultureval.runtime.patches.evalplus import sanitize_with
from cultureval.runtime.progress import progressing

# The sanitiser tries all ranges of lines of a text that is not a program, which is slow for long texts.
MOST_LINES = 250
MOST_CHARACTERS = 200_000
MOST_PARSED = 400_000  # characters
MOST_SECONDS = 10.0  # of CPU time, for one text
HEAD_LINES = 4  # in which prose is told from a program, without parsing the rest of the text for each line
# Beginnings of the parser's messages on what is there, rather than on what is missing at the end.
SURELY_WRONG = ("invalid ", "unterminated string literal", "leading zeros", "unmatched ", "unexpected indent")
FEW_TEXTS = 24  # are faster without further processes
BYTE_ORDER_MARK = "\ufeff"
# Of a block of code, also of one in a list; each space is matched in one way, so that a line of them is soon read.
FENCE = re.compile(rf"[ \t{BYTE_ORDER_MARK}]*(?:(?:[-*+]|\d{{1,3}}[.)]) *)?```")


class Program(NamedTuple):
    """What was taken for the program of a text.

    Attributes:
        code: The program.
        cut: Whether a limit left parts of the text unread.
    """

    code: str
    cut: bool = False


def sanitize_solution(code: str, entry_point: str) -> Program:
    """EvalPlus's `sanitize`: the longest run of lines that is Python, reduced to what the entry point needs.

    Also from a program, top-level statements that are not an import, class, assignment or function with a return are
    removed, unless it then lacks the entry point: it is left as it is, as a text that the sanitiser cannot read (null
    bytes, thousands of brackets), or not in ten seconds. A byte-order mark is no part of a program. A text that is none
    is read as it stands, then, where the entry point is not found, with fenced blocks outdented by the indentation of
    their fence, as in a list, then by the blocks that are programs with it. Of one of more than 250 lines or 200,000
    characters such blocks are read, and where there is none, 250 lines around definitions of the entry point. One of
    more than MOST_PARSED characters is left as it is, unless its first lines can begin no program.
    """
    code = code.removeprefix(BYTE_ORDER_MARK)
    if _is_unread_program(code):
        return Program(code, cut=True)
    cut, found = False, []
    texts = programs = [code]
    if not is_program(code):
        outdented, blocks = _outdented_blocks(code.split("\n"))
        programs = sorted(
            (block for block in blocks if is_program(block, entry_point)), key=_filled_lines, reverse=True
        )
        too_long = len(outdented) > MOST_LINES or len(code) > MOST_CHARACTERS
        cut = too_long and not programs
        if not too_long:
            texts = list(dict.fromkeys([code, "\n".join(outdented), *programs]))
        elif cut and len(code) <= MOST_PARSED:  # a longer one may be a program
            texts = _around_definitions(outdented, entry_point)
        else:
            texts = programs
    try:
        with _time_limit(MOST_SECONDS):
            for text in texts:
                found.append(sanitize_with(longest_program, text, entry_point))
                for program in (found[-1], text):
                    if is_program(program, entry_point):
                        return Program(program, cut)
    except _TimeLimitReached:
        cut = not programs  # which are taken whole
    except Exception:  # the text is untrusted and must not end the run
        pass
    return Program([*programs, *found, code][0], cut)


class _TimeLimitReached(Exception):
    """What ran in a `_time_limit` took longer."""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """A context that ends with `_TimeLimitReached` after seconds of CPU time; in other threads without."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> None:
        raise _TimeLimitReached

    handler = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)  # again, since an error in a finaliser is lost
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)


def _filled_lines(text: str) -> int:
    return sum(bool(line.strip()) for line in text.split("\n"))


def _around_definitions(lines: list[str], entry_point: str) -> list[str]:
    """MOST_LINES around the last and the first line that define the entry point, as a program's own line does."""
    definition = re.compile(rf"\s*(?:(?:async )?def |class )?{re.escape(entry_point)}\s*[=(:]")
    places = [place for place, line in enumerate(lines) if definition.match(line)]
    definitions = list(dict.fromkeys([*places[-1:], *places[:1]]))
    starts = [max(0, place - MOST_LINES // 2) for place in definitions] + definitions  # without a long line before it
    texts = ["\n".join(lines[start : start + MOST_LINES]) for start in starts]
    return [text for text in texts if len(text) <= MOST_CHARACTERS]


def _outdented_blocks(lines: list[str]) -> tuple[list[str], list[str]]:
    """Lines of a text, those of fenced blocks without their fence's indentation and byte-order marks; and each block.

    A fence that is indented more than the one that opened a block is part of the code, as in a docstring's example.
    """
    found, blocks, indent, inside = [], [], 0, False
    for line in lines:
        fence = FENCE.match(line)
        if fence and not (inside and fence.end() - len("```") > indent):
            inside = not inside or bool(line[fence.end() :].strip())  # what names a language closes no block
            indent = fence.end() - len("```")
            found.append(line[indent:])
            blocks += [[]] if inside else []
        elif inside:
            found.append(line[:indent].lstrip(f" \t{BYTE_ORDER_MARK}") + line[indent:].removeprefix(BYTE_ORDER_MARK))
            blocks[-1].append(found[-1])
        else:
            found.append(line)
    return found, ["\n".join(block) for block in blocks]


def programs_in_parallel(
    function: Callable[..., Program],
    arguments: Sequence[tuple[Any, ...]],
    otherwise: Sequence[str],
    workers: int | None = None,
) -> list[Program]:
    """Apply a function to many texts, in several processes and with a bar; no text has an effect on another.

    Args:
        function: A function of a module, from a text and more to a program.
        arguments: Its arguments, for each text.
        otherwise: The code of each text at which the function fails, or its process ends.
        workers: Number of processes; default: one per CPU.

    Returns:
        The programs, in the order of the texts.
    """
    workers = min(workers or len(os.sched_getaffinity(0)), len(arguments) // FEW_TEXTS + 1)
    alone = (_program_or_none(function, given) for given in arguments)
    found = alone if workers == 1 else _in_processes(function, arguments, workers)
    bar = progressing(found, len(arguments), "reading answers", "answer")
    return [program or Program(text, cut=True) for program, text in zip(bar, otherwise, strict=True)]


def _in_processes(
    function: Callable[..., Program], arguments: Sequence[tuple[Any, ...]], workers: int
) -> Iterator[Program | None]:
    """The programs, in order; one by one from where a process has ended, since it took others' texts with it."""
    done = 0
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool, suppress(BrokenProcessPool):
        for program in pool.map(_program_or_none, repeat(function), arguments, chunksize=4):
            yield program
            done += 1
    while done < len(arguments):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, suppress(BrokenProcessPool):
            for given in arguments[done:]:
                done += 1
                yield pool.submit(_program_or_none, function, given).result()
            return
        yield None


def _program_or_none(function: Callable[..., Program], given: tuple[Any, ...]) -> Program | None:
    try:
        return function(*given)
    except Exception:  # the text is untrusted and must not end the run
        return None


@lru_cache(maxsize=4)  # EvalPlus asks twice for a text without a program
def longest_program(text: str) -> str:
    """The result of EvalPlus's `code_extract`, found faster: the first run of two or more lines that is Python and has
    the most non-blank lines; the first line if there is none.

    EvalPlus parses all runs. Here the line of a syntax error tells where no run from the same start can go on, so that
    prose takes one parse a line.
    """
    lines = text.split("\n")
    filled = [0, *accumulate(bool(line.strip()) for line in lines)]
    best, found = 0, lines[0]
    for start in range(len(lines) - 1):
        if filled[-1] - filled[start] <= best:
            break
        end = _end_of_program(lines, start, start + 2 if not best else start + best + 1)
        if end and filled[end] - filled[start] > best:
            best = filled[end] - filled[start]
            least = end
            while least > start + 2 and not lines[least - 1].strip():
                least -= 1
            runs = ("\n".join(lines[start:last]) for last in range(least, end + 1))
            found = next(run for run in runs if _first_wrong_line(run) is None)
    return found


def _end_of_program(lines: list[str], start: int, least: int) -> int | None:
    """The last place, of at least `least`, at which the lines from `start` on end a program."""
    end = len(lines)
    head = "\n".join(lines[start : start + HEAD_LINES])
    if (wrong := _first_wrong_line(head, only_sure=True)) is not None:
        end = start + wrong - 1
    while end >= least:
        code = "\n".join(lines[start:end])
        wrong = _first_wrong_line(code)
        if wrong is None:
            return end
        end = min(end - 1, start + wrong - 1)
    return None


def _first_wrong_line(code: str, only_sure: bool = False) -> int | None:
    """The line, counted from 1, beyond which no beginning of the code is a program either; None for a program.

    Args:
        code: Lines of a text.
        only_sure: Give only a line that is wrong whatever follows the code, else None.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(code)
    except SyntaxError as error:
        if only_sure:
            ends_before = error.lineno is not None and error.lineno <= code.count("\n") and "\r" not in code
            return error.lineno if ends_before and error.msg.startswith(SURELY_WRONG) else None
        if error.lineno is None or "\r" in code:  # which ends a line for the parser, but not for EvalPlus
            return code.count("\n") + 1
        if error.msg.endswith("was never closed"):
            return _first_unclosed_line(code) or error.lineno
        return error.lineno
    except (ValueError, RecursionError, MemoryError):
        return None if only_sure else code.count("\n") + 1
    return None


def _first_unclosed_line(code: str) -> int | None:
    """The line of the outermost bracket that is never closed; the parser names the innermost."""
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.OP and token.string in "([{":
                opened.append(token.start[0])
            elif token.type == tokenize.OP and token.string in ")]}" and opened:
                opened.pop()
    except (tokenize.TokenError, SyntaxError):
        pass
    return opened[0] if opened else None


def program_of(reply: str, prompt: str, entry_point: str) -> Program:
    """The program in a model's reply: the code in it, or the prompt continued by it.

    As in EvalPlus, a chat model's reply is sanitised alone. A reply without the entry point continues the prompt, as
    replies of models without a chat template do; one that is a program and names it may define it as it runs.
    """
    reply = reply.removeprefix(BYTE_ORDER_MARK).replace("\t", "    ")
    program = sanitize_solution(reply, entry_point)
    if is_program(program.code, entry_point) or (
        entry_point in reply and (is_program(reply) or _is_unread_program(reply))
    ):
        return program
    return sanitize_solution(f"{prompt.strip()}\n{reply}", entry_point)


def is_program(code: str, entry_point: str | None = None) -> bool:
    """Whether a text is Python and, if an entry point is given, has a statement that binds that name at its top level.

    It may begin with a byte-order mark. Of a text of more than MOST_PARSED characters, which takes the parser a
    thousand times the memory, it is not known. One that is nested too deeply for more than parsing binds what it names.
    """
    if len(code) > MOST_PARSED:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):  # of invalid escapes in untrusted strings
            tables = [symtable.symtable(code.removeprefix(BYTE_ORDER_MARK), "<text>", "exec")]
    except RecursionError:  # comes after parsing
        return entry_point is None or entry_point in code
    except (SyntaxError, ValueError, MemoryError):
        return False
    return entry_point is None or _binds(tables, entry_point)


def _is_unread_program(text: str) -> bool:
    """Whether a text for which `is_program` gives no answer may be a program, by its first lines."""
    head = "\n".join(text[:MOST_CHARACTERS].lstrip("\n").split("\n")[:HEAD_LINES])
    return len(text) > MOST_PARSED and _first_wrong_line(head, only_sure=True) is None


def _binds(tables: list[symtable.SymbolTable], name: str) -> bool:
    """Whether a module's table, or one in it with a `global` statement, binds a name of the module."""
    for table in tables:
        tables += table.get_children()
        symbol = table.lookup(name) if name in table.get_identifiers() else None
        if symbol and (table.get_type() == "module" or symbol.is_declared_global()):
            if symbol.is_assigned() or symbol.is_imported():
                return True
    return False
