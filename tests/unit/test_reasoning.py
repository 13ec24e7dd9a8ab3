"""The one rule of where reasoning ends and the answer begins."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lighteval.utils.utils import remove_reasoning_tags

from cultureval.judge_prompts.replies import JudgeReplyError, read_scores
from cultureval.runtime.reasoning import THINK_TAGS, split_reasoning

FUNCTION = "def f():\n    return 1\n"
PIECES = st.lists(st.sampled_from(["<think>", "</think>", "<thi", "nk>", "a", "é", " ", "\n", "<", "/"]), max_size=30)
UNTAGGED = st.text().filter(lambda text: "think>" not in text)
PASSAGES = UNTAGGED.filter(str.strip)


@pytest.mark.parametrize(
    ("reply", "answer", "reasoning"),
    [
        ("<think>so</think>\n\nأ", "أ", "so"),
        ("<think>أفكر\n```python\nno\n```</think>\nالجواب", "الجواب", "أفكر\n```python\nno\n```"),
        ("so</think> أ", "أ", "so"),
        ("أفكر</think>\n\nالجواب", "الجواب", "أفكر"),
        ("<think>never ends", "", "never ends"),
        (FUNCTION + "<think>wait", FUNCTION, "wait"),
        ("plan</think>def f(): return '</think>'", "def f(): return '</think>'", "plan"),
        ("<think>plan</think>def f(): return '</think>'", "def f(): return '</think>'", "plan"),
        ("a<think>1</think>b<think>2</think>c", "a b c", "1\n\n2"),
        ("4<think>or</think>5", "4 5", "or"),
        ("نعمَ<think>1</think><think>2</think>لا", "نعمَ لا", "1\n\n2"),
        ("(4<think>1</think>), <think>2</think>5\n<think>3</think>6", "(4), 5\n6", "1\n\n2\n\n3"),
        ("<think>a</think>b<think>c", "b", "a\n\nc"),
        ("<think></think>أ", "أ", None),
        (" أ", " أ", None),
        ("", "", None),
    ],
)
def test_the_rule(reply, answer, reasoning):
    assert split_reasoning(reply) == (answer, reasoning)


@given(UNTAGGED)
def test_a_reply_without_tags_is_its_own_answer(text):
    assert split_reasoning(text) == (text, None)


@given(PIECES.map("".join))
def test_what_is_an_answer_stays_one(text):
    answer, reasoning = split_reasoning(text)
    if "</think>" not in answer and "<think>" not in answer:
        assert split_reasoning(answer) == (answer, None)
    if "<think>" not in text and "</think>" not in text:
        assert (answer, reasoning) == (text, None)
    assert len(answer) + len(reasoning or "") <= len(text)


@given(PASSAGES, UNTAGGED)
def test_it_does_not_matter_whether_the_template_or_the_model_opens_the_reasoning(reasoning, answer):
    closed = split_reasoning(f"<think>{reasoning}</think>{answer}")
    assert closed == split_reasoning(f"{reasoning}</think>{answer}") == (answer.lstrip(), reasoning.strip())


@given(st.lists(st.tuples(UNTAGGED, UNTAGGED), min_size=1), UNTAGGED)
def test_closed_passages_go_as_in_lighteval(pairs, last):
    text = "".join(f"{before} <think>{passage}</think>" for before, passage in pairs) + last
    assert split_reasoning(text)[0] == remove_reasoning_tags(text, list(THINK_TAGS)).lstrip()


@given(st.lists(UNTAGGED, min_size=2))
def test_no_words_are_joined_and_nothing_else_is_changed(parts):
    answer, _ = split_reasoning("<think></think>".join(parts))
    assert answer.replace(" ", "") == "".join(parts).lstrip().replace(" ", "")
    words = [word for part in parts for word in re.findall(r"[^\W_]+", part)]
    assert re.findall(r"[^\W_]+", answer) == words


@given(PASSAGES, UNTAGGED)
def test_cut_off_reasoning_ends_the_answer_that_stands_before_it(reasoning, answer):
    assert split_reasoning(f"{answer}<think>{reasoning}") == (answer.lstrip(), reasoning.strip())


def test_tags_of_ones_own():
    text = "[THINK]a[/THINK]b<r>c</r>d<think>e"
    assert split_reasoning(text, [("[THINK]", "[/THINK]"), ("<r>", "</r>")]) == ("b d<think>e", "a\n\nc")


def test_judges_keep_to_it():
    scores = {"Fluency": 4.0}
    for reply in ("Fluency: 1/5?</think>Fluency: 4/5", "<think>Fluency: 1/5</think>Fluency: 4/5"):
        assert read_scores(reply, ["Fluency"]).scores == scores
    assert read_scores("Fluency: 4/5\n<think>or Fluency: 1/5", ["Fluency"]).scores == scores
    with pytest.raises(JudgeReplyError, match="reasoning without an answer"):
        read_scores("<think>Fluency: 4/5", ["Fluency"])
