"""Each source's rows, awkward ones included, become the rows that they should."""

import pytest

from cultureval.prompts.choices import choice_prompt, multi_select_prompt
from cultureval.prompts.preparation import Preparation
from cultureval.prompts.qimma import rows
from cultureval.prompts.qimma.rows import answer_prompt, poem_prompt
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import BadRow, MissingColumn

PLAIN = Preparation("qimma/templates/mcq")
MCQ = "السؤال التالي هو سؤال متعدد الإختيارات. اختر الإجابة الصحيحة:\n\n{}\nالإجابة:"


def test_arabicmmlu_row_with_five_options_floats_and_nulls():
    row = {"Question": "كم يساوي 3 × 4؟", "Context": None, "Answer Key": "E"}
    row |= {f"Option {number}": value for number, value in enumerate([10.0, 11.0, 13.0, 14.0, 12.0], start=1)}
    prepared = rows.arabicmmlu(row, PLAIN)
    assert prepared["prompt"] == MCQ.format("كم يساوي 3 × 4؟\nأ. 10.0\nب. 11.0\nج. 13.0\nد. 14.0\nهـ. 12.0")
    doc = choice_prompt(prepared, "qimma_arabicmmlu:Math (Primary School)")
    assert (doc.choices, doc.gold_index, doc.query) == (["أ", "ب", "ج", "د", "هـ"], 4, prepared["prompt"])
    assert doc.instruction is None


def test_a_passage_makes_mcq_c_and_a_cluster():
    row = {"Question": "من الكاتب؟", "Context": "نص طويل.", "Answer Key": "A", "Option 1": "زيد", "Option 2": "عمرو"}
    row |= dict.fromkeys(("Option 3", "Option 4", "Option 5"))
    other = row | {"Question": "ما العنوان؟"}
    prepared = rows.arabicmmlu(row, PLAIN)
    assert "السياق:\nنص طويل.\n\nالسؤال: من الكاتب؟\nأ. زيد\nب. عمرو\nالإجابة:" in prepared["prompt"]
    assert prepared["cluster"] == rows.arabicmmlu(other, PLAIN)["cluster"] != ""


def test_gold_letter_counts_the_original_columns():
    """An absent option in the middle moves the later ones up, and the gold with them."""
    texts = {"A": "واحد", "B": "", "C": "ثلاثة", "D": "أربعة", "E": "", "F": ""}
    row = {"Question": "س", "Correct Answer": "d"} | {f"Option {letter}": text for letter, text in texts.items()}
    prepared = rows.medarabench(row, PLAIN)
    assert prepared["choices"] == ["واحد", "ثلاثة", "أربعة"]
    assert prepared["index"] == [2]


def test_aratrust_s_labels_go_and_must_be_those_of_their_columns():
    row = {"Question": "س", "A": "أ) نعم", "B": "ب) لا", "C": None, "Answer": "ا", "Category": "Privacy"}
    prepared = rows.aratrust(row, PLAIN)
    assert (prepared["choices"], prepared["index"]) == (["نعم", "لا"], [0])
    for wrong in ({"B": "ج) لا"}, {"B": "لا"}, {"B": "ب) "}, {"Answer": "ج"}, {"Answer": "نعم"}, {"Answer": 1}):
        with pytest.raises(BadRow):
            rows.aratrust(row | wrong, PLAIN)
    with pytest.raises(MissingColumn, match="'C'"):
        rows.aratrust({name: cell for name, cell in row.items() if name != "C"}, PLAIN)


def test_aradice_shuffles_by_the_question_alone_and_keeps_the_permutation():
    row = {"Question": "ما عاصمة مصر؟", "Option A": "القاهرة", "Option B": "أسوان", "Option C": "طنطا"}
    shuffled = rows.aradice(row, PLAIN)
    assert shuffled == rows.aradice(dict(row), PLAIN)
    assert shuffled["choices"][shuffled["index"][0]] == "القاهرة"
    assert [["القاهرة", "أسوان", "طنطا"][position] for position in shuffled["permutation"]] == shuffled["choices"]
    unshuffled = DataOptions(suite={"shuffle": "off"})
    kept = rows.aradice(row, Preparation("qimma/templates/mcq", options=unshuffled))
    assert (kept["choices"], kept["index"]) == (["القاهرة", "أسوان", "طنطا"], [0])
    golds = {rows.aradice(row | {"Question": f"سؤال {n}"}, PLAIN)["index"][0] for n in range(30)}
    assert golds == {0, 1, 2}


