import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.qimma.poetry import fannorflop, normalize_explanation, pair_with_gold, parse_poem_explanations
from cultureval.metrics.semantic import bertscore

VERSES = [
    {"verse": "قفا نبك من ذكرى حبيب ومنزل", "explanation": 'يخاطب الشاعر صاحبيه [على عادة "العرب"]'},
    {"verse": "بسقط اللوى بين الدخول فحومل", "explanation": "يذكر\nموضع الديار"},
]
PLAIN = json.dumps(VERSES, ensure_ascii=False)


@pytest.mark.parametrize(
    "reply",
    [
        PLAIN,
        json.dumps(VERSES),
        PLAIN.replace("\\n", "\n"),
        f"```json\n{json.dumps(VERSES, ensure_ascii=False, indent=2)}\n```",
        f"إليك الشرح [كما طلبت] مع مرجع [1]:\n{PLAIN}\nأرجو أن يفيد [انتهى].",
        json.dumps({"id": "poem_1", "verse_explanations": VERSES}, ensure_ascii=False),
        json.dumps([{"id": "poem_1", "verse_explanations": VERSES}]),
        f'{{"verse_explanations": {PLAIN}, "notes": "cut of',
    ],
    ids=["plain", "escaped", "raw newline", "fence", "prose", "object", "list of one poem", "cut off behind"],
)
def test_the_list_is_found_whatever_stands_around_it(reply):
    assert parse_poem_explanations(reply) == VERSES


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "لا أعرف هذه القصيدة",
        "[]",
        "[1, 2]",
        PLAIN[:-2],
        PLAIN.replace('"', "'"),
        '[{"verse": "بيت"}]',
        '[{"verse": "بيت", "explanation": null}]',
        '{"verse": "بيت", "explanation": "شرح"}',
        "[" * 150_000,
        PLAIN + " " * 200_000,
        "__import__('os')",
    ],
)
def test_a_reply_without_a_whole_list_is_not_parsed(reply):
    assert parse_poem_explanations(reply) is None


@given(
    st.text(alphabet=st.characters(exclude_characters="[")),
    st.lists(st.fixed_dictionaries({"verse": st.text(), "explanation": st.text()}), min_size=1),
    st.text(),
)
def test_any_list_is_read_back_from_prose(before, verses, after):
    assert parse_poem_explanations(before + json.dumps(verses) + after) == verses


def explained(count, letter):
    return [{"verse": "", "explanation": f"{letter}{number}"} for number in range(count)]


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        (3, 3, ["p0", "p1", "p2"]),
        (2, 3, ["p0", "p1"]),
        (4, 3, ["p0 p1", "p2 p3"]),
        (5, 3, ["p0 p1", "p2 p3", "p4"]),
        (6, 3, ["p0 p1", "p2 p3", "p4 p5"]),
        (7, 3, ["p0", "p1", "p2"]),
        (20, 12, [f"p{n} p{n + 1}" for n in range(0, 20, 2)]),
        (21, 12, [f"p{n}" for n in range(10)]),
        (0, 3, []),
    ],
)
def test_pairing_joins_half_verses_and_clips(predicted, gold, expected):
    explanations, references = pair_with_gold(explained(predicted, "p"), explained(gold, "g"))
    assert explanations == expected
    assert references == [f"g{number}" for number in range(min(gold, 10))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  قِفَا   نَبْكِ\n", "قفا نبك"),
        ("العـــرب، «الشعر»؟ (نعم!)", "العرب الشعر نعم"),
        ("ليل؛نهار", "ليل ؛ نهار"),
        ("wait… a-b_c@d", "wait abcd"),
        ("\ufefb", "لا"),
        ("ab（c）", "abc"),
    ],
)
def test_normalisation(text, expected):
    assert normalize_explanation(text) == expected


def test_scores_are_bertscores_of_the_normalised_explanations_in_a_row(arabic_bert):
    gold = [
        {"verse": "", "explanation": "يصفُ الشاعر، الصحراءَ"},
        {"verse": "", "explanation": "ثم يذكر الليل"},
    ]
    other = [{"verse": "", "explanation": "لا شيء هنا"}]
    replies = [json.dumps(gold), json.dumps(other), "لا أدري", "", '[{"explanation": "\\ud800"}]']
    scores = fannorflop(replies, [gold] * 5, arabic_bert)
    assert scores["parsed"].tolist() == [1, 1, 0, 0, 1]
    assert scores["f1"][0] == pytest.approx(1.0, abs=1e-6)
    expected = bertscore(["لا شيء هنا"], ["يصف الشاعر الصحراء ثم يذكر الليل"], arabic_bert)
    for name, column in expected.items():
        assert scores[name][1] == pytest.approx(column[0], abs=1e-6)
        assert scores[name][2:4].tolist() == [0, 0]
        assert np.isfinite(scores[name]).all()
