"""Replies of servers that mean harm, or are broken: each is no answer of its own request, and the run goes on."""

import asyncio
import math
import os
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from lighteval.tasks.requests import Doc
from loopback import Handler, LoopbackServer

from cultureval.models.server.abilities import abilities
from cultureval.models.server.first_token import ask_first_token, first_token_response
from cultureval.models.server.refused_answers import PromptRefused, naming
from cultureval.models.server.settings import ServerModelConfig
from cultureval.runtime.interruption import interruption_message, orderly_end
from cultureval.runtime.journal import Journal, answer_key
from cultureval.runtime.servers import openai_client
from cultureval.runtime.servers.costs import Budget, BudgetSpent, RequestSize, Usage
from cultureval.runtime.servers.errors import ServerError
from cultureval.runtime.servers.identity import IdentityQuestion, ServerIdentity, identify
from cultureval.runtime.servers.identity_watch import IdentityWatch
from cultureval.runtime.servers.journalled_answers import answer_all
from cultureval.runtime.servers.openai_client import OpenAIClient, _Tries
from cultureval.runtime.servers.rate_limits import pause_after_answer, wait_after_refusal
from cultureval.runtime.servers.settings import ServedModel, ServerSettings

CHAT = {"model": "m", "messages": [{"role": "user", "content": "س"}]}
DIGITS = "1" * 5000


class Hostile(Handler):
    """Answers whatever is asked with the server's `body`."""

    def do_GET(self):
        self.reply(200, self.server.body)

    def do_POST(self):
        self.asked()
        self.reply(200, self.server.body)


def settings_of(server, **more):
    given = {"max_retries": 0, "backoff_s": 0.01, "timeout_s": 0.5, "give_up_s": 5}
    return ServerSettings(**{"base_urls": (server.url,), "concurrency": 2} | given | more)


def asked(body, ask, **settings):
    """What `ask` makes of a client whose server replies with these bytes."""

    async def run(server):
        async with OpenAIClient(settings_of(server, **settings)) as client:
            return await asyncio.wait_for(ask(client), 10)

    with LoopbackServer(Hostile, "/v1") as server:
        server.body = body
        return asyncio.run(run(server))


def chat_body(content='"x"', more=""):
    choices = f'[{{"index": 0, "message": {{"content": {content}}}{more}}}]' if content else "[]"
    usage = '{"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}'
    return f'{{"choices": {choices}, "model": "m", "usage": {usage}}}'.encode()


@pytest.mark.parametrize(
    "body", [chat_body('"x"', f', "created": {DIGITS}'), chat_body('[{"type": ["x"], "text": "a"}]')]
)
def test_a_reply_that_cannot_be_read_is_no_answer(body):
    with pytest.raises(ServerError) as refused:
        asked(body, lambda client: client.chat(**CHAT))
    assert refused.value.incomplete and refused.value.in_vain


def test_names_that_servers_give_are_short_and_have_no_control_characters():
    named = (
        f'"model": "m\\u001b[31m\\nAll is well.{"x" * 3000}", "system_fingerprint": "\\u0007", "data": [], '.encode()
    )
    body = chat_body(
        more=', "logprobs": {"content": [{"token": "a", "top_logprobs": [{"token": "a", "logprob": -1}]}]}'
    )
    body = body.replace(b'"model": "m", ', named)
    given = [asked(body, lambda client: client.chat(**CHAT))["model"]]
    given.append(asked(body, lambda client: ask_first_token(client, CHAT))["model"])
    with LoopbackServer(Hostile, "/v1") as server:
        server.body = body
        found = identify(IdentityQuestion.of(settings_of(server), "m"), "m")
    assert {*given, found.served} == {given[0]} and found.fingerprint == r"\x07"
    assert given[0].startswith(r"m\x1b[31m\nAll is well.xxx") and len(given[0]) <= 200


