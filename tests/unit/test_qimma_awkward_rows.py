"""Awkward rows of every source of QIMMA, those of a table and any others: the right option or a broken row."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cultureval.prompts.cells import bare, comparable
from cultureval.prompts.gold_numbers import whole_number
from cultureval.prompts.option_labels import LABELS
from cultureval.prompts.preparation import Preparation
from cultureval.prompts.qimma import rows
from cultureval.runtime.errors import BadRow

TABLE = yaml.safe_load(Path(__file__).with_name("qimma_awkward_rows.yaml").read_text(encoding="utf-8"))
CASES = [pytest.param(source, case, id=f"{source}: {case['why']}") for source, cases in TABLE.items() for case in cases]
LETTERS = "ABCDEF"


def lettered(case, name="{}"):
    return {name.format(letter): text for letter, text in zip(LETTERS, case["options"], strict=False)}


def culture(case):
    return {
        "country": "Egypt",
        "region": "Nile Valley",
        "first_statement": "في العيد",
        "options": {"arabic_keys": case["keys"], "text": case["options"]},
        "answer_key": {"arabic_answer_key": case["answer"]},
    }


MCQ, SEVERAL = Preparation("qimma/templates/mcq"), Preparation("qimma/templates/multi_select")
SOURCES = {
    "NativeQA": (
        rows.option_list,
        lambda case: {"question_text": "س؟", "choices": case["options"], "correct_choice": case["answer"]},
    ),
    "SyntheticQA": (
        rows.option_list,
        lambda case: {"question": "س؟", "choices": case["options"], "self_answer": case["answer"]},
    ),
    "MizanQA": (rows.mizanqa, lambda case: {"question": "س؟", "options": case["options"], "answers": case["answer"]}),
    "MedAraBench": (
        rows.medarabench,
        lambda case: {"Question": "س؟", **lettered(case, "Option {}"), "Correct Answer": case["answer"]},
    ),
    "AraTrust": (rows.lettered_columns, lambda case: {"Question": "س؟", **lettered(case), "Answer": case["answer"]}),
    "GAT": (rows.gat, lambda case: {"question": "س؟", "options": case["options"], "answer": case["answer"]}),
    "MedArabiQ": (
        rows.medarabiq_choice,
        lambda case: {"Question": "\n".join([case.get("question", "س؟"), *case["options"]]), "Answer": case["answer"]},
    ),
    "ArabCulture": (rows.arabculture, culture),
    "curated": (
        rows.curated_choice,
        lambda case: {"prompt": "س؟", "choices": case["options"], "index": case["answer"]},
    ),
}
PREPARATIONS = {"MizanQA": SEVERAL, "ArabCulture": Preparation("qimma/templates/arabculture_none")}


def prepared(source, case):
    convert, row_of = SOURCES[source]
    return convert(row_of(case), PREPARATIONS.get(source, MCQ))


def right_options(row):
    return [row["choices"][position] for position in row["index"]]


def test_the_table_has_rows_of_every_source():
    assert set(TABLE) == set(SOURCES) and len(CASES) >= 60


@pytest.mark.parametrize(("source", "case"), CASES)
def test_an_awkward_row_becomes_what_the_table_says(source, case):
    if "broken" in case:
        with pytest.raises(BadRow, match=case["broken"]):
            prepared(source, case)
        return
    row = prepared(source, case)
    assert right_options(row) == case["gold"]
    assert row["choices"] == [text for text in case.get("become", case["options"]) if text is not None]


WORD = st.text(alphabet="ابتثجحدرزسصطعغفقكلمنهوية", min_size=2, max_size=6)
TEXT = st.one_of(
    WORD,
    st.lists(WORD, min_size=2, max_size=3).map(" ".join),
    st.integers(-50, 999).map(str),
    st.tuples(st.sampled_from("سصنم"), st.integers(2, 99)).map("{0[0]}={0[1]}".format),
    WORD.map("علم ({})".format),
)
NUMBERED = {"latin": "0123456789", "arabic": "٠١٢٣٤٥٦٧٨٩", "persian": "۰۱۲۳۴۵۶۷۸۹"}


def names_of(position):
    """Everything that a source may call an option by letter."""
    latin = chr(ord("A") + position)
    return [LABELS[position], latin, latin.lower(), *({0: ["ا", "إ", "آ"], 4: ["ه"]}.get(position, []))]


@st.composite
def labelled_rows(draw, styles):
    """Texts in a source's order with the labels that they bear, and the position of the right one."""
    texts = draw(st.lists(TEXT, min_size=2, max_size=6, unique=True))
    positions = draw(st.permutations(range(len(texts))))
    labels = [draw(st.sampled_from(names_of(position))) for position in positions]
    style = draw(st.sampled_from(styles))
    right = draw(st.integers(0, len(texts) - 1))
    return texts, [style.format(label) for label in labels], right, draw(st.sampled_from(names_of(positions[right])))


