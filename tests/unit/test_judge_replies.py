"""Judges' replies: what is the requested form alone is read, all else is refused, and never with a wrong score."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.judge_prompts.replies import JudgeReplyError, read_binary, read_label, read_line, read_scores
from cultureval.judge_prompts.templates import judge_template

CRITERIA = ("Consistency", "Relevance", "Fluency", "Dialect Authenticity")
SCORES = dict(zip(CRITERIA, (5.0, 4.0, 3.0, 2.0), strict=True))
LINES = "\n".join(f"{name}: {score:g}/5" for name, score in SCORES.items())

READ = [
    LINES,
    f"\n{LINES}\n\n",
    LINES.replace("\n", "\r\n\r\n"),
    LINES.replace("/5", ""),
    LINES.replace("/5", " / 5"),
    LINES.upper(),
    LINES.replace(":", " ="),
    LINES.replace(":", " -"),
    LINES.replace("Dialect ", "Dialectal "),
    f"```\n{LINES}\n```",
    f"```text\n{LINES}\n```",
    "\n".join(f"**{line}**" for line in LINES.splitlines()),
    "\n".join(f"- **{name}**: {score:g}/5" for name, score in SCORES.items()),
    "\n".join(f"* `{name}`: [{score:g}]/5" for name, score in SCORES.items()),
    "\n".join(f"{place}. {line}" for place, line in enumerate(LINES.splitlines(), start=1)),
    "\n".join(reversed(LINES.splitlines())),
    json.dumps(SCORES),
    json.dumps({name: f"{score:g}/5" for name, score in SCORES.items()}, indent=2),
    f"```json\n{json.dumps(SCORES)}\n```",
    f"<think>Consistency: 1/5?\nor 2</think>\n{LINES}",
    f"Fluency: 1/5, I guess.</think>\n\n{LINES}",
]
REFUSED = {
    "": "empty",
    "<think>Fluency: 4/5": "reasoning without an answer",
    f"Here are my scores:\n{LINES}": "more than its scores: 'Here",
    f"{LINES}\nI hope this helps.": "more than its scores: 'I hope",
    f"{LINES}\nFluency: 3/5": "Fluency is given twice",
    LINES.replace("\n", ", "): "more than its scores",
    LINES.replace("3/5", "3/5 (one error)"): r"more than its scores: 'Fluency",
    LINES.replace("3/5", "N/A"): "more than its scores: 'Fluency",
    LINES.replace("3/5", "3-4/5"): "more than its scores",
    LINES.replace("3/5", "-3/5"): "more than its scores",
    LINES.replace("3/5", "٣/٥"): "more than its scores",
    LINES.replace("3/5", "6/5"): "Fluency is not on the scale from 1 to 5",
    LINES.replace("3/5", "0/5"): "Fluency is not on the scale",
    LINES.replace("3/5", "0.5/5"): "Fluency is not on the scale",
    LINES.replace("3/5", "3/10"): "Fluency is not on the scale",
    LINES.replace("Fluency", "Style"): "more than its scores: 'Style",
    LINES.replace("Fluency", "Flu\u0435ncy"): "more than its scores",
    "\n".join(LINES.splitlines()[:3]): "no value for Dialect Authenticity",
    json.dumps(SCORES | {"remark": "good"}): "more than its scores: 'remark",
    json.dumps(SCORES | {"Fluency": True}): "more than its scores: 'Fluency: True",
    json.dumps(SCORES | {"Fluency": None}): "more than its scores",
    json.dumps(SCORES | {"Fluency": {"score": 3}}): "more than its scores",
    json.dumps(SCORES | {"Fluency": float("nan")}): "more than its scores",
    json.dumps(SCORES | {"fluency": 1}): "given twice",
    json.dumps(SCORES).replace("{", '{"Fluency": 1, ', 1): "repeated",
    json.dumps([SCORES]): "more than its scores",
    f"{json.dumps(SCORES)} {json.dumps(SCORES)}": "not one JSON object",
    json.dumps(SCORES)[:-5]: "not one JSON object",
    '{"Fluency": ' + "9" * 5000 + "}": "not one JSON object",
    "{" * 30_000: "not one JSON object",
    "x" * 50_000: "characters",
    f"<think>no</think>\n{LINES}\n</think>\n{LINES}": "more than its scores: '</think>'",
}


@pytest.mark.parametrize("reply", READ)
def test_the_requested_form_is_read(reply):
    assert read_scores(reply, CRITERIA).scores == SCORES


@pytest.mark.parametrize("reply", REFUSED)
def test_all_else_is_refused(reply):
    with pytest.raises(JudgeReplyError, match=REFUSED[reply]):
        read_scores(reply, CRITERIA)


def test_decimals_and_other_scales():
    assert read_scores("Fluency: 4.5/5", ["Fluency"]).scores == {"Fluency": 4.5}
    assert read_scores("Adherence: 3/3", ["Adherence"], {"Adherence": 3}).scores == {"Adherence": 3}
    with pytest.raises(JudgeReplyError, match="from 1 to 3"):
        read_scores("Adherence: 4", ["Adherence"], {"Adherence": 3})


@given(st.permutations([1, 2, 3, 4, 5]), st.text("-•*:=/ 15\nFluencyأ{}\"'`", max_size=40))
def test_whether_a_reply_counts_does_not_depend_on_its_values(values, noise):
    outcomes = set()
    for value in values:
        try:
            outcomes.add(read_scores(f"Fluency: {value}/5{noise}", ["Fluency"]).scores == {"Fluency": value})
        except JudgeReplyError as error:
            outcomes.add(str(error).partition(":")[0].partition(" is ")[0])
    assert len(outcomes) == 1 or noise[:1] in {".", "1", "5"}


@pytest.mark.parametrize("part", [" ", "-", "a-", "a - ", "1.", "`", "=1", "Fluency: 5/5 ", "\u2028"])
def test_hostile_replies_take_no_time(part):
    started = time.monotonic()
    with pytest.raises(JudgeReplyError):
        read_scores("x" + part * (39_000 // len(part)) + "x", CRITERIA)
    assert time.monotonic() - started < 2


LABELS = {"عد": ("Quantitative",), "تحقق": ("Yes/No",)}


@pytest.mark.parametrize("reply", ["عد", "النوع: عد", "**عد**.", "quantitative", "<think>تحقق</think>\nالنوع:  عد"])
def test_a_label_alone_is_read(reply):
    assert read_label(reply, LABELS, "النوع").label == "عد"


@pytest.mark.parametrize("reply", ["", "عد\nتحقق", "عد أو تحقق", "هذا سؤال عد", "Type: عد", "عد ❌"])
def test_a_label_with_more_is_refused(reply):
    with pytest.raises(JudgeReplyError):
        read_label(reply, LABELS, "النوع")


def test_a_line():
    assert read_line("الموضوع: **طبيعة**.", "الموضوع").label == "طبيعة"
    assert read_line("a: b", "الموضوع").label == "a: b"
    for reply in ("", "طبيعة\nأماكن", "الموضوع:", "x" * 101):
        with pytest.raises(JudgeReplyError):
            read_line(reply, "الموضوع")


ROW = judge_template("audit_mcq")
ONES = dict.fromkeys(ROW.criteria, 1)
UNREADABLE = ONES | {"text_readability": 0} | dict.fromkeys(ROW.cascade["text_readability"], 0)


def binary(scores, issues=None, **more):
    given = [name for name, value in scores.items() if value == 0] if issues is None else issues
    return json.dumps({"scores": scores, "issues": [{"criterion": n, "explanation": "لأن"} for n in given]} | more)


@pytest.mark.parametrize("scores", [ONES, UNREADABLE, ONES | {"answer_alignment": 0}])
@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "<think>all 0?</think>\n{}"])
def test_a_binary_reply_is_read_with_its_explanations(scores, frame):
    reading = ROW.read(frame.replace("{}", binary(scores)))
    assert reading.scores == scores
    assert reading.notes == {name: "لأن" for name, value in scores.items() if not value}


@pytest.mark.parametrize(
    "reply",
    [
        f"Here: {binary(ONES)}",
        f"{binary(ONES)} {binary(ONES)}",
        f"[{binary(ONES)}]",
        binary(ONES)[:-1],
        binary(dict.fromkeys(ONES, True)),
        binary(dict.fromkeys(ONES, "1")),
        binary(dict.fromkeys(ONES, 1.0)),
        binary(ONES | {"question_clarity": 2}),
        binary(ONES | {"question_clarity": None}),
        binary(ONES | {"total": 1}),
        binary({name: 1 for name in ROW.criteria[1:]}),
        binary(ONES, verdict="good"),
        json.dumps({"scores": ONES}),
        binary(ONES, ["answer_alignment"]),
        binary(ONES | {"answer_quality": 0}, []),
        binary(ONES | {"answer_quality": 0}, ["answer_quality"] * 2),
        binary(ONES | {"text_readability": 0}),
        binary(ONES).replace('"spelling_accuracy": 1', '"spelling_accuracy": 1, "spelling_accuracy": 0'),
        "All ten criteria are met.",
        "[" * 30_000,
        "",
    ],
)
def test_another_binary_reply_is_refused(reply):
    with pytest.raises(JudgeReplyError):
        read_binary(reply, ROW.criteria, ROW.cascade)