def test_a_list_of_models_with_an_endless_number_is_an_error_of_the_server():
    body = f'{{"data": [{{"id": "m", "created": {DIGITS}}}]}}'.encode()
    assert [*asked(body, lambda client: client.health_check("m")).values()]
    with pytest.raises(ServerError):
        asked(body, lambda client: client.model_entry("m"))
    for count, found in ((DIGITS, None), (10**6, None), (0, None), (9, (9, 40))):
        body = f'{{"count": {count}, "max_model_len": 40}}'.encode()
        assert asked(body, lambda client: client.token_count(model="m", prompt="x")) == found


@pytest.mark.parametrize("top", ['{"أ": -0.5}', "7", '[{"token": "a", "logprob": -1' + "0" * 400 + "}]"])
def test_first_tokens_of_an_unusual_form_are_no_answer(top):
    body = chat_body('"أ"', f', "logprobs": {{"content": [{{"token": "أ", "top_logprobs": {top}}}]}}')
    doc = Doc(task_name="t", query="س", choices=["أ"], gold_index=0)
    question = naming(doc, lambda client: ask_first_token(client, CHAT), None, None, [])
    with pytest.raises(PromptRefused) as refused:
        asked(body, question)
    assert refused.value.usage["prompt_tokens"] == 5, "it was paid"
    assert refused.value.kind == "no_answer"


@pytest.mark.parametrize("top", ['{"أ": -0.5}', '["أ"]'])
def test_odd_replies_to_questions_what_a_server_can_do_are_no_ability(top):
    body = chat_body('"أ"', f', "logprobs": {{"content": [{{"token": "أ", "top_logprobs": {top}}}]}}')
    body = body.replace(b'"usage": {', b'"usage": "12", "used": {')
    with LoopbackServer(Hostile, "/v1") as server:
        server.body = body
        config = ServerModelConfig(model_name="m", model="m", base_url=server.url, max_retries=0)
        able = abilities(config, True, True)
    assert "cannot be read: AttributeError" in able.first_token and able.images == ""


def test_what_a_refused_row_had_cost_before_is_counted():
    """Of several requests for the choices of a row, the last one is refused with an odd status."""

    async def fails(client):
        client.answered += 1
        raise ServerError("failed", status=424, usage={"prompt_tokens": 5})

    doc = Doc(task_name="t", query="س", choices=["أ"], gold_index=0)
    with pytest.raises(PromptRefused) as refused:
        asyncio.run(naming(doc, fails, None, None, [])(SimpleNamespace(answered=0)))
    assert (refused.value.kind, refused.value.usage) == ("server", {"prompt_tokens": 5})


def test_a_token_without_probability_is_left_out():
    doc = Doc(task_name="t", query="س", choices=["أ", "ب"], gold_index=0)
    tokens = [("أ".encode().hex(), -0.5), (b"x".hex(), -9.0), ("ب".encode().hex(), -math.inf)]
    response = first_token_response(doc, [], {"top": tokens})
    assert response.logprobs == [-0.5, -10.0] == first_token_response(doc, [], {"top": tokens[:2]}).logprobs


def test_whatever_ends_a_run_the_requests_in_flight_are_kept(tmp_path):
    async def fails(client):
        await asyncio.sleep(0.05)
        raise OSError("odd")

    async def answers(client):
        await asyncio.sleep(0.2)
        return {"completions": [], "usage": None, "model": "m"}

    questions = {answer_key(n=0): fails, (kept := answer_key(n=1)): answers}
    with pytest.raises(OSError, match="odd"):
        settings = settings_of(SimpleNamespace(url="http://127.0.0.1:9/v1"))
        answer_all(settings, questions, Journal(tmp_path), lambda *_: Usage(0, 0), silent=True)
    assert kept in Journal(tmp_path)


