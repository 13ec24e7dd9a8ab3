"""`cultureval audit check`: 240 items, 120 of them with one of 20 kinds of planted defect; every kind is found, and
nothing is found in the clean ones."""

import csv
import dataclasses
import json
import random
from pathlib import Path

import pytest

from cultureval.audit.checks.duplicates import pairs
from cultureval.audit.checks.options import all_of_the_above, gold_position, inconsistent_labels, marked_answer
from cultureval.audit.checks.table import CHECKS, manifest_rows, run_checks
from cultureval.audit.checks.wording import (
    absent_reference,
    answer_in_question,
    broken_encoding,
    empty_question,
    mixed_scripts,
)
from cultureval.audit.columns import columns_found, columns_given, gold_of, options_in
from cultureval.audit.items import AuditItem
from cultureval.audit.sources import read_items
from cultureval.prompts.cells import readable
from cultureval.runtime.data_options import DataOptions, samples_root
from cultureval.runtime.errors import CulturevalError

# Distinct words that an item is made of, so that clean items are no near duplicates of each other.
ROOTS = (
    "كتب درس علم سفر نهر جبل بحر قلم باب بيت نور ليل صبح ثلج مطر شجر ثمر حجر ذهب فضة خبز ملح سمك طير خيل جمل".split()
)
PATTERNS = ("م{}ة", "ال{}", "{}ات", "{}ون", "مست{}", "ت{}", "{}ان", "است{}")
WORDS = [pattern.format(root) for root in ROOTS for pattern in PATTERNS]
LABELS = "ABCD"


def clean(number):
    """A clean item: five words of its own in the question, two in each option, the gold at each place equally often."""
    draw = random.Random(number)
    some = draw.sample(WORDS, 13)
    options = [" ".join(some[5 + 2 * place : 7 + 2 * place]) for place in range(4)]
    return {
        "question": f"ما معنى {' '.join(some[:5])} رقم {number}؟",
        "options": options,
        "answer": LABELS[number % 4],
        "context": None,
    }


def with_option(row, place, text):
    options = list(row["options"])
    options[place] = text
    return row | {"options": options}


def mojibake(text):
    return text.encode("utf-8").decode("latin-1")


def place_of(row):
    return LABELS.index(row["answer"])


