"""Whatever a server does, the answers are complete and right, and nothing is asked more often than it must be."""

import asyncio
import base64
import dataclasses
import email.utils
import io
import json
import logging
import math
import multiprocessing
import os
import threading
import time
from types import SimpleNamespace

import faulty_server
import openai
import pytest
import yaml
from datasets import Dataset
from faulty_server import MODEL, FaultyServer, answer_text, docs_of, flatten, token_logprob
from hypothesis import given
from hypothesis import strategies as st
from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.models.model_loader import load_custom_model
from openai.types.chat import ChatCompletion
from PIL import Image
from waiting import PATIENCE, own_port

from cultureval.models import openai_api
from cultureval.models.openai_api import OpenAIModel, read_config
from cultureval.models.server import scoring as server_scoring
from cultureval.models.server.abilities import abilities
from cultureval.models.server.refused_answers import PromptRefused
from cultureval.models.tokens import rolling_windows
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import WITHDRAWN, open_journal
from cultureval.runtime.servers import replies
from cultureval.runtime.servers.data_urls import data_url
from cultureval.runtime.servers.errors import ServerError, retry_after
from cultureval.runtime.servers.openai_client import health_check


@pytest.fixture(autouse=True)
def own_settings(own_folders, monkeypatch):
    for name in ("CULTUREVAL_RESUME", "CULTUREVAL_MODEL_SETTINGS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def load(tmp_path):
    """Load the model file as `lighteval custom` does, with settings written as a user writes them."""

    def build(*servers, **settings):
        file = tmp_path / "settings.yaml"
        urls = [server if isinstance(server, str) else server.url for server in servers]
        defaults = {"model": MODEL, "base_url": urls[0] if len(urls) == 1 else urls, "backoff_s": 0.02}
        file.write_text(yaml.safe_dump(defaults | settings))
        config = CustomModelConfig(model_name=str(file), model_definition_file_path=openai_api.__file__)
        return load_custom_model(config)

    return build


def texts(model, queries, **fields):
    return [response.text for response in model.greedy_until(docs_of(queries, **fields))]


FAULTS = [
    *("drop", "500", "503", "408", "409", "rate", "rate_without_header", "cut_json", "cut_body", "no_choices"),
    *("error_body", "no_message", "bad_utf8", "odd_date", "broken_off", "page", "delay", None),
]


def test_every_fault_is_survived_and_nothing_is_asked_needlessly(load):
    queries = [f"{fault} {number}" for fault in FAULTS for number in range(3)]

    def plan(prompt, count):
        fault = prompt.split()[0]
        return fault if fault in FAULTS and count <= int(prompt.split()[1]) else None

    with FaultyServer(plan) as server:
        model = load(server, concurrency=8)
        assert texts(model, queries) == [[answer_text(query)] for query in queries]
        faults = {query: 0 if "delay" in query or "None" in query else int(query.split()[1]) for query in queries}
        assert server.asked == {query: faults[query] + 1 for query in queries}
        before = sum(server.asked.values())
        assert texts(load(server), queries) == [[answer_text(query)] for query in queries]
        assert sum(server.asked.values()) == before


@pytest.mark.slow
def test_a_server_that_hangs_is_asked_again(load):
    with FaultyServer(lambda prompt, count: "hang" if count <= int(prompt[1:]) else None) as server:
        assert texts(load(server, timeout_s=1.0), ["q1", "q2"]) == [[answer_text("q1")], [answer_text("q2")]]
        assert server.asked["q1"] >= 2 and server.asked["q2"] >= 3  # more where this machine is slow


def test_a_server_that_fails_now_and_then_is_said_to_once_and_so_is_that_it_answers_again(load, caplog):
    with FaultyServer(lambda prompt, count: "drop" if count <= 2 else None) as server:
        assert texts(load(server, concurrency=2), ["a", "b", "c"]) == [[answer_text(query)] for query in "abc"]
    away, back = [record.getMessage() for record in caplog.records if record.name.endswith("openai_client")]
    assert away.startswith(server.url) and away.endswith("retrying") and "answers again, after " in back


def test_a_server_that_was_never_there_is_not_said_to_have_gone(load, caplog):
    with FaultyServer() as server, FaultyServer() as gone:
        gone.down = True
        assert texts(load(server, gone), ["a", "b", "c"]) == [[answer_text(query)] for query in "abc"]
    assert "does not answer" in caplog.text and "does not say any more" not in caplog.text


def test_a_server_that_dies_is_told_once_and_not_asked_again_and_again(load, caplog):
    def plan(prompt, count):
        server.down = prompt == "q3"
        return "drop" if server.down else None

    with FaultyServer(plan) as server:
        with pytest.raises(ServerError, match="did not answer"):
            texts(load(server, concurrency=4, max_retries=2), [f"q{number}" for number in range(12)])
    assert sum("does not answer" in record.getMessage() for record in caplog.records) == 1
    assert server.lists < 4 * 3 + 3 + 3, "a try of each worker's requests, before the run, and at its end"


def test_retry_after_holds_back_every_request_to_that_server(load):
    queries = [f"q{i}" for i in range(30)]
    with FaultyServer(lambda prompt, count: "rate" if prompt == "q3" and count == 1 else None, delay=0.01) as server:
        assert texts(load(server, concurrency=4), queries) == [[answer_text(query)] for query in queries]
        (told,) = [moment for moment, fault in server.arrivals if fault == "rate"]
        # Those that were on their way when the server asked for a second of silence; without it all come at once.
        assert sum(0 < moment - told < 0.95 for moment, _ in server.arrivals) < 10
        assert sum(server.asked.values()) == len(queries) + 1


@pytest.mark.slow
def test_being_told_to_wait_does_not_use_up_the_retries(load):
    with FaultyServer(lambda prompt, count: "rate" if count <= 2 else None) as server:
        assert texts(load(server, max_retries=0), ["q"]) == [[answer_text("q")]]


def test_being_told_to_wait_longer_than_we_may_stops_the_run_at_once(load):
    queries = [f"q{i}" for i in range(10)]
    with FaultyServer(lambda prompt, count: "a_day" if prompt == "q7" else None) as server, FaultyServer() as other:
        with pytest.raises(ServerError, match="enough for today.*86400 s"):
            texts(load(server, concurrency=2), queries)
        assert len(open_journal()) >= 6
        assert texts(load(server, other, concurrency=2), queries) == [[answer_text(query)] for query in queries]


def test_a_server_that_comes_back_is_not_missed_while_another_is_to_be_left_alone(load):
    queries = [f"q{i}" for i in range(10)]
    with FaultyServer(lambda prompt, count: "a_day") as busy, FaultyServer() as dead:
        dead.down = True
        threading.Timer(1.0, lambda: setattr(dead, "down", False)).start()
        assert texts(load(busy, dead, concurrency=2), queries) == [[answer_text(query)] for query in queries]


@pytest.mark.parametrize(("header", "least", "most"), [("3", 3, 3), ("date", 3, 6), ("soon", None, None)])
def test_retry_after_may_be_seconds_or_a_date(header, least, most):
    value = email.utils.formatdate(time.time() + 5, usegmt=True) if header == "date" else header
    response = SimpleNamespace(request=None, status_code=429, headers={"retry-after": value})
    wait = retry_after(openai.RateLimitError("slow down", response=response, body=None))
    assert wait is None if least is None else least <= wait <= most


def test_the_concurrency_limit_is_reached_and_kept(load):
    with FaultyServer(delay=0.05) as server:
        texts(load(server, concurrency=5), [f"q{i}" for i in range(30)])
        assert server.most_at_once == 5


def test_two_servers_share_the_work(load):
    queries = [f"q{i}" for i in range(60)]
    with FaultyServer(delay=0.01) as one, FaultyServer(delay=0.01) as two:
        assert texts(load(one, two, concurrency=6), queries) == [[answer_text(query)] for query in queries]
        assert set(one.asked) | set(two.asked) == set(queries)
        assert sum(one.asked.values()) + sum(two.asked.values()) == 60
        assert min(sum(one.asked.values()), sum(two.asked.values())) >= 20


@pytest.mark.slow
@pytest.mark.parametrize("features", [(), ("bare_list",)])
def test_a_dead_server_is_left_out_and_taken_back(load, features):
    queries = [f"q{i}" for i in range(160)]
    with FaultyServer(delay=0.02) as alive, FaultyServer(delay=0.02, features=features) as dead:
        assert health_check(load(alive, dead).config.servers()) == {}
        dead.down = True

        def revive(prompt, count):
            dead.down = sum(alive.asked.values()) < 20

        alive.plan = revive
        assert texts(load(alive, dead, concurrency=2), queries) == [[answer_text(query)] for query in queries]
        assert 0 < dead.dropped_while_down <= 4
        assert sum(dead.asked.values()) >= 10
        assert sum(alive.asked.values()) + sum(dead.asked.values()) == 160


def test_a_server_that_is_loading_its_model_is_waited_for(load):
    """`503 Loading model` ended a start after one request, as a server that is not there does."""
    with FaultyServer(features=("prompt_logprobs", "loading")) as server:
        settings = load(server).config.servers()
        server.lists = 0
        assert (
            health_check(dataclasses.replace(settings, max_retries=0))[server.url].status == 503 and server.lists == 1
        )
        assert health_check(settings) == {} and server.lists == 4


def test_a_server_that_never_answers_stops_the_run_with_everything_so_far_kept(load, monkeypatch):
    queries = [f"q{i}" for i in range(10)]
    with FaultyServer(lambda prompt, count: "500" if prompt == "q7" else None) as server:
        with pytest.raises(ServerError, match="500|broken") as stopped:
            texts(load(server, concurrency=1, max_retries=2), queries)
        assert "The same command goes on from the answers that are kept" in str(stopped.value)
        assert server.asked["q7"] == 3 and len(open_journal()) == 7
        server.plan = lambda prompt, count: None
        assert texts(load(server), queries) == [[answer_text(query)] for query in queries]
        assert server.answered == dict.fromkeys(queries, 1)
        server.plan = lambda prompt, count: "500"
        monkeypatch.setenv("CULTUREVAL_RESUME", "0")
        with pytest.raises(ServerError, match="The same command without --no-resume goes on"):
            texts(load(server, max_retries=0), queries)


def test_refusals_and_filters_are_an_outcome_of_their_own(load, monkeypatch):
    queries = ["filter_prompt", "other_filter", "filter_answer", "refusal", "plain"]
    with FaultyServer(lambda prompt, count: prompt) as server:
        with pytest.raises(CulturevalError, match=r"4 cannot be used \(3 stopped .* 1 refused .*--on-refused"):
            load(server).greedy_until(docs_of(queries))
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
        docs = docs_of(queries)
        responses = load(server).greedy_until(docs)
        assert server.asked == dict.fromkeys(queries, 1)  # what they answered is kept, and not asked again
    assert [getattr(one, "kind", "") for one in responses] == ["filter", "filter", "filter", "refusal", ""]
    assert "no" in responses[0].reason and "I will not." in responses[3].reason
    assert responses[4].text == [answer_text("plain")]
    assert docs[4].specific["finish_reasons"] == ["stop"] and docs[4].specific["refusals"] == [None]


MISTRAL = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "text", "thoughts"),
    [
        ("<think>one\ntwo</think>\nyes\nmore", "yes", "one\ntwo"),
        ("one\ntwo</think>\nyes", "yes", "one\ntwo"),
        ("<think>one\ntwo", "", "one\ntwo"),
        (MISTRAL, "yes", "hm"),
        ("half \ud83d an emoji", "half \ufffd an emoji", None),
        ("a whole one \U0001f600", "a whole one \U0001f600", None),
    ],
)
def test_thoughts_are_kept_apart_and_every_character_can_be_saved(load, content, text, thoughts):
    with FaultyServer(reply=lambda prompt, index: content, reasoning=None) as server:
        (response,) = load(server).greedy_until(docs_of(["q"], stop_sequences=["\n"]))
    assert (response.text, response.reasonings) == ([text], [thoughts])


