"""Replies of ten scores: what is taken, what is mended with a flag, and what stays refused."""

import json
import re

import pytest

from cultureval.judge_prompts.binary_replies import mend_binary, read_binary
from cultureval.judge_prompts.replies import JudgeReplyError
from cultureval.judge_prompts.templates import judge_template

ROW = judge_template("audit_mcq")
ONES = dict.fromkeys(ROW.criteria, 1)
UNREADABLE = ONES | {"text_readability": 0} | dict.fromkeys(ROW.cascade["text_readability"], 0)


def reply(scores, issues=None, **more):
    given = [name for name, value in scores.items() if value == 0] if issues is None else issues
    return json.dumps({"scores": scores, "issues": [{"criterion": n, "explanation": "لأن"} for n in given]} | more)


@pytest.mark.parametrize("scores", [ONES, UNREADABLE, ONES | {"answer_alignment": 0}])
@pytest.mark.parametrize("frame", ["{}", "```json\n{}\n```", "<think>all 0?</think>\n{}"])
def test_a_right_reply_is_read_and_never_mended(scores, frame):
    text = frame.replace("{}", reply(scores))
    reading = read_binary(text, ROW.criteria, ROW.cascade)
    assert reading.scores == scores and set(reading.notes) == {name for name, value in scores.items() if not value}
    assert ROW.read(text) == reading
    mended = mend_binary(text, ROW.criteria, ROW.cascade)
    assert mended.scores == scores and not [flag for flag in mended.flags if flag.startswith("mended")]


@pytest.mark.parametrize("scores", [ONES, UNREADABLE])
def test_the_pattern_that_servers_hold_replies_to_fits_right_replies_only(scores):
    text = json.dumps(json.loads(reply(scores)), ensure_ascii=False)
    assert re.fullmatch(ROW.reply_pattern, text)
    for wrong in (text.replace(": 1", ": 2", 1), text + " ", text.replace('"overall', '"over'), text[:-1]):
        assert wrong == text or not re.fullmatch(ROW.reply_pattern, wrong)


MENDED = {
    f"Here: {reply(ONES)} Done.": (ONES, "mended_prose"),
    reply(dict.fromkeys(ONES, True)): (ONES, "mended_values"),
    reply(dict.fromkeys(ONES, "1")): (ONES, "mended_values"),
    reply(dict.fromkeys(ONES, 1.0)): (ONES, "mended_values"),
    reply({name.replace("_", " ").title(): 1 for name in ONES}): (ONES, "mended_keys"),
    reply(ONES | {"total": 10}): (ONES, "mended_extra_keys"),
    reply(ONES, verdict="good"): (ONES, "mended_extra_keys"),
    reply(ONES | {"answer_quality": 0}, []): (ONES | {"answer_quality": 0}, "mended_issues"),
    reply(ONES | {"answer_quality": 0}, ["answer_quality"] * 2): (ONES | {"answer_quality": 0}, "mended_issues"),
    json.dumps({"scores": ONES}): (ONES, "mended_issues"),
    reply(ONES | {"text_readability": 0}): (UNREADABLE, "mended_cascade"),
}
REFUSED = {
    reply(ONES, ["answer_alignment"]): "which is not scored 0",
    reply(ONES | {"answer_quality": 0}, ["answer_quality", "style"]): "which is not scored 0",
    reply({name: 1 for name in ROW.criteria[1:]}): "lack text_readability",
    reply(ONES | {"question_clarity": 2}): "neither 0 nor 1",
    reply(ONES | {"question_clarity": None}): "neither 0 nor 1",
    reply(ONES | {"question_clarity": 0.5}): "neither 0 nor 1",
    reply(ONES | {"Question Clarity": 0}): "two keys mean question_clarity",
    reply(ONES).replace('"spelling_accuracy": 1', '"spelling_accuracy": 1, "spelling_accuracy": 0'): "repeated key",
    f"{reply(ONES)} or rather {reply(UNREADABLE)}": "2 JSON objects",
    f"[{reply(ONES)}]": "no JSON object",
    "All ten criteria are met.": "no JSON objects",
    reply(ONES)[:-30]: "JSON objects",
    "": "no JSON objects",
    json.dumps(7): "no JSON object",
    "{" * 60_000: "characters",
    '{"scores": NaN, "issues": []}': "JSON objects",
    "[" * 30_000: "no JSON objects",
}


@pytest.mark.parametrize("text", [*MENDED])
def test_what_leaves_no_doubt_is_mended_with_a_flag(text):
    scores, flag = MENDED[text]
    with pytest.raises(JudgeReplyError):
        read_binary(text, ROW.criteria, ROW.cascade)
    reading = mend_binary(text, ROW.criteria, ROW.cascade)
    assert reading.scores == scores and flag in reading.flags
    assert set(reading.notes) == {name for name, value in scores.items() if not value}


@pytest.mark.parametrize("text", [*REFUSED])
def test_what_contradicts_itself_is_refused(text):
    with pytest.raises(JudgeReplyError):
        read_binary(text, ROW.criteria, ROW.cascade)
    with pytest.raises(JudgeReplyError, match=REFUSED[text]):
        mend_binary(text, ROW.criteria, ROW.cascade)
