"""From a data root to prepared rows: which copy is read, what happens to broken rows, what the report says."""

import csv
import errno
import json
from pathlib import Path

import pytest

from cultureval.runtime.data import user_cache
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, MissingColumn, SourceUnavailable
from cultureval.runtime.settings import Settings
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.options import read_data_options, with_defaults
from cultureval.tasks.reading import BrokenRows, find_subset, prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

GOOD = {"Question": "ما عاصمة الأردن؟", "A": "عمّان", "B": "إربد", "C": "العقبة", "Answer": "أ", "Category": "Ethics"}
TASK = "qimma_aratrust"


def write_rows(folder: Path, rows: list[dict], name: str = "test.jsonl") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")


def prepared(tmp_path, task=TASK, **options):
    return prepare_subset(all_tasks()[task], DataOptions(root=tmp_path / "root", **options))


def written(subset, split="test"):
    lines = (subset.folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


BROKEN = {
    "null gold": (GOOD | {"Answer": None}, "Answer", "null or empty"),
    "gold out of range": (GOOD | {"Answer": "د"}, "Answer", "points outside"),
    "gold that is no option": (GOOD | {"Answer": "الكرك"}, "Answer", "not among"),
    "unreadable text": (GOOD | {"Question": "ما \ufffd؟"}, "Question", "not readable"),
    "empty question": (GOOD | {"Question": " "}, "Question", "null or empty"),
}


@pytest.mark.parametrize(("row", "column", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_row_stops_with_source_subset_row_column_and_value(tmp_path, row, column, reason):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD, row])
    with pytest.raises(CulturevalError) as caught:
        prepared(tmp_path, bad_rows="stop")
    message = str(caught.value)
    for part in (
        "asas-ai/AraTrust",
        "AraTrust",
        "row 1 of test.jsonl",
        repr(column),
        reason,
        "value:",
        "--bad-rows skip",
    ):
        assert part in message


def test_all_broken_rows_of_all_tasks_are_in_one_message(tmp_path):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD, *(row for row, _, _ in BROKEN.values())])
    with pytest.raises(BrokenRows) as caught:
        prepared(tmp_path)
    assert f"{len(BROKEN)} broken rows:" in str(caught.value)
    assert all(f"row {number} of test.jsonl" in str(caught.value) for number in range(1, len(BROKEN) + 1))


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
    else:
        report = prepared(tmp_path).report
        assert (report["rows"], len(report["skipped_rows"])) == (rows - broken, left_out)


def arabicmmlu_table(folder, *places):
    """ArabicMMLU in one table: (subject, level, is_few_shot) of each row."""
    rows = [
        {"Subject": subject, "Level": level, "Question": f"س{number}؟", "Answer Key": "A", "Option 1": "نعم"}
        | {"Option 2": "لا", "is_few_shot": few_shot}
        for number, (subject, level, few_shot) in enumerate(places)
    ]
    write_rows(folder, rows, "ArabicMMLU.jsonl")


def test_every_row_of_a_file_is_counted_and_those_not_selected_have_a_reason(tmp_path):
    driving, biology = ("Driving Test", None, 0), ("Biology", "High", 0)
    others = [("Driving Test", "NA", 0), ("Driving Test ", None, 0), ("driving test", None, 0)]
    arabicmmlu_table(tmp_path / "root/MBZUAI/ArabicMMLU", driving, driving, ("Driving Test", None, 1), biology, *others)
    report = prepared(tmp_path, task="qimma_arabicmmlu:Driving Test").report
    assert report["row_counts"] == {"rows": 7, "scored": 2, "few_shot": 1, "skipped": 0, "not_selected": 4}
    reasons = report["not_selected"]
    assert reasons.pop("of another subset") == 1
    assert len(reasons) == 3 and set(reasons.values()) == {1}
    assert all(why.startswith("no task has the subset") and "Driving Test" in why for why in reasons)


def test_a_file_chosen_by_its_folder_is_read_whole(tmp_path):
    folder = tmp_path / "root/MBZUAI/ArabicMMLU/Driving Test"
    arabicmmlu_table(folder, ("Driving Test", "NA", 0), ("driving test", None, 0))
    (folder / "ArabicMMLU.jsonl").rename(folder / "test.jsonl")
    report = prepared(tmp_path, task="qimma_arabicmmlu:Driving Test").report
    assert report["row_counts"] == {"rows": 2, "scored": 2, "few_shot": 0, "skipped": 0, "not_selected": 0}