def test_the_key_is_sent_and_written_nowhere(load, tmp_path, monkeypatch, caplog, capfd):
    secret = "sk-never-to-be-seen-0123456789"
    monkeypatch.setenv("MY_KEY", secret)
    caplog.set_level(logging.DEBUG)
    with FaultyServer(
        lambda prompt, count: {"bad": "bad_request", "slow": "rate", "page": "page_with_header"}.get(
            prompt * (count == 1 or prompt == "page")
        )
    ) as server:
        model = load(server, api_key_env="MY_KEY", concurrency=1, max_retries=1)
        texts(model, ["slow", "fine"])
        for query in ("bad", "page"):
            with pytest.raises(ServerError) as refused:
                texts(model, [query])
            assert "[key]" in str(refused.value) and secret[:8] not in str(refused.value)
        assert set(server.authorizations) == {f"Bearer {secret}"}
    printed = capfd.readouterr()
    assert secret not in caplog.text + printed.out + printed.err + model.config.model_dump_json() + repr(vars(model))
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(CulturevalError, match="MY_KEY"):
        load("http://localhost:1/v1", api_key_env="MY_KEY")


def test_a_key_that_a_server_repeats_is_in_no_answer_journal_or_results(load, tmp_path, monkeypatch):
    secret = "sk-repeated-by-a-proxy-0123456789"
    monkeypatch.setenv("MY_KEY", secret)
    echo = {"reply": lambda prompt, index: f"{prompt} {secret}", "reasoning": secret, "entry": {"root": secret}}
    with FaultyServer(**echo) as server:
        model = load(server, api_key_env="MY_KEY")
        (response,) = model.greedy_until(docs_of(["ask"]))
    assert response.text == ["ask [key]"] and response.reasonings == ["[key]"]
    assert secret not in json.dumps(model.run_record())
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]


