import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.prompts.cells import column_name, optional_text, readable, several, text_cell, text_list
from cultureval.prompts.option_labels import (
    LABELS,
    check_not_others,
    check_shown,
    gold_position,
    label_index,
    labels_for,
    split_label,
)
from cultureval.runtime.errors import BadRow, MissingColumn


def test_the_fifth_label_is_two_code_points_as_in_qimma():
    assert [len(label) for label in LABELS] == [1] * 4 + [2] + [1] * 23


@pytest.mark.parametrize(
    ("text", "position"),
    [("أ", 0), ("ا", 0), ("A", 0), ("b", 1), ("هـ", 4), ("ه", 4), ("(ج)", 2), ("د.", 3), ("نص", None), ("", None)],
)
def test_lone_labels(text, position):
    assert label_index(text) == position


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ب) القاهرة", (1, "القاهرة")),
        ("(أ) الرباط", (0, "الرباط")),
        ("ه. تونس\n", (4, "تونس")),
        ("دمشق", (None, "دمشق")),
        ("C) Muscat", (2, "Muscat")),
    ],
)
def test_labelled_texts(text, parts):
    assert split_label(text) == parts


def test_gold_by_label_by_text_and_by_index():
    options = ["الرباط", "فاس", "مراكش", "طنجة"]
    for answer in ("ج", "C", "c", "ج. مراكش", "مراكش", 2, "ج) مراكش.", "ج. مراكش\n"):
        assert gold_position(answer, options, "answer") == 2


def test_gold_label_wins_over_an_option_that_is_a_letter():
    """Blood groups: the answer key B means the second option, not the option "B" in the third place."""
    assert gold_position("B", ["A", "AB", "B", "O"], "answer") == 1


@pytest.mark.parametrize("answer", ["هـ", "F", "أكادير", "ب. مراكش", 4, -1, ""])
def test_gold_that_names_no_option_is_refused(answer):
    with pytest.raises(BadRow):
        gold_position(answer, ["الرباط", "فاس", "مراكش", "طنجة"], "answer")


@pytest.mark.parametrize(
    ("labels", "answer", "position"),
    [
        ("B C D E", "B", 0),
        ("B C D E", "(E)", 3),
        ("B C D E", "B. x1", 0),
        ("B C D E", "C) x2.", 1),
        ("B C D E", "x3", 2),
        ("الف ب پ ت", "پ", 2),
        ("الف ب پ ت", "ب", 1),
        ("1 2 3 4", 1, 0),
        ("A B C D", "ج", 2),
        ("B C D E", "A", "is not among the labels of the template (B C D E)"),
        ("B C D E", "F", "is not among the labels of the template"),
        ("B C D E", 0, "is not among the labels of the template"),
        ("B C D E", "B. x2", "has label B but the text of option C"),
        ("A B C D", "B. x1", "has label B but the text of option A"),
        ("B C D E F", "F", "points outside the 4 options"),
        ("الف ب پ ت", "ج", "is not among the labels of the template (الف ب پ ت)"),
        ("الف ب پ ت", "أ", "is not among the labels of the template"),
        ("1 2 3 4", "1.5", "is not among the labels of the template"),
        ("1 2 3 4", 0, "is not among the labels of the template"),
    ],
)
def test_only_the_templates_labels_count_where_they_are_its_own(labels, answer, position):
    options = ["x1", "x2", "x3", "x4"]
    if isinstance(position, int):
        assert gold_position(answer, options, "answer", tuple(labels.split())) == position
    else:
        with pytest.raises(BadRow, match=re.escape(position)):
            gold_position(answer, options, "answer", tuple(labels.split()))


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=10), min_size=2, max_size=6, unique=True))
def test_gold_is_an_option_or_refused(answer, options):
    try:
        position = gold_position(answer, options, "answer")
    except BadRow:
        return
    assert 0 <= position < len(options)


def test_more_options_than_labels_are_refused():
    assert labels_for(28) == list(LABELS)
    with pytest.raises(BadRow):
        labels_for(29)


def test_a_missing_column_lists_the_columns_found():
    with pytest.raises(MissingColumn, match="columns found: Frage, ID"):
        column_name({"Frage": 1, "ID": 2, "__index": 0}, "question")