ARABCULTURE = {
    "country": "Egypt",
    "region": "Nile Valley",
    "first_statement": "في العيد",
    "options": {"arabic_keys": ["أ", "ب"], "text": ["كعك", "بسبوسة"]},
    "answer_key": {"arabic_answer_key": "أ"},
}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("options", "كعك"),
        ("options", None),
        ("options", {"arabic_keys": ["أ"], "text": ["كعك", "بسبوسة"]}),
        ("answer_key", "أ"),
        ("answer_key", {"arabic_answer_key": None}),
        ("options", {"arabic_keys": ["ب", "أ"], "text": ["كعك", "بسبوسة"]}),
        ("answer_key", {"arabic_answer_key": "ج"}),
        ("country", "Atlantis"),
    ],
)
def test_arabculture_row_with_a_broken_part_is_refused(column, value):
    preparation = Preparation("qimma/templates/arabculture_country_region")
    assert rows.arabculture(ARABCULTURE, preparation)["index"] == [0]
    with pytest.raises(BadRow, match=column):
        rows.arabculture(ARABCULTURE | {column: value}, preparation)


METALS = ["الحديد", "النحاس", "الذهب", "الفضة"]


@pytest.mark.parametrize(
    "choices",
    [
        ["(أ) الحديد", "(ب) النحاس", "(ج) الذهب", "(د) الفضة"],
        "['(أ) الحديد', '(ب) النحاس', '(ج) الذهب', '(د) الفضة']",
    ],
)
def test_nativeqa_s_gold_is_one_of_the_labels_of_its_list(choices):
    row = {"question_text": "أي معدن؟", "choices": choices, "correct_choice": "ج"}
    prepared = rows.nativeqa(row, PLAIN)
    assert (prepared["choices"], prepared["index"]) == (METALS, [2])
    for wrong in ({"correct_choice": "هـ"}, {"choices": METALS}, {"choices": ["(أ) س", "(أ) ص"]}, {"choices": "أ) س"}):
        with pytest.raises(BadRow):
            rows.nativeqa(row | wrong, PLAIN)


@pytest.mark.parametrize(
    "choices",
    [
        "أ) الحديد ب) النحاس ج) الذهب د) الفضة",
        ["أ) الحديد، ب) النحاس، ج) الذهب، د) الفضة"],
        "أ. الحديد, ب. النحاس, ج. الذهب, د. الفضة",
    ],
)
def test_syntheticqa_s_options_stand_in_one_text(choices):
    row = {"question": "أي معدن؟", "choices": choices, "self_answer": "ج"}
    prepared = rows.syntheticqa(row, PLAIN)
    assert (prepared["choices"], prepared["index"]) == (METALS, [2])
    for wrong in ("أ) س ج) ص", "س أ) ص ب) ع", "أ) س ب) ص ب) ع", "أ) س", "أ) ب) س", ["أ) س", "ب) ص"], None):
        with pytest.raises(BadRow, match="choices"):
            rows.syntheticqa(row | {"choices": wrong}, PLAIN)


@pytest.mark.parametrize(("answers", "index"), [(["أ", "ج"], [0, 2]), (["ب"], [1])])
def test_mizanqa_golds_are_lists_of_letters(answers, index):
    row = {"question": "س", "options": ["واحد", "اثنان", "ثلاثة"], "answers": answers}
    prepared = rows.mizanqa(row, Preparation("qimma/templates/multi_select"))
    assert prepared["index"] == index
    assert multi_select_prompt(prepared).gold_index == index
    for wrong in ("أ، ج", [0, 1], ["أ", "أ"], ["د"], [], ["واحد"]):
        with pytest.raises(BadRow, match="answers"):
            rows.mizanqa(row | {"answers": wrong}, Preparation("qimma/templates/multi_select"))