# Kind -> what is done to a clean row; those of pairs are made of another clean row below.
DEFECTS = {
    "missing_gold": lambda row: row | {"answer": None},
    "gold_out_of_range": lambda row: row | {"answer": "G"},
    "gold_not_in_options": lambda row: row | {"answer": "لا يوجد في القائمة"},
    "empty_option": lambda row: with_option(row, int(row["answer"] != "B"), "  "),
    "duplicate_options": lambda row: with_option(row, 2, "\u200f" + row["options"][0].replace("ا", "ا\u0640", 1) + " "),
    "contained_option": lambda row: with_option(row, 3, row["options"][0] + " أو غيره"),
    "all_of_the_above": lambda row: with_option(row, 1, "جميع ما سبق"),
    "broken_encoding": lambda row: row | {"question": mojibake(row["question"])},
    "mixed_scripts": lambda row: row | {"question": row["question"].replace("معنى", "معنaى")},
    "absent_reference": lambda row: row | {"question": "انظر إلى الجدول التالي: " + row["question"]},
    "marked_answer": lambda row: with_option(row, 1, row["options"][1] + " (الإجابة الصحيحة)"),
    "answer_in_question": lambda row: row | {"question": f"{row['question']} ({row['options'][place_of(row)]})"},
    "markup": lambda row: with_option(row, 0, row["options"][0].replace(" ", "<br>")),
    "zero_width": lambda row: row | {"question": row["question"].replace("معنى", "معن\u200bى")},
    "inconsistent_labels": lambda row: (
        row | {"options": [f"{label}) {text}" for label, text in zip("أبدج", row["options"], strict=True)]}
    ),
    "wrong_type": lambda row: with_option(row, 2, 3.0),
}
PAIRS = {
    "exact_duplicate": lambda row: row | {"options": row["options"][::-1]},
    "near_duplicate": lambda row: row | {"question": row["question"].replace("ما معنى", "ما المقصود بعبارة")},
    "duplicate_across_sources": lambda row: row,
    "few_shot_in_test": lambda row: row,
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """240 items in two data sets; (folder, row of the test split -> its kind of defect)."""
    folder = tmp_path_factory.mktemp("planted")
    kinds = [kind for place, kind in enumerate([*DEFECTS, *PAIRS]) for _ in range(6)]
    assert len(kinds) == 120 and len(set(kinds)) == 20
    rows, other, shots, expected = [clean(number) for number in range(120)], [], [], {}
    for place, kind in enumerate(kinds):
        if kind in DEFECTS:
            row = DEFECTS[kind](clean(1000 + place))
        else:
            original = clean(place) if kind in ("exact_duplicate", "near_duplicate") else clean(1000 + place)
            row = PAIRS[kind](original)
        if kind == "few_shot_in_test":
            shots.append(row)
        if kind == "duplicate_across_sources":
            row = rows[place]
            other.append(row)
            continue
        expected[len(rows)] = kind
        rows.append(row)
    for name, split, some in (("first", "test", rows), ("first", "dev", shots), ("second", "test", other)):
        file = folder / name / f"{split}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some), encoding="utf-8")
    return folder, {f"test.jsonl:{place}": kind for place, kind in expected.items()}, len(rows) + len(other)


def test_every_planted_defect_is_found_and_nothing_in_the_clean_items(planted):
    folder, expected, total = planted
    items = read_items([str(folder / "first"), str(folder / "second")], DataOptions())
    assert sum(item.split == "test" for item in items) == total == 240
    findings = run_checks(items)
    found = {}
    for finding in findings:
        found.setdefault((finding.source, finding.row), set()).add(finding.check)
    second = {("second", f"test.jsonl:{place}"): {"duplicate_across_sources"} for place in range(6)}
    assert found == {("first", row): {kind} for row, kind in expected.items()} | second
    decisions = {(row.source, row.row): row.decision for row in manifest_rows(items, findings)}
    assert len(decisions) == 240 and list(decisions.values()).count("keep") == 120 + 6  # a contained option is kept


def test_golds_that_stand_at_one_place_or_are_the_longest_option(tmp_path):
    rows = [clean(number) for number in range(200)]
    first = [row | {"answer": "A" if place % 2 else row["answer"]} for place, row in enumerate(rows)]
    longer = [
        with_option(
            row, LABELS.index(row["answer"]), row["options"][LABELS.index(row["answer"])] + " مع شرح طويل جدا هنا"
        )
        for row in rows
    ]
    for name, some in (("even", rows), ("first", first), ("longer", longer)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some)
        (tmp_path / f"{name}.jsonl").write_text(text, encoding="utf-8")
    checks = ["gold_position", "longest_option"]
    found = {}
    for name in ("even", "first", "longer"):
        findings = run_checks(read_items([str(tmp_path / f"{name}.jsonl")], DataOptions()), only=checks)
        found[name] = [(finding.check, finding.row) for finding in findings]
    assert found == {"even": [], "first": [("gold_position", "")], "longer": [("longest_option", "")]}


def test_a_place_where_no_gold_stands_is_found_and_even_golds_are_not():
    def found(places, options):
        texts = tuple("ابجده"[:options])
        some = [
            AuditItem("s", "local", "x", f"f:{row}", "0" * 64, "test", "mcq", "؟", texts, (row % places,))
            for row in range(1200)
        ]
        return [one.of_subset for one in gold_position.look(some)]

    assert found(4, 4) == found(5, 5) == [] and found(4, 5) == found(3, 4) == [True]


def worded(words, row="t:0", split="test"):
    options = ("واحد", "اثنان", "ثلاثة")
    return AuditItem("s", "local", "x", row, "0" * 64, split, "mcq", " ".join(words), options, (0,))


def test_near_duplicates_are_those_of_comparing_all_pairs():
    chance = random.Random(4)
    spelled = ["".join(chance.choices("بتثجحخدرزسشصضطظعغفقكلمنه", k=5)) for _ in range(3000)]
    first, second, expected = [], [], set()
    for number in range(400):
        words = chance.sample(spelled, 30)
        other = words[: -chance.randint(1, 6)] + chance.sample(spelled, 2)
        first.append(worded(words, f"a:{number}"))
        second.append(worded(other, f"b:{number}"))
        shingles = []
        for some in (words, other):
            text = [*some, "واحد", "اثنان", "ثلاثه"]
            shingles.append({*text, *zip(text, text[1:], strict=False)})
        if len(shingles[0] & shingles[1]) >= 0.7 * len(shingles[0] | shingles[1]):
            expected.add(f"b:{number}")
    assert len(expected) > 200
    found = {pair.item.row for pair in pairs((*first, *second))}
    assert found <= expected and len(expected - found) <= 2


def test_a_near_few_shot_example_is_told_before_a_nearer_item():
    words = "متى تأسست جامعة الدول العربية وما هي المدينة التي يقع فيها مقرها الدائم منذ ذلك الحين حتى اليوم".split()
    shot, test = worded(words, "dev:0", "few_shot"), worded([*words[:-1], "الآن"], "t:1")
    later = worded([*words[:-2], "عامنا", "الآن"], "t:2")
    found = {pair.item.row: (pair.earlier.row, pair.kind) for pair in pairs((test, later, shot))}
    assert found == {"t:1": ("dev:0", "few_shot_in_test"), "t:2": ("dev:0", "few_shot_in_test")}


def clause(check, one):
    """What a check says of an item; "" where it finds nothing."""
    return "".join(found.detail for found in check.look([one]))


def item(question="ما هي؟", options=("واحد", "اثنان"), **more):
    return AuditItem("s", "local", "x", "f:0", "0" * 64, "test", "mcq", question, options, (0,), **more)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("ما ناتج 5 + 3؟", "ما ناتج 5 - 3؟", False),
        ("ما ناتج 5 - 3؟", "ما ناتج 5 − 3", True),
        ("من صمم لغة C++؟", "من صمم لغة C#؟", False),
        ("سم المدينة - العاصمة", "سم المدينة العاصمة", True),
        ("ما معنى 😀؟", "ما معنى 😢؟", False),
        ("ما إعراب كُتِبَ؟", "ما إعراب كَتَبَ؟", False),
        ("ما إعراب كُتِبَ؟", "ما إعراب كتب؟", True),
        ("كان مثالاً لمن بعدَه", "كان مثالًا لمن بعدَه", True),
    ],
)
def test_questions_that_differ_by_a_sign_are_no_exact_duplicates(first, second, same):
    one, other = item(first), item(second)
    other = dataclasses.replace(other, row="f:1")
    assert [pair.item.row for pair in pairs((one, other)) if pair.exact] == ["f:1"] * same


