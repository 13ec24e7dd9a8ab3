"""Cells of rows, and labels of options: what is read, and what is refused."""

import pytest

from cultureval.prompts.cells import readable, text_list
from cultureval.prompts.options import LABELS, gold_position, label_index, split_label
from cultureval.runtime.errors import BadRow


@pytest.mark.parametrize(
    "value",
    [True, ["نص"], {"a": 1}, b"x", "ما \ufffd؟", "a\x00b", "\ud800"],
)
def test_what_is_no_readable_text_is_refused(value):
    with pytest.raises(BadRow, match="column 'x'"):
        readable(value, "x")


def test_lists_of_texts():
    assert text_list(["أ", 2], "x") == ["أ", "2"] and text_list(["أ", "أ"], "x", fewest=2) == ["أ", "أ"]
    for values in ([], "أ", ["أ", None], ["أ", " "], [["أ"]], {"a": "أ"}, None):
        with pytest.raises(BadRow):
            text_list(values, "x")
    with pytest.raises(BadRow, match="2 or more"):
        text_list(["أ"], "x", fewest=2)


@pytest.mark.parametrize(
    ("text", "place"),
    [("أ", 0), ("ا", 0), ("A", 0), ("e", 4), ("هـ", 4), ("ه", 4), ("(ب)", 1), ("ج.", 2), ("جـ", 2), ("دَ", 3)]
    + [("نعم", None), ("", None), ("1", None), ("AB", None), ("أب", None)],
)
def test_a_label_is_one_letter(text, place):
    assert label_index(text) == place


def test_every_label_names_its_place_and_splits_from_its_text():
    for place, label in enumerate(LABELS):
        assert gold_position(label, len(LABELS), "x") == place
        for text in (f"{label}) نص", f"({label}) نص", f"{label}. نص", f" {label}- نص", f"[{label}] نص"):
            assert split_label(text) == (place, "نص")
    assert split_label("نص بلا علامة") == (None, "نص بلا علامة")


@pytest.mark.parametrize("value", [None, "", "هـ", "E", "1", 0, True, "نعم", ["أ"], "أ، ب"])
def test_a_gold_is_the_letter_of_an_option(value):
    with pytest.raises(BadRow, match="not the letter of one of the 4 options"):
        gold_position(value, 4, "x")
