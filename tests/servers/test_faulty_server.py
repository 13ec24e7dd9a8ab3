"""Whatever a server does ends as the table in docs/models.md says; answers are complete, right and asked once."""

import base64
import dataclasses
import io
import json
import logging

import pytest
import yaml
from datasets import Dataset
from faulty_server import MODEL, FaultyServer, answer_text, docs_of, flatten, token_logprob
from lighteval.models.custom.custom_model import CustomModelConfig
from lighteval.models.model_loader import load_custom_model
from PIL import Image

from cultureval.models import openai_api
from cultureval.models.openai_api import OpenAIModel, read_config
from cultureval.models.server.settings import check_server
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.data_urls import data_url
from cultureval.runtime.servers.errors import ModelChanged, ServerError


@pytest.fixture(autouse=True)
def own_settings(own_folders, monkeypatch):
    for name in ("CULTUREVAL_RESUME", "CULTUREVAL_MODEL_SETTINGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("cultureval.runtime.servers.client.PAUSE_S", 0.3)


@pytest.fixture
def load(tmp_path):
    """Load the model file as `lighteval custom` does, with settings written as a user writes them."""

    def build(*servers, **settings):
        file = tmp_path / "settings.yaml"
        urls = [server if isinstance(server, str) else server.url for server in servers]
        defaults = {"model": MODEL, "base_url": urls[0] if len(urls) == 1 else urls}
        file.write_text(yaml.safe_dump(defaults | settings))
        config = CustomModelConfig(model_name=str(file), model_definition_file_path=openai_api.__file__)
        return load_custom_model(config)

    return build


def texts(model, queries, **fields):
    return [response.text for response in model.greedy_until(docs_of(queries, **fields))]


RETRIED = ["drop", "500", "503", "408", "409", "rate_without_header", "cut_body", "rate"]
USELESS = ["no_choices", "no_message", "bad_utf8", "cut_json", "page", "error_body", "broken_off"]


def test_what_is_retried_is_survived_and_nothing_is_asked_needlessly(load):
    queries = [f"{fault} {number}" for fault in RETRIED for number in range(2)]
    with FaultyServer(lambda prompt, count: prompt.split()[0] if count <= int(prompt.split()[1]) else None) as server:
        assert texts(load(server, concurrency=8), queries) == [[answer_text(query)] for query in queries]
        assert server.asked == {query: 1 + int(query.split()[1]) for query in queries}
        assert texts(load(server), queries) == [[answer_text(query)] for query in queries]
        assert sum(server.asked.values()) == sum(1 + int(query.split()[1]) for query in queries)
        (told,) = [moment for moment, fault in server.arrivals if fault == "rate"]
        assert max(moment for moment, _ in server.arrivals) - told >= 1, "Retry-After is obeyed"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("500", "broken.*the same command goes on"),
        ("drop", "did not answer.*start the server"),
        ("wrong_key", "Incorrect API key.*set MY_KEY to a valid key"),
        ("not_found", "correct model and base_url"),
        ("no_credit", "pay.*check the account's limits"),
        ("elsewhere", "redirects to .*localhost.*make that the base_url"),
    ],
)
def test_what_every_row_would_get_stops_the_run_and_all_answers_are_kept(load, monkeypatch, fault, words):
    queries = [f"q{number}" for number in range(10)]
    monkeypatch.setenv("MY_KEY", "sk-of-this-test")
    with FaultyServer(lambda prompt, count: fault if prompt == "q7" else None) as server:
        with pytest.raises(ServerError, match=words):
            texts(load(server, concurrency=1, max_retries=2, api_key_env="MY_KEY"), queries)
        assert server.answered == dict.fromkeys(queries[:7], 1)
        server.plan = lambda prompt, count: None
        assert texts(load(server, api_key_env="MY_KEY"), queries) == [[answer_text(query)] for query in queries]
        assert server.answered == dict.fromkeys(queries, 1)


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        (["bad_request", "forbidden"], "server"),
        (["filter_prompt", "other_filter", "filter_answer"], "filter"),
        (["refusal"], "refusal"),
        (USELESS, "no_answer"),
    ],
)
def test_what_one_row_gets_is_named_or_unscored(load, monkeypatch, faults, kind):
    with FaultyServer(lambda prompt, count: prompt) as server:
        for fault in faults:
            with pytest.raises(CulturevalError, match="t, item 0: .*--model-args on_refused=unscored"):
                load(server).greedy_until(docs_of([fault, "plain"]))
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
        *bad, good = load(server).greedy_until(docs_of([*faults, "plain"]))
    assert [one.kind for one in bad] == [kind] * len(faults) and all(one.reason for one in bad)
    assert good.text == [answer_text("plain")]


