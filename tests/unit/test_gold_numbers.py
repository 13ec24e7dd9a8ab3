"""Whole numbers among golds: the whole column tells whether they count from 0, from 1, or are texts of options."""

import csv
import json

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cultureval.prompts.gold_numbers import GoldColumn, GoldNumber
from cultureval.prompts.option_labels import gold_positions
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import BadRow, CulturevalError
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.reading import forget_files, prepare_subset

pytestmark = pytest.mark.usefixtures("own_cache")

TASK, FOLDER = "qimma_aratrust", "root/asas-ai/AraTrust"
OPTIONS = ("النيل", "الفرات", "دجلة", "العاصي")


def golds_read(tmp_path, golds, name="test.jsonl", options=OPTIONS, numbers=None, bad_rows="skip"):
    """The positions that golds of AraTrust are read as, by the file's name; numbers: `gold_numbers` of --sources."""
    rows = [
        {"Question": f"السؤال رقم {place}؟"} | dict(zip("ABCDE", options, strict=False)) | {"Answer": gold}
        for place, gold in enumerate(golds)
    ]
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        if name.endswith(".csv"):
            table = csv.DictWriter(file, rows[0])
            table.writeheader()
            table.writerows(rows)
        else:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    forget_files()
    settings = current_settings()
    if numbers is not None:
        (tmp_path / "sources.yaml").write_text(yaml.safe_dump({TASK: {"gold_numbers": numbers}}))
        settings = settings.with_(sources=str(tmp_path / "sources.yaml"))
    with use_settings(settings):
        subset = prepare_subset(all_tasks()[TASK], DataOptions(root=tmp_path / "root", bad_rows=bad_rows))
    written = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(row)["index"][0] for row in written]


@pytest.mark.parametrize("golds", [["A", 2, "C"], ["أ", "2", "ج"], ["A", "B", 4, "D"], ["النيل", 2, 3]])
def test_numbers_among_letters_or_texts_are_refused_until_their_meaning_is_said(tmp_path, golds):
    with pytest.raises(CulturevalError, match="some are numbers"):
        golds_read(tmp_path, golds)
    assert golds_read(tmp_path, golds, numbers=1)[1] == 1 if golds[1] in (2, "2") else 3


def test_one_wrong_number_is_a_broken_row_and_shifts_no_other(tmp_path):
    assert golds_read(tmp_path, [*[0, 1, 2, 3] * 10, 4]) == [0, 1, 2, 3] * 10
    assert golds_read(tmp_path, [*[1, 2, 3, 4] * 10, 0]) == [0, 1, 2, 3] * 10
    assert golds_read(tmp_path, ["A", "B", 7]) == [0, 1]


def test_numbers_that_are_texts_of_options(tmp_path):
    years = ("1948", "1956", "1967", "1973")
    assert golds_read(tmp_path, [1967, "1948", "١٩٥٦"], options=years) == [2, 0, 1]
    shuffled = ("3", "1", "4", "2")
    with pytest.raises(CulturevalError, match="places of options or their texts"):
        golds_read(tmp_path, [1, 2, 3, 4], options=shuffled)
    assert golds_read(tmp_path, [1, 2, 3, 4], options=shuffled, numbers="text") == [1, 3, 0, 2]
    assert golds_read(tmp_path, [1, 2, 3, 4], options=shuffled, numbers=1) == [0, 1, 2, 3]


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.sampled_from([0, 1]),
    st.sampled_from([int, float, str, lambda number: "٠١٢٣٤"[number]]),
    st.sampled_from(["test.jsonl", "test.csv"]),
)
def test_a_column_of_numbers_is_read_right_or_refused(tmp_path, places, first, form, name):
    golds = [form(place + first) for place in places]
    evident = (0 if first == 0 else 3) in places
    if evident:
        assert golds_read(tmp_path, golds, name) == places
    else:
        with pytest.raises(CulturevalError, match="gold_numbers"):
            golds_read(tmp_path, golds, name)
    assert golds_read(tmp_path, golds, name, numbers=first) == places


@given(st.lists(st.tuples(st.integers(-1, 6), st.integers(2, 5)), min_size=1), st.integers(0, 5))
def test_a_column_never_gives_most_golds_a_place_that_is_not_there(numbers, letters):
    column = GoldColumn(letters=letters, numbers=[GoldNumber(one, count, None, None) for one, count in numbers])
    if not column.decide() and column.means != "text":
        outside = [one for one, count in numbers if one == count * (1 - column.means)]
        assert len(outside) * 10 <= len(numbers) and not letters


def test_curated_indices_count_from_0_and_a_copy_that_counts_from_1_is_refused(tmp_path):
    task = all_tasks()["qimma_aratrust"]
    source = next(one for one in task.sources if one.form == "curated")
    folder = tmp_path / "root" / source.repo
    folder.mkdir(parents=True)

    def indices(*golds):
        rows = [{"prompt": f"س {gold}؟\nأ. نعم\nب. لا\nج. ربما\n", "choices": ["نعم", "لا", "ربما"]} for gold in golds]
        lines = [json.dumps(row | {"index": [gold]}) + "\n" for row, gold in zip(rows, golds, strict=True)]
        (folder / "test.jsonl").write_text("".join(lines), encoding="utf-8")
        forget_files()
        subset = prepare_subset(task, DataOptions(root=tmp_path / "root", bad_rows="skip"))
        written = (subset.folder / "test.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(row)["index"][0] for row in written]

    assert indices(1, 2, 1) == [1, 2, 1]
    with pytest.raises(CulturevalError, match="options are counted from 0"):
        indices(1, 2, 3)


def test_an_empty_last_column_is_no_option(tmp_path):
    """As ArabicMMLU's fifth: of four options 4 is the last, so that golds begin with 1, and a 0 is refused."""
    options = (*OPTIONS, None)
    assert golds_read(tmp_path, [1, 2, 3, 4, 1], options=options) == [0, 1, 2, 3, 0]
    with pytest.raises(CulturevalError, match="1 of them are 0 and 2 the number of options"):
        golds_read(tmp_path, [1, 2, 3, 4, 2, 3, 4, 0], options=options)


def test_a_zero_where_the_first_option_is_said_to_be_1_is_refused_though_broken_rows_are_skipped(tmp_path):
    with pytest.raises(CulturevalError, match="holds a 0"):
        golds_read(tmp_path, [1, 0, 2], numbers=1)


@pytest.mark.parametrize(
    ("options", "golds", "read"),
    [
        (("3) نعم، دائمًا", "1) لا", "2) أحيانًا"), ["1", "2", "3"], [0, 1, 2]),  # their own numbers decide
        (("1) نعم، دائمًا", "2) لا", "3) أحيانًا"), ["A", "2", "C"], None),
        (("1) نعم، دائمًا", "2) لا", "3) أحيانًا"), ["A", "B", "C"], [0, 1, 2]),
        (("أ) نعم", "لا", "ج) أحيانًا"), ["A", "B", "C"], None),  # labels of some options only
    ],
)
def test_labels_of_options_in_columns_are_taken_off_whole_or_refused(tmp_path, options, golds, read):
    if read is None:
        with pytest.raises(CulturevalError):
            golds_read(tmp_path, golds, options=options, bad_rows="stop")
    else:
        assert golds_read(tmp_path, golds, options=options) == read


def test_a_list_that_may_mark_each_option_is_not_read_as_places():
    for answer in ([0, 1, 0, 0], [1, 0], "[1, 0]"):
        options = OPTIONS[: 2 if len(answer) != 4 else 4]
        with pytest.raises(BadRow, match="may mark each option"):
            gold_positions(answer, options, "answers")