@pytest.mark.parametrize("value", [None, "", "  \n", math.nan])
def test_empty_cells(value):
    assert optional_text({"question": value}, "question") is None
    with pytest.raises(BadRow, match="null or empty"):
        text_cell({"question": value}, "question")


def test_numbers_become_text_and_white_space_goes():
    assert text_cell({"Option 1": 12.0}, "Option 1") == "12.0"
    assert text_cell({"Option 1": "B+\n"}, "Option 1") == "B+"
    assert text_cell({"پرسش": "چرا؟", "question": "why?"}, ("پرسش", "question")) == "چرا؟"  # a suite's own names


@pytest.mark.parametrize("text", ["كلمة\ufffd", "a\x00b", "\ud800", "Ø§Ù„Ø³Ø¤Ø§Ù„", ["نص"], True])
def test_unreadable_cells_are_refused(text):
    with pytest.raises(BadRow):
        readable(text, "question")


@given(st.text(alphabet=st.characters(min_codepoint=0x0600, max_codepoint=0x06FF, categories=["L", "N", "P", "M"])))
def test_arabic_text_is_readable(text):
    assert readable(text, "question") == text.strip()


def test_options_must_be_several_and_filled():
    assert several(["نعم", "لا", "نعم"], "choices") == ["نعم", "لا", "نعم"]
    with pytest.raises(BadRow, match="fewer than two"):
        several(["نعم"], "choices")
    with pytest.raises(BadRow, match="empty entry"):
        text_list(["نعم", ""], "choices")


@pytest.mark.parametrize("labels", [(), ("1", "2", "3")], ids=["usual", "own"])
def test_a_text_that_stands_twice_names_no_option_and_its_label_does(labels):
    options = ["نعم", "لا", "لا"]
    with pytest.raises(BadRow):
        gold_position("لا", options, "gold", labels)
    assert gold_position("3" if labels else "C", options, "gold", labels) == 2
    assert not labels or gold_position("3. لا", options, "gold", labels) == 2


@pytest.mark.parametrize("answer", ["4. لا", "4. شيء", "2. نعم"])
def test_a_label_beyond_the_options_or_of_another_text_is_a_broken_row(answer):
    with pytest.raises(BadRow):
        gold_position(answer, ["نعم", "لا", "ربما"], "gold", ["1", "2", "3", "4"])


@pytest.mark.parametrize("labels", [["أ", "ب", "جـ"], ["ا", "ب", "ج"], ["أـ", "بـ", "جـ"], ["ٱ", "ب", "ج"]])
def test_other_spellings_of_the_scored_labels_are_no_other_labels(labels):
    options = ["القاهرة", "بغداد", "دمشق"]
    prompt = "س؟\n" + "\n".join(f"{label}. {text}" for label, text in zip(labels, options, strict=True))
    check_not_others(prompt, ["أ", "ب", "ج"], options)
    with pytest.raises(BadRow):
        check_not_others(prompt, ["أ", "ب", "د"], options)


PIECES = st.text(st.sampled_from([*"ab1أ_().-:*[{", "\n", "\t", " "]), max_size=14)


@given(st.tuples(PIECES, PIECES), st.sampled_from(["a", "1", "أ", "(a)", "a.", "ab"]), PIECES, PIECES)
def test_labels_and_texts_are_found_as_one_pattern_of_both_finds_them(around, label, between, text):
    """The pattern is the definition; it would be compiled for each option of a data set."""
    text = " ".join(text.split()) or "b"
    name, option = re.escape(label), r"\s+".join(map(re.escape, text.split()))
    marked = rf"(?<!\w){name}(?=[^\w\s])|(?<=[(\[{{]){name}|(?<!\w){name}(?<=[^\w\s])"
    pattern = rf"(?:^[^\w\n]*{name}|{marked})(?!\w)[^\w\n]{{0,6}}{option}"
    for prompt in (around[0] + label + between + text + around[1], around[0] + text + around[1]):
        try:
            check_shown(prompt, [label], [text], "template")
            shown = True
        except BadRow:
            shown = False
        assert shown == bool(re.search(pattern, prompt, re.MULTILINE))