def test_a_reply_of_another_model_stops_the_run_and_its_answers_too(load):
    with FaultyServer() as server:
        assert texts(load(server), ["a"]) == [[answer_text("a")]]
        server.served = "org/other"
        with pytest.raises(ModelChanged, match="'org/other'.*'org/tiny'.*revision"):
            texts(load(server), ["a", "b"])
        assert server.answered["b"] == 1 and texts(load(server), ["a"]) == [[answer_text("a")]]
        assert texts(load(server, revision="2"), ["a", "b"]) == [[answer_text("a")], [answer_text("b")]]


def test_whose_answers_are_reused_is_told_by_the_list_of_models(load, caplog):
    with FaultyServer(entry={"root": "/models/one"}) as server:
        texts(load(server), ["q"])
        assert "does not identify the weights" not in caplog.text
        server.entry = {"root": "/models/two"}
        texts(load(server), ["q"])
        assert server.asked["q"] == 2
        with pytest.raises(CulturevalError, match="does not serve 'org/tinny'; it has org/tiny. Did you mean"):
            texts(load(server, model="org/tinny"), ["q"])
        with FaultyServer(entry={"root": "/models/one"}) as other:
            with pytest.raises(CulturevalError, match="different models.*models/two.*models/one"):
                texts(load(server, other), ["q"])
    with pytest.raises(CulturevalError, match="start the server, or correct base_url"):
        texts(load(server, max_retries=0), ["q"])


@pytest.mark.parametrize("features", [("bare_list",), ("no_list",)])
def test_a_server_with_another_list_of_models_or_none_is_asked_all_the_same(load, features, caplog, tmp_path):
    with FaultyServer(features=features) as server:
        model = load(server)
        check_server(str(tmp_path / "settings.yaml"), likelihoods=False)
        assert texts(model, ["q"]) == [[answer_text("q")]]
    assert caplog.text.count("Set `revision`") == 1


def test_two_servers_share_the_work_and_a_dead_one_pauses(load):
    queries = [f"q{i}" for i in range(60)]
    with FaultyServer(delay=0.01) as one, FaultyServer(delay=0.01) as two, FaultyServer() as dead:
        dead.down = True
        assert texts(load(one, two, dead, concurrency=6), queries) == [[answer_text(query)] for query in queries]
        assert sum(one.asked.values()) + sum(two.asked.values()) == 60 and not dead.asked
        assert min(sum(one.asked.values()), sum(two.asked.values())) >= 15
        one.down = two.down = True
        with pytest.raises(CulturevalError, match="did not answer"):
            texts(load(dead, one), ["new"])


