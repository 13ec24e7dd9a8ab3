"""Labels scored by a reply's first token: which token is whose, what is unscored, what is refused."""

import asyncio
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from lighteval.tasks.requests import Doc

from cultureval.models.openai_api import OpenAIModel
from cultureval.models.server.first_token import (
    ask_first_token,
    first_token_response,
    label_scores,
    require_labels,
    undecided,
)
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse, leave_out
from cultureval.runtime.servers.errors import RowError


def top(**logprobs):
    return [(token.replace("_", " ").encode().hex(), value) for token, value in logprobs.items()]


def doc(choices="أ ب ج د", gold=0):
    return Doc(task_name="qimma_palmx", query="س", choices=choices.split(), gold_index=gold, id="1")


def test_tasks_of_which_no_row_is_left_are_left_out_and_end_the_run_where_there_is_no_other():
    docs = [doc() for _ in "abc"]
    for one, name in zip(docs, ("one", "two", "three"), strict=True):
        one.task_name = name
    refused = [(docs[0], RefusedResponse(reason="why")), (docs[1], RefusedResponse(reason="no"))]
    made = {name: SimpleNamespace(config=SimpleNamespace()) for name in ("one", "two", "three")}
    tasks = dict(made)
    kept, unanswered = leave_out(tasks, docs, refused)
    assert [*tasks] == ["three"] and kept == docs[2:]
    assert [*unanswered] == ["one", "two"] and "why" in unanswered["one"][1]
    with pytest.raises(CulturevalError, match=r"No row of one \(.*: why\); two \(.*: no\)"):
        leave_out({"one": made["one"], "two": made["two"]}, docs[:2], refused)


def reply(*top, **message):
    """A chat reply with the likeliest first tokens."""
    logprobs = {"content": [{"token": "", "logprob": 0.0, "top_logprobs": [*top]}]} if top else None
    choice = {"message": {"content": "x"} | message, "logprobs": logprobs, "finish_reason": "stop"}
    return {"choices": [choice], "model": "m"}


def test_a_label_is_scored_by_all_tokens_that_begin_it_alone():
    """The exact spelling came first, so that one of e^-9 stood for a label whose other spelling was the likeliest."""
    tokens = top(_أ=-0.5, أ=-1.0, ب=-2.0, ه=-3.0, مرحبا=-0.1)
    both = np.logaddexp(-0.5, -1.0)
    assert label_scores("أ ب ج هـ".split(), tokens) == [both, -2.0, -math.inf, -3.0]
    assert label_scores([" أ", " ب"], tokens) == [both, -2.0], "however the labels are spelled"
    assert label_scores([" A", " B"], top(A=-0.1, B=-2.5, _A=-9.0)) == [np.logaddexp(-0.1, -9.0), -2.5]
    spaces = [(f"{mark}أ".encode().hex(), -2.0) for mark in ("\u2581", "\u200f", "\xa0 ")]
    assert label_scores("أ ب".split(), [*spaces, *top(أ=-7.0, ب=-6.0)]) == [
        pytest.approx(np.logaddexp.reduce([-2.0] * 3 + [-7.0])),
        -6.0,
    ]
    rounded = top(A=0.0005, _A=-7.0)
    assert label_scores(["A"], rounded) == [0.0], "a probability"


def test_a_token_that_begins_several_labels_is_of_none_and_may_leave_the_row_unscored():
    assert label_scores(["10", "12"], top(**{"1": -0.2})) == [-math.inf] * 2
    assert label_scores(["1", "10", "2"], top(**{"1": -0.2, "10": -2.0, "2": -3.0})) == [-math.inf, -2.0, -3.0]
    half = [("أ".encode()[:1].hex(), -0.2)]  # a byte that several Arabic letters begin with
    assert label_scores("أ A".split(), half) == [-0.2, -math.inf]
    assert label_scores("أ ب".split(), half) == [-math.inf] * 2
    least = top(مرحبا=-12.0)
    for shared in (half, top(_=-0.2)):  # whitespace alone begins all
        tokens = shared + top(ه=-3.0) + least
        assert "could decide" in undecided(doc("أ ب ه"), label_scores("أ ب ه".split(), tokens), tokens)
    of_smollm2 = [("d988", -1.63), ("d8", -1.89), ("d8a8", -2.47), ("54686973", -5.18)]  # of a row of AraTrust
    assert "could decide" in undecided(doc("أ ب ج"), label_scores("أ ب ج".split(), of_smollm2), of_smollm2)
    tokens = top(ه=-0.2, ب=-3.0, **{"_": -9.0}) + [("", -2.0)] + least  # "" is an end of text
    assert undecided(doc("أ ب ه"), label_scores("أ ب ه".split(), tokens), tokens) == ""
    unseen = top(A=-1.0, _B=-1.1, The=-3.0)  # of "B" without a space
    assert "could decide" in undecided(doc("A B"), label_scores(["A", "B"], unseen), unseen)


