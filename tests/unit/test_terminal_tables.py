"""Tables for the terminal: nothing is lost, columns are aligned, markup stays text."""

from rich.cells import cell_len

from cultureval.reports.terminal_tables import terminal_table

HEADER = ("name", "tau-c", "note")
ROWS = [
    ("唢呐 suona horn", "12.5 [1, 2]", "the widest letters are Chinese"),
    ("شجرةٌ عالية", "-3.0", "[bold]markup[/bold] is text"),
    ("qimma_a:b|0", "", ":smile: too"),
]


def test_columns_are_aligned_by_cells_and_words_are_never_cut():
    text = terminal_table(HEADER, ROWS, "lr", title="Title:", indent=2)
    title, header, *lines = text.splitlines()
    assert title == "Title:" and len(lines) == 3
    assert all(line.startswith("  ") and line == line.rstrip() for line in (header, *lines))
    ends = [cell_len(line[: line.index(row[1]) + len(row[1])]) for line, row in zip(lines[:2], ROWS, strict=False)]
    assert set(ends) == {cell_len(header[: header.index("tau-c") + len("tau-c")])}
    words = sorted(word for row in (HEADER, *ROWS) for cell in row for word in cell.split())
    for width in (1, 30, 45, 60, 500):
        narrow = terminal_table(HEADER, ROWS, width=width)
        assert sorted(narrow.split()) == words
        assert width < 45 or max(map(cell_len, narrow.splitlines())) <= width
    assert len(terminal_table(HEADER, ROWS, width=45).splitlines()) > 4
    for width in (12, 20, 30):
        cut = terminal_table(HEADER, ROWS, width=width, cut_words=True)
        assert max(map(cell_len, cut.splitlines())) <= width
        assert sorted("".join(cut.split())) == sorted("".join(words))
    first = [line.split()[0] for line in terminal_table(HEADER, ROWS, width=30, cut_words=True).splitlines() if line]
    assert {"qimma_a:b|0", "name", "唢呐", "شجرةٌ"} <= set(first), "names in the first column are cut last"
    assert terminal_table((), [("a", "b")]) == "a  b" and terminal_table((), []) == ""


def test_on_a_terminal_no_table_is_wider(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    row = ("qimma_medarabench:Otolaryngology", "UBC-NLP/palmx_2025_subtask2_islamic", "13")
    assert max(map(cell_len, terminal_table((), [row]).splitlines())) <= 40