def test_the_concurrency_limit_is_reached_and_kept(load):
    with FaultyServer(delay=0.05) as server:
        texts(load(server, concurrency=5), [f"q{i}" for i in range(30)])
        assert server.most_at_once == 5


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
    echo = {"reply": lambda prompt, index: f"{prompt} {secret}", "reasoning": secret, "entry": {"root": secret}}
    with FaultyServer(lambda prompt, count: "bad_request" if prompt == "bad" else None, **echo) as server:
        model = load(server, api_key_env="MY_KEY")
        assert texts(model, ["ask"]) == [["ask [key]"]]
        with pytest.raises(CulturevalError) as refused:
            texts(model, ["bad"])
        assert "[key]" in str(refused.value) and secret[:8] not in str(refused.value)
        assert set(server.authorizations) == {f"Bearer {secret}"}
    printed = capfd.readouterr()
    assert secret not in caplog.text + printed.out + printed.err + model.config.model_dump_json()
    assert secret not in json.dumps(model.run_record())
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(CulturevalError, match="MY_KEY"):
        load("http://localhost:1/v1", api_key_env="MY_KEY")


@pytest.mark.parametrize("query", ["key=sk-1", "api-version=1&access_token=sk-1", "X-Signature=sk-1"])
def test_an_address_with_a_secret_is_refused_without_repeating_it(load, query):
    with pytest.raises(CulturevalError, match="contains a secret") as refused:
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
    settings = {"generation_parameters": parameters}
    with FaultyServer() as server:
        docs = docs_of(["q"], num_samples=3, stop_sequences=["to q"])
        (response,) = load(server, **settings).greedy_until(docs)
        assert response.text == ["answer 0 "] * 3
        assert response.reasonings == ["hm"] * 3
        common = {"temperature": 0.7, "top_k": 5, "max_tokens": 9, "stop": ["to q", "zzz"], "model": MODEL}
        asked = sorted(server.requests, key=lambda request: request["seed"])
        assert [request.items() >= common.items() for request in asked] == [True] * 3
        assert [request["seed"] for request in asked] == [11, 12, 13]
        load(server, **settings | {"seed": 5}).greedy_until(docs)
        assert sorted(request["seed"] for request in server.requests) == [5, 6, 7, 11, 12, 13]
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


def test_half_a_letter_is_a_sentence(load, tokenizer_folder):
    with FaultyServer() as server:
        model = load(server, tokenizer=tokenizer_folder)
        for answer in (model.greedy_until, model.loglikelihood):
            with pytest.raises(CulturevalError, match=r"t, item 0: its text holds half of a letter \(U\+D83D"):
                answer(docs_of(["a\ud83d"]))


def test_equal_choices_are_each_scored(load, tokenizer_folder):
    with FaultyServer(features={"prompt_logprobs"}) as server:
        model = load(server, tokenizer=tokenizer_folder)
        asked = docs_of(["س"], choices=[" نعم نعم", " لا لا", " لا لا", " ربما غدا"])
        (response,) = model.loglikelihood(asked)
        assert response.logprobs == pytest.approx(expected_logprobs(model, "س", asked[0].choices))
        assert response.logprobs[1] == response.logprobs[2] != response.logprobs[3]
        server.requests.clear()
        short = load(server, tokenizer=tokenizer_folder, max_length=9)
        assert short.loglikelihood(docs_of(["ما هي العاصمة؟ " * 4], choices=["نعم"]))[0].truncated_tokens_count > 0
        assert max(len(request["prompt"]) for request in server.requests) <= 9


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (None, "is None, not a number with a rank"),
        ({"logprob": float("nan"), "rank": 1}, "nan.*, not a number"),
        ({"logprob": 0.5, "rank": 1}, "0.5.*, not a number"),
        ("cut", r"returns (\d+) log-probabilities for a prompt of (?!\1 )\d+ tokens"),
    ],
)
def test_what_is_no_log_probability_is_never_scored(load, tokenizer_folder, entry, words):
    with FaultyServer(last_entry=entry) as server, pytest.raises(CulturevalError, match=words):
        load(server, tokenizer=tokenizer_folder).loglikelihood(docs_of(["س"], choices=["نعم نعم", "لا لا"]))