def test_what_a_missing_label_could_decide_is_unscored():
    whole = top(أ=-1.0, ب=-2.0, مرحبا=-9.0)
    assert undecided(doc(), label_scores(doc().choices, whole), whole) == ""
    five = doc("أ ب ج د هـ")  # acc_norm divides the fifth by two code points, which -9 / 2 does not win by
    assert undecided(five, label_scores(five.choices, whole), whole) == ""
    near = top(أ=-5.0, مرحبا=-9.0)
    assert "could decide" in undecided(five, label_scores(five.choices, near), near)
    several = doc(gold=[0, 1])
    assert "could decide" in undecided(several, label_scores(several.choices, near), near)
    pair = top(أ=-0.01, مرحبا=-12.0)  # the share of all the others is small, but one of them is the second best
    assert "could decide" in undecided(several, label_scores(several.choices, pair), pair)
    none = top(مرحبا=-0.1, the=-3.0)
    refused = first_token_response(doc(), [], {"top": none})
    assert isinstance(refused, RefusedResponse) and "none of the labels is among the 2" in refused.reason
    answered = first_token_response(doc(), [{"role": "user", "content": "س"}], {"top": whole})
    assert answered.logprobs == [-1.0, -2.0, -10.0, -10.0]
    assert answered.argmax_logits_eq_gold == [True, False, False, False]
    spaced = first_token_response(doc("أ ب ج"), [], {"top": top(_أ=-0.05, _ب=-3.5, _ج=-4.5, أ=-7.0, The=-8.0)})
    assert np.argmax(spaced.logprobs) == 0 and spaced.argmax_logits_eq_gold == [True, False, False]


def test_texts_and_servers_without_log_probabilities_are_refused():
    with pytest.raises(CulturevalError, match="scores texts, not labels"):
        require_labels(doc("لا_أعرف نعم"))
    with pytest.raises(CulturevalError, match="scores texts, not labels"):
        require_labels(Doc(task_name="t", query="س", choices=["أ", " "], gold_index=0))

    with pytest.raises(RowError, match="no top_logprobs of its first token"):
        asyncio.run(ask_first_token(RecordingClient(reply()), {}))


@pytest.mark.parametrize("given", [[0.5], [math.nan], [-0.1, -0.2], [None], ["x"]])
def test_what_is_no_log_probability_is_never_scored(given):
    entries = [{"bytes": [65 + place], "token": "A", "logprob": one} for place, one in enumerate(given)]
    with pytest.raises(RowError):
        asyncio.run(ask_first_token(RecordingClient(reply(*entries)), {}))


class RecordingClient:
    """Gives one reply to all requests, and keeps these."""

    def __init__(self, answer):
        self.requests, self.answer = [], answer

    async def chat_body(self, **request):
        self.requests.append(request)
        return self.answer


@pytest.mark.parametrize("left_out", [[], ["temperature"]])
def test_what_a_model_does_not_take_is_not_sent(left_out, monkeypatch, tmp_path):
    settings = {"base_url": "https://api.openai.com/v1", "scoring": "first_token", "leave_out": left_out}
    monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", json.dumps(settings))
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path))
    client = RecordingClient(reply({"token": "أ", "logprob": -0.5}))
    (question,) = OpenAIModel(SimpleNamespace(model_name="m"))._first_token_questions(doc()).values()
    assert asyncio.run(question(client))["top"] == [list(entry) for entry in top(أ=-0.5)]
    (request,) = client.requests
    assert ("temperature" in request) == (not left_out) and request["top_logprobs"] == 20