def test_a_short_key_is_no_secret_that_would_be_cut_out_of_answers(load, monkeypatch):
    monkeypatch.setenv("MY_KEY", "none")
    with FaultyServer(reply=lambda prompt, index: "none of these") as server:
        assert texts(load(server, api_key_env="MY_KEY"), ["ask"]) == [["none of these"]]


@pytest.mark.parametrize("query", ["key=sk-1", "api-version=1&access_token=sk-1", "X-Signature=sk-1"])
def test_an_address_with_a_secret_is_refused_without_repeating_it(load, query):
    with pytest.raises(CulturevalError, match="carries a secret") as refused:
        load(f"http://localhost:1/v1?{query}")
    assert "sk-1" not in str(refused.value)


@pytest.mark.parametrize("key", ["sk-123\n", "sk-123\r", " sk-123", "sk-123م"])
def test_a_key_that_cannot_be_sent_is_refused_before_a_library_logs_it(load, monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(CulturevalError, match="MY_KEY") as refused:
        load("http://localhost:1/v1", api_key_env="MY_KEY")
    assert "sk-123" not in str(refused.value)


def test_no_key_of_another_provider_is_sent(load, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-provider")
    with FaultyServer() as server:
        texts(load(server), ["q"])
        assert server.authorizations == ["Bearer none"]


def test_images_stand_in_front_of_the_text_and_arrive_as_they_were(load, tmp_path):
    photo = tmp_path / "photo.jpg"
    Image.new("RGB", (40, 30), "red").save(photo, quality=31)
    drawing = Image.linear_gradient("L").resize((20, 50))
    shot = docs_of(["shot?"], images=[drawing], choices=["yes"])[0]
    (doc,) = docs_of(["what?"], images=[str(photo), drawing], fewshot_samples=[shot], instruction="Look. ")
    with FaultyServer() as server:
        model = load(server, system_prompt="Be brief.")
        (response,) = model.greedy_until([doc])
        (request,) = server.requests
        assert [message["role"] for message in request["messages"]] == ["system", "user", "assistant", "user"]
        assert [part["type"] for part in request["messages"][3]["content"]] == ["image_url", "image_url", "text"]
        prompt = flatten(request["messages"])
        assert response.text == [answer_text(prompt)]
        assert "[image image/jpeg " in prompt and prompt.count("[image image/png ") == 2
        sent = [part["image_url"]["url"] for part in request["messages"][3]["content"][:2]]
        assert data_url(photo) == sent[0]
        returned = Image.open(io.BytesIO(base64.b64decode(sent[1].partition(",")[2])))
        assert returned.tobytes() == drawing.tobytes()
        doc.images = [drawing, str(photo)]
        model.greedy_until([doc])
        small = load(server, system_prompt="Be brief.", image_max_side=10, image_format="jpeg")
        small.greedy_until([doc])
        assert sum(server.asked.values()) == 3
    url = server.requests[2]["messages"][3]["content"][0]["image_url"]["url"]
    smaller = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
    assert url.startswith("data:image/jpeg") and smaller.size == (4, 10)


def test_an_image_that_the_server_refuses_is_named_or_skipped(load, monkeypatch):
    drawing = Image.linear_gradient("L").resize((20, 50))
    docs = docs_of(["what?", "a strip?", "who?"], images=[drawing])
    with FaultyServer(lambda prompt, count: "bad_request" if "strip" in prompt else None) as server:
        with pytest.raises(
            CulturevalError, match="t, item 1: its image: the server refuses it: .*bad.*--bad-rows skip"
        ):
            load(server).greedy_until(docs)
        monkeypatch.setenv("CULTUREVAL_BAD_ROWS", "skip")
        first, strip, last = load(server).greedy_until(docs)
        assert first.text and last.text and "bad" in strip.reason and not strip.text
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
        monkeypatch.delenv("CULTUREVAL_BAD_ROWS")
        assert [bool(answer.text) for answer in load(server).greedy_until(docs)] == [True, False, True]
        monkeypatch.delenv("CULTUREVAL_ON_REFUSED")
        with pytest.raises(CulturevalError, match="t, item 0: the server refuses its prompt"):  # no image is to blame
            load(server).greedy_until(docs_of(["strip"]))


def test_answers_with_and_without_images_can_be_saved_together(load):
    drawing = Image.linear_gradient("L").resize((20, 50))
    docs = docs_of(["what?", "why?", "who?"], num_samples=1)
    docs[0].images = [drawing]
    docs[1].fewshot_samples = docs_of(["shot?"], images=[drawing])
    with FaultyServer() as server:
        responses = load(server, system_prompt="Be brief.").greedy_until(docs)
    saved = Dataset.from_list([dataclasses.asdict(response) for response in responses])
    assert saved[0]["input"][0]["content"][0]["text"] == "Be brief."
    assert [part["type"] for part in saved[0]["input"][1]["content"]] == ["image", "text"]
    assert saved[2]["input"][1]["content"][0]["text"] == "who?"


def test_samples_seeds_stops_and_reasoning(load):
    parameters = {"temperature": 0.7, "top_k": 5, "max_new_tokens": 9, "seed": 11, "stop_tokens": ["zzz"]}
    settings = {"generation_parameters": parameters, "n": 2}
    with FaultyServer() as server:
        docs = docs_of(["q"], num_samples=3, stop_sequences=["to q"])
        (response,) = load(server, **settings).greedy_until(docs)
        assert response.text == ["answer 0 ", "answer 1 ", "answer 0 "]
        assert response.reasonings == ["hm"] * 3
        common = {"temperature": 0.7, "top_k": 5, "max_tokens": 9, "stop": ["to q", "zzz"], "model": MODEL}
        asked = sorted(server.requests, key=lambda request: request["seed"])
        assert [request.items() >= common.items() for request in asked] == [True, True]
        assert [(request["seed"], request.get("n")) for request in asked] == [(11, 2), (13, None)]
        load(server, **settings | {"seed": 5}).greedy_until(docs)
        assert sorted(request["seed"] for request in server.requests) == [5, 7, 11, 13]
        with pytest.raises(CulturevalError, match="temperature"):
            load(server).greedy_until(docs)


def test_plain_completions_where_there_is_no_chat_template(load, tokenizer_folder):
    with FaultyServer() as server:
        assert texts(load(server, tokenizer=tokenizer_folder), ["q"]) == [[answer_text("q")]]
        assert server.requests[0]["prompt"] == "q"


def expected_logprobs(model, query, choices):
    contexts, continuations = model.tok_encode_pair(query, choices, pairwise=True)
    return [
        sum(token_logprob(context + choice[:i], token) for i, token in enumerate(choice))
        for context, choice in zip(contexts, continuations, strict=True)
    ]


CHOICES = [[" الرباط", " فاس والدار", " x"], ["A", "B", "C"], [" A", "B", ""]]


def test_log_likelihoods_are_those_of_the_choice_tokens(load, tokenizer_folder):
    with FaultyServer() as server:
        model = load(server, tokenizer=tokenizer_folder)
        assert [len(ids) for ids in model.tok_encode_pair("س\n", CHOICES[1], pairwise=True)[1]] == [2, 2, 2]
        docs = [doc for choices in CHOICES for doc in docs_of(["ما هي العاصمة؟ ", "答案", "س\n"], choices=choices)]
        responses = model.loglikelihood(docs)
        for doc, response in zip(docs, responses, strict=True):
            assert response.logprobs == pytest.approx(expected_logprobs(model, doc.query, doc.choices))
            _, tokens = model.tok_encode_pair(doc.query, doc.choices, pairwise=True)
            assert response.output_tokens == tokens
        asked = len(server.requests)
        again = load(server, tokenizer=tokenizer_folder).loglikelihood(docs)
        assert [response.logprobs for response in again] == [response.logprobs for response in responses]
        assert len(server.requests) == asked
        (rolled,) = model.loglikelihood_rolling(docs_of(["ما هي"]))
        ids = model.tok_encode("ما هي", add_special_tokens=False)
        bos = [model.tokenizer.bos_token_id]
        assert rolled.logprobs == pytest.approx([sum(token_logprob(bos + ids[:i], t) for i, t in enumerate(ids))])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words", "asked"),
    [
        ("elsewhere", "redirects to another host, localhost: if you trust", 1),
        ("large", "reply is larger than 1 MiB", 1),
        ("circle", "redirects more than 3 times", 4),
        ("bad_utf8", "cannot be read: UnicodeDecodeError", 3),  # as often as one without choices, since it may be paid
    ],
)
def test_replies_from_elsewhere_of_any_size_or_encoding_are_soon_refused(load, monkeypatch, fault, words, asked):
    monkeypatch.setattr(replies, "LARGEST_REPLY", 2**20)
    with FaultyServer(lambda prompt, count: fault if prompt == "q" else None) as server:
        with pytest.raises(ServerError, match=words):
            texts(load(server), ["q"])
        assert sum(server.asked.values()) == asked and len(open_journal()) == 0
        if fault != "elsewhere":
            monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
            refused, answered = load(server).greedy_until(docs_of(["q", "other"]))
            assert refused.kind == "no_answer" and answered.text == [answer_text("other")]


def test_choices_after_images_are_scored_within_the_limits(load):
    noise = Image.frombytes("RGB", (300, 200), os.urandom(300 * 200 * 3))
    asked = []

    class Client:
        async def send(self, call):
            call(SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **r: asked.append(r)))))
            raise ServerError("that is all")

    for images, expected in (([noise], "that is all"), ([noise, noise], "it has 2 images, and .* takes 1")):
        model = load("http://localhost:1/v1", image_mib=0.05, most_images=1)
        prompt = server_scoring.Prompt(docs_of(["q"], images=images)[0], "q", [{}], [[1]], [[2, 3]])
        scorer = server_scoring.Scorer(model.config, model._key, False, False)
        ((_, question),) = scorer.questions(prompt)
        with pytest.raises(ServerError, match=expected):
            asyncio.run(question(Client()))
    (request,) = asked
    assert len(request["messages"][0]["content"][0]["image_url"]["url"]) <= 0.05 * 2**20


