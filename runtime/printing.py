"""What a command prints: on streams that cannot fail a run, and after its result is saved."""

import codecs
import errno
import io
import os
import re
import select
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

from cultureval.runtime.errors import CONTROLS, escaped

PLAIN = {"±": "+/-", "…": "...", "–": "-", "—": "-", "−": "-", "×": "x", "→": "->", "≥": ">=", "≤": "<=", "·": "-"}
PLAIN_LETTERS = "cultureval_plain_letters"  # name of the codec error handler
# What progress bars and logs write themselves: colours, the cursor's line and visibility, erased lines.
OF_BARS = r"\x1b\[(?:[0-9;]{0,32}m|[0-9]{0,3}[ABK]|\?25[hl])"
# U+2068 and U+2069 remain: they isolate right-to-left lines (`saved_sample.shown_text`).
CONTROL = re.compile(rf"(?P<of_bars>{OF_BARS})|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067]")
WORD = re.compile(r"(\s*)((?:'[^'\n]*'|`[^`\n]*`)\S*|\S+)")
COMMAND = re.compile(r"\s*(?:\S*/)?(?:cultureval|pip|python[\d.]*) \S")
_FOR_FILES: ContextVar[bool] = ContextVar("for_files", default=False)


class SteadyFile(io.FileIO):
    """An open file to which writing never fails: after the first error (`lost`) everything else is dropped.

    Attributes:
        reported: Whether the user knows where else the lost text is.
    """

    lost: OSError | None = None
    reported = False

    def write(self, data: Any, /) -> int:
        """Writes, or drops the data where that is impossible; waits for a terminal that is not ready."""
        while self.lost is None:
            try:
                written = super().write(data)
            except OSError as error:
                self.lost = error
            else:
                if written is not None:
                    return written
                select.select([], [self], [])
        return memoryview(data).nbytes


class TerminalStream(io.TextIOWrapper):
    """A terminal, on which control characters are shown instead of obeyed, whoever wrote them: a server, a file, a log.

    Those of progress bars and colours are obeyed.
    """

    def write(self, text: str, /) -> int:
        """Writes the text, control characters as escapes; returns its length."""
        super().write(CONTROL.sub(lambda found: found["of_bars"] or escaped(found[0]), text))
        return len(text)


def print_result(text: str, path: str | Path) -> None:
    """Prints the text of a result that is saved already; nothing that happens while printing is an error.

    Where standard output is no terminal, the path also goes to standard error, unless the text names it.

    Args:
        text: The text, as of `print_text`; JSON is not folded.
        path: The file that holds it, or the folder of the results.
    """
    told = any(str(place) in text for place in (path, Path(path).resolve()))
    if text.startswith(("{", "[")):  # JSON, whose texts a line break would change
        print(text)
    else:
        print_text(text)
    sys.stdout.flush()
    raw = _steady_file(sys.stdout)
    if raw is not None and raw.lost and raw.lost.errno != errno.EPIPE:
        print_note(f"the result could not be printed ({raw.lost.strerror}).")
    if raw is not None:
        raw.reported = True
    if (not sys.stdout.isatty() and not told) or (raw is not None and raw.lost):
        print(f"cultureval: saved: {escaped(str(path))}", file=sys.stderr)


def print_text(text: str) -> None:
    """Prints a text on standard output; folded where that is a terminal or COLUMNS is set."""
    print(_folded(escaped(text, keep=CONTROLS), sys.stdout) if terminal_width() else text)


def print_note(text: str) -> None:
    """Prints a sentence for the user on standard error, beside a command's result, as `print_message` does."""
    print_message(f"cultureval: {escaped(text, keep=CONTROLS)}")


def print_message(text: str) -> None:
    """Prints a text on standard error; folded where that is a terminal or COLUMNS is set."""
    print(_folded(text, sys.stderr), file=sys.stderr)


