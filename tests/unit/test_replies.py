"""Replies of servers in whatever form: an answer, or the error of its own row."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.runtime.servers.costs import Budget, BudgetSpent, RequestSize, Usage, read_usage
from cultureval.runtime.servers.errors import RowError
from cultureval.runtime.servers.replies import answer_of, body_of, why_refused
from cultureval.runtime.servers.settings import ServedModel

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["content", "a"]), inner, max_size=2),
    max_leaves=5,
)
GOOD = {
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "نعم"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}


def read(body):
    return answer_of(body_of(json.dumps(body).encode()))


@given(st.data())
def test_a_reply_with_anything_anywhere_is_an_answer_or_a_row_s_error(data):
    body = json.loads(json.dumps(GOOD))
    holder = data.draw(st.sampled_from([body, body["choices"][0], body["choices"][0]["message"]]))
    holder[data.draw(st.sampled_from([*holder, "error", "refusal", "reasoning", "token_ids"]))] = data.draw(JSON)
    try:
        answer = read(body)
    except RowError as error:
        assert error.kind in ("no_answer", "filter") and len(str(error)) < 800
        return
    why_refused(answer)
    (completion,) = answer["completions"]
    assert isinstance(completion["text"], str) and isinstance(answer["model"], str | None)
    Budget(ServedModel(model="m", base_url="http://a/v1")).pay("k", answer, RequestSize())


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"<html>", b'{"choices": [', b'{"a": ' + b"9" * 5000 + b"}"])
def test_what_is_no_json_object_is_a_row_s_error(content):
    with pytest.raises(RowError, match="no usable answer"):
        body_of(content)


def test_usage_is_read_in_the_forms_of_several_providers():
    details = {"prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 4}}
    assert read_usage({"prompt_tokens": 3, "completion_tokens": 5, **details}) == Usage(3, 5, 2, 4)
    assert read_usage({"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 12}) == Usage(3, 9, 0, 4)
    assert read_usage({"prompt_tokens": 3, "completion_tokens": 5, "cost": 0.25}).cost == 0.25
    for wrong in (None, {}, {"prompt_tokens": -1, "completion_tokens": 1}, {"prompt_tokens": True}):
        assert read_usage(wrong) is None


def test_a_budget_counts_each_answer_once_and_estimates_what_has_no_counts():
    model = ServedModel(model="m", base_url="http://a/v1", input_token_price=1, output_token_price=2, budget=20)
    budget = Budget(model, batch_price=0.5)
    answer = {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    for _ in range(2):
        budget.pay("a", answer, RequestSize())
    assert budget.spent == 7
    budget.pay("b", answer | {"batch": True}, RequestSize())
    budget.check()
    budget.pay("c", {"completions": [{"text": "نعمم"}]}, RequestSize(text=6))
    assert (budget.spent, budget.unmetered) == (7 + 3.5 + 6 + 4, 1)
    with pytest.raises(BudgetSpent, match="budget of 20"):
        budget.check()