def test_expected_rows_are_those_of_the_copy_that_is_read(tmp_path):
    write_rows(tmp_path / "root/qimma/MCQ_AraTrust", [{"prompt": "س؟", "choices": ["نعم", "لا"], "index": 1.0}])
    assert prepared(tmp_path).report["expected_rows"] == 522
    tasks = all_tasks()
    assert tasks["qimma_gat:Reading"].group_rows == {"curated": 13985, "original": 13986}
    groups = {task.group: task.group_rows.get("curated", 0) for task in tasks.values() if task.suite == "qimma"}
    assert sum(groups.values()) == 51647 - 6941  # Table 2 without FannOrFlop, which has no curated copy


def test_a_form_that_a_benchmark_has_not_is_said(tmp_path):
    (tmp_path / "root").mkdir()
    with pytest.raises(SourceUnavailable, match="there is no curated copy of FannOrFlop.*omkarthawakar/FannOrFlop"):
        prepared(tmp_path, task="qimma_fannorflop", form="curated")


def test_skipped_rows_are_counted_and_listed(tmp_path):
    rows = [GOOD, *(row for row, _, _ in BROKEN.values()), GOOD | {"Question": "سؤال آخر؟"}]
    write_rows(tmp_path / "root/asas-ai/AraTrust", rows)
    subset = prepared(tmp_path, bad_rows="skip")
    report = subset.report
    assert [row["source_row"] for row in written(subset)] == ["test.jsonl:0", f"test.jsonl:{len(rows) - 1}"]
    assert (report["rows"], report["expected_rows"], len(report["skipped_rows"])) == (2, 522, len(BROKEN))
    assert [row["column"] for row in report["skipped_rows"]] == [column for _, column, _ in BROKEN.values()]


def test_a_missing_column_stops_even_when_broken_rows_are_skipped(tmp_path):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [{"Frage": "?", "A": "x", "B": "y", "Answer": "A"}])
    with pytest.raises(MissingColumn, match=r"columns found: Frage, A, B, Answer"):
        prepared(tmp_path, bad_rows="skip")


def test_nothing_left_is_an_error(tmp_path):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD | {"Answer": None}])
    with pytest.raises(CulturevalError, match="no row is left"):
        prepared(tmp_path, bad_rows="skip")


def test_the_curated_copy_is_preferred_and_can_be_refused(tmp_path):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD])
    write_rows(tmp_path / "root/qimma/MCQ_AraTrust", [{"prompt": "س\nالإجابة:", "choices": ["نعم", "لا"], "index": 1}])
    assert prepared(tmp_path).report["form"] == "curated"
    assert written(prepared(tmp_path))[0]["prompt"] == "س\nالإجابة:"
    assert prepared(tmp_path, form="original").report["source"] == "asas-ai/AraTrust"


def test_a_subset_that_the_curated_copy_lacks_comes_from_the_original(tmp_path):
    write_rows(tmp_path / "root/qimma/MCQ_AraDiCE-Culture", [], "egypt.jsonl")
    original = {
        "Question": "ما أشهر حلوى في نابلس؟",
        "Option A": "الكنافة",
        "Option B": "البسبوسة",
        "Option C": "الزلابية",
    }
    folder = tmp_path / "root/QCRI/AraDiCE-Culture"
    write_rows(folder, [original], "palestine.jsonl")
    front = "configs:\n- config_name: Palestine\n  data_files:\n  - split: test\n    path: palestine.jsonl\n"
    (folder / "README.md").write_text(f"---\n{front}---\n", encoding="utf-8")
    report = prepared(tmp_path, task="qimma_aradice:Palestine").report
    assert (report["form"], report["source"], report["expected_rows"]) == ("original", "QCRI/AraDiCE-Culture", 30)
    with pytest.raises(SourceUnavailable, match="Syria"):
        prepared(tmp_path, task="qimma_aradice:Syria")