@pytest.mark.parametrize(
    ("option", "others", "told"),
    [
        ("*الحكيم", ("محفوظ", "العقاد"), True),
        ("الحكيمُ **", ("محفوظ", "العقاد"), False),
        ("الحكيمُ**", ("محفوظ", "العقاد"), True),
        ("**طه حسين**", ("محفوظ", "العقاد"), True),
        ("* New York", ("Paris", "Rome"), True),
        ("*الحكيم", ("*محفوظ", "العقاد"), False),  # a sign of all of some kind
        *((code, ("a", "b"), False) for code in ("*ptr", "int*", "ab*", "A*", "Dijkstra and A*", "a * b", "SELECT *")),
    ],
)
def test_stars_mark_an_answer_where_only_the_right_option_has_them_and_is_no_code(option, others, told):
    assert bool(clause(marked_answer, item(options=(option, *others)))) is told
    assert not clause(marked_answer, dataclasses.replace(item(options=(option, *others)), gold=(1,)))


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("ما الغاز؟ ج: واحد", True),
        ("ما الغاز؟ الجواب: واحد", True),
        ("ما الغاز؟ Ans: واحد.", True),
        ("رتب: أ: ثلاثة ب: اثنان ج: واحد", False),
        ("أيها الصحيح؟ أ: اثنان ب: ثلاثة ج: واحد", False),
        ("ما الغاز؟ ج: واحد أم اثنان", False),
    ],
)
def test_an_answer_in_the_question(question, told):
    assert bool(clause(answer_in_question, item(question))) is told


@pytest.mark.parametrize("word", ["الـDNA", "وGDP", "بالـpH", "للATP", "xوy", "م2", "كتاب"])
def test_a_particle_before_a_foreign_word_is_no_mixed_script(word):
    assert clause(mixed_scripts, item(f"ما هو {word} هنا")) == ""


