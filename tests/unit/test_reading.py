"""From a data root to prepared rows: which files are read, what happens to broken rows, what the report says."""

import json
from pathlib import Path

import pytest

from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, MissingColumn, SourceUnavailable
from cultureval.runtime.settings import Settings
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.options import read_data_options, with_defaults
from cultureval.tasks.reading import BrokenRows, find_subset, forget_files, prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

GOOD = {"Question": "ما عاصمة الأردن؟", "A": "عمّان", "B": "إربد", "C": "العقبة", "Answer": "أ", "Category": "Ethics"}
TASK = "qimma_aratrust"
CURATED = {"prompt": "س\nالإجابة:", "choices": ["نعم", "لا"], "index": 1}


def write_rows(folder: Path, rows: list[dict], name: str = "test.jsonl") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")


def declare(folder, **configs):
    """Declares configs, of which each has the split test in the files of a glob pattern."""
    listed = [{"config_name": name, "data_files": [{"split": "test", "path": path}]} for name, path in configs.items()]
    (folder / "README.md").write_text(f"---\n{json.dumps({'configs': listed})}\n---\n", encoding="utf-8")


def prepared(tmp_path, task=TASK, form="original", **options):
    forget_files()
    return prepare_subset(all_tasks()[task], DataOptions(root=tmp_path / "root", form=form, **options))


def written(subset, split="test"):
    lines = (subset.folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


BROKEN = {
    "null gold": (GOOD | {"Answer": None}, "Answer", "null or empty"),
    "gold out of range": (GOOD | {"Answer": "د"}, "Answer", "not the letter"),
    "gold that is no letter": (GOOD | {"Answer": "عمّان"}, "Answer", "not the letter"),
    "unreadable text": (GOOD | {"Question": "ما \ufffd؟"}, "Question", "not readable"),
    "empty question": (GOOD | {"Question": " "}, "Question", "null or empty"),
}


def test_broken_rows_stop_with_source_subset_row_column_and_value(tmp_path):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD, *(row for row, _, _ in BROKEN.values())])
    with pytest.raises(BrokenRows) as caught:
        prepared(tmp_path)
    message = str(caught.value)
    assert f"{len(BROKEN)} broken rows:" in message and "asas-ai/AraTrust" in message
    for number, (_, column, reason) in enumerate(BROKEN.values(), start=2):  # sentences count from 1
        (line,) = [line for line in message.splitlines() if f"row {number} of test.jsonl" in line]
        assert repr(column) in line and reason in line and "value:" in line


@pytest.mark.parametrize(
    ("rows", "broken", "left_out"), [(20, 1, 1), (20, 2, None), (300, 3, 3), (300, 4, None), (1, 1, None)]
)
def test_up_to_one_percent_of_the_rows_and_at_least_one_are_left_out(tmp_path, rows, broken, left_out):
    sound = [GOOD | {"Question": f"سؤال {number}؟"} for number in range(rows - broken)]
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD | {"Answer": None}] * broken + sound)
    if left_out is None:
        with pytest.raises(BrokenRows) as caught:
            prepared(tmp_path)
        assert len(caught.value.rows) == broken
        return
    subset = prepared(tmp_path)
    report = subset.report
    assert report["row_counts"] == {"rows": rows, "scored": rows - broken, "few_shot": 0, "not_selected": 0} | {
        "skipped": broken
    }
    assert [row["row"] for row in report["skipped_rows"]] == list(range(left_out))
    assert written(subset)[0]["source_row"] == f"test.jsonl:{left_out}"


def test_a_missing_column_stops_with_those_found(tmp_path):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [{"Frage": "?", "A": "x", "B": "y", "C": "z", "Answer": "A"}])
    with pytest.raises(MissingColumn, match=r"no column 'Question'; columns found: Frage, A, B, C, Answer"):
        prepared(tmp_path)


def test_the_curated_copy_is_read_and_nothing_takes_its_place_unasked(tmp_path):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD])
    with pytest.raises(CulturevalError, match="qimma/MCQ_AraTrust.*--form original.*asas-ai/AraTrust.*--form mixed"):
        prepared(tmp_path, form="curated")
    assert prepared(tmp_path, form="mixed").report["source"] == "asas-ai/AraTrust"
    write_rows(tmp_path / "root/qimma/MCQ_AraTrust", [CURATED])
    for form in ("curated", "mixed"):
        subset = prepared(tmp_path, form=form)
        assert (subset.report["form"], written(subset)[0]["prompt"]) == ("curated", CURATED["prompt"])
        assert subset.report["expected_rows"] == 522
    assert prepared(tmp_path).report["source"] == "asas-ai/AraTrust"


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["test-00000-of-00002.parquet", "test-00001-of-00002.parquet"], None),
        (["test-00000-of-00002.jsonl", "test-00001-of-00002.jsonl"], None),
        (["test-00001-of-00002.jsonl"], "not all shards"),
        (["test-00000-of-00002.jsonl", "test.jsonl"], "not all shards"),
        (["test.jsonl", "test-2.jsonl"], "keep one"),
        (["test.jsonl", "test.csv"], "keep one"),
    ],
)
def test_a_split_is_one_file_or_all_of_its_shards(tmp_path, files, problem):
    folder = tmp_path / "root/asas-ai/AraTrust"
    for number, name in enumerate(files):
        row = GOOD | {"Question": f"سؤال {number}؟"}
        write_rows(folder, [row], name)
        if name.endswith(".parquet"):
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), folder / name)
    declare(folder, default="test*")
    if problem:
        with pytest.raises(CulturevalError, match=problem):
            prepared(tmp_path)
    else:
        assert prepared(tmp_path).report["rows"] == len(files)


