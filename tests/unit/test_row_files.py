import gzip
import json

import pytest

from cultureval.runtime.data.row_files import config_names, files_matching, files_of_split, iter_rows, read_rows
from cultureval.runtime.errors import CulturevalError, SourceUnavailable

ROWS = [{"سؤال": "كم؟", "أ": "07"}, {"سؤال": "سطر\nثانٍ", "أ": "NA"}]


def test_csv_cells_stay_text_and_empty_cells_are_none(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes('\ufeffسؤال,أ,ب\nكم؟,07,\n"سطر\nثانٍ",NA,x\n'.encode())
    assert read_rows(path) == [ROWS[0] | {"ب": None}, ROWS[1] | {"ب": "x"}]


def test_json_forms_read_the_same(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(ROWS, indent=1), encoding="utf-8")
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
    (tmp_path / "b.JSON").write_text(lines, encoding="utf-8")
    (tmp_path / "c.jsonl").write_text(lines + "\n\n", encoding="utf-8")
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    assert [read_rows(path) for path in sorted(tmp_path.iterdir())] == [ROWS] * 4


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", b"[1, 2]", "expected a list of objects"),
        ("a.json", b'{"a": [1, 2],\n"b": [3]}', "as json: line 1: "),
        ("a.jsonl", b'{"a": 1}\n\n{"a":\n' + 20 * b"x\n", "as jsonl: line 3: "),
        ("a.jsonl", b'{"a": 1}\n[1, 2]\n', "an object a line"),
        ("a.csv", b"a,b\n1,2,3\n", "more cells"),
        ("a.csv", b"\xff\xfe", "not UTF-8 .*: save it as UTF-8"),
        ("a.parquet", b"x", "as parquet: "),
        ("a.jsonl.gz", gzip.compress(b'{"a": 1}' * 99, mtime=0)[:-12], "as jsonl: "),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CulturevalError, match=f"{name} cannot be read .*{reason}"):
        read_rows(tmp_path / name)


def test_parquet_rows_one_by_one_are_those_of_the_whole_table(tmp_path):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist([{"id": number, "image": {"bytes": b"x", "path": None}} for number in range(150)])
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    assert list(iter_rows(tmp_path / "rows.parquet")) == read_rows(tmp_path / "rows.parquet") == table.to_pylist()
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(CulturevalError, match="broken.parquet cannot be read as parquet"):
        list(iter_rows(tmp_path / "broken.parquet"))


def test_files_by_config_split_and_pattern(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("data/egypt.csv", "data/egypt_dev.csv", "Algebra.JSON"):
        (tmp_path / name).write_text("[]", encoding="utf-8")
    front = "configs:\n- config_name: Egypt\n  data_files:\n  - split: test\n    path: data/egypt.csv\n"
    (tmp_path / "README.md").write_text(f"---\n{front}---\n", encoding="utf-8")
    assert files_of_split(tmp_path, ["Misr", "Egypt"], ["test", "train"]) == [tmp_path / "data" / "egypt.csv"]
    assert files_of_split(tmp_path, ["Egypt"], ["validation"]) == []
    assert files_of_split(tmp_path, ["Qatar"], ["test"]) == []
    assert files_matching(tmp_path, ["algebra.*"]) == [tmp_path / "Algebra.JSON"]
    (tmp_path / "empty").mkdir()
    assert files_of_split(tmp_path / "empty", ["Egypt"], ["test"]) == []


@pytest.mark.parametrize("config", ["config_name: 2024", "config_name: yes", "data_files: a.jsonl"])
def test_a_readme_that_datasets_refuses_is_told_with_its_folder(tmp_path, config):
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n- {{{config}}}\n---\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match=rf"cannot find the data files of {tmp_path} .*`configs`"):
        files_of_split(tmp_path, ["default"], ["test"])


def test_declared_files_are_those_that_datasets_finds(tmp_path):
    for name in ("a.jsonl", "b/test.jsonl", "b/.test.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"a": 1}\n', encoding="utf-8")
    readme = """---\nconfigs:\n- config_name: one
  data_files: [{split: test, path: "b/*.jsonl"}, {split: dev, path: a.jsonl}]
- {config_name: two, data_files: a.jsonl}
- {config_name: lost, data_files: none.jsonl}\n---\n"""
    (tmp_path / "README.md").write_text(readme, encoding="utf-8")
    assert config_names(tmp_path) == ("one", "two", "lost")
    assert files_of_split(tmp_path, ["one"], ["test"]) == [tmp_path / "b/test.jsonl"]
    assert files_of_split(tmp_path, ["two"], ["test", "train"]) == [tmp_path / "a.jsonl"]
    with pytest.raises(SourceUnavailable, match=r"lacks a data file that its README declares"):
        files_of_split(tmp_path, ["lost"], ["train"])
