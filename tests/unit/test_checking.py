"""`cultureval check`: the rows of each subset are counted, and broken ones listed."""

import json

import pytest

from cultureval.reports.task_list import data_check_text
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.checking import check_data
from cultureval.tasks.reading import forget_files

pytestmark = pytest.mark.usefixtures("own_cache")

GOOD = {"Question": "س؟", "A": "نعم", "B": "لا", "C": "ربما", "Answer": "أ"}


def write(root, rows):
    forget_files()
    file = root / "asas-ai/AraTrust/test.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return DataOptions(root=root, form="original")


def test_every_sample_is_sound():
    options = DataOptions(root=samples_root())
    found = check_data(["qimma", "jeem", "m2cqa", "aynvqa", "cvlue"], options)
    assert len(found) == sum(
        task.suite in ("qimma", "jeem", "m2cqa", "aynvqa", "cvlue") for task in all_tasks().values()
    )
    assert not [one for one in found if one.is_broken() or one.missing]


def test_counts_of_a_subset_with_a_duplicate_and_a_broken_row(tmp_path):
    rows = [GOOD, GOOD | {"Question": "س؟ "}, GOOD | {"Question": "ص؟", "Answer": "د"}]
    (one,) = check_data(["qimma_aratrust"], write(tmp_path, rows))
    assert (one.rows, one.duplicates, one.expected, one.form) == (2, 1, 522, "original") and one.differs()
    assert len(one.broken) == 1 and "row 3 of test.jsonl: column 'Answer'" in one.broken[0]
    text = data_check_text([one], full=False)
    assert one.broken[0] in text and "qimma_aratrust has 3 rows" not in text
    (one,) = check_data(["qimma_aratrust"], write(tmp_path, [GOOD, *rows[2:] * 3]))
    assert len(one.broken) == 3 and one.is_broken()


def test_what_cannot_be_read_is_a_problem_and_what_is_not_there_is_said(tmp_path):
    options = write(tmp_path, [{"Frage": "?"}])
    found = {one.task: one for one in check_data(["qimma_aratrust", "qimma_mizanqa"], options)}
    assert "no column 'A'" in found["qimma_aratrust"].problem and found["qimma_aratrust"].is_broken()
    assert found["qimma_mizanqa"].missing and not found["qimma_mizanqa"].is_broken()
    with pytest.raises(CulturevalError, match="qimma_mizan"):
        check_data(["qimma_mizan"], options)


def test_too_few_examples_are_a_problem(tmp_path):
    (one,) = check_data(["qimma_aratrust|2"], write(tmp_path, [GOOD]))
    assert "has 0 few-shot examples" in one.problem
