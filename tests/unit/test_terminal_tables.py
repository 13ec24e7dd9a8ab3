"""Tables for the terminal: nothing is lost, columns are aligned by display width, markup stays text."""

from rich.cells import cell_len

from cultureval.reports.terminal_tables import terminal_table

HEADER = ("name", "note", "tau-c")
ROWS = [
    ("唢呐 suona horn", "the widest letters are Chinese", "12.5 [1, 2]"),
    ("شجرةٌ عالية", "[bold]markup[/bold] is text", "-3.0"),
    ("qimma_a:b|0", ":smile: too", ""),
]


def test_columns_are_aligned_nothing_is_lost_and_no_line_is_wider():
    title, header, *lines = terminal_table(HEADER, ROWS, "llr", title="Title:", indent=2).splitlines()
    assert title == "Title:" and len(lines) == 3 and header.startswith("  name")
    assert cell_len(lines[0]) == cell_len(lines[1]) == cell_len(header)
    letters = sorted("".join(cell for row in (HEADER, *ROWS) for cell in row).replace(" ", ""))
    for width in (30, 45, 60, 500):
        narrow = terminal_table(HEADER, ROWS, "llr", width=width)
        assert sorted("".join(narrow.split())) == letters and max(map(cell_len, narrow.splitlines())) <= width
        assert "12.5 [1, 2]" in narrow
    assert terminal_table((), [("a", "b")]) == "a  b" and terminal_table((), []) == ""