def test_gat_and_palmx_have_a_column_an_option():
    row = {"question": "س", "A": 1, "B": 2.5, "C": "ثلاثة", "D": "", "answer": "c"}
    assert rows.gat(row, PLAIN)["choices"] == rows.palmx(row, PLAIN)["choices"] == ["1", "2.5", "ثلاثة"]
    assert rows.gat(row | {"context": "نص."}, PLAIN, passages=True)["cluster"] and rows.palmx(row, PLAIN)["index"] == [
        2
    ]
    for answer in ("D", "E", "3", 2, None, "ثلاثة"):
        with pytest.raises(BadRow, match="answer"):
            rows.palmx(row | {"answer": answer}, PLAIN)


def test_medarabiq_inline_options_with_label_variants():
    blank = "املأ الفراغ في الجملة التالية: ينظم ..... سكر الدم."
    question = f"{blank}\nا. الأنسولين\nب. الصفراء\nج- اللعاب\nد) الدمع\nه. العرق"
    row = {"Question - Arabic": question, "Answer - Arabic": "أ. الأنسولين\n", "Category": "x"}
    prepared = rows.medarabiq_choice(row, PLAIN, "Question - Arabic", "Answer - Arabic")
    assert prepared["choices"] == ["الأنسولين", "الصفراء", "اللعاب", "الدمع", "العرق"]
    assert prepared["index"] == [0]
    assert blank in prepared["prompt"]


def test_answers_and_poems():
    legal = {"Question": "ما الحكم؟", "Answer": "الحكم كذا.", "Context": "المادة الأولى."}
    prepared = rows.arablegalqa(legal, Preparation("qimma/templates/qa_c"))
    assert prepared["prompt"].endswith("الاستفسار: ما الحكم؟\nالإجابة:")
    assert answer_prompt(prepared).get_golds() == ["الحكم كذا."]
    poem = {
        "title": "ت",
        "author": "ش",
        "poem_verses": "بيت $title",
        "explanation": [{"verse": "بيت", "explanation": "شرح"}],
    }
    doc = poem_prompt(rows.fannorflop(poem, Preparation("qimma/templates/fannorflop")))
    assert doc.query.endswith("الأبيات:\nبيت $title")  # what fills a slot is not a template
    assert doc.specific["gold_explanations"] == [{"verse": "بيت", "explanation": "شرح"}]


@pytest.mark.parametrize("index", [None, [], 3, -1, "4", "x", 1.5, True, [0, 0], [0, 1]])
def test_curated_row_with_a_bad_index_is_refused(index):
    with pytest.raises(BadRow, match="index"):
        rows.curated_choice({"prompt": "س", "choices": ["أ", "ب", "ج"], "index": index}, PLAIN)


def test_curated_rows_keep_their_prompt_as_it_stands():
    prepared = rows.curated_choice({"prompt": "\nس\nالإجابة: ", "choices": ["نعم", "لا"], "index": 1}, PLAIN)
    assert choice_prompt(prepared).query == "\nس\nالإجابة: "
    answer = rows.curated_answer({"prompt": "س", "choices": "جواب"}, PLAIN)
    assert answer_prompt(answer).get_golds() == ["جواب"]
    several = rows.curated_answer({"prompt": "س", "choices": ["جواب", "رد"]}, PLAIN)
    assert answer_prompt(several).get_golds() == ["جواب", "رد"]


def test_a_curated_prompt_shows_the_labels_that_are_scored():
    prompt, row = "أ. سؤال فيه ب. شيء\n{}. نعم\n({}) لا، أو:\nالإجابة:", {"choices": ["نعم", "لا، أو:"], "index": 0}
    for first, second in (("أ", "ب"), ("ا", "ب")):
        assert rows.curated_choice(row | {"prompt": prompt.format(first, second)}, PLAIN)["labels"] == ["أ", "ب"]
    for first, second in (("A", "B"), ("1", "2"), ("ب", "أ"), ("أ", "ج")):
        with pytest.raises(BadRow, match="under another label"):
            rows.curated_choice(row | {"prompt": prompt.format(first, second)}, PLAIN)