def test_the_subsets_of_one_table_and_a_specialty_that_is_spelled_otherwise(tmp_path):
    folder = tmp_path / "root/nyuad-cai/MedAraBench"
    folder.mkdir(parents=True)
    header = "Question,Option A,Option B,Option C,Option D,Option E,Option F,Correct Answer,Medical Specialty"
    text = f"{header}\nس,نعم,لا,,,,,a,Thorasic Internal\nس,نعم,لا,,,,,b,Surgery\n"
    (folder / "medarabench-test_split.csv").write_text(text, encoding="utf-8")
    report = prepared(tmp_path, "qimma_medarabench:Thoracic Internal").report
    assert (report["rows"], report["row_counts"]["not_selected"]) == (1, 1)
    with pytest.raises(CulturevalError, match="no row is left"):
        prepared(tmp_path, "qimma_medarabench:Anatomy")


def test_columns_of_guessed_sources_may_have_other_names(tmp_path):
    folder = tmp_path / "root/smballaa/GATmath"
    row = {"السؤال": "1 + 1؟", "A": "1", "B": "2", "C": "3", "D": "4", "key": "ب"}
    write_rows(folder, [row], "algebra.json")
    with pytest.raises(MissingColumn, match="columns found: السؤال.*--columns NAME=THEIRS"):
        prepared(tmp_path, "qimma_gat:Algebra")
    columns = {"question": "السؤال", "answer": "key"}
    assert written(prepared(tmp_path, "qimma_gat:Algebra", columns=columns))[0]["index"] == [1]
    for wrong, problem in (
        ({"frage": "السؤال"}, "no column 'frage' to rename"),
        ({"answer": "Key"}, "no column 'Key'"),
    ):
        with pytest.raises(CulturevalError, match=problem):
            prepared(tmp_path, "qimma_gat:Algebra", columns=wrong)
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD])
    with pytest.raises(CulturevalError, match="its columns are published"):
        prepared(tmp_path, columns={"Question": "Frage"})


def test_a_hub_that_cannot_be_reached_says_how_to_use_a_mirror(monkeypatch, tmp_path):
    from cultureval.runtime.data import hub

    hub.snapshot.cache_clear()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for task in (TASK, "jeem_vqa:ma"):
        suite = all_tasks()[task].suite
        with pytest.raises(SourceUnavailable, match=f"cultureval fetch {suite} --output-dir DIR"):
            find_subset(all_tasks()[task], DataOptions())


@pytest.mark.parametrize("file", ["test.jsonl", "README.md"])
def test_prepared_rows_that_are_damaged_are_written_anew(tmp_path, file):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD])
    folder = prepared(tmp_path).folder
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / file).write_text("damaged")
    assert prepared(tmp_path).folder == folder
    (folder / file).unlink()
    prepared(tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == contents


def test_options_come_from_the_environment():
    assert read_data_options(Settings()) == with_defaults(DataOptions())
    given = {"CULTUREVAL_DATA": "samples", "CULTUREVAL_COLUMNS": "question=Frage, answer=Antwort"}
    options = read_data_options(Settings.of_variables(given))
    assert (options.columns, options.root.name) == ({"question": "Frage", "answer": "Antwort"}, "samples")
    with pytest.raises(CulturevalError, match="CULTUREVAL_COLUMNS.*NAME=THEIRS"):
        read_data_options(Settings.of_variables({"CULTUREVAL_COLUMNS": "question"}))
    with pytest.raises(CulturevalError, match="CULTUREVAL_FORM=curate: it should be"):
        read_data_options(Settings.of_variables({"CULTUREVAL_FORM": "curate"}))
    with pytest.raises(CulturevalError, match="not a folder"):
        read_data_options(Settings.of_variables({"CULTUREVAL_DATA": "/no/such/folder"}))


def test_few_shot_rows_count_in_the_hash_of_runs_with_examples_alone(tmp_path):
    files = "[{split: test, path: test.jsonl}, {split: validation, path: validation.jsonl}]"
    hashes = []
    for example in ("عمّان", "إربد"):
        folder = tmp_path / example / "root/asas-ai/AraTrust"
        write_rows(folder, [GOOD])
        write_rows(folder, [GOOD | {"Question": f"ما {example}؟"}], "validation.jsonl")
        front = f"---\nconfigs:\n- {{config_name: default, data_files: {files}}}\n---\n"
        (folder / "README.md").write_text(front, encoding="utf-8")
        subset = prepared(tmp_path / example)
        assert subset.report["few_shot_rows"] == 1
        hashes.append([subset.report_with(shots)["fingerprint"] for shots in (0, 1)])
    (plain, shown), (same_plain, other_shown) = hashes
    assert plain == same_plain and len({plain, shown, other_shown}) == 3