@pytest.mark.parametrize("word", ["DNAيعمل", "كتabاب", "Мoscow", "lgEفي"])
def test_words_of_two_scripts_are_told(word):
    assert word in clause(mixed_scripts, item(f"ما هو {word} هنا"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("أحمر", "أزرق", "كل ما سبق"), False),
        (("كل ما سبق", "أزرق"), True),
        (("أحمر", "أزرق", "لا شيء مما سبق", "جميع الإجابات صحيحة"), False),
        (("أ و ب", "أزرق", "أخضر"), True),
        (("5 , 5", "4 , 4"), False),
        (("صيغة", "كلا من أ و ب", "لا توجد إجابة صحيحة"), False),
        (("all of the above", "red"), True),
        (("以上都是", "红"), True),
        *(((text, "红"), True) for text in ("以上选项都正确", "以上都不正确", "A和B", "AB都对", "Neither A nor B")),
        *(
            ((text, "آبی"), True)
            for text in (
                "همه موارد",
                "همه\u0654 موارد",
                "هم\u06c0 گزینه‌ها",
                "هیچ‌کدام از موارد بالا",
                *("هیچ‌یک", "هیچ یک از گزینه‌ها صحیح نیست", "هیچیک", "تمام موارد", "تمامی‌موارد", "کلیه گزینه‌ها"),
                *("هیچ کدام از این‌ها", "کلیه\u0654 موارد"),
                "گزینه‌های الف و ب",
            )
        ),
        *(
            ((text, "红"), False)
            for text in ("以上海为中心", "都江堰", "هر سه", "هیچ یکسانی", "ألف وباء", "Both parents")
        ),
        *(((text, "آبی"), False) for text in ("هیچ یک از پیامبران", "هیچ‌کدام از کشورهای عضو")),
    ],
)
def test_options_that_refer_to_others(options, told):
    assert bool(clause(all_of_the_above, item(options=options))) is told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("أ) واحد", "ب) اثنان"), False),
        (("أ) واحد", "ب) اثنان", "ثلاثة"), True),
        (("ب) واحد", "أ) اثنان"), True),
        (("س - 1", "س - 2", "س + 1", "س + 2"), False),  # a variable
    ],
)
def test_labels_inside_options(options, told):
    assert bool(clause(inconsistent_labels, item(options=options))) is told


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("من الشكل المقابل احسب المساحة", True),
        ("أين يقع الحديد في الجدول الدوري؟", False),
        ("اقرأ النص التالي ثم أجب", True),
        ("في النص التالي: كان الرجل يمشي في الطريق كل يوم قبل الفجر ليصل إلى عمله في المدينة، ما الفعل؟", False),
        ("See the figure below. What is x?", True),
        ("如下图所示，求面积", True),
        ("根据上文，作者的观点是什么？", True),
        ("阅读下面的短文，回答问题。" + "从前有一个人住在山里。" * 12, False),
        ("结合上下文，选出以下表述正确的一项", False),
        *(
            (text, False)
            for text in ("在数轴上表示3的点在哪一边？", "他在记者会上表示了什么？", "叶片的上表皮有什么作用？")
        ),
        *((text, False) for text in ("例如图像属于什么媒体？", "网上图片版权归谁？", "根据上文化课的要求，应带什么？")),
        *((text, True) for text in ("对比下图与上图", "由下表可知", "根据上文，回答问题。下列说法正确的是（　）。")),
        ("阅读下面的文字，回答问题。床前明月光，疑是地上霜。这首诗的作者是谁？", False),
        ("阅读下列材料：秦始皇统一六国，建立了中央集权制度。该制度是什么？", False),
        ("با توجه به شکل زیر، مساحت چقدر است؟", True),
        *((f"ما الفكرة {one} السابقة؟", True) for one in ("بالفقرة", "والفقرة", "للفقرة", "كالفقرة", "وبالقصيدة")),
        *((text, True) for text in ("وفقًا للنص، من البطل؟", "بحسب الفقرة، لماذا سافر؟", "ما عنوان للنص السابق؟")),
        *((text, True) for text in ("من خلال الرسم البياني، ما قيمة الذروة؟", "انظر الصورة. ما اسم الحيوان؟")),
        *((text, True) for text in ("في الشكل (3) ما نوع الخلية؟", "شوف الصورة وقول إيه ده؟", "في الشكل رقم ٢ ما هي؟")),
        *((text, True) for text in ("Based on the text, who is he?", "What is the main idea in this passage?")),
        ("According to the passage, why did he leave?", True),
        *((text, False) for text in ("وفقا للنص القرآني من هو النبي؟", "حسب الفقرة 3 من المادة، ما العقوبة؟")),
        *((text, False) for text in ("اكتب على الشكل 2س + 3 ما يلي", "من خلال الصورة الشعرية، ما المعنى؟")),
        *((text, False) for text in ("What changes in the passage of time?", "According to the text of the law, who?")),
        *((text, False) for text in ("نظر المحقق في الجدول الزمني", "ما حق الجار بالنص الصريح في القانون؟")),
    ],
)
def test_references_to_what_is_not_there(question, told):
    assert bool(clause(absent_reference, item(question))) is told
    assert clause(absent_reference, item(question, context="نص طويل")) == ""


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("ما إعراب ما تحته خط: جاء الطالب مسرعا؟", True),
        ("The underlined word means:", True),
        ("ما إعراب ما تحته خط في كتب الدرس؟", True),
        ("الكلمة التي تحتها خط في الجملة: جاء الطالب مسرعا", True),
        ("ما إعراب الكلمة التي تحتها خط: الطالب؟", False),
        ("ما إعراب ما تحته خط في «جاء الطالب»؟", False),
    ],
)
def test_what_is_underlined_is_not_shown_by_a_sentence_after_a_colon(question, told):
    assert bool(clause(absent_reference, item(question))) is told