@pytest.mark.parametrize("at_first", [True, False])
def test_a_wrong_tokenizer_stops_at_the_first_prompts_and_one_odd_prompt_is_its_row_s(load, at_first):
    """Behind images, where the server reports the tokens of a prompt."""
    model, ends = load("http://localhost:1/v1"), [] if at_first else [[2, 3]]

    class Client:
        async def send(self, call):
            tokens = [1, *(ends.pop() if ends else [2, 9])]
            entries = [{str(token): {"logprob": -1.0, "rank": 1}} for token in tokens]
            return ChatCompletion.construct(choices=[], prompt_token_ids=tokens, prompt_logprobs=entries)

    scorer = server_scoring.Scorer(model.config, model._key, False, False)
    docs = docs_of([f"q{number}" for number in range(5)], choices=["x", "y"])
    prompts = [server_scoring.Prompt(doc, doc.query, [{}], [[1], [1]], [[2, 3], [4, 3]]) for doc in docs]
    questions = [question for prompt in prompts for _, question in scorer.questions(prompt)]
    errors = []
    for question in questions[:5]:
        try:
            asyncio.run(question(Client()))
        except ServerError as error:
            assert "does not end with the choice's tokens" in str(error)
            errors.append("all" if error.refuses_all else "row")
    assert errors == (["row"] * 3 + ["all"] * 2 if at_first else ["row"] * 4)