def test_labels_are_read_from_the_next_token_where_the_server_gives_it(load, tokenizer_folder):
    docs = docs_of([f"السؤال {i}" + "\n" * (i % 2) for i in range(20)], choices=["A", "B", "C"])
    for features, requests in (({"prompt_logprobs", "labels"}, 20), ({"prompt_logprobs"}, 80)):
        with FaultyServer(features=features) as server:
            model = load(server, tokenizer=tokenizer_folder, revision=str(requests))
            for doc, response in zip(docs, model.loglikelihood(docs), strict=True):
                assert response.logprobs == pytest.approx(expected_logprobs(model, doc.query, doc.choices))
            assert len(server.requests) == requests


def test_a_server_without_prompt_log_probabilities_is_told_apart(load, tokenizer_folder, tmp_path):
    with (
        FaultyServer(features=()) as server,
        pytest.raises(CulturevalError, match="Serve the model with vLLM.*qimma_gen"),
    ):
        load(server, tokenizer=tokenizer_folder).loglikelihood(docs_of(["س"], choices=["نعم نعم", "لا لا"]))
    with FaultyServer() as server, pytest.raises(CulturevalError, match="tokenizer"):
        load(server, tokenizer=str(tmp_path)).loglikelihood(docs_of(["س"], choices=["نعم", "لا"]))


@pytest.mark.slow
def test_answers_of_other_settings_are_not_reused(load):
    changes = [
        {},
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
        (good + "generation_parameters: {temprature: 1}", "temprature"),
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
    assert (read(good).generation_parameters.seed, read(good).base_url, read_config("m").model) == (
        5,
        ("http://c/v1",),
        "m",
    )


def test_a_budget_stops_the_run_and_a_larger_one_goes_on(load):
    prices = {"input_token_price": 1.0, "output_token_price": 1.0, "concurrency": 1}
    queries = [f"q{number}" for number in range(10)]
    with FaultyServer() as server:  # 8 tokens an answer
        with pytest.raises(CulturevalError, match="budget of 20 is spent .*Raise --budget"):
            texts(load(server, **prices, budget=20), queries)
        assert sum(server.asked.values()) == 3
        with pytest.raises(CulturevalError, match="is spent"):
            texts(load(server, **prices, budget=20), queries)
        assert sum(server.asked.values()) == 3
        model = load(server, **prices, budget=1000)
        assert texts(model, queries) == [[answer_text(query)] for query in queries]
        assert model.run_record()["tokens"] == {"tokens_paid_in": 30, "tokens_paid_out": 50, "cost": 80.0}


def test_the_file_shows_lighteval_exactly_one_model():
    classes = [item for item in vars(openai_api).values() if isinstance(item, type)]
    models = [item for item in classes if issubclass(item, openai_api.LightevalModel)]
    assert set(models) == {openai_api.LightevalModel, OpenAIModel}


def test_after_reasoning_labels_are_scored_with_the_tokenizer_and_generated_without(load, tokenizer_folder):
    docs = docs_of(["س", "答案"], choices=["ب", "ج"])
    with FaultyServer() as server:
        model = load(server, scoring="reasoned", tokenizer=tokenizer_folder)
        for doc, response in zip(docs, model.loglikelihood(docs), strict=True):
            assert response.input == f"{doc.query}<think>\n{answer_text(doc.query)}\n</think>\n\n"
            assert response.logprobs == pytest.approx(expected_logprobs(model, response.input, doc.choices))
        assert model.scored_by == {"t": "reasoned"}
        assert [doc.specific["finish_reasons"] for doc in docs] == [["length"]] * 2
    with FaultyServer(reply=lambda prompt, index: "هي ج", features=()) as server:
        model = load(server, scoring="reasoned", revision="2")
        assert [response.argmax_logits_eq_gold for response in model.loglikelihood(docs)] == [[False, True]] * 2
        assert model.scored_by == {"t": "reasoned, generated label"}
        with pytest.raises(CulturevalError, match="needs labels"):
            model.loglikelihood(docs_of(["س"], choices=["نعم نعم", "لا لا"]))
