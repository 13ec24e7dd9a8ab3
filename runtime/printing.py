"""What a command prints: folded to the terminal's width, with control characters as escapes."""

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

# Codes of progress bars and logs: colours, the cursor's line and visibility, erased lines.
OF_BARS = r"\x1b\[(?:[0-9;]{0,32}m|[0-9]{0,3}[ABK]|\?25[hl])"
# U+2068 and U+2069 remain: they isolate right-to-left lines (`isolated`).
CONTROL = re.compile(rf"(?P<of_bars>{OF_BARS})|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067]")
COMMAND = re.compile(r"\s*(?:\S*/)?(?:cultureval|pip|python[\d.]*) \S")


class TerminalStream(io.TextIOWrapper):
    """A terminal that shows control characters as escapes, except the codes of progress bars and colours."""

    def write(self, text: str, /) -> int:
        """Writes the text, control characters as escapes; returns its length."""
        super().write(CONTROL.sub(lambda found: found["of_bars"] or escaped(found[0]), text))
        return len(text)


def print_result(text: str, path: str | Path) -> None:
    """Prints the text of a saved result; its path goes to standard error, unless a terminal or the text shows it."""
    if text.startswith(("{", "[")):  # folding would change texts in JSON
        print(text)
    else:
        print_text(text)
    path_shown = any(str(place) in text for place in (path, Path(path).resolve()))
    if not sys.stdout.isatty() and not path_shown:
        print(f"cultureval: saved: {escaped(str(path))}", file=sys.stderr)


def print_text(text: str) -> None:
    """Prints a text on standard output; folded where that is a terminal or COLUMNS is set."""
    width = terminal_width()
    print(folded(escaped(text, keep=CONTROLS), width) if width else text)


def print_note(text: str) -> None:
    """Prints a sentence for the user on standard error, as `print_message` does."""
    print_message(f"cultureval: {escaped(text, keep=CONTROLS)}")


def print_message(text: str) -> None:
    """Prints a text on standard error; folded where that is a terminal or COLUMNS is set."""
    width = terminal_width(sys.stderr)
    print(folded(text, width) if width else text, file=sys.stderr)


def terminal_width(stream: TextIO | None = None) -> int | None:
    """The width of a stream (None: standard output) in cells: COLUMNS, else its terminal's; None for a file."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def folded(text: str, width: int) -> str:
    """The text with lines folded between words to a width in characters; long words and commands stay whole."""
    how = {"break_long_words": False, "break_on_hyphens": False, "replace_whitespace": False, "expand_tabs": False}
    lines = text.split("\n")
    return "\n".join(line if COMMAND.match(line) else textwrap.fill(line, width, **how) for line in lines)


def wrapped(text: str) -> str:
    """A paragraph in lines of the terminal's width, else of 100 letters."""
    return folded(text, terminal_width() or 100)


@contextmanager
def steady_streams() -> Iterator[None]:
    """A context of a whole command: terminals become `TerminalStream`s; letters that they cannot show are escaped.

    Raises:
        SystemExit: The reader closed its pipe (code 0).
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
        for descriptor in (1, 2):  # Python flushes again when it exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        raise SystemExit(0) from error
    finally:
        sys.stdout, sys.stderr = before


def _steady(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed before Python started
        return open(os.devnull, "w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):  # a stream of a test
        return stream
    stream.reconfigure(errors="backslashreplace")
    if not stream.isatty():
        return stream
    return TerminalStream(open(stream.fileno(), "wb", closefd=False), stream.encoding, "backslashreplace", None, True)


def isolated(text: str) -> str:
    """A text with right-to-left letters between U+2068 and U+2069, which isolate it; other texts as they are."""
    leftwards = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return f"\u2068{text}\u2069" if leftwards else text
