"""The fourteen checks of `cultureval audit run`: every planted defect is found, and nothing in the clean items."""

import csv
import dataclasses
import json
import random
from pathlib import Path

import pytest

from cultureval.audit.checks import (
    CHECKS,
    absent_reference,
    all_of_the_above,
    answer_in_question,
    broken_encoding,
    inconsistent_labels,
    marked_answer,
    run_checks,
)
from cultureval.audit.duplicates import pairs
from cultureval.audit.items import AuditItem
from cultureval.audit.sources import gold_places, read_columns, read_items
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
    }


def with_option(row, place, text):
    options = list(row["options"])
    options[place] = text
    return row | {"options": options}


def mojibake(text):
    return text.encode("utf-8").decode("latin-1")


def place_of(row):
    return LABELS.index(row["answer"])


# Kind -> ways to spoil a clean row; those of pairs are made of another clean row below.
DEFECTS = {
    "bad_gold": [{"answer": None}, {"answer": "G"}, {"answer": "لا يوجد في القائمة"}],
    "empty_question": [{"question": " \u200f "}, {"question": "؟"}, {"question": None}],
    "empty_option": [
        lambda row: with_option(row, int(row["answer"] != "B"), "  "),
        lambda row: row | {"options": row["options"][:1], "answer": "A"},
    ],
    "duplicate_options": [
        lambda row: with_option(row, 2, "\u200f" + row["options"][0].replace("ا", "ا\u0640", 1) + " ")
    ],
    "marked_answer": [
        lambda row: with_option(row, 1, row["options"][1] + " (الإجابة الصحيحة)"),
        lambda row: with_option(row, place_of(row), f"*{row['options'][place_of(row)]}"),
    ],
    "answer_in_question": [
        lambda row: row | {"question": f"{row['question']} ({row['options'][place_of(row)]})"},
        lambda row: row | {"question": f"{row['question']} الجواب: {row['options'][place_of(row)]}"},
    ],
    "all_of_the_above": [
        lambda row: with_option(row, 1, "جميع ما سبق"),
        lambda row: with_option(row, 0, "أ و ب"),
    ],
    "inconsistent_labels": [
        lambda row: row | {"options": [f"{label}) {text}" for label, text in zip("أبدج", row["options"], strict=True)]}
    ],
    "broken_encoding": [
        lambda row: row | {"question": mojibake(row["question"])},
        lambda row: row | {"question": row["question"].encode("cp1256", "ignore").decode("latin-1")},
        lambda row: with_option(row, 1, row["options"][1] + "&quot;"),
    ],
    "absent_reference": [
        lambda row: row | {"question": "انظر إلى الجدول التالي: " + row["question"]},
        lambda row: row | {"question": f"في الفقرة السابقة {row['question']} " * 3},
    ],
}
PAIRS = {
    "exact_duplicate": lambda row: row | {"options": row["options"][::-1]},
    "near_duplicate": lambda row: row | {"question": row["question"].replace("ما معنى", "ما المقصود بعبارة")},
    "few_shot_in_test": lambda row: row,
}


