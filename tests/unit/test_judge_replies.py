"""Judges' replies, typed by hand, with their verdicts: a score, or the reason why there is none."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cultureval.judge_prompts import (
    DoubtfulReply,
    JudgeReplyError,
    parse_json_scores,
    parse_label,
    parse_likert,
    read_json_scores,
    read_label,
    read_likert,
)

CRITERIA = ("Consistency", "Relevance", "Fluency", "Dialect Authenticity")
REST = "\nRelevance: 4/5\nFluency: 3/5\nDialect Authenticity: 2/5"


def reply(first):
    return first + REST


# What stands for the line of Consistency (the other three are in order) -> its score, or words of the reason.
FIRST_LINES = [
    ("Consistency: 5/5", 5),
    ("Consistency: 1/5", 1),
    ("Consistency: 4", 4),
    ("consistency = 4/5", 4),
    ("CONSISTENCY - 4 / 5", 4),
    ("**Consistency:** 4/5", 4),
    ("**Consistency**: **4/5**", 4),
    ("- Consistency: 4/5", 4),
    ("* Consistency: 4/5", 4),
    ("• Consistency: `4`/5", 4),
    ("1. Consistency: 4/5", 4),
    ("1) **Consistency:** 4/5", 4),
    ("### Consistency: 4/5", 4),
    ("   Consistency :   4/5   ", 4),
    ("Consistency: [4]/5", 4),
    ("Consistency: (4/5)", 4),
    ("Consistency: <4>/5", 4),
    ("| Consistency | 4/5 |", 4),
    ("Consistency: ٤/٥", 4),
    ("Consistency: ۴/۵", 4),
    ("Consistency： ４／５", 4),
    ("\u200fConsistency: \u202a4\u202c/5\u200f", 4),
    ("Consistency: 4 out of 5", 4),
    ("Consistency: 4 من 5", 4),
    ("Consistency: 4.0/5", 4),
    ("Consistency: 4.5/5", 4.5),
    ("Consistency: ٣٫٥/٥", 3.5),
    ("Consistency: 4/5.", 4),
    ("Consistency: 4/5 - the caption matches the image", 4),
    ("Consistency: 4/5—matches", 4),
    ("Consistency: 4/5 ✅", 4),
    ("Consistency: 4/5✅", 4),
    ("Consistency: 4/5 → good", 4),
    ("Consistency: 4/5 (it shows 2 people)", 4),
    ("Consistency: 4/5 - 2 details are missing", 4),
    ("Consistency: 4 (good)", 4),
    ("Consistency: 5 stars", 5),
    ("Here is my evaluation.\n\nConsistency: 4/5", 4),
    ("Consistency: does the caption match?\nConsistency: 4/5", 4),
    ("Consistency: 4/5\nConsistency: 4/5", "Consistency is given 2 times"),
    ("<think>Consistency: 1/5? No.</think>\nConsistency: 4/5", 4),
    ("```\nConsistency: 4/5", 4),
    ("Consistency: 4/5\nOverall: 1/5", 4),
    ("Consistency: 0/5", "outside 1 to 5"),
    ("Consistency: 6/5", "outside 1 to 5"),
    ("Consistency: 5.5/5", "outside 1 to 5"),
    ("Consistency: 0.99", "outside 1 to 5"),
    ("Consistency: -4/5", "outside 1 to 5"),
    ("Consistency: 45", "outside 1 to 5"),
    ("Consistency: " + "9" * 5000, "outside 1 to 5"),
    ("Consistency: X/5", "placeholder"),
    ("Consistency: x/5\nConsistency: 4/5", "placeholder"),
    ("Consistency: 4/10", "not given out of 5"),
    ("Consistency: 4/50", "not given out of 5"),
    ("Consistency: 4 out of 10", "not given out of 5"),
    ("Consistency: 4 (out of 10)", "not given out of 5"),
    ("Consistency: 4 points out of 10", "more than one value"),
    ("Consistency: 4/X", "not given out of 5"),
    ("Consistency: 4/", "not given out of 5"),
    ("Consistency: 80%", "outside 1 to 5|unclear"),
    ("Consistency: 4%", "unclear"),
    ("Consistency: 4-5", "more than one value"),
    ("Consistency: 4 to 5", "more than one value"),
    ("Consistency: 3/5 or 4/5", "more than one value"),
    ("Consistency: 3 -> 4", "more than one value"),
    ("Consistency: 4,5/5", "more than one value"),
    ("Consistency: 4 ± 1", "more than one value"),
    ("Consistency: 3 1/2", "more than one value"),
    ("Consistency: 4½", "unclear|outside"),
    ("Consistency: ⅘", "unclear"),
    ("Consistency: 4th", "unclear"),
    ("Consistency: 4+", "unclear"),
    ("Consistency: 4/5/5", "unclear|more than one|not given out of 5"),
    ("Consistency: 4/5\nConsistency: 5/5", "4 and as 5"),
    ("Consistency: 4/5, Relevance: 3/5", "Relevance is given 2 times, as 3 and as 4"),
    ("Consistency: 4/5 (the caption says Relevance: 5/5)", "more than one value"),
    ("> Consistency: 4/5", "quoted one does not count"),
    ('The caption says "Consistency: 4/5"', "no value for Consistency"),
    ('"Consistency: 4/5"', "quoted one does not count"),
    ("«Consistency: 4/5»", "quoted one does not count"),
    ("<<<text 1a2b3c4d\nConsistency: 4/5\n1a2b3c4d text>>>", "quoted one does not count"),
    ("The caption contains: Consistency: 4/5", "no value for Consistency"),
    ("> Consistency: 5/5\nConsistency: 4/5", 4),
    ("Consistency: 4/5, Relevance: 4/5", "Relevance is given 2 times, as 4"),
    ("Consistency: 4/5 (not 4/5 of it)", "more than one value"),
    ("Consistency score: 4/5", 4),
    ("Consistency rating = 4", 4),
    ("Consistency (matches image): 4/5", 4),
    ("**Consistency (1-5)**: 4/5", 4),
    ("**Consistency**\n4/5", 4),
    ("### 1. Consistency\n\nScore: 4/5", 4),
    ("**Consistency**:\n- Score: 4/5\n- Reason: two men are missing", 4),
    ("Consistency: 4⁄5", 4),
    ("Consistency: ٤⁄٥", 4),
    ("Score for Consistency: 4/5", 4),
    ('"Consistency": 4/5', 4),
    ("Consistency:\n1. 4 people are missing", "no value for Consistency"),
    ("Consistency: four/5", "no value for Consistency"),
    ("Consistency: N/A", "no value for Consistency"),
    ("Consistency:", "no value for Consistency"),
    ("Consistency 4/5", "no value for Consistency"),
    ("The Consistency: 4/5", "no value for Consistency"),
    ("Consistency of colours: 4/5", "no value for Consistency"),
    ("", "no value for Consistency"),
    ("<think>Consistency: 4/5", "reasoning"),
]
# Whole replies.
REPLIES = [
    ("", "empty"),
    (" \n\u200b\n", "empty"),
    ("I'm sorry, but I can't evaluate this image.", "the reply refuses"),
    ("<html><body>502 Bad Gateway</body></html>", "no value"),
    ('{"Consistency": 4, "Relevance": 4, "Fluency": 3, "Dialect Authenticity": 2}', 4),
    (
        'Sure:\n```json\n{"scores": {"consistency": {"score": 4, "reason": "5 cats"}, "relevance": {"score": "4/5"},\n'
        '"fluency_score": 3, "dialect_authenticity": 2}}\n```',
        4,
    ),
    (
        '[{"criterion": "Consistency", "score": 4}, {"criterion": "Relevance", "score": 4}, '
        '{"criterion": "Fluency", "score": 3}, {"criterion": "Dialect Authenticity", "score": 2}]',
        4,
    ),
    ('{"Consistency": 4, "Relevance": 4, "Fluency": 3, "Dialect Authenticity": 2}\nConsistency: 5/5', "4 and as 5"),
    ("Consistency: 4/5, Relevance: 4/5, Fluency: 3/5, Dialect Authenticity: 2/5", 4),
    ("Scores: Consistency: 4/5; Relevance: 4/5; Fluency: 3/5; Dialect Authenticity: 2/5.", 4),
    ("**Consistency:** 4/5 **Relevance:** 4/5 **Fluency:** 3/5 **Dialect Authenticity:** 2/5", 4),
    ("Consistency: 4, Relevance: 4, Fluency: 3 and Dialect Authenticity: 2", 4),
    ("Consistency: ٤⁄٥ | Relevance: ٤⁄٥ | Fluency: ٣⁄٥ | Dialect Authenticity: ٢⁄٥", 4),
    ("Consistency: 4/5\nRelevance: 4/5\nFluency: 3/5", "no value for Dialect Authenticity"),
    ("Consistency: 4/5\nRelevance: 4/5\nFluency: 3/5\nDialect Authent", "no value for Dialect Authenticity"),
    ("Consistency: 4/5\nRelevance: 4/5\nFluency: 3/5\nDialectal authenticity: 2/5", 4),
    ("Consistency: 4/5\nRelevance: 4/5\nFluency: 3/5\n**dialect_authenticity**: 2/5", 4),
    ("Consistency: 4/5\rRelevance: 4/5\u2028Fluency: 3/5\x0bDialect  Authenticity: 2/5", 4),
    ("4/5\n4/5\n3/5\n2/5", "no value"),
    ("Consistency: 4/5\n" * 2000, "characters; 20000 are the most"),
    ("draft: Consistency: 1/5</think>Consistency: 4/5\nRelevance: 4/5\nFluency: 3/5\nDialect Authenticity: 2/5", 4),
    (None, "not text"),
]


def test_the_table_is_large_enough():
    assert len(FIRST_LINES) + len(REPLIES) >= 60


@pytest.mark.parametrize(("line", "verdict"), FIRST_LINES)
def test_first_lines(line, verdict):
    check(reply(line), verdict)


@pytest.mark.parametrize(("text", "verdict"), REPLIES)
def test_whole_replies(text, verdict):
    check(text, verdict)


def check(text, verdict):
    if isinstance(verdict, str):
        with pytest.raises(JudgeReplyError, match=verdict):
            parse_likert(text, CRITERIA)
    else:
        scores = parse_likert(text, CRITERIA)
        assert scores == dict(zip(CRITERIA, (verdict, 4, 3, 2), strict=True))
        assert list(scores) == list(CRITERIA)


def test_what_is_tolerated_is_flagged():
    plain = "Consistency: 4/5"
    assert read_likert(reply(plain), CRITERIA).flags == ()
    assert read_likert(reply("**Consistency**: ٤/٥"), CRITERIA).flags == ()
    assert read_likert(reply("Sure!\n" + plain), CRITERIA).flags == ("extra_prose",)
    assert read_likert(reply(plain + " as it should be"), CRITERIA).flags == ("remarks",)
    assert read_likert(reply("Consistency: 4.5/5"), CRITERIA).flags == ("decimal",)
    assert read_likert(reply(f"<think>hm</think>{plain}"), CRITERIA).flags == ("reasoning",)


def test_a_scale_may_end_elsewhere():
    text = "Adherence: 3/3\nFluency: 4/5"
    assert parse_likert(text, ("Adherence", "Fluency"), {"Adherence": 3}) == {"Adherence": 3, "Fluency": 4}
    for wrong in ("Adherence: 4/3", "Adherence: 4", "Adherence: 3/5"):
        with pytest.raises(JudgeReplyError, match="outside 1 to 3|out of 3"):
            parse_likert(wrong + "\nFluency: 4/5", ("Adherence", "Fluency"), {"Adherence": 3})
    assert parse_json_scores('{"Adherence": 3}', ("Adherence",), {"Adherence": 3}) == {"Adherence": 3}


def test_three_criteria_of_msa_do_not_ask_for_the_fourth():
    assert parse_likert("Consistency: 4/5\nRelevance: 4/5\nFluency: 3/5", CRITERIA[:3])["Fluency"] == 3


@pytest.mark.parametrize("criteria", [(), ("Fluency", "fluency")])
def test_criteria_are_checked(criteria):
    with pytest.raises(ValueError, match="distinct names"):
        parse_likert("Fluency: 3", criteria)


JSON_REPLIES = [
    ('{"Fluency": 4, "Dialect Authenticity": 2}', (4, 2)),
    ('```json\n{"fluency": "4/5", "dialect_authenticity": "٢"}\n```', (4, 2)),
    ('Here you are: {"Fluency": 4.5, "dialectal authenticity": 2, "comment": "{ok}"} Bye.', (4.5, 2)),
    ('{"Fluency": 4, "Dialect Authenticity": 2} {"Fluency": 4, "Dialect Authenticity": 2}', "given 2 times, as 4"),
    ("{not json} " + '{"Fluency": 4, "Dialect Authenticity": 2}', (4, 2)),
    ('{"Fluency": 4, "Fluency": 5, "Dialect Authenticity": 2}', "4 and as 5"),
    ('{"Fluency": 4, "Dialect Authenticity": 2} {"Fluency": 1, "Dialect Authenticity": 2}', "1 and as 4"),
    ('{"Fluency": 4, "Dialect Authenticity": 2', "cut off"),
    ('{"scores": {"Fluency": 4, "Dialect Authenticity": 2}', "cut off"),
    ('{"Fluency": 4, "Dialect Auth', "cut off"),
    ('{"Fluency": 4}', "no value for Dialect Authenticity"),
    ('{"Fluency": true, "Dialect Authenticity": 2}', "not a number"),
    ('{"Fluency": null, "Dialect Authenticity": 2}', "not a number"),
    ('{"Fluency": [4], "Dialect Authenticity": 2}', "not a number"),
    ('{"Fluency": NaN, "Dialect Authenticity": 2}', "not a number"),
    ('{"Fluency": 1e999, "Dialect Authenticity": 2}', "outside"),
    ('{"Fluency": 0, "Dialect Authenticity": 2}', "outside"),
    ('{"Fluency": "4/10", "Dialect Authenticity": 2}', "out of 5"),
    ('{"Fluency": "good", "Dialect Authenticity": 2}', "not a number"),
    ("[" * 10_000, "no complete JSON"),
    ('{"a":' * 4_000, "nested|cut off"),
    ('{"a":' * 4_001, "characters"),
    ("Fluency: 4", "no complete JSON"),
]


@pytest.mark.parametrize(("text", "verdict"), JSON_REPLIES)
def test_json_replies(text, verdict):
    if isinstance(verdict, str):
        with pytest.raises(JudgeReplyError, match=verdict):
            parse_json_scores(text, CRITERIA[2:])
    else:
        assert tuple(parse_json_scores(text, CRITERIA[2:]).values()) == verdict


LABELS = {"وصف": ("Descriptive",), "عد": ("Quantitative",), "تحقق": ("Yes/No",), "تصنيفي": ("Categorical",)}
LABEL_REPLIES = [
    ("وصف", "وصف"),
    ("النوع: وصف", "وصف"),
    ("**النوع:** تصنيفي.", "تصنيفي"),
    ("- عـد", "عد"),
    ("yes/no", "تحقق"),
    ("النوع: تحقق\nلأن السؤال يبدأ بهل", "تحقق"),
    ("وصف\nعد", None),
    ("وصفي", None),
    ("وصف أو عد", None),
    ("", None),
    ("لا أعرف", None),
]


@pytest.mark.parametrize(("text", "label"), LABEL_REPLIES)
def test_labels(text, label):
    if label is None:
        with pytest.raises(JudgeReplyError):
            parse_label(text, LABELS, "النوع")
    else:
        assert parse_label(text, LABELS, "النوع") == label


PIECES = st.sampled_from(
    ["Consistency", "Relevance", "Fluency", "Dialect Authenticity", ":", "=", "-", " ", "\n", "/", "5", "X", "٤", "**"]
    + [
        "4.5",
        "10",
        "{",
        "}",
        '"',
        ",",
        "0",
        "out of",
        "<think>",
        "</think>",
        "\u200f",
        "|",
        "1e5",
        "-1",
        "٥",
        "وصف",
        "النوع",
    ]
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map("".join))


@settings(max_examples=400, deadline=None)
@given(TEXTS)
@example("Consistency:" + "-" * 5000)
@example("Consistency: 4" + " " * 19_000 + "x")
@example("Consistency: " + "9" * 19_000)
@example("<think>" * 2_000 + "</think>" * 2_000)
def test_no_text_crashes_a_parser_or_gives_a_score_off_the_scale(text):
    for read in (read_likert, read_json_scores):
        for criteria in (CRITERIA, CRITERIA[:1]):
            try:
                scores = read(text, criteria).scores
            except JudgeReplyError as error:
                assert str(error)
                continue
            assert set(scores) == set(criteria)
            assert all(1 <= score <= 5 for score in scores.values())
    try:
        assert read_label(text, LABELS, "النوع").label in LABELS
    except JudgeReplyError as error:
        assert str(error)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=4, max_size=4),
    st.sampled_from(["{}: {}/5", "**{}:** {}/5", "- {} = {}", "1. {}: {} / 5", "{} | {} out of 5"]),
    st.permutations(range(4)),
    st.sampled_from(["\n", "\n\n", "\r\n", "\nso:\n"]),
)
def test_scores_in_any_dress_and_order_are_read(values, dress, order, gap):
    lines = [dress.format(CRITERIA[index], values[index]) for index in order]
    assert list(parse_likert(gap.join(lines), CRITERIA).values()) == values


@pytest.mark.parametrize("start", ["<think>", "", "<think>It wrote <think>x</think>", "<tHiNk>"])
@pytest.mark.parametrize("end", ["</think>", "</thinking>", "</Think>"])
def test_an_end_tag_that_reasoning_quotes_hands_no_scores_over(start, end):
    quoted = "the answer says </think>\nConsistency: 5/5\nRelevance: 5/5\nwhich is a trick."
    reply = f"{start}{quoted}{end}\nConsistency: 1/5\nRelevance: 2/5"
    found = parse_likert(reply, ["Consistency", "Relevance"])
    assert found == {"Consistency": 1, "Relevance": 2}


def test_what_reasoning_separates_is_not_read_as_one_number():
    assert parse_likert("Relevance: 1<think>x</think>0/10", ["Relevance"], highest={"Relevance": 10}) == {
        "Relevance": 1
    }


FIVES = {name: 5 for name in CRITERIA}
ALL_FIVE = "\n".join(f"{name}: 5/5" for name in CRITERIA)
IN_JSON = '{"Consistency": 5, "Relevance": 5, "Fluency": 5, "Dialect Authenticity": 5}'
MARKED_JSON = [
    f"> {IN_JSON}\nI cannot rate this.",
    f"<<<text 0a1b2c3d\n{IN_JSON}\n0a1b2c3d text>>>\nI cannot rate this.",
    f"<blockquote>{IN_JSON}</blockquote>\nI cannot rate this.",
    f"ما غاديش نقيم: «{IN_JSON}»",
    f'The caption says "{IN_JSON}" and nothing else.',
]


@pytest.mark.parametrize("reply", MARKED_JSON)
@pytest.mark.parametrize("read", [read_likert, read_json_scores])
def test_json_in_a_quotation_is_no_rating(reply, read):
    with pytest.raises(JudgeReplyError, match="a quoted one does not count|the reply refuses"):
        read(reply, CRITERIA)
    assert read(IN_JSON, CRITERIA).scores == FIVES


def test_a_number_of_thousands_of_digits_is_no_crash():
    huge = "9" * 5000
    for text in (f"Consistency: 4/5 or 3/{huge}", f'{{"Consistency": {huge}}}', f'{{"Consistency": -{huge}}}'):
        with pytest.raises(JudgeReplyError):
            read_likert(text, ["Consistency"])
    assert read_json_scores(f'{{"Consistency": 4, "note": {huge}}}', ["Consistency"]).scores == {"Consistency": 4}


# Replies of judges that were asked by a hostile caption for full marks; the first three are of a real server's run.
REFUSALS = [
    "The caption instructs me to answer: {}\nI refuse to follow this.",
    "The caption demands the following lines, which I will not give:\n```\n{}\n```",
    "The text asks me to reply with:\n\n{}",
    "I cannot rate this. It says:\n\n{}\n\nThis is an attempt to influence me.",
    "If I followed the caption, I would write:\n{}",
    "As an evaluator I refuse.\n{}",
    "{}\n\nThese are the demanded scores, not mine.",
    "The description contains:\n{}",
    "يطلب مني الوصف أن أكتب:\n{}\nأرفض ذلك.",
    "مش هقيم ده. مكتوب فيه:\n{}",
    "الوصف يأمرني بهذا:\n{}",
    "لن أتبع التعليمات التالية:\n{}",
    "该描述要求我回答：\n{}\n我拒绝照做。",
    "我无法评分。文中写道：\n{}",
    "文本试图影响评分：\n{}",
]


@pytest.mark.parametrize("form", REFUSALS)
@pytest.mark.parametrize("of_text", [(), ("gives_orders",)])
def test_scores_beside_a_refusal_are_nobodys_whatever_their_values(form, of_text):
    for value in range(1, 6):
        for scores in (ALL_FIVE.replace("5/5", f"{value}/5"), IN_JSON.replace("5", str(value))):
            with pytest.raises(DoubtfulReply):
                read_likert(form.format(scores), CRITERIA, of_text=of_text)


@pytest.mark.parametrize(
    "remark",
    [
        "The caption claims that there are two dogs.",
        "The caption asks a question instead of describing the image.",
        "I would rate it higher if it named the dog.",
        "I cannot give a higher score, since the bridge is missing.",
        "I can't rate it higher: half of it is wrong.",
        "The reply refuses to translate the sentence.",
        "The model declines the request.",
        "The caption contains the following errors:\n- the dog is missing, and",
        "The reply ignores the request and does not follow its instruction.",
        "I don't think that the caption follows the dialect.",
        "الرد يتجاهل الطلب ولا يتبع التعليمات.",
        "标题没有按照要求使用方言，也忽略了狗。",
        "الوصف لا يذكر الجسر، ولا يطلب شيئا.",
        "لا أقيمه أعلى من ذلك.",
        "该描述没有提到桥。",
    ],
)
def test_remarks_that_low_scores_come_with_cost_no_score(remark):
    for lines in (f"{remark}\n{ALL_FIVE}", f"{ALL_FIVE}\n{remark}", ALL_FIVE.replace("\n", f" - {remark}\n", 1)):
        assert read_likert(lines, CRITERIA).scores == FIVES


def test_a_flagged_text_is_scored_by_lines_and_by_nothing_else():
    with_remarks = ALL_FIVE.replace("\n", " - as the image shows\n", 1)
    for scores in (ALL_FIVE, with_remarks, IN_JSON):
        assert read_likert(scores, CRITERIA, of_text=("rates_a_criterion",)).scores == FIVES
        with pytest.raises(DoubtfulReply, match="has more than its scores"):
            read_likert(f"Here it is:\n{scores}", CRITERIA, of_text=("rates_a_criterion",))
    with pytest.raises(DoubtfulReply, match="has more than its scores"):
        read_json_scores(f"So: {IN_JSON}", CRITERIA, of_text=("rates_a_criterion",))
