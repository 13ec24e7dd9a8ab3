import gzip
import json
from pathlib import Path

import pytest

from cultureval.runtime.data.row_files import config_names, files_matching, files_of_split, iter_rows, read_rows
from cultureval.runtime.errors import CulturevalError, SourceUnavailable

ROWS = [{"سؤال": "كم؟", "أ": "07"}, {"سؤال": "سطر\nثانٍ", "أ": "NA"}]


def test_csv_cells_stay_text_and_empty_cells_are_none(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes('\ufeffسؤال,أ,ب\nكم؟,07,\n"سطر\nثانٍ",NA,x\n'.encode())
    assert read_rows(path) == [ROWS[0] | {"ب": None}, ROWS[1] | {"ب": "x"}]


def test_json_forms_read_the_same(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(ROWS), encoding="utf-8")
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    (tmp_path / "b.JSON").write_text(json.dumps(columns), encoding="utf-8")
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
    (tmp_path / "c.jsonl").write_text(lines + "\n\n", encoding="utf-8")
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    assert [read_rows(path) for path in sorted(tmp_path.iterdir())] == [ROWS] * 4


def test_parquet(tmp_path):
    import datasets

    datasets.Dataset.from_list(ROWS).to_parquet(str(tmp_path / "test.parquet"))
    assert read_rows(tmp_path / "test.parquet") == ROWS


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", b"[1, 2]", "expected a list of objects"),
        ("a.jsonl", b'{"a": 1}\n\n{"a": 1', "as jsonl: line 3: "),
        ("a.jsonl", b'{"a": 1}\n[1, 2]\n', "line 2: expected an object"),
        ("a.txt", b"a", "as json: "),
        ("a.csv", b"a,b\n1,2,3\n", "more cells"),
        ("a.csv", b"\xff\xfe", "not UTF-8 .*: save it as UTF-8"),
        ("a.parquet", b"x", "as parquet: "),
        ("a.jsonl.gz", gzip.compress(b'{"a": 1}' * 99, mtime=0)[:-12], "as jsonl: "),
        ("a.jsonl.gz", gzip.compress(b"x", mtime=0)[:10] + b"\xff" * 9, "as jsonl: "),
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


def test_declared_files_that_are_missing_are_named(tmp_path):
    names = ("Maths", "Law")
    front = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: test\n    path: {name}/test.csv\n" for name in names
    )
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{front}---\n", encoding="utf-8")
    (tmp_path / "Maths").mkdir()
    (tmp_path / "Maths" / "test.csv").write_text("a\n1\n", encoding="utf-8")
    assert files_of_split(tmp_path, ["Maths"], ["test"]) == [tmp_path / "Maths" / "test.csv"]
    with pytest.raises(SourceUnavailable, match=r"Law/test\.csv of 'Law' in its README, and it is not there"):
        files_of_split(tmp_path, ["Law"], ["test"])


@pytest.mark.parametrize("path", ["../secret.csv", "{outside}"])
def test_a_folder_cannot_declare_files_outside_itself(tmp_path, path):
    (tmp_path / "secret.csv").write_text("key\n1\n", encoding="utf-8")
    folder = tmp_path / "data"
    folder.mkdir()
    declared = path.format(outside=tmp_path / "secret.csv")
    front = f"configs:\n- config_name: Egypt\n  data_files:\n  - split: test\n    path: {declared}\n"
    (folder / "README.md").write_text(f"---\n{front}---\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match="outside"):
        files_of_split(folder, ["Egypt"], ["test"])


def test_all_broken_lines_of_a_file_are_named_at_once(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": 1}\n{"a":\n[1]\n\n{"a": 2}\n' + "x\n" * 20, encoding="utf-8")
    with pytest.raises(CulturevalError, match=r"line 2: .*; line 3: expected an object; line 6: .*; and 12 more lines"):
        read_rows(file)


def test_configs_are_those_of_the_readme_also_where_a_file_of_the_first_is_missing(tmp_path):
    (tmp_path / "b.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    configs = "".join(f"- {{config_name: {name}, data_files: {name}.jsonl}}\n" for name in "ab")
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", encoding="utf-8")
    assert config_names(tmp_path) == ("a", "b")


@pytest.mark.parametrize("config", ["config_name: 2024", "config_name: yes", "data_files: a.jsonl"])
def test_a_readme_that_datasets_refuses_is_told_with_its_folder(tmp_path, config):
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n', encoding="utf-8")
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n- {{{config}}}\n---\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match=rf"cannot tell the data files of {tmp_path} .*`configs`"):
        files_of_split(tmp_path, ["default"], ["test"])


DECLARED = {
    "a path": "[{split: test, path: b/test.jsonl}]",
    "several paths": "[{split: test, path: [b/test.jsonl, a.jsonl]}, {split: dev, path: a.jsonl}]",
    "a pattern": "[{split: train, path: b/*.jsonl}]",
    "a pattern of all files": '[{split: train, path: "*"}]',
    "a string": "a.jsonl",
    "folders": '[{split: test, path: "*/test.jsonl"}]',
    "hidden files": "[{split: test, path: .hidden/test.jsonl}]",
    "several formats": "[{split: test, path: a.jsonl}, {split: train, path: c.jsonl.gz}]",
}


@pytest.mark.parametrize("declared", DECLARED)
def test_declared_files_are_those_that_datasets_finds(tmp_path, declared):
    import datasets

    for name in ("a.jsonl", "b/test.jsonl", "b/test-2.jsonl", "b/.test.jsonl", "b/__c.jsonl", ".hidden/test.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"a": 1}\n', encoding="utf-8")
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n'))
    configs = f"- config_name: one\n  data_files: {DECLARED[declared]}\n"
    configs += "- {config_name: two, data_files: [{split: train, path: a.jsonl}]}\n"
    (tmp_path / "README.md").write_text(f"---\nlicense: mit\nconfigs:\n{configs}---\nText\n", encoding="utf-8")
    assert config_names(tmp_path) == tuple(datasets.get_dataset_config_names(str(tmp_path)))
    for config in ("one", "two"):
        found = datasets.load_dataset_builder(str(tmp_path), name=config).config.data_files
        assert {split: files_of_split(tmp_path, [config], [split]) for split in found} == {
            split: [Path(file) for file in files] for split, files in found.items()
        }