def spoiled(kind, number):
    """A clean row of its own with a defect, one way after another."""
    ways = DEFECTS[kind]
    way, row = ways[number % len(ways)], clean(1000 + number)
    return row | way if isinstance(way, dict) else way(row)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Two data sets of 124 clean items and 78 bad ones; (folder, row of the first one's test split -> its defect)."""
    folder = tmp_path_factory.mktemp("planted")
    rows, shots, expected = [clean(number) for number in range(120)], [], {}
    for place, kind in enumerate([kind for kind in (*DEFECTS, *PAIRS) for _ in range(6)]):
        if kind in DEFECTS:
            row = spoiled(kind, place)
        else:
            row = PAIRS[kind](clean(1000 + place if kind == "few_shot_in_test" else place))
        shots += [row] if kind == "few_shot_in_test" else []
        expected[f"test.jsonl:{len(rows)}"] = kind
        rows.append(row)
    second = [*rows[:4], *map(clean, range(2000, 2004))]
    for name, split, some in (("first", "test", rows), ("first", "dev", shots), ("second", "test", second)):
        file = folder / name / f"{split}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in some), encoding="utf-8")
    return folder, expected


def test_every_planted_defect_is_found_and_nothing_in_the_clean_items(planted):
    folder, expected = planted
    assert {*DEFECTS, *PAIRS, "refused_by_reader"} == {check.name for check in CHECKS}
    checked = run_checks(read_items([str(folder / "first"), str(folder / "second")], DataOptions()))
    found = {}
    for finding in checked.findings:
        found.setdefault((finding.item.source, finding.item.row), set()).add(finding.check.name)
    across = {("second", f"test.jsonl:{place}"): {"exact_duplicate"} for place in range(4)}
    assert found == {("first", row): {kind} for row, kind in expected.items()} | across
    errors = {check.name for check in CHECKS if check.severity == "error"}
    decided = {(row.source, row.row): row.decision for row in checked.rows}
    assert decided == {
        key: ("discard" if found[key] & errors else "review") if key in found else "keep" for key in decided
    }
    assert len(decided) == 120 + 78 + 8


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
    found = {pair.item.row for pair in pairs([*first, *second])}
    assert found <= expected and len(expected - found) <= 2


def test_a_near_few_shot_example_is_told_before_a_nearer_item():
    words = "متى تأسست جامعة الدول العربية وما هي المدينة التي يقع فيها مقرها الدائم منذ ذلك الحين حتى اليوم".split()
    shot, test = worded(words, "dev:0", "few_shot"), worded([*words[:-1], "الآن"], "t:1")
    later = worded([*words[:-2], "عامنا", "الآن"], "t:2")
    found = {pair.item.row: (pair.earlier.row, pair.kind) for pair in pairs([test, later, shot])}
    assert found == {"t:1": ("dev:0", "few_shot_in_test"), "t:2": ("dev:0", "few_shot_in_test")}


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
    assert [pair.item.row for pair in pairs([one, other]) if pair.exact] == ["f:1"] * same


@pytest.mark.parametrize(
    ("option", "others", "found"),
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
def test_stars_mark_an_answer_where_only_the_right_option_has_them_and_is_no_code(option, others, found):
    assert bool(marked_answer(item(options=(option, *others)))) is found
    assert not marked_answer(dataclasses.replace(item(options=(option, *others)), gold=(1,)))


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("ما الغاز؟ ج: واحد", True),
        ("ما الغاز؟ الجواب: واحد", True),
        ("ما الغاز؟ Ans: واحد.", True),
        ("رتب: أ: ثلاثة ب: اثنان ج: واحد", False),
        ("أيها الصحيح؟ أ: اثنان ب: ثلاثة ج: واحد", False),
        ("ما الغاز؟ ج: واحد أم اثنان", False),
    ],
)
def test_an_answer_in_the_question(question, found):
    assert bool(answer_in_question(item(question))) is found


@pytest.mark.parametrize(
    ("options", "found"),
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
def test_options_that_refer_to_others(options, found):
    assert bool(all_of_the_above(item(options=options))) is found


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("أ) واحد", "ب) اثنان"), False),
        (("أ) واحد", "ب) اثنان", "ثلاثة"), True),
        (("ب) واحد", "أ) اثنان"), True),
        (("س - 1", "س - 2", "س + 1", "س + 2"), False),  # a variable
    ],
)
def test_labels_inside_options(options, found):
    assert bool(inconsistent_labels(item(options=options))) is found


@pytest.mark.parametrize(
    ("question", "found"),
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
def test_references_to_what_is_not_there(question, found):
    assert bool(absent_reference(item(question))) is found
    assert absent_reference(item(question, context="نص طويل")) == ""


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("ما إعراب ما تحته خط: جاء الطالب مسرعا؟", True),
        ("The underlined word means:", True),
        ("ما إعراب ما تحته خط في كتب الدرس؟", True),
        ("الكلمة التي تحتها خط في الجملة: جاء الطالب مسرعا", True),
        ("ما إعراب الكلمة التي تحتها خط: الطالب؟", False),
        ("ما إعراب ما تحته خط في «جاء الطالب»؟", False),
    ],
)
def test_what_is_underlined_is_not_shown_by_a_sentence_after_a_colon(question, found):
    assert bool(absent_reference(item(question))) is found


@pytest.mark.parametrize(
    ("answer", "first", "expected"),
    [
        ("B", "", (1,)),
        ("ب", "", (1,)),
        ("دمشق", "", (1,)),
        (1, "0", (1,)),
        (1.0, "0", (1,)),
        ("1", "1", (0,)),
        (["A", "C"], "", (0, 2)),
        (3, "0", "none of the 3 options"),
        ("هـ", "", "none of the 3 options"),
        ("بغداد", "", "the text of no option"),
        (float("nan"), "", "null or empty"),
        ([], "", "null or empty"),
    ],
)
def test_golds_are_letters_texts_or_indices_of_a_given_base(answer, first, expected):
    places, problem = gold_places(answer, ["القاهرة", "دمشق", "عمان"], first, "x.csv, row 1")
    assert places == expected if isinstance(expected, tuple) else expected in problem and places == ()