def terminal_width(stream: TextIO | None = None) -> int | None:
    """The cells of a line of a stream (None: standard output): as COLUMNS says wherever it leads, else its terminal's.

    Returns:
        None where COLUMNS is not set and the stream is no terminal.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    from rich.console import Console

    return Console().width if (stream or sys.stdout).isatty() else None


@contextmanager
def for_files() -> Iterator[None]:
    """A context in which tables are made for files, which are in UTF-8 whatever the terminal is."""
    token = _FOR_FILES.set(True)
    try:
        yield
    finally:
        _FOR_FILES.reset(token)


def as_printed(text: str) -> str:
    """The text as standard output shows it: with other letters where its encoding lacks some (an ASCII locale).

    What is aligned is translated before, since a sign may become several (± becomes +/-).
    """
    encoding = "utf-8" if _FOR_FILES.get() else getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        codecs.register_error(PLAIN_LETTERS, _plain_letters)
        return text.encode(encoding, PLAIN_LETTERS).decode(encoding)
    return text


@contextmanager
def steady_streams() -> Iterator[None]:
    """A context whose standard output and error survive a closed pipe, a full disk, and an encoding without a letter.

    Raises:
        SystemExit: With code 1, at the end of a command that succeeded, if its output was lost and is nowhere else; a
            reader that closed the pipe wanted no more.
    """
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _steady(sys.stdout, 1), _steady(sys.stderr, 2)
    try:
        try:
            yield
        except SystemExit as end:
            if not end.code:
                _require_printed()
            raise
        _require_printed()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def _steady(stream: TextIO | None, descriptor: int) -> TextIO:
    if stream is None:  # it was closed before Python started
        return open(os.devnull, "w", encoding="utf-8")
    try:
        if stream.fileno() != descriptor:
            return stream
    except (OSError, AttributeError):  # not a real file: the test that replaced it looks at what was written
        return stream
    stream.flush()
    codecs.register_error(PLAIN_LETTERS, _plain_letters)
    raw = SteadyFile(descriptor, "w", closefd=False)
    lines = stream.isatty() or descriptor == 2
    kind = TerminalStream if stream.isatty() else io.TextIOWrapper
    return kind(io.BufferedWriter(raw), stream.encoding, PLAIN_LETTERS, line_buffering=lines)


def _plain_letters(error: UnicodeError) -> tuple[str, int]:
    """What an encoding cannot write: common signs in ASCII, other letters as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, ascii(letter)[1:-1]) for letter in letters), error.end


def _require_printed() -> None:
    sys.stdout.flush()
    raw = _steady_file(sys.stdout)
    if raw is None or raw.lost is None or raw.reported or raw.lost.errno == errno.EPIPE:
        return
    print_note(f"the output could not be written: {raw.lost.strerror}.")
    raise SystemExit(1)


def _steady_file(stream: TextIO) -> SteadyFile | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, SteadyFile) else None


def _folded(text: str, stream: TextIO) -> str:
    """The text with lines folded to the stream's width."""
    width = terminal_width(stream)
    return text if width is None else folded(text, width)


def folded(text: str, width: int) -> str:
    """The text with its lines folded between words; paths and commands stay whole, so that they can be copied.

    A word is also what quotes or backticks hold; a line that is a command is left as it is.

    Args:
        text: Its lines.
        width: In cells; only what stays whole is wider.
    """
    from rich.cells import cell_len

    lines: list[str] = []
    for line in text.split("\n"):
        lines.append("")
        for gap, word in [("", line)] if COMMAND.match(line) or cell_len(line) <= width else WORD.findall(line):
            if lines[-1].strip() and cell_len(lines[-1] + gap + word) > width:
                lines.append(word)
            else:
                lines[-1] += gap + word
    return "\n".join(lines)


def shown_path(path: str | Path) -> str:
    """A path as a shell reads it where it has spaces: in quotes, so that no line breaks in it."""
    return shlex.quote(str(path)) if any(map(str.isspace, str(path))) else str(path)
