"""CSV files: cells that spreadsheets would compute, the way there and back, and that no other code writes them."""

import csv
import math
import re
from pathlib import Path

import pytest

from cultureval.runtime.csv_files import read_csv, write_csv
from cultureval.runtime.errors import CulturevalError

REPOSITORY = Path(__file__).parents[2]
FORMULAS = [
    "=1+1",
    "+cmd|'/c calc'!A1",
    "-x",
    "@SUM(1)",
    "＝1",
    "－x",
    "＋x",
    "＠x",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "　=1",
    "−x",
]
TEXTS = ["'=1", "''-x", "'شجرة", 'a,"b";c', "two\nlines", "a\rb", "-3.5", "+1e-9", "", "x=1", "- note", "\ud800"]


def cells(file: Path, encoding: str = "utf-8") -> list[dict[str, str]]:
    with file.open(encoding=encoding, newline="") as stream:
        return list(csv.DictReader(stream))


def test_undefined_numbers_are_empty_cells(tmp_path):
    rows = [{"name": "شجرة", "score": -0.5}, {"name": 'a,"b"', "score": None}, {"name": "x", "score": math.nan}]
    file = tmp_path / "new" / "table.csv"
    write_csv(file, rows, encoding="utf-8-sig")
    assert cells(file, "utf-8-sig") == [
        {"name": row["name"], "score": "-0.5" if row["score"] == -0.5 else ""} for row in rows
    ]
    write_csv(file, [], columns=("name", "=score"))
    assert file.read_text(encoding="utf-8") == "name,'=score\n"
    assert [path.name for path in file.parent.iterdir()] == ["table.csv"]
    with pytest.raises(ValueError, match="other"):
        write_csv(file, [{"other": 1}], columns=("name",))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_text_is_computed_and_all_come_back(tmp_path, delimiter):
    texts = [text.encode("utf-8", "backslashreplace").decode() for text in FORMULAS + TEXTS]
    file = tmp_path / "table.csv"
    write_csv(file, [{"=text": text, "number": place - 3} for place, text in enumerate(texts)], encoding="utf-8-sig")
    written = cells(file, "utf-8-sig")
    assert all(row["'=text"] == f"'{text}" for row, text in zip(written, FORMULAS, strict=False))
    with file.open("w", encoding="utf-8-sig", newline="") as stream:  # as a spreadsheet saves it
        writer = csv.DictWriter(stream, written[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(written)
    found = [row for _, row in read_csv(file, ("=text",))]
    assert [row["=text"] for row in found] == texts and [row["number"] for row in found][:4] == ["-3", "-2", "-1", "0"]
    write_csv(file, [{"text": text} for text in FORMULAS], exact=True)
    assert [row["text"] for row in cells(file)] == FORMULAS


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a,b\n1,2,3\n", "line 2: the row has more cells than the header"),
        (b'a,b\n"1,2\n3,4\n', "line 2: unexpected end of data"),
        (b"b\n1\n", "has no column a: it has b"),
        (b"a,b,b,,\n1,2,3\n", "has several columns b: rename all but one"),
        (b"", "has no column a: it has none"),
        ("a\nشجرة\n".encode("utf-16"), "cannot be read as UTF-8: UnicodeDecodeError"),
        (None, "table.csv does not exist"),
    ],
)
def test_a_broken_table_is_an_error_that_says_where(tmp_path, content, told):
    file = tmp_path / "table.csv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CulturevalError, match=told):
        list(read_csv(file, ("a",)))


def test_csv_files_are_written_in_one_place():
    writer = re.compile(r"\bcsv\.(writer|DictWriter)\b|\bfrom csv import|\b(to|write)_csv\(|\b(excel|savetxt)\b")
    own = re.compile(r"(?<!\.)\bwrite_csv\(")  # calls of the one writer
    rooms = [room.resolve() for room in (REPOSITORY / "src" / "cultureval").iterdir() if room.is_dir()]
    files = [file for room in rooms for file in room.rglob("*.py")]
    found = {file.relative_to(REPOSITORY) for file in files if writer.search(own.sub("", file.read_text("utf-8")))}
    assert len(rooms) > 9 and found == {Path("runtime/csv_files.py")}