def test_half_a_letter_is_a_sentence(load, tokenizer_folder):
    with FaultyServer() as server:
        model = load(server, tokenizer=tokenizer_folder)
        for answer in (model.greedy_until, model.loglikelihood, model.loglikelihood_rolling):
            with pytest.raises(CulturevalError, match=r"t, item 0: its text holds half of a letter \(U\+D83D"):
                answer(docs_of(["a\ud83d"]))


def test_equal_choices_and_equal_windows_are_each_scored(load, tokenizer_folder):
    """Those that were equal were one: a choice too few, and the log-likelihood of a text of repeated words too high."""
    with FaultyServer(features={"prompt_logprobs"}) as server:
        model = load(server, tokenizer=tokenizer_folder, max_length=9)
        asked = docs_of(["س"], choices=[" نعم نعم", " لا لا", " لا لا", " ربما غدا"])
        (response,) = load(server, tokenizer=tokenizer_folder).loglikelihood(asked)
        assert response.logprobs == pytest.approx(expected_logprobs(model, "س", asked[0].choices))
        assert response.logprobs[1] == response.logprobs[2] != response.logprobs[3]
        (rolled,) = model.loglikelihood_rolling(docs_of(["كلمة " * 40]))
        tokens = model.tok_encode("كلمة " * 40, add_special_tokens=False)
        windows = rolling_windows([model.tokenizer.bos_token_id], tokens, 9)
        each = [token_logprob([*before, *part[:at]], one) for before, part in windows for at, one in enumerate(part)]
        assert rolled.logprobs == [pytest.approx(sum(each))] and len(each) == len(tokens) and len(windows) > 10


def test_long_texts_are_scored_in_windows(load, tokenizer_folder):
    with FaultyServer() as server:
        model = load(server, tokenizer=tokenizer_folder, max_length=9)
        (rolled,) = model.loglikelihood_rolling(docs_of(["ما هي العاصمة؟ " * 4]))
        tokens, bos = model.tok_encode("ما هي العاصمة؟ " * 4, add_special_tokens=False), model.tokenizer.bos_token_id
        assert rolled.output_tokens == [tokens] and len(tokens) > 16
        seen = [request["prompt"] for request in server.requests]
        assert max(map(len, seen)) <= 9 and [bos, *tokens[:8]] in seen and tokens[-9:] in seen
        assert len(rolled.logprobs) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (None, "is None, not a number with a rank"),
        ({}, "is None, not a number"),
        ({"logprob": None, "rank": 1}, "None.*, not a number"),
        ({"logprob": float("nan"), "rank": 1}, "nan.*, not a number"),
        ({"logprob": 0.5, "rank": 1}, "0.5 as the log-probability of a token, which is positive"),
        ("cut", r"returns (\d+) log-probabilities for a prompt of (?!\1 )\d+ tokens"),
    ],
)
def test_what_is_no_log_probability_is_never_scored(load, tokenizer_folder, entry, words):
    with FaultyServer(last_entry=entry) as server, pytest.raises(ServerError, match=words):
        load(server, tokenizer=tokenizer_folder).loglikelihood(docs_of(["س"], choices=["نعم نعم", "لا لا"]))
    assert {label for label, *_ in open_journal()._index.by_label()} == {WITHDRAWN}, "what it cost is kept"


