"""Which files a task reads, in the layouts that users bring: nothing is read twice, in part, or from another split."""

import csv
import gzip
import json

import pytest

from cultureval.audit.sources import read_items
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.checking import check_data
from cultureval.tasks.reading import forget_files, prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

TRUST, SUBJECT = "qimma_aratrust", "qimma_arabicmmlu:Driving Test"
ROWS = [
    {"Question": f"ما لون الإشارة رقم {place}؟", "A": "أحمر", "B": "أصفر", "C": "أخضر", "Answer": "ABC"[place % 3]}
    for place in range(6)
]
CONFIG = "---\nconfigs:\n- config_name: {name}\n  data_files:\n  - {{split: test, path: {path}}}\n---\n"


def mmlu(rows, few_shot=0):
    """The rows as ArabicMMLU has them."""
    return [
        {"Subject": "Driving Test", "Level": None, "Question": row["Question"], "Answer Key": row["Answer"]}
        | {f"Option {number}": row[letter] for number, letter in enumerate("ABC", 1)}
        | {"is_few_shot": few_shot}
        for row in rows
    ]


def write(file, rows):
    """Writes rows as the file's name says."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if file.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    elif file.suffix in (".csv", ".tsv"):
        with file.open("w", encoding="utf-8", newline="") as text:
            table = csv.DictWriter(text, rows[0], delimiter="," if file.suffix == ".csv" else "\t")
            table.writeheader()
            table.writerows(rows)
    elif file.suffix == ".gz":
        file.write_bytes(gzip.compress(lines.encode()))
    else:
        file.write_text(lines, encoding="utf-8")


def read(tmp_path, task=TRUST):
    """(positions of the golds, number of examples) of a task."""
    forget_files()
    subset = prepare_subset(all_tasks()[task], DataOptions(root=tmp_path / "root"))
    written = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(row)["index"][0] for row in written], subset.report["few_shot_rows"]


@pytest.mark.parametrize("name", ["test-copy.parquet", "test (1).parquet"])
def test_a_copy_of_a_file_is_refused(tmp_path, name):
    folder = tmp_path / "root/asas-ai/AraTrust"
    write(folder / "test.parquet", ROWS)
    write(folder / name, ROWS)
    with pytest.raises(CulturevalError, match="hold the same 6 rows, which would count twice"):
        read(tmp_path)


@pytest.mark.parametrize("other", ["test.csv", "test.jsonl.gz"])
def test_rows_that_are_there_in_two_files_are_refused(tmp_path, other):
    folder = tmp_path / "root/MBZUAI/ArabicMMLU/Driving Test"
    write(folder / "test.parquet", mmlu(ROWS))
    write(folder / other, mmlu(ROWS))
    with pytest.raises(CulturevalError, match="would count twice"):
        read(tmp_path, SUBJECT)


def test_shards_are_read_as_one_and_a_missing_one_is_refused(tmp_path):
    folder = tmp_path / "root/asas-ai/AraTrust"
    for number, part in enumerate((ROWS[:4], ROWS[4:])):
        write(folder / f"test-0000{number}-of-00002.parquet", part)
    assert read(tmp_path) == ([0, 1, 2, 0, 1, 2], 0)
    (folder / "test-00001-of-00002.parquet").unlink()
    with pytest.raises(CulturevalError, match="1 of the 2 shards of test; number 1 is missing"):
        read(tmp_path)
    with pytest.raises(CulturevalError, match="1 of the 2 shards of test"):
        read_items([str(folder)], DataOptions())


def test_one_of_two_parts_under_another_name_is_refused(tmp_path):
    write(tmp_path / "root/asas-ai/AraTrust/test_part1of2.jsonl", ROWS)
    with pytest.raises(CulturevalError, match="1 of the 2 shards of test"):
        read(tmp_path)


def test_a_config_that_a_readme_declares_twice_is_refused(tmp_path):
    folder = tmp_path / "root/MBZUAI/ArabicMMLU"
    for name in ("one", "other"):
        write(folder / name / "test.jsonl", mmlu(ROWS))
    first = CONFIG.format(name="Driving Test", path="one/test.jsonl")
    again = CONFIG.format(name="Driving Test", path="other/test.jsonl").partition("configs:\n")[2]
    (folder / "README.md").write_text(first.removesuffix("---\n") + again, encoding="utf-8")
    with pytest.raises(CulturevalError, match="declares the config 'Driving Test' 2 times"):
        read(tmp_path, SUBJECT)


def test_prompts_whose_letters_are_written_in_an_unusual_way_are_told(tmp_path):
    odd = [{**ROWS[0], "Question": "أ\u200f" + ROWS[0]["Question"]}, {**ROWS[1], "Question": "\u0627\u0654سئلة؟"}]
    write(tmp_path / "root/asas-ai/AraTrust/test.jsonl", [*odd, *ROWS[2:]])
    forget_files()
    notes = prepare_subset(all_tasks()[TRUST], DataOptions(root=tmp_path / "root")).report["notes"]
    assert ["1 of 6 prompts hold" in note for note in notes] == [True, True]


def test_a_readme_that_is_not_utf_8_or_lacks_the_config_is_refused_by_name(tmp_path):
    folder = tmp_path / "root/MBZUAI/ArabicMMLU"
    write(folder / "rows/test.jsonl", mmlu(ROWS))
    write(folder / "more/all.jsonl", mmlu(ROWS))
    readme = CONFIG.format(name="Driving Test", path="rows/test.jsonl") + "بيانات\n"
    (folder / "README.md").write_bytes(readme.encode("cp1256"))
    with pytest.raises(CulturevalError, match="README.md cannot be read"):
        read(tmp_path, SUBJECT)
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - {{split: test, path: rows/test.jsonl}}\n" for name in ("Law", "Art")
    )
    (folder / "README.md").write_text(f"---\nconfigs:\n{configs}---\n", encoding="utf-8")
    with pytest.raises(SourceUnavailable, match="Driving Test.*README declares the configs Law, Art"):
        read(tmp_path, SUBJECT)


@pytest.mark.parametrize("declared", ["", "Driving Tests", "driving test", "default"])
def test_examples_are_found_as_the_evaluated_rows_are_where_a_readme_has_other_configs(tmp_path, declared):
    folder = tmp_path / "root/MBZUAI/ArabicMMLU"
    write(folder / "Driving Test/test.jsonl", mmlu(ROWS))
    write(folder / "Driving Test/dev.jsonl", mmlu([row | {"Question": f"مثال: {row['Question']}"} for row in ROWS[:3]]))
    if declared:
        write(folder / "other/test.jsonl", mmlu(ROWS[::-1]))
        readme = CONFIG.format(name=declared, path="other/test.jsonl")
        (folder / "README.md").write_text(readme, encoding="utf-8")
    assert read(tmp_path, SUBJECT) == ([0, 1, 2, 0, 1, 2], 3)


def test_a_readme_without_the_split_of_the_task_is_told_by_it(tmp_path):
    folder = tmp_path / "root/UBC-NLP/palmx_2025_subtask1_culture"
    write(folder / "rows.jsonl", ROWS)
    declared = CONFIG.format(name="default", path="rows.jsonl").replace("split: test", "split: dev")
    (folder / "README.md").write_text(declared, encoding="utf-8")
    with pytest.raises(SourceUnavailable, match="configs default, none of which has the split 'test': there are dev"):
        read(tmp_path, "qimma_palmx:culture")


@pytest.mark.parametrize("name", ["dev-00000-of-00001.parquet", "dev.parquet", "validation.parquet", "val.parquet"])
@pytest.mark.parametrize("below", ["", "Driving Test/"])
def test_examples_beside_a_test_file_are_examples_without_a_readme_too(tmp_path, name, below):
    folder = tmp_path / f"root/MBZUAI/ArabicMMLU/{below}"
    write(folder / "test-00000-of-00001.parquet", mmlu(ROWS))
    write(folder / name, mmlu([row | {"Question": f"مثال: {row['Question']}"} for row in ROWS[:3]], few_shot=1))
    assert read(tmp_path, SUBJECT) == ([0, 1, 2, 0, 1, 2], 3)


def test_folders_of_splits_hold_examples_where_their_name_says_so(tmp_path):
    for split, rows in (("test", mmlu(ROWS)), ("dev", mmlu(ROWS[:3]))):
        write(tmp_path / f"root/MBZUAI/ArabicMMLU/{split}/part.parquet", rows)
    assert read(tmp_path, SUBJECT) == ([0, 1, 2, 0, 1, 2], 3)


@pytest.mark.parametrize("task", [TRUST, SUBJECT])
def test_what_save_to_disk_wrote_is_read(tmp_path, task):
    import datasets

    few, rows = (ROWS[:3], ROWS) if task == TRUST else (mmlu(ROWS[:3], 1), mmlu(ROWS))
    folder = tmp_path / "root" / ("asas-ai/AraTrust" if task == TRUST else "MBZUAI/ArabicMMLU/Driving Test")
    both = {"test": datasets.Dataset.from_list(rows), "validation": datasets.Dataset.from_list(few)}
    datasets.DatasetDict(both).save_to_disk(str(folder), num_shards={"test": 2, "validation": 1})
    assert read(tmp_path, task) == ([0, 1, 2, 0, 1, 2], 3)
    (folder / "test/data-00001-of-00002.arrow").unlink()
    with pytest.raises(CulturevalError, match="1 of the 2 shards of data"):
        read(tmp_path, task)


def test_json_lines_under_the_name_of_json_are_read(tmp_path):
    folder = tmp_path / "root/asas-ai/AraTrust"
    write(folder / "test.json", ROWS)
    assert read(tmp_path) == ([0, 1, 2, 0, 1, 2], 0)
    write(folder / "test.json", ROWS[:1])
    assert read(tmp_path) == ([0], 0)
    (folder / "test.json").write_text('{"a": 1}\n{"a": \n', encoding="utf-8")
    with pytest.raises(CulturevalError, match=r"test.json cannot be read as json: line 2"):
        read(tmp_path)


OPTIONS = ["أحمر", "أصفر", "أخضر"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        dict(zip("ABC", OPTIONS, strict=True)),
        {"C": "أخضر", "A": "أحمر", "B": "أصفر"},
        dict(zip("أبج", OPTIONS, strict=True)),
        {"text": OPTIONS, "label": ["A", "B", "C"]},
        {"label": ["C", "A", "B"], "text": ["أخضر", "أحمر", "أصفر"]},
        {"option_b": "أصفر", "option_a": "أحمر", "option_c": "أخضر", "option_d": None},
        {"1": "أحمر", "2": "أصفر", "3": "أخضر"},
    ],
)
@pytest.mark.parametrize(("task", "repo"), [(TRUST, "asas-ai/AraTrust"), ("qimma_mizanqa", "adlbh/MizanQA-v0")])
def test_options_of_one_cell_are_a_list_or_an_object(tmp_path, options, task, repo):
    rows = [{"Question": row["Question"], "options": options, "answer": row["Answer"]} for row in ROWS]
    write(tmp_path / f"root/{repo}/test.jsonl", rows)
    assert read(tmp_path, task)[0] == [0, 1, 2, 0, 1, 2]
    write(tmp_path / f"root/{repo}/test.jsonl", [row | {"options": json.dumps(options)} for row in rows])
    assert read(tmp_path, task)[0] == [0, 1, 2, 0, 1, 2]


def test_an_object_of_other_names_is_told(tmp_path):
    rows = [{"Question": "س؟", "options": {"right": "نعم", "wrong": "لا"}, "answer": "نعم"}]
    write(tmp_path / "root/asas-ai/AraTrust/test.jsonl", rows)
    with pytest.raises(CulturevalError, match="names are not those of options"):
        read(tmp_path)


@pytest.mark.parametrize("gold", ["أَحمَر", "أحمـــر", "أحمر.", "  أحمر ", "\u200fأحمر", "ﺃﺣﻤﺮ", "أ) أَحْمَر"])
def test_a_gold_text_that_is_written_otherwise_is_its_option(tmp_path, gold):
    write(tmp_path / "root/asas-ai/AraTrust/test.jsonl", [ROWS[0] | {"Answer": gold}])
    assert read(tmp_path) == ([0], 0)


def test_a_gold_text_of_two_options_that_differ_in_vowels_is_none_of_them(tmp_path):
    row = ROWS[0] | {"A": "كَتَبَ", "B": "كُتِبَ", "Answer": "كتب"}
    write(tmp_path / "root/asas-ai/AraTrust/test.jsonl", [row])
    with pytest.raises(CulturevalError, match="not among the 3 options"):
        read(tmp_path)


def test_rows_that_ask_the_same_are_one_cluster_and_counted(tmp_path):
    again = [
        ROWS[0] | {"Question": ROWS[0]["Question"].replace("0", "٠") + " ."},
        ROWS[0] | {"Question": ROWS[0]["Question"].replace("لون", "لَون").replace("؟", ""), "Answer": "C"},
        ROWS[1] | {"C": "أزرق"},
    ]
    folder = tmp_path / "root/asas-ai/AraTrust"
    write(folder / "test.jsonl", ROWS + again)
    forget_files()
    subset = prepare_subset(all_tasks()[TRUST], DataOptions(root=tmp_path / "root"))
    rows = [json.loads(line) for line in (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    clusters = [row["cluster"] for row in rows]
    assert subset.report["duplicate_rows"] == 2 and clusters[0] == clusters[6] == clusters[7] != ""
    assert set(clusters[1:6] + clusters[8:]) == {""}
    counts = next(one for one in check_data(["qimma"], DataOptions(root=tmp_path / "root")).subsets if one.scored)
    assert (counts.task, counts.duplicates) == (TRUST, 2)


def test_a_row_twice_changes_the_mean_but_makes_no_error_smaller(tmp_path):
    from cultureval.metrics.statistics import clustered_standard_error

    scores, names = [1.0, 0.0, 1.0, 1.0, 0.0], [str(place) for place in range(5)]

    once = clustered_standard_error(scores, names)
    assert clustered_standard_error(scores * 2, names * 2) == pytest.approx(once)
    assert clustered_standard_error(scores * 2, list(range(10))) < 0.8 * once


def test_files_that_no_task_reads_are_told(tmp_path):
    folder = tmp_path / "root/MBZUAI/ArabicMMLU"
    write(folder / "Driving Test/test.jsonl", mmlu(ROWS))
    write(folder / "Driving Test/test-copy.jsonl", mmlu(ROWS))
    write(folder / "Law (Professional)/test.jsonl", mmlu(ROWS))
    write(folder / "Drivng Test/test.jsonl", mmlu(ROWS))
    write(folder / "Driving Test/train.jsonl", mmlu(ROWS))
    write(folder / "Biology (High School)/test-00000-of-00002.jsonl", mmlu(ROWS))
    forget_files()
    report = prepare_subset(all_tasks()[SUBJECT], DataOptions(root=tmp_path / "root")).report
    told = ["Driving Test/test-copy.jsonl", "Drivng Test/test.jsonl"]  # the shard is read, and refused, by its own task
    assert report["unread_files"] == told
