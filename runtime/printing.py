"""What a command prints: folded to the terminal, which shows control characters instead of obeying them."""

import io
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from cultureval.runtime.errors import CONTROLS, escaped

# What progress bars and logs write themselves: colours, the cursor's line and visibility, erased lines.
OF_BARS = r"\x1b\[(?:[0-9;]{0,32}m|[0-9]{0,3}[ABK]|\?25[hl])"
# U+2068 and U+2069 remain: they isolate right-to-left lines (`isolated`).
CONTROL = re.compile(rf"(?P<of_bars>{OF_BARS})|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067]")
COMMAND = re.compile(r"\s*(?:\S*/)?(?:cultureval|pip|python[\d.]*) \S")


class TerminalStream(io.TextIOWrapper):
    """A terminal that shows control characters, whoever wrote them; those of progress bars and colours are obeyed."""

    def write(self, text: str, /) -> int:
        """Writes the text, control characters as escapes; returns its length."""
        super().write(CONTROL.sub(lambda found: found["of_bars"] or escaped(found[0]), text))
        return len(text)


def print_result(text: str, path: str | Path) -> None:
    """Prints the text of a result that is saved already, and its path on standard error where that may be missed."""
    if text.startswith(("{", "[")):  # JSON, whose texts a line break would change
        print(text)
    else:
        print_text(text)
    told = any(str(place) in text for place in (path, Path(path).resolve()))
    if not sys.stdout.isatty() and not told:
        print(f"cultureval: saved: {escaped(str(path))}", file=sys.stderr)


def print_text(text: str) -> None:
    """Prints a text on standard output; folded where that is a terminal or COLUMNS is set."""
    width = terminal_width()
    print(folded(escaped(text, keep=CONTROLS), width) if width else text)


def print_note(text: str) -> None:
    """Prints a sentence for the user on standard error, beside a command's result, as `print_message` does."""
    print_message(f"cultureval: {escaped(text, keep=CONTROLS)}")


def print_message(text: str) -> None:
    """Prints a text on standard error; folded where that is a terminal or COLUMNS is set."""
    width = terminal_width(sys.stderr)
    print(folded(text, width) if width else text, file=sys.stderr)


def terminal_width(stream: TextIO | None = None) -> int | None:
    """The cells of a line of a stream (None: standard output): COLUMNS, else its terminal's; None if it has none."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def folded(text: str, width: int) -> str:
    """The text with its lines folded between words to a width in letters; long words and commands stay whole."""
    how = {"break_long_words": False, "break_on_hyphens": False, "replace_whitespace": False, "expand_tabs": False}
    lines = text.split("\n")
    return "\n".join(line if COMMAND.match(line) else textwrap.fill(line, width, **how) for line in lines)


def wrapped(text: str) -> str:
    """A paragraph in lines of the terminal's width, else of 100 letters."""
    return folded(text, terminal_width() or 100)


@contextmanager
def steady_streams() -> Iterator[None]:
    """A context of a whole command: terminals are `TerminalStream`s, and an encoding may lack letters.

    Raises:
        SystemExit: The reader closed its pipe and so wanted no more (code 0).
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _steady(sys.stdout), _steady(sys.stderr)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    except BrokenPipeError as error:
        for descriptor in (1, 2):  # Python flushes once more at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        raise SystemExit(0) from error
    finally:
        sys.stdout, sys.stderr = before


def _steady(stream: TextIO | None) -> TextIO:
    if stream is None:  # it was closed before Python started
        return open(os.devnull, "w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):  # a test's
        return stream
    stream.reconfigure(errors="backslashreplace")
    if not stream.isatty():
        return stream
    return TerminalStream(open(stream.fileno(), "wb", closefd=False), stream.encoding, "backslashreplace", None, True)


def isolated(text: str) -> str:
    """A text with letters from right to left, set apart from the text around it (by U+2068 and U+2069)."""
    leftwards = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return f"\u2068{text}\u2069" if leftwards else text