def chosen(source, options, answer):
    """The right option of the row, or None where it is broken."""
    try:
        (text,) = right_options(prepared(source, {"options": options, "answer": answer}))
    except BadRow:
        return None
    return text


@given(labelled_rows(["({}) ", "({})", "{}) ", "{})", "\u200f({}) ", "[{}] "]))
def test_a_bracketed_label_decides_wherever_its_option_stands(row):
    texts, labels, right, answer = row
    options = [label + text for label, text in zip(labels, texts, strict=True)]
    assert chosen("NativeQA", options, answer) == texts[right]
    assert chosen("NativeQA", options, texts[right]) == texts[right]
    assert chosen("NativeQA", options, f"{answer}) {texts[right]}") == texts[right]
    assert chosen("NativeQA", str(options), answer) == texts[right]


@given(labelled_rows(["{}. ", "{} - ", "{}: ", "{}.", "{}-", "{}:", "{} "]))
def test_any_other_label_decides_or_the_row_is_broken(row):
    texts, labels, right, answer = row
    options = [label + text for label, text in zip(labels, texts, strict=True)]
    if labels[0].strip()[-1:].isalpha():
        return  # no mark at all: such labels are read only between commas
    assert (chosen("NativeQA", options, answer) or texts[right]).endswith(texts[right])


@given(labelled_rows(["{}) ", "{})", "({}) ", "{}. ", "{} "]), st.sampled_from([" ", ", ", "، ", "\n", ""]))
def test_labels_within_one_text_decide_or_the_row_is_broken(row, between):
    texts, labels, right, answer = row
    options = between.join(label + text for label, text in zip(labels, texts, strict=True))
    assert chosen("SyntheticQA", options, answer) in (texts[right], None)
    assert chosen("SyntheticQA", [f"[{options}]"], answer) in (texts[right], None)


@given(st.lists(WORD, min_size=2, max_size=9, unique=True), st.data(), st.sampled_from(list(NUMBERED.values())))
def test_numbers_that_label_the_options_decide(texts, data, digits):
    numbers = data.draw(st.permutations(range(1, len(texts) + 1)))
    right = data.draw(st.integers(0, len(texts) - 1))
    options = [f"{digits[number]}) {text}" for number, text in zip(numbers, texts, strict=True)]
    for answer in (digits[numbers[right]], str(numbers[right]), numbers[right], texts[right]):
        assert chosen("NativeQA", options, answer) == texts[right]


@given(st.lists(TEXT, min_size=2, max_size=5, unique=True), st.data())
def test_several_golds_are_all_found_or_the_row_is_broken(texts, data):
    golds = sorted(data.draw(st.sets(st.integers(0, len(texts) - 1), min_size=1)))
    between = data.draw(st.sampled_from([",", "، ", "-", ".", "/", " و ", " و", " ", "", "; ", " and ", "\n"]))
    letters = [data.draw(st.sampled_from(names_of(position))) for position in golds]
    for answer in (between.join(letters), letters, str(letters), f"[{between.join(letters)}]"):
        row = {"options": texts, "answer": answer}
        clear = len(golds) == 1 or isinstance(answer, list) or not {between.join(letters)} & set(texts)
        if not clear:
            continue
        assert prepared("MizanQA", row)["index"] == golds
    indices = ",".join(map(str, golds))
    try:
        assert prepared("MizanQA", {"options": texts, "answer": indices})["index"] == golds
    except BadRow:
        assert indices in texts  # which it may mean as well


@given(st.lists(TEXT, min_size=2, max_size=4, unique=True), st.text(max_size=12))
def test_an_answer_is_never_read_as_what_it_does_not_say(texts, answer):
    """Whatever is read from any text is an option's letter, its text, both, or in a row alone its place from 0."""
    found = chosen("GAT", texts, answer)
    position = None if found is None else texts.index(found)
    said = comparable(answer)
    places = position is not None and whole_number(answer) == position
    assert position is None or places or bare(found) in bare(said) or any(name in said for name in names_of(position))