def test_columns_are_known_or_given_and_wrong_ones_are_refused(tmp_path):
    columns = read_columns("question=q,options=a+b,gold=g,first=1")
    assert columns == {"question": "q", "options": "a+b", "gold": "g", "first": "1"}
    for text in ("question", "questoin=q", "gold=g", "question=a,question=b", "question=q,first=2"):
        with pytest.raises(CulturevalError, match="--columns"):
            read_columns(text)
    file = tmp_path / "x.csv"
    file.write_text("text,number\nس,1\n", encoding="utf-8")
    with pytest.raises(CulturevalError, match="which columns are the question"):
        read_items([str(file)], DataOptions())
    with pytest.raises(CulturevalError, match="no column 'txt'.*text"):
        read_items([str(file)], DataOptions(), read_columns("question=txt"))
    with pytest.raises(CulturevalError, match="x.csv, row 1: the gold 1 is a number: write --columns"):
        read_items([str(file)], DataOptions(), read_columns("question=text,options=text+text,gold=number"))
    for golds in ("A\nد\n", "1\n2.0\n"):
        file.write_text("question,A,B,answer\n" + "".join(f"س,1,2,{gold}\n" for gold in golds.split()), "utf-8")
        with pytest.raises(CulturevalError, match="x.csv: the golds are letters.* question, A, B, answer.*options=A"):
            read_items([str(file)], DataOptions())
        assert read_items([str(file)], DataOptions(), read_columns("question=question,gold=answer"))[0].form == "qa"
    file.write_text("question,answer\nس,A\nس,القاهرة\n", encoding="utf-8")
    assert read_items([str(file)], DataOptions())[1].answers == ("القاهرة",)
    with pytest.raises(CulturevalError, match="--columns is for files of data, and qimma_aratrust names none"):
        read_items(["qimma_aratrust"], DataOptions(root=samples_root()), columns)
    with pytest.raises(CulturevalError, match="no task, group or suite"):
        read_items(["qimma_arratrust"], DataOptions())


def test_a_word_of_a_files_name_tells_examples_and_two_of_one_name_are_refused(tmp_path):
    for name in ("constraints", "eval", "invalid", "x_dev", "MMLUTrain", "validation-0", "val"):
        (tmp_path / f"{name}.jsonl").write_text('{"question": "س", "options": ["1", "2"], "answer": "A"}\n')
    splits = {item.row.partition(".")[0]: item.split for item in read_items([str(tmp_path)], DataOptions())}
    assert [name for name, split in splits.items() if split == "test"] == ["constraints", "eval", "invalid"]
    again = tmp_path / "copy" / "x_dev.jsonl"
    again.parent.mkdir()
    again.write_text('{"question": "ج", "options": ["1", "2"], "answer": "A"}\n', encoding="utf-8")
    with pytest.raises(CulturevalError, match="have one name"):
        read_items([str(tmp_path / "x_dev.jsonl"), str(again)], DataOptions())


@pytest.mark.slow
def test_every_suites_samples_are_read_and_the_table_is_documented():
    items = read_items(["qimma", "jeem", "m2cqa", "cvlue", "alqasida"], DataOptions(root=samples_root()))
    assert {item.form for item in items} == {"mcq", "qa"} and all(item.question for item in items)
    assert len({(item.source, item.row, item.split) for item in items}) == len(items)
    assert run_checks(items).rows
    page = Path(__file__).parents[2].joinpath("docs", "audit.md").read_text(encoding="utf-8")
    assert [check.name for check in CHECKS if f"| `{check.name}` | {check.severity} |" not in page] == []


REAL = Path(__file__).parents[2].parent / "shared/data/arabicmmlu/ArabicMMLUs.csv"


@pytest.mark.skipif(not REAL.is_file(), reason="ArabicMMLU's rows are not on this machine")
def test_real_rows_of_arabicmmlu():
    with REAL.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = read_columns("question=Question,options=Option 1+Option 2+Option 3+Option 4+Option 5,gold=Answer Key")
    items = read_items([str(REAL)], DataOptions(), columns)
    found = {(one.check.name, one.item.row.rpartition(":")[2]) for one in run_checks(items).findings}
    assert len(items) == len(rows) == 2506
    # Read by hand: two options that are the same, and a question that stands there twice.
    assert {("duplicate_options", "1355"), ("duplicate_options", "2356"), ("exact_duplicate", "42")} <= found
    assert ("broken_encoding", "1123") in found  # ligatures reversed by a PDF reader


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
    given = read_columns("question=question,options=A+B+C+D,gold=answer")
    for source, columns in ((str(file), given), ("qimma_palmx:culture", None)):
        items = read_items([source], DataOptions(root=tmp_path / "root", form="original"), columns)
        found = {(one.check.name, one.item.row.rpartition(":")[2]) for one in run_checks(items).findings}
        assert found == {(check, "2")}, source


@pytest.mark.parametrize(
    "text", ["Ça va?", "ÀÉ", "Málaga, España", "Ünïté", "œuvre d'été", "São Tomé", "Việt Nam", "ؤؤؤ"]
)
def test_accented_words_of_other_languages_are_no_damage(text):
    assert not broken_encoding(item(text)) and readable(text, "question") == text