def test_one_table_holds_many_subsets_and_the_few_shot_examples(tmp_path):
    """ArabicMMLU's full table: subject and level name the config, `is_few_shot` the examples."""
    folder = tmp_path / "root/MBZUAI/ArabicMMLU"
    folder.mkdir(parents=True)
    columns = ["ID", "Subject", "Level", "Question", "Context", "Answer Key", "Option 1", "Option 2", "is_few_shot"]
    with (folder / "ArabicMMLU.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerow([1, "Biology", "High", "س1", "", "A", "نعم", "لا", 0])
        table.writerow([2, "Biology", "High", "س2", "", "B", "نعم", "لا", 1])
        table.writerow([3, "Economics", "Univ", "س3", "", "B", "نعم", "لا", 0])
        table.writerow([4, "Driving Test", "", "س4", "", "B", "نعم", "لا", 0])
    biology = prepared(tmp_path, task="qimma_arabicmmlu:Biology (High School)")
    assert [row["index"] for row in written(biology)] == [[0]]
    assert [row["index"] for row in written(biology, "few_shot")] == [[1]]
    for task in ("qimma_arabicmmlu:Economics (University)", "qimma_arabicmmlu:Driving Test"):
        assert prepared(tmp_path, task=task).report["rows"] == 1
    with pytest.raises(SourceUnavailable):
        prepared(tmp_path, task="qimma_arabicmmlu:Law (Professional)")


def test_a_test_split_is_evaluated_whole(tmp_path):
    """Where files are split, the split decides what is evaluated, not the column `is_few_shot`."""
    row = {
        "Subject": "Driving Test",
        "Level": None,
        "Question": "س؟",
        "Answer Key": "A",
        "Option 1": "نعم",
        "Option 2": "لا",
    }
    rows = [row | {"is_few_shot": 1}, row | {"Question": "ص؟", "is_few_shot": 0}]
    write_rows(tmp_path / "root/MBZUAI/ArabicMMLU/Driving Test", rows)
    report = prepared(tmp_path, task="qimma_arabicmmlu:Driving Test").report
    assert (report["rows"], report["few_shot_rows"]) == (2, 0)


def test_specialty_spelled_otherwise_in_the_source(tmp_path):
    folder = tmp_path / "root/nyuad-cai/MedAraBench"
    folder.mkdir(parents=True)
    header = "Question,Option A,Option B,Correct Answer,Medical Specialty"
    text = f"{header}\nس,نعم,لا,a,Thorasic Internal\nس,نعم,لا,b,Surgery\n"
    (folder / "medarabench-test_split.csv").write_text(text, encoding="utf-8")
    assert prepared(tmp_path, task="qimma_medarabench:Thoracic Internal").report["rows"] == 1


def test_absent_data_say_where_they_were_looked_for_and_how_to_get_them(tmp_path):
    (tmp_path / "root").mkdir()
    with pytest.raises(SourceUnavailable) as caught:
        prepared(tmp_path, task="qimma_medarabench:Surgery")
    for part in ("nyuad-cai/MedAraBench", "medarabench-test_split.csv", "--data DIR"):
        assert part in str(caught.value)


def test_a_hub_that_cannot_be_reached_says_how_to_use_a_mirror(monkeypatch, tmp_path):
    from cultureval.runtime.data import hub

    hub.snapshot.cache_clear()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for task in (TASK, "jeem_vqa:ma"):
        suite = all_tasks()[task].suite
        with pytest.raises(SourceUnavailable, match=f"cultureval mirror {suite} --output-dir DIR"):
            find_subset(all_tasks()[task], DataOptions())


def test_the_same_rows_are_written_once_and_other_rows_elsewhere(tmp_path):
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD])
    first = prepared(tmp_path).folder
    assert prepared(tmp_path).folder == first
    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD, GOOD | {"Question": "سؤال؟"}], "test-2.jsonl")
    assert len(list(first.parent.iterdir())) == 1


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


def test_a_full_disk_is_named_and_nothing_is_left(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    write_rows(tmp_path / "root/asas-ai/AraTrust", [GOOD])
    with monkeypatch.context() as patch:
        patch.setattr(user_cache.os, "replace", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*/cache/rows/qimma_aratrust-.*/test.jsonl'"):
            prepared(tmp_path)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert written(prepared(tmp_path))


def test_options_come_from_the_environment():
    assert read_data_options(Settings()) == with_defaults(DataOptions())
    options = read_data_options(Settings.of_variables({"CULTUREVAL_DATA": "samples", "CULTUREVAL_BAD_ROWS": "skip"}))
    assert (options.bad_rows, options.root.name) == ("skip", "samples")
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
