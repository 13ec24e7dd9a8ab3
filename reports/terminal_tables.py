"""Plain tables for terminals, aligned by display width with rich."""

import sys
from collections.abc import Iterable, Sequence
from itertools import chain, repeat

from cultureval.runtime.printing import terminal_width

GAP = 2  # cells between columns


def terminal_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    align: str = "l",
    title: str = "",
    indent: int = 0,
    width: int | None = None,
) -> str:
    """A table as text: the lines, joined, without trailing spaces or a last line break.

    Wide (Chinese) letters count as two cells, combining (Arabic) vowel signs as none. Texts are plain, without markup.
    If the table is wider than `width`, cells continue on further lines.

    Args:
        header: The columns' names; may be empty.
        align: "l" for text or "r" for numbers, a letter for each column; the last is for all further columns.
        width: In cells; None: `terminal_width`, or no limit if that is unknown.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [header, *rows] if header else list(rows)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_header=False)
    width = (width or terminal_width() or sys.maxsize) - indent
    columns = list(zip(*cells, strict=False))
    longest = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    fits = sum(longest) + GAP * len(columns) <= width
    for column, letter, word in zip(columns, chain(align, repeat(align[-1])), longest, strict=False):
        numbers = letter == "r"
        whole = numbers or (fits and max(map(cell_len, column)) == word)
        table.add_column(justify="right" if numbers else "left", no_wrap=whole, overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console(width=width, color_system=None, force_terminal=False, force_jupyter=False)
    with console.capture() as capture:
        console.print(table)
    lines = [(" " * indent + line).rstrip() for line in capture.get().splitlines()]
    return "\n".join([title, *lines] if title else lines)