def test_probabilities_of_labels_that_sum_to_more_than_1_are_never_scored(load, tokenizer_folder, monkeypatch):
    """`scoring: first_token` refused them, and this route did not."""
    monkeypatch.setattr(faulty_server, "token_logprob", lambda tokens, token: -0.1)
    with (
        FaultyServer(features=("prompt_logprobs", "labels")) as server,
        pytest.raises(ServerError, match="sum to 1.81"),
    ):
        load(server, tokenizer=tokenizer_folder).loglikelihood(docs_of(["س"], choices=["ب", "ج"]))


@pytest.mark.slow
@pytest.mark.parametrize("repeat", [2, 3])
@pytest.mark.parametrize("logprob", [math.nan, -math.inf])
def test_a_useless_reply_to_a_question_that_is_only_repeated_ends_nothing(load, tokenizer_folder, logprob, repeat):
    """The check that scores do not drift ended the run, and advised what was set already."""
    asked = docs_of([f"س{number}" for number in range(9)], choices=["نعم نعم", "لا لا"])
    with FaultyServer(features=("prompt_logprobs",)) as server:

        def plan(prompt, count):
            server.last_entry = {"logprob": logprob, "rank": 1} if count == repeat else ...

        server.plan = plan
        responses = load(server, tokenizer=tokenizer_folder).loglikelihood(asked)
        assert max(server.asked.values()) >= repeat and len(responses) == len(asked)
    assert all(math.isfinite(value) for one in responses for value in one.logprobs)


def test_scores_of_choices_are_paid_within_the_budget(load, tokenizer_folder):
    asked = docs_of(["س1", "س2", "س3"], choices=["نعم نعم", "لا لا"])
    prices = {"tokenizer": tokenizer_folder, "input_token_price": 1.0, "concurrency": 1}
    with FaultyServer() as server:

        def bill():
            return sum(len(request["prompt"]) for request in server.requests)

        model = load(server, **prices)
        model.loglikelihood(asked)
        whole = bill()
        assert model.run_record()["tokens"]["cost"] == whole, "with what was asked to see if scores are stable"
        with pytest.raises(CulturevalError, match="has no room for another call"):
            load(server, **prices, revision="2", budget=whole / 2).loglikelihood(asked)
        assert whole / 4 < bill() - whole <= whole / 2


def test_what_is_asked_of_who_a_server_is_and_what_it_can_do_is_paid_too(load):
    with FaultyServer() as server:
        server.probe_usage = {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21}
        prices = {"input_token_price": 1.0, "concurrency": 1}
        model = load(server, **prices)
        abilities(model.config, False, True)
        texts(model, ["q"])
        assert server.probes > 4 and model.run_record()["tokens"]["cost"] == 20 * server.probes + 3
        with pytest.raises(CulturevalError, match="has no room for another call"):
            texts(load(server, **prices, revision="2", budget=30), ["q"], generation_size=2)
        assert server.asked["q"] == 1, "what remains is too little after the question who the server is"


def test_what_the_server_refuses_is_left_to_the_run_and_what_it_answers_is_compared():
    def question(*replies):
        left = iter(replies)

        async def ask(_):
            reply = next(left)
            if isinstance(reply, Exception):
                raise reply
            return {"logprobs": [reply], "greedy": [True], "tokens": [1]}

        return ask

    class Client:
        def __init__(self, changes):
            self.changes, self.times_changed = changes, 0

        async def make_sure_of_all(self):
            self.times_changed = min(self.times_changed + 1, self.changes)

    def largest_difference(*questions, changes=0):
        probe = server_scoring.parity_probe(questions, tolerance=0.5)
        return asyncio.run(probe(Client(changes)))["largest_difference"]

    refused, down = PromptRefused(docs_of(["q"])[0], "it is no image"), ServerError("it is down")
    steady = (-1.0, -1.0, -1.0)
    for others in ((refused,), (-9.0, refused), (-9.0, -9.25, refused)):
        assert largest_difference(question(*others), question(*steady)) == (0.25 if len(others) == 3 else 0)
    cold, later = (-1.0, -3.0, -3.0), (-3.0, -3.0, -3.0)  # as of a prefix cache, or of a server that restarted
    with pytest.raises(ServerError, match="differ by 2 per token"):
        largest_difference(question(*cold, *later), question(*steady, *steady))
    for changes in (1, 2):
        replies = question(*cold * changes, *later), question(*steady * (changes + 1))
        assert largest_difference(*replies, changes=changes) == 0
    for rounds, changes, told in ((2, 1, "differ by 2 per token"), (3, 3, "again and again")):
        with pytest.raises(ServerError, match=told):
            largest_difference(question(*cold * rounds), question(*steady * rounds), changes=changes)
    with pytest.raises(ServerError, match="down"):
        largest_difference(question(*steady), question(-1.0, down))