def test_replies_of_no_use_are_paid_within_the_budget_and_never_forgotten(tmp_path):
    blocked = asked(chat_body(""), lambda client: client.chat(**CHAT), blocks_without_choices=True)
    assert blocked["completions"][0]["finish_reason"] == "content_filter" and blocked["usage"]["total_tokens"] == 10
    prices = {"input_token_price": 1, "output_token_price": 1, "image_tokens": 0}
    key, most = answer_key(question=1), 20

    def run(server, spent):
        budget, journal = Budget(ServedModel(model="m", base_url="http://x/v1", **prices, budget=50)), Journal(tmp_path)

        def pay(key, answer):
            return budget.pay(journal.paid(key, answer), RequestSize())

        async def ask(client):
            async with budget.reserved(most):
                return await client.chat(**CHAT)

        pay(key, None)
        assert budget.spent == spent
        settings = settings_of(server, max_retries=9)
        found = answer_all(settings, {key: ask}, journal, pay, silent=True, again=lambda key: budget.again(most))
        assert found and budget.spent == spent + 10

    with LoopbackServer(Hostile, "/v1") as server:
        server.body = chat_body('""', ', "finish_reason": "error"')
        with pytest.raises(BudgetSpent):
            run(server, 0)
        server.body = chat_body()
        with pytest.raises(BudgetSpent):
            run(server, 40)
        most = 10
        run(server, 40)


@pytest.mark.parametrize("end", ["its server is the same", "its server has changed", "it is killed"])
def test_an_answer_of_another_run_is_nobodys_until_that_has_asked_its_server_who_it_is(tmp_path, end):
    key, other = answer_key(question=1), Journal(tmp_path)
    other.append({key: {"of": "another run", "usage": {"n": 1}, "checks": ["c"]}})
    (file,) = tmp_path.glob("*.jsonl")
    file.rename(file.with_name(file.name.replace(f"-{os.getpid()}-", "-1-")))  # by which it is another process's

    def ends():
        if end == "its server is the same":
            other.confirm(["c"])
        elif end == "its server has changed":
            other.withdraw({key: None})
        else:
            os.close(other._descriptor)

    async def ask(client):
        return {"of": "this run", "usage": {"n": 2}}

    settings, journal = settings_of(SimpleNamespace(url="http://127.0.0.1:9/v1")), Journal(tmp_path)
    ending = threading.Timer(0.5, ends)
    ending.start()
    (answer,) = answer_all(settings, {key: ask}, journal, lambda *_: Usage(0, 0), silent=True).values()
    ending.join(0)
    assert not ending.is_alive() and answer["of"] == ("another run" if "same" in end else "this run")
    assert (journal.earlier(key) is not None) == ("same" in end), "an answer of another run is not recorded as of this"
    assert len(journal.paid(key, answer)) == (1 if "same" in end else 2), "what was paid is not forgotten"


def test_an_interrupted_command_does_not_name_as_kept_what_the_next_one_asks_anew(tmp_path, caplog):
    async def gone(url, patient, listed):
        raise ServerError("gone")

    async def stops(client):
        raise KeyboardInterrupt

    with LoopbackServer(Hostile, "/v1") as server, orderly_end():
        server.body = chat_body()
        watch = IdentityWatch(ServerIdentity("m"), SimpleNamespace(by_answer=False, ask=gone))
        questions = {answer_key(n=0): lambda client: client.chat(**CHAT), answer_key(n=1): stops}
        with pytest.raises(KeyboardInterrupt):
            settings, journal = settings_of(server, concurrency=1), Journal(tmp_path)
            answer_all(settings, questions, journal, lambda *_: Usage(0, 0), "asking", watch=watch)
        told = interruption_message(KeyboardInterrupt())
    assert "1 of the run's answers" in caplog.text and "asks for them anew" in caplog.text
    assert "Kept: 0 of 2 answers (asking)" in told