@pytest.mark.parametrize(
    ("answer", "first", "expected"),
    [
        ("B", 0, ((1,), "")),
        ("ب", 0, ((1,), "")),
        ("(ب) دمشق", 0, ((1,), "")),
        ("دمشق", 0, ((1,), "")),
        (1, 0, ((1,), "")),
        (1.0, 0, ((1,), "")),
        ("1", 1, ((0,), "")),
        (["A", "C"], 0, ((0, 2), "")),
        (3, 0, ((), "out_of_range")),
        (-1, 0, ((), "out_of_range")),
        ("هـ", 0, ((), "out_of_range")),
        ("بغداد", 0, ((), "not_in_options")),
        (float("nan"), 0, ((), "missing")),
        ([], 0, ((), "missing")),
        ("", 0, ((), "missing")),
    ],
)
def test_golds_are_read_as_labels_texts_or_indices(answer, first, expected):
    assert gold_of(answer, ["القاهرة", "دمشق", "عمان"], first) == expected


def test_one_wrong_index_does_not_shift_all_others():
    rows = [{"question": "س", "A": "x", "B": "y", "C": "z", "answer": str(number)} for number in (1, 2, 3, 3, 0)]
    assert columns_found(rows).first == 1
    assert columns_found([row | {"answer": str(3 - int(row["answer"]))} for row in rows]).first == 0


def test_an_index_that_is_also_the_text_of_an_option_is_an_index_where_golds_are_indices(tmp_path):
    table = "question,A,B,C,answer\nأ؟,5,6,7,2\nب؟,x,y,z,1\nج؟,1,2,3,0\nد؟,3,2,1,2\n"
    (tmp_path / "q.csv").write_text(table, encoding="utf-8")
    assert [one.gold for one in read_items([str(tmp_path / "q.csv")], DataOptions())] == [(2,), (1,), (0,), (2,)]
    texts = "question,A,B,C,answer\nأ؟,5,6,7,5\nب؟,8,9,4,4\nج؟,1,2,3,2\nد؟,3,2,1,0\n"
    (tmp_path / "q.csv").write_text(texts, encoding="utf-8")
    assert [one.gold for one in read_items([str(tmp_path / "q.csv")], DataOptions())][:3] == [(0,), (2,), (1,)]
    decimals = "question,A,B,C,D,answer\nأ؟,1.5,2.0,3.5,4.0,4.0\nب؟,10.0,20.0,30.0,5.0,5.0\nج؟,007,008,009,010,008\n"
    (tmp_path / "q.csv").write_text(decimals, encoding="utf-8")
    assert [one.gold for one in read_items([str(tmp_path / "q.csv")], DataOptions())] == [(3,), (3,), (1,)]
    floats = "question,A,B,C,D,answer\nأ؟,1,2,3,4,2.0\nب؟,3,5,4,6,5.0\nج؟,7,8,9,10,\n"  # as pandas writes them
    (tmp_path / "q.csv").write_text(floats, encoding="utf-8")
    assert [one.gold for one in read_items([str(tmp_path / "q.csv")], DataOptions())] == [(1,), (1,), ()]


