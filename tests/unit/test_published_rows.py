"""Rows in the shape of the published data where a first reading of them was wrong, from a data root on."""

import csv
import json

import pytest

from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, SourceUnavailable
from cultureval.tasks.catalogue import all_tasks, is_gated
from cultureval.tasks.qimma.benchmarks import MEDARABENCH_UNREADABLE
from cultureval.tasks.reading import BrokenRows, forget_files, prepare_subset

CURATED = {"prompt": "س؟", "choices": ["نعم", "لا"], "index": 0}


@pytest.fixture
def read(tmp_path):
    """Prepares a task from below `tmp_path`; returns (prepared rows, report)."""

    def prepare(task, **options):
        forget_files()
        subset = prepare_subset(all_tasks()[task], DataOptions(root=tmp_path, **options))
        lines = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines], subset.report

    return prepare


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_config(folder, config, rows):
    """Writes a data set with one config of one split."""
    write_lines(folder / config / "test.jsonl", rows)
    declared = f"  - config_name: {config}\n    data_files:\n      - split: test\n        path: {config}/test.jsonl\n"
    (folder / "README.md").write_text(f"---\nconfigs:\n{declared}---\n", encoding="utf-8")


def medarabiq(broken):
    """100 rows of MedArabiQ's questions; those numbers begin their options on the line of the question."""
    rows = []
    for number in range(100):
        first = " " if number in broken else "\n"
        rows.append({"Question": f"سؤال {number}:{first}أ. واحد\nب. اثنان\nج. ثلاثة", "Answer": " أ. واحدة\n"})
    return rows


def test_the_letter_of_medarabiq_s_answer_decides_and_its_known_rows_stop_no_run(read, tmp_path):
    file = tmp_path / "nyuad-cai/MedArabiQ/multiple-choice-questions.csv"
    write_csv(file, medarabiq({58, 82}))
    rows, report = read("qimma_medarabiq_mcq:mcq_knowledge", form="original")
    assert [row["choices"][row["index"][0]] for row in rows] == ["واحد"] * 98
    assert [row["row"] for row in report["skipped_rows"]] == [58, 82]
    write_csv(file, medarabiq({58, 59, 60}))
    with pytest.raises(BrokenRows, match="row 60 .*\n.*row 61 "):
        read("qimma_medarabiq_mcq:mcq_knowledge", form="original")


def test_medarabench_keeps_the_rows_that_qimma_kept(read, tmp_path):
    unreadable = set(map(int, MEDARABENCH_UNREADABLE.split()))
    assert len(unreadable) == 4959 - 4927
    sound = dict.fromkeys(f"Option {letter}" for letter in "ABCDEF")
    sound |= {"Question": "س؟", "Option A": "غدد", "Option B": "لا", "Option C": "غدد", "Correct Answer": "c"}
    rows = [sound | {"Question": f"س{number}؟", "Medical Specialty": "Anatomy"} for number in range(500)]
    for number in unreadable & set(range(500)):
        rows[number] |= {"Correct Answer": "A+B"}
    write_csv(tmp_path / "nyuad-cai/MedAraBench/medarabench-test_split.csv", rows)
    prepared, report = read("qimma_medarabench:Anatomy", form="original")
    assert {(row["choices"][0], *row["index"]) for row in prepared} == {("غدد", 2)}
    assert len(report["skipped_rows"]) == len(unreadable & set(range(500))) == 5


def test_palmx_s_pooled_copy_is_not_read_since_its_rows_do_not_say_their_subset(read, tmp_path):
    rows = [CURATED | {"prompt": f"س{number}؟"} for number in range(5)]
    write_lines(tmp_path / "qimma/MCQ_PALMX-2025/test.jsonl", rows)
    with pytest.raises(SourceUnavailable, match="no data"):
        read("qimma_palmx:islamic")
    original = {"question": "س؟", "A": "نعم", "B": "لا", "C": "ربما", "D": "لا أدري", "answer": "B"}
    write_lines(tmp_path / "UBC-NLP/palmx_2025_subtask2_islamic/test.jsonl", [original])
    with pytest.raises(CulturevalError, match="--form original .*--form mixed"):
        read("qimma_palmx:islamic")
    (prepared,), report = read("qimma_palmx:islamic", form="mixed")
    assert (prepared["index"], report["form"]) == ([1], "original")
    write_config(tmp_path / "qimma/MCQ_PALMX-2025", "islamic", rows)
    assert read("qimma_palmx:islamic")[1]["form"] == read("qimma_palmx:islamic", form="mixed")[1]["form"] == "curated"


def test_arablegalqa_is_read_under_both_names_of_its_owner(read, tmp_path):
    row = {"Question": "س؟", "Answer": "ج", "Context": "نص"}
    folder, splits = tmp_path / "THIQAH-RD/ArabLegalEval", {"train": 63, "test": 16}
    for split, count in splits.items():
        write_lines(folder / f"QA/{split}.jsonl", [row | {"Question": f"{split}؟"}] * count)
    files = "".join(f"      - split: {split}\n        path: QA/{split}.jsonl\n" for split in splits)
    (folder / "README.md").write_text(f"---\nconfigs:\n  - config_name: QA\n    data_files:\n{files}---\n", "utf-8")
    prepared, report = read("qimma_arablegalqa", form="original")
    assert (len(prepared), report["source"]) == (79, "THIQAH-RD/ArabLegalEval")


@pytest.mark.parametrize(
    ("task", "source"),
    [
        ("qimma_palmx:culture", "UBC-NLP/palmx_2025_subtask1_culture"),
        ("qimma_palmx:islamic", "UBC-NLP/palmx_2025_subtask2_islamic"),
        ("qimma_medarabiq_qa:llm_modified", "nyuad-cai/MedArabiQ"),
        ("alqasida_mt:btec_egy_to_eng", "JHU-CLSP/al-qasida"),
        ("alqasida_mono:tweet_egy", "JHU-CLSP/al-qasida"),
        ("cvlue_vd", "cvlue"),
    ],
)
def test_data_with_terms_are_gated(task, source):
    assert is_gated(task, source) and not is_gated("qimma_arabicmmlu:Driving Test", "MBZUAI/ArabicMMLU")