@pytest.mark.slow
@pytest.mark.parametrize("features", [{"prompt_logprobs", "labels"}, {"prompt_logprobs"}, {"other_labels"}])
def test_labels_are_read_from_the_next_token_only_where_that_is_exact(load, tokenizer_folder, features):
    features |= {"prompt_logprobs", "labels"} if "other_labels" in features else set()
    with FaultyServer(features=features) as server:
        model = load(server, tokenizer=tokenizer_folder)
        docs = docs_of([f"السؤال {i}" + "\n" * (i % 2) for i in range(20)], choices=["A", "B", "C"])
        for doc, response in zip(docs, model.loglikelihood(docs), strict=True):
            assert response.logprobs == pytest.approx(expected_logprobs(model, doc.query, doc.choices))
        by_choice = [request for request in server.requests if not request.get("logprobs")]
        assert len(by_choice) == 1 if features == {"prompt_logprobs", "labels"} else len(by_choice) >= 60


def test_a_server_without_prompt_log_probabilities_is_told_apart(load, tokenizer_folder, tmp_path):
    with FaultyServer(features=()) as server, pytest.raises(CulturevalError, match="qimma_gen.* vLLM"):
        load(server, tokenizer=tokenizer_folder).loglikelihood(docs_of(["س"], choices=["نعم نعم", "لا لا"]))
    with FaultyServer() as server, pytest.raises(CulturevalError, match="tokenizer"):
        load(server, tokenizer=str(tmp_path)).loglikelihood(docs_of(["س"], choices=["نعم", "لا"]))


def test_log_probabilities_that_depend_on_the_order_of_requests_are_refused(load, tokenizer_folder):
    with FaultyServer(features={"prompt_logprobs", "drifts"}) as server:
        model = load(server, tokenizer=tokenizer_folder)
        with pytest.raises(ServerError, match="prefix caching"):
            model.loglikelihood(docs_of(["س", "ش"], choices=["نعم نعم", "لا لا"]))
        assert {label for label, *_ in open_journal()._index.by_label()} == {WITHDRAWN}, "what the check cost is kept"
        server.features.discard("drifts")
        model = load(server, tokenizer=tokenizer_folder)
        model.loglikelihood(docs_of(["س", "ش"], choices=["نعم نعم", "لا لا"]))
        paid = sum(len(request["prompt"]) for request in server.requests)
        assert model.run_record()["tokens"]["tokens_paid_in"] == paid


@pytest.mark.slow
@pytest.mark.parametrize("labels", [False, True])
def test_a_server_that_has_seen_the_prompts_passes_no_check_from_its_cache(load, tokenizer_folder, labels):
    """The same command, repeated after its refusal, was taken for stable: all that it asked came from the cache."""
    choices = ["A", "B"] if labels else ["نعم نعم", "لا لا"]
    with FaultyServer(features={"prompt_logprobs", "remembers"} | ({"labels"} if labels else set())) as server:
        for _ in range(2):
            with pytest.raises(ServerError, match="prefix caching"):
                load(server, tokenizer=tokenizer_folder).loglikelihood(
                    docs_of(["سؤال طويل", "ما؟"] * 2, choices=choices)
                )


@pytest.mark.parametrize(("refused", "told"), [(4, "prefix caching"), (40, None)])
def test_prompts_that_are_refused_are_no_check_of_the_order_of_requests(
    load, tokenizer_folder, monkeypatch, caplog, refused, told
):
    """A server that refused the four prompts of the check, as filters may what is no text, passed it."""
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    asked = docs_of([f"سؤال {number}" for number in range(8)], choices=["نعم نعم", "لا لا"])
    with FaultyServer(features={"prompt_logprobs", "remembers"}) as server:
        server.plan = lambda prompt, count: "bad_request" if len(server.requests) < refused else None
        model = load(server, tokenizer=tokenizer_folder, concurrency=1)
        if told:
            with pytest.raises(ServerError, match=told):
                model.loglikelihood(asked)
        else:
            assert len(model.loglikelihood(asked)) == 8 and "none of the prompts by which is checked" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("labels", [False, True])
def test_a_reply_that_a_filter_stopped_is_no_score_of_choices(load, tokenizer_folder, monkeypatch, labels):
    asked = docs_of([f"سؤال {number}" for number in range(6)], choices=["A", "B"] if labels else ["نعم نعم", "لا لا"])
    with FaultyServer(features={"prompt_logprobs"} | ({"labels"} if labels else set())) as server:
        model = load(server, tokenizer=tokenizer_folder, concurrency=1)
        filtered = str(model._prompts(asked[2]).contexts[0])[:-1]
        server.plan = lambda prompt, count: "filter_answer" if prompt.startswith(filtered) else None
        with pytest.raises(CulturevalError, match="1 stopped by the provider's filter.*--on-refused unscored"):
            model.loglikelihood(asked)
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
        before = len(server.requests)
        responses = load(server, tokenizer=tokenizer_folder, concurrency=1).loglikelihood(asked)
        assert [getattr(one, "kind", "") for one in responses] == ["", "", "filter", "", "", ""]
        assert len(server.requests) == before, "what was filtered is kept"


