"""Tables for terminals: columns aligned by display width, without colours or box characters."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat

from cultureval.runtime.printing import COMMAND, folded, terminal_width

GAP = 2  # cells between columns
LEAST = 8  # cells that other columns keep before names in the first one are cut
KEPT_SPACE = "\ue000"  # at which no line breaks
ALIGNMENTS = {"l": "left", "r": "right"}


def wrapped(text: str) -> str:
    """A paragraph in lines of `terminal_width`, else of 100 letters."""
    return folded(text, terminal_width() or 100)


def narrowest(rows: Iterable[Sequence[str]]) -> int:
    """The cells of a terminal that a table's rows and header need so that no word of it is cut."""
    words = [_longest(str.split, column) for column in zip(*rows, strict=True)]
    return sum(words) + GAP * (len(words) - 1)


def terminal_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    align: str = "l",
    title: str = "",
    indent: int = 0,
    width: int | None = None,
    cut_words: bool = False,
) -> str:
    """A table as text, laid out by rich.

    Wide (Chinese) letters count as two cells and combining (Arabic) vowel signs as none. Cells are plain text: rich's
    markup in them is ignored. If the table is wider than `width`, cells continue on further lines; words (numbers,
    names of tasks) are cut where they do not fit, those of the first column last. With a `width` and without
    `cut_words` they are never cut, and a table whose longest words do not fit stays wider.

    Args:
        header: The columns' names; empty for none.
        rows: The cells, one per column.
        align: "l" or "r" for each column; the last letter also applies to all further columns.
        title: A line above the table.
        indent: Spaces before each row of the table.
        width: In cells; None: `terminal_width`, or no limit where that is unknown.
        cut_words: Whether words are cut where they do not fit, so that the table is never wider; without a
            `width` they always are.

    Returns:
        The lines, joined, without trailing spaces or a last line break.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if width is None:
        cut_words = True
        width = terminal_width() or sys.maxsize
    cells = [[_whole_commands(cell) for cell in row] for row in ([header, *rows] if header else rows)]
    widths = _column_widths(cells, width - indent, cut_words)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_header=False)
    for column_width, letter in zip(widths, chain(align, repeat(align[-1])), strict=False):
        table.add_column(justify=ALIGNMENTS[letter], width=column_width, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console(
        width=sum(widths) + GAP * len(widths), color_system=None, force_terminal=False, force_jupyter=False
    )
    with console.capture() as capture:
        console.print(table)
    lines = [(" " * indent + line).rstrip() for line in capture.get().replace(KEPT_SPACE, " ").splitlines()]
    return "\n".join([title, *lines] if title else lines)


def _whole_commands(cell: str) -> str:
    """A cell in which no line breaks within a command: a line of its own, or what backticks hold."""
    lines = [line.replace(" ", KEPT_SPACE) if COMMAND.match(line) else line for line in cell.split("\n")]
    return re.sub("`[^`\n]*`", lambda found: found[0].replace(" ", KEPT_SPACE), "\n".join(lines))


def _column_widths(cells: Sequence[Sequence[str]], width: int, cut_words: bool) -> list[int]:
    """The columns' widths in cells, between their longest word and their longest line, to fit the width if possible."""
    columns = list(zip(*cells, strict=True))
    words, lines = ([_longest(parts, column) for column in columns] for parts in (str.split, str.splitlines))
    gaps = GAP * (len(columns) - 1)
    while cut_words and sum(words) > max(width - gaps, len(words)):
        later = [place for place, word in enumerate(words) if place and word > LEAST]
        words[max(later or range(len(words)), key=words.__getitem__)] -= 1  # the longest words are cut first
    slack = sum(lines) - sum(words)
    spare = min(slack, max(0, width - sum(words) - gaps))
    return [word + (line - word) * spare // (slack or 1) for word, line in zip(words, lines, strict=True)]


def _longest(parts: Callable[[str], list[str]], column: Sequence[str]) -> int:
    """The width of the longest word or line of a column, in cells."""
    from rich.cells import cell_len

    return max((cell_len(part) for cell in column for part in parts(cell)), default=0)