def test_a_key_that_a_reply_repeats_in_escapes_is_not_read():
    key = "sk-SECRET/0123456789abcdef"
    forms = [key, key.replace("/", r"\/"), key.replace("S", r"\u0053"), "".join(f"\\u{ord(one):04X}" for one in key)]
    for form in [*forms, *(form.replace("\\", "\\\\") for form in forms)]:
        answer = asked(chat_body(f'"It is {form}, \\n so."'), lambda client: client.chat(**CHAT), key=key)
        assert answer["completions"][0]["text"] == "It is [key], \n so."


class Dripping(Handler):
    """Answers a byte at a time, for ever."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        while not self.server.done.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()

    def do_POST(self):
        self.asked()
        self.do_GET()


@pytest.mark.parametrize("ask", ["model_entry", "token_count"])
def test_a_reply_that_never_ends_is_given_up(ask, monkeypatch):
    monkeypatch.setattr(openai_client, "_HEALTH_TIMEOUT_S", 0.3)

    async def run(server):
        async with OpenAIClient(settings_of(server)) as client:
            question = client.model_entry("m") if ask == "model_entry" else client.token_count(model="m", prompt="x")
            return await asyncio.wait_for(question, 5)

    with LoopbackServer(Dripping, "/v1") as server:
        server.done = threading.Event()
        try:
            if ask == "token_count":
                assert asyncio.run(run(server)) is None
            else:
                with pytest.raises(ServerError) as refused:
                    asyncio.run(run(server))
                assert refused.value.unreachable
        finally:
            server.done.set()


def test_a_run_that_was_asleep_until_its_time_was_up_has_one_more_try():
    tries = _Tries(ServerSettings(("http://localhost:1/v1",), give_up_s=60))
    failed, stopped = SimpleNamespace(outcome=SimpleNamespace(exception=TimeoutError)), []
    for asleep in (0, 70, 0):
        tries.started -= asleep
        tries.note(failed)
        stopped.append(tries.stop(failed))
    assert stopped == [False, False, True]


class Busy(Handler):
    """Refuses as many requests as the server's `refusals`, with its `refusal`, and notes when each comes."""

    def do_POST(self):
        self.asked()
        self.server.moments.append(time.monotonic())
        refused = len(self.server.moments) <= self.server.refusals
        self.reply(*(self.server.refusal if refused else (200, chat_body())))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refusals", "refusal", "waits", "tries"),
    [
        (12, (429, {}, {"retry-after-ms": "50"}), {"backoff_s": 1.0, "give_up_s": 60}, {13}),
        (10**9, (429, {}, {"retry-after-ms": "300"}), {"backoff_s": 1.0, "give_up_s": 1}, {2, 3, 4}),
        (10**9, (500, {}), {"backoff_s": 60.0, "give_up_s": 1, "max_retries": 9}, set(range(2, 11))),
        (10**9, (429, {}, {"retry-after": "0"}), {"give_up_s": 60, "max_retries": 3}, {4}),
        (10**9, (200, {"choices": [{"message": None}]}), {"give_up_s": 60, "max_retries": 8}, {3}),
    ],
    ids=["goes on when asked to", "asked beyond the limit", "own pauses", "asked for no wait", "lacks choices"],
)
def test_waits_are_those_asked_for_and_tries_end_with_the_limits(refusals, refusal, waits, tries):
    async def run():
        async with OpenAIClient(settings_of(server, **waits)) as client:
            await client.chat(**CHAT)

    with LoopbackServer(Busy, "/v1") as server:
        server.refusals, server.refusal, server.moments = refusals, refusal, []
        with nullcontext() if refusals == 12 else pytest.raises(ServerError):
            asyncio.run(run())
        assert len(server.moments) in tries


def test_nothing_left_of_a_limit_is_waited_for_and_a_limit_that_there_is_not_is_none():
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "8s"}
    assert pause_after_answer(headers) == wait_after_refusal(headers, None) == 8
    assert pause_after_answer(headers | {"x-ratelimit-remaining-requests": "-1"}) == 0