@pytest.mark.parametrize("form", [list, str, lambda gold: gold[0]])
@pytest.mark.parametrize("first", [0, 1])
def test_golds_that_are_often_the_number_of_another_option_are_indices_if_all_are_in_range(form, first, tmp_path):
    own, places = (["0", "2", "1", "4"], ["3", "1", "2", "4"], ["7", "9", "8", "3"]), (0, 2, 3)
    rows = [
        {"question": f"س {place}؟", "choices": options, "answer": form([place + first])}
        for options, place in zip(own, places, strict=True)
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert [one.gold for one in read_items([str(tmp_path / "q.jsonl")], DataOptions())] == [(0,), (2,), (3,)]


def test_the_text_of_a_list_is_a_list_of_golds_unless_options_are_such_texts():
    assert [gold_of(cell, "سصعغ")[0] for cell in ("['A', 'د']", "[0, 3]", '["س", "غ"]')] == [(0, 3)] * 3
    assert gold_of("[0, 1]", ["[0, 1]", "[2, 3]"]) == ((0,), "")
    assert gold_of("[0, 1]", ["[0, 2]", "[2, 3]"]) == ((), "not_in_options")
    assert gold_of("[]", "سص") == ((), "not_in_options")


def test_a_note_tells_where_indices_of_each_file_begin(tmp_path, capsys):
    for name, golds in (("a", "12"), ("b", "23"), ("c", "AB")):
        rows = "".join(f"س {gold}؟,x,y,z,{gold}\n" for gold in golds)
        (tmp_path / f"{name}.csv").write_text(f"q,A,B,C,answer\n{rows}", encoding="utf-8")
    read_items([str(tmp_path)], DataOptions(), columns_given("question=q,options=A+B+C,gold=answer"))
    notes = capsys.readouterr().err
    assert "a.csv is read as question=q, options=A+B+C, gold=answer (indices from 0)." in notes
    assert "b.csv is read as question=q, options=A+B+C, gold=answer (indices from 1)." in notes
    assert "c.csv" not in notes


def items_of(folder, options, golds):
    """Items read from a file of questions with these options and golds."""
    rows = [
        {"question": f"س {gold}؟", "choices": own, "answer": gold} for gold, own in zip(golds, options, strict=True)
    ]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_items([str(folder / "q.jsonl")], DataOptions())


def test_numbers_where_golds_are_texts_name_no_option_by_its_place(tmp_path):
    options = (["12", "7", "3"], [10.0, 2.0, 8.5], ["٩", "8", "۷"], ["5", "6", "7"], ["س", "ص", "ع"])
    items = items_of(tmp_path, options, (12, 10, 9, 2, 7))
    assert [one.gold for one in items] == [(0,), (0,), (0,), (), ()]
    assert [one.gold_problem for one in items] == ["", "", "", "not_in_options", "out_of_range"]


@pytest.mark.parametrize(
    ("golds", "first", "second", "places"),
    [
        ("٣١٢", ("س", "ص", "ع"), ("٥", "٦", "٧"), (2, 0, 1)),
        ("۰۲۱", ("س", "ص", "ع"), ("٥", "٦", "٧"), (0, 2, 1)),
        ("75١", ("٧", "8", "۹"), ("۵", "۶", "٧"), (0, 0, 2)),
    ],
)
def test_golds_in_arabic_and_persian_digits_are_numbers(golds, first, second, places, tmp_path):
    options = (first, second, ("۳", "۲", "1"))
    assert [one.gold for one in items_of(tmp_path, options, golds)] == [(place,) for place in places]


@pytest.mark.parametrize(
    ("golds", "places"), [((1967, 2, 3), (2, 1, 2)), ((2, 1, 0), (2, 1, 0)), ((1.0, 0.0, 2), (1, 0, 2))]
)
def test_golds_that_are_numbers_are_texts_of_options_where_most_are(golds, places, tmp_path):
    options = ([1948, 1956, 1967, 1973], [1, 2, 3, 4], [4, 7, 3, 5])
    assert [one.gold for one in items_of(tmp_path, options, golds)] == [(place,) for place in places]


@pytest.mark.parametrize(
    "cell", [["x", "y"], "['x', 'y']", '["x", "y"]', {"B": "y", "A": "x"}, '{"أ": "x", "ب": "y"}', {"text": ["x", "y"]}]
)
def test_options_of_one_cell(cell):
    assert options_in({"o": cell}, columns_given("question=q,options=o")) == ["x", "y"]


def test_a_question_of_direction_marks_alone_is_empty():
    assert clause(empty_question, item(" \u200f ")) and not clause(empty_question, item("ما؟"))


def test_a_word_of_a_files_name_tells_examples_and_two_of_one_name_are_refused(tmp_path):
    for name in (
        "constraints",
        "devices",
        "eval",
        "invalid",
        "x_dev",
        "MyTrain",
        "MMLUTrain",
        "validation-0",
        "val",
        "TRAINset",
        "trainset",
    ):
        (tmp_path / f"{name}.csv").write_text("question,A,B,answer\nس,1,2,A\n", encoding="utf-8")
    splits = {item.row.partition(".")[0]: item.split for item in read_items([str(tmp_path)], DataOptions())}
    assert [name for name, split in splits.items() if split == "test"] == ["constraints", "devices", "eval", "invalid"]
    again = tmp_path / "copy" / "x_dev.csv"
    again.parent.mkdir()
    again.write_text("question,A,B,answer\nج,1,2,A\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match="have one name"):
        read_items([str(tmp_path / "x_dev.csv"), str(again)], DataOptions())
    assert len(read_items([str(again), f"{tmp_path}/copy/../copy/x_dev.csv"], DataOptions())) == 1


def test_columns_are_found_or_given_and_wrong_ones_are_told(tmp_path):
    rows = [{"Question": "س", "Option 1": "x", "Option 2": "y", "Answer Key": "2", "is_few_shot": "0"}]
    found = columns_found(rows)
    assert (found.question, found.options, found.gold, found.first) == (
        "Question",
        ("Option 1", "Option 2"),
        "Answer Key",
        1,
    )
    assert columns_given("question=q,options=a+b,gold=g").options == ("a", "b")
    for text in ("question", "questoin=q", "gold=g", "question=a,question=b"):
        with pytest.raises(CulturevalError, match="--columns"):
            columns_given(text)
    (tmp_path / "x.csv").write_text("text,number\nس,1\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match="which column is the question"):
        read_items([str(tmp_path / "x.csv")], DataOptions())
    with pytest.raises(CulturevalError, match="no column 'txt'.*text"):
        read_items([str(tmp_path / "x.csv")], DataOptions(), columns_given("question=txt"))
    with pytest.raises(CulturevalError, match="no task, group or suite"):
        read_items(["qimma_arratrust"], DataOptions())


@pytest.mark.slow
def test_every_suites_samples_are_read_and_the_table_is_documented():
    items = read_items(["qimma", "jeem", "m2cqa", "cvlue", "alqasida"], DataOptions(root=samples_root()))
    assert {item.form for item in items} == {"mcq", "qa"} and all(item.question for item in items)
    assert len({(item.source, item.row, item.split) for item in items}) == len(items)
    assert all(finding.check in {check.name for check in CHECKS} for finding in run_checks(items))
    page = Path(__file__).parents[2].joinpath("docs", "audit.md").read_text(encoding="utf-8")
    assert [check.name for check in CHECKS if f"| `{check.name}` | {check.severity} |" not in page] == []


REAL = Path(__file__).parents[2].parent / "shared/data/arabicmmlu/ArabicMMLUs.csv"


@pytest.mark.skipif(not REAL.is_file(), reason="ArabicMMLU's rows are not on this machine")
def test_real_rows_of_arabicmmlu():
    with REAL.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    items = read_items([str(REAL)], DataOptions())
    found = {(finding.check, finding.row.rpartition(":")[2]) for finding in run_checks(items)}
    assert len(items) == len(rows) == 2506
    # Read by hand: two options that are the same, and a question that stands there twice.
    assert {("duplicate_options", "1355"), ("duplicate_options", "2356"), ("exact_duplicate", "42")} <= found
    assert ("broken_encoding", "1123") in found  # ligatures reversed by a PDF reader


def test_the_name_of_a_task_is_no_folder_of_that_name(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qimma_aratrust").mkdir()
    (tmp_path / "qimma_aratrust" / "test.jsonl").write_text('{"question": "?", "answer": "A"}\n', encoding="utf-8")
    items = read_items(["qimma_aratrust"], DataOptions(root=samples_root()))
    assert {item.task for item in items} == {"qimma_aratrust"}
    assert "./qimma_aratrust is the path" in capsys.readouterr().err
    assert {item.task for item in read_items(["./qimma_aratrust"], DataOptions())} == {""}


FURTHER = {  # kinds of damage and wording that have no check of their own: the check, and what is done to a clean row
    "Windows-1256 as Latin-1": ("broken_encoding", lambda row: row | {"question": as_latin_1(row["question"])}),
    "an option of it": ("broken_encoding", lambda row: with_option(row, 1, as_latin_1(row["options"][1]))),
    "a lone question mark": ("empty_question", lambda row: row | {"question": "؟"}),
    "a passage above": (
        "absent_reference",
        lambda row: row | {"question": f"في الفقرة السابقة {row['question']} " * 3},
    ),
    "a full stop more": ("exact_duplicate", lambda row: row | {"question": row["question"] + " ."}),
    "other digits": ("exact_duplicate", lambda row: row | {"question": row["question"].replace("5", "٥")}),
    "an empty middle option": ("empty_option", lambda row: with_option(row, 1, " ") | {"answer": "A"}),
}


def as_latin_1(text):
    return text.encode("cp1256", "ignore").decode("latin-1")


@pytest.mark.slow
@pytest.mark.parametrize("kind", FURTHER)
def test_a_planted_defect_is_found_by_path_and_by_task(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    check, done = FURTHER[kind]
    original = clean(55)
    plain = [
        {"question": row["question"], "answer": row["answer"]} | dict(zip("ABCD", row["options"], strict=True))
        for row in (original, clean(7), done(original if check == "exact_duplicate" else clean(5)))
    ]
    file = tmp_path / "root/UBC-NLP/palmx_2025_subtask1_culture/test.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in plain), encoding="utf-8")
    for source in (str(file), "qimma_palmx:culture"):
        found = run_checks(read_items([source], DataOptions(root=tmp_path / "root", form="original")))
        told = {(one.check, one.row.rpartition(":")[2]) for one in found}
        assert told == {(check, "2")}, source


@pytest.mark.parametrize(
    "text", ["Ça va?", "ÀÉ", "Málaga, España", "Ünïté", "œuvre d'été", "São Tomé", "Việt Nam", "ؤؤؤ"]
)
def test_accented_words_of_other_languages_are_no_damage(text):
    assert not clause(broken_encoding, item(text)) and readable(text, "question") == text


LAYOUTS = {
    "XCOPA": {"premise": "سقط {} في النهر", "choice1": "ابتل {}", "choice2": "جف {}", "question": "effect", "label": 0},
    "ParsiNLU": {"question": "پایتخت {} چیست؟", "candidates": ["تهران {}", "شیراز", "تبریز"], "answer": "1"},
    "PIQA": {"goal": "open {}", "sol1": "push {}", "sol2": "pull {}", "label": 0},
    "HellaSwag": {"ctx": "A man {}", "endings": ["runs {}", "sits"], "label": "0", "ind": 4},
    "SIQA": {
        "context": "Sam met {}",
        "question": "Why?",
        "answerA": "a {}",
        "answerB": "b",
        "answerC": "c",
        "label": "1",
    },
    "Belebele": {
        "flores_passage": "نص {}",
        "question_number": 1,
        "question": "ما {}؟",
        **{f"mc_answer{number}": f"{number} {{}}" for number in (1, 2, 3, 4)},
        "correct_answer_num": "1",
    },
    "MedMCQA": {"question": "what {}?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 0, "exp": None},
    "SciQ": {
        "question": "what {}?",
        **{f"distractor{number}": f"wron{number} {{}}" for number in (1, 2, 3)},
        "correct_answer": "right {}",
    },
    "LogiQA": {"query": "what {}?", "options": ["a {}", "b", "c"], "correct_option": 0},
    "OpenBookQA": {
        "question_stem": "what {}?",
        "choices": {"text": ["a", "b", "c"], "label": ["A", "B", "C"]},
        "answerKey": "{letter}",
    },
    "WinoGrande": {"sentence": "he said {} _", "option1": "a {}", "option2": "b", "answer": "1"},
    "Arabic columns": {"السؤال": "ما {}؟", "أ": "س", "ب": "ص", "ج": "ع", "الإجابة": "{letter}"},
}
COUNTED = {"label": 0, "answer": 0, "correct_option": 0, "cop": 0, "correct_answer_num": 1}
FROM_1 = ("ParsiNLU", "SIQA", "Belebele", "WinoGrande")


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_common_layouts_are_known(tmp_path, name):
    def filled(value, number):
        if isinstance(value, list | dict):
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            done = {name: filled(one, number) for name, one in parts}
            return done if isinstance(value, dict) else list(done.values())
        words = f"{WORDS[number]} {WORDS[-number]} {WORDS[3 * number]}"
        return value.format(words, letter="ABC"[number % 3]) if isinstance(value, str) else value

    first, gold = int(name in FROM_1), next((one for one in COUNTED if one in LAYOUTS[name]), None)
    rows = [filled(LAYOUTS[name], number) for number in range(60)]
    count = len(options_in(rows[0], columns_found(rows)))
    for number, row in enumerate(rows if gold else []):
        row[gold] = type(row[gold])(first + number % count)
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    items = read_items([str(tmp_path / "test.jsonl")], DataOptions())
    assert all(len(one.options) >= 2 and one.gold and not one.gold_problem for one in items)
    places = [0 if name == "SciQ" else number % count for number in range(60)]
    assert [one.gold for one in items] == [(place,) for place in places]
    assert run_checks(items) == []  # also not of SciQ, whose options have no order
    assert all(one.context.startswith("نص") for one in items) or name != "Belebele"


def test_a_layout_that_is_not_known_stops_instead_of_discarding_most_of_a_file(tmp_path):
    rows = [
        {"question": f"س {place}؟", "erste": f"x{place}", "zweite": "y", "answer": place % 2} for place in range(20)
    ]
    file = tmp_path / "test.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(CulturevalError, match="golds .0, 1. look like places.*--columns"):
        read_items([str(file)], DataOptions())
    items = read_items([str(file)], DataOptions(), columns_given("question=question,options=erste+zweite,gold=answer"))
    assert len(items) == 20
    for hidden, told in (
        ({"wahl_a": "x", "wahl_b": "y", "wahl_c": "z"}, "no options and no gold: wahl_a, wahl_b, wahl_c look like its"),
        (
            {"targets": {"choices": ["x", "y"], "labels": [1, 0]}},
            "no options and no gold: targets look like its options",
        ),
        ({"A": "x", "B": "y", "richtig": None}, "no gold: richtig look like its gold"),
    ):
        some = [{"question": f"س {place}؟", **hidden} for place in range(20)]
        some = [row | {"richtig": "AB"[place % 2]} if "A" in row else row for place, row in enumerate(some)]
        file.write_text("".join(json.dumps(row) + "\n" for row in some), encoding="utf-8")
        with pytest.raises(CulturevalError, match=f"{told}.*--columns"):
            read_items([str(file)], DataOptions())
    plain = [{"question": f"س {place}؟", "A": "x", "B": "y", "id": place, "tags": ["a"]} for place in range(20)]
    file.write_text("".join(json.dumps(row) + "\n" for row in plain), encoding="utf-8")
    assert len(read_items([str(file)], DataOptions())) == 20  # no golds, and nothing that looks like them
    file.write_text("".join(json.dumps(row | {"question": "cause"}) + "\n" for row in rows[:3] * 5), encoding="utf-8")
    with pytest.raises(CulturevalError, match="--columns"):
        read_items([str(file)], DataOptions())