def test_a_loose_check_is_told_signed_and_no_other_run_s(load, tokenizer_folder, caplog):
    """Answers that passed a loose check were reused, unchecked, by a run with the default tolerance."""
    asked = docs_of(["س", "ش"], choices=["نعم نعم", "لا لا"])
    with FaultyServer(features={"prompt_logprobs", "remembers"}) as server:
        model = load(server, tokenizer=tokenizer_folder, parity_tolerance=100)
        assert len(model.loglikelihood(asked)) == 2 and "parity_tolerance allows" in caplog.text
        assert "parity_tolerance=100" in model.signature_fields()["settings"]
        assert model.run_record()["model"]["settings"]["parity_tolerance"] == 100
        with pytest.raises(ServerError, match="prefix caching"):
            load(server, tokenizer=tokenizer_folder).loglikelihood(asked)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_a_prompt_with_another_beginning_is_as_long_and_scores_its_labels_alike(context, choice):
    labels = [[*choice[:-1], 98], [*choice[:-1], 99]]
    prompt = server_scoring.Prompt(docs_of(["q"])[0], "q", None, [context, context], labels)
    begun, again, other = map(prompt.begun_with, ("a", "a", "b"))
    assert begun == again and prompt.begun_with("") is prompt
    assert [*map(len, begun.contexts)] == [*map(len, other.contexts)]
    for one, label, old in zip(begun.contexts, begun.choices, labels, strict=True):
        assert one[0] == context[0] and len(one) + len(label) == len(context) + len(old) and label
        assert one[server_scoring._NEW_TOKENS + 1 :] == context[server_scoring._NEW_TOKENS + 1 :]
    if len(context) > len(choice):
        assert begun.choices == labels and begun.differ_in_last_token()


@pytest.mark.slow
def test_answers_of_other_settings_are_not_reused(load):
    changes = [
        {},
        {"model": "org/other"},
        {"revision": "2"},
        {"system_prompt": "s"},
        {"generation_parameters": {"temperature": 0.1}},
        {"seed": 3},
        {"extra_body": {"x": 1}},
        {"chat_template": False},
    ]
    with FaultyServer() as server:
        for change in changes:
            texts(load(server, **change), ["q"])
        assert len(server.requests) == len(changes)
        for change in changes:
            texts(load(server, concurrency=1, timeout_s=5, **change), ["q"])
        assert len(server.requests) == len(changes)


def test_settings_are_checked(tmp_path, monkeypatch):
    def read(text):
        file = tmp_path / "s.yaml"
        file.write_text(text)
        return read_config(str(file))

    good = "model: /models/org/m\nbase_url: [http://a/v1, http://b/v1]\n"
    config = read("model_parameters:\n  " + good.replace("\n", "\n  "))
    assert (config.model, config.model_name) == ("/models/org/m", "models/org/m")
    assert config.servers().base_urls == ("http://a/v1", "http://b/v1")
    for text, message in [
        (good + "concurency: 3", "concurrency"),
        (good + "api_key: sk-123", "api_key_env"),
        (good + "generation_parameters: {temprature: 1}", "temperature"),
        (good + "generation_parameters: {top_p: 2}", "top_p: 2 is not between 0 and 1"),
        (good + "generation_parameters: {temperature: .inf}", "temperature: inf is not finite"),
        (good + "concurrency: 0", "concurrency"),
        ("model: m", "base_url"),
        ("- a", "name: value"),
        ("{", "cannot be read"),
    ]:
        with pytest.raises(CulturevalError, match=message) as error:
            read(text)
        assert "sk-123" not in str(error.value)
    for url in ("http://me:sk-123@a/v1", "me:sk-123@a/v1", "http://a:sk-123/v1", "http://[::1", "a/v1"):
        with pytest.raises(CulturevalError) as error:
            read(f"model: m\nbase_url: {url}").servers()
        assert "sk-123" not in str(error.value)
    monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", json.dumps({"seed": 5, "base_url": "http://c/v1"}))
    assert (read(good).seed, read(good).base_url, read_config("m").model) == (5, ("http://c/v1",), "m")


def answered_by(rank, port, load, server, folder, found):
    """What one of two processes has after the last answer; the second ends with `cleanup`."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    model = load(server, concurrency=4, tokenizer=folder)
    docs = docs_of([f"text {number}" for number in range(9)])
    answers = [response.text for response in model.greedy_until(docs)]
    choices = docs_of([f"choice {number}" for number in range(5)], choices=["a", "b c"])
    scores = [response.logprobs for response in model.loglikelihood(choices)]
    model.cleanup()
    found.put((answers, scores, docs[1].specific["finish_reasons"], model.run_record()))


def test_two_processes_share_the_requests_and_only_the_first_goes_on(load, tokenizer_folder):
    with FaultyServer(lambda prompt, count: None) as server:
        port = own_port()
        context = multiprocessing.get_context("fork")
        found = context.Queue()
        ranks = [
            context.Process(target=answered_by, args=(rank, port, load, server, tokenizer_folder, found))
            for rank in range(2)
        ]
        for rank in ranks:
            rank.start()
        answers, scores, reasons, record = found.get(timeout=PATIENCE)
        for rank in ranks:
            rank.join(PATIENCE)
        asked = {prompt: count for prompt, count in server.asked.items() if "text" in prompt}
    assert [rank.exitcode for rank in ranks] == [0, 0] and found.empty()
    assert answers == [[answer_text(f"text {number}")] for number in range(9)] and reasons == ["length"]
    assert len(scores) == 5 and all(len(of_choices) == 2 for of_choices in scores)
    assert len(asked) == 9 and {*asked.values()} == {1} and record["model"]["processes"] == 2
    assert record["tasks"]["t"]["routes"] == {"generation": 9, "server": 5}


def test_the_file_shows_lighteval_exactly_one_model():
    classes = [item for item in vars(openai_api).values() if isinstance(item, type)]
    models = [item for item in classes if issubclass(item, openai_api.LightevalModel)]
    assert set(models) == {openai_api.LightevalModel, OpenAIModel}
