"""Models of providers: who is asked, with what, at what cost; every row has an outcome."""

import json
import os
from types import SimpleNamespace

import pytest
from lighteval.tasks.requests import Doc
from PIL import Image
from provider_servers import KEY, REASONING, REPLY, STYLES, ProviderServer, tokens_of

from cultureval.models.openai_api import OpenAIModel
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.model_settings import read_model_settings
from cultureval.runtime.servers.providers import providers

MODELS = {
    "openai/gpt-4o-2024-08-06": "openai",
    "openai/o3": "openai reasoning",
    "anthropic/claude-opus-4-8": "anthropic",
    "google/gemini-2.5-pro": "google",
    "openrouter/openai/gpt-4o": "openrouter",
    "together/meta-llama/Llama-3.3-70B-Instruct-Turbo": "together",
    "deepseek/deepseek-v4-pro": "deepseek",
    "dashscope/qwen-max": "dashscope",
    "mistral/mistral-small-latest": "mistral",
}


@pytest.fixture(autouse=True)
def own_settings(own_folders, monkeypatch):
    for provider in providers().values():
        monkeypatch.setenv(provider.key, KEY)


def docs_of(prompts, **fields):
    given = {"choices": ["x"], "gold_index": 0, "task_name": "t", "generation_size": 64}
    return [Doc(query=prompt, id=prompt, **given, **fields) for prompt in prompts]


def load(model, server, monkeypatch, **settings):
    monkeypatch.setenv(providers()[model.partition("/")[0]].address, server.url)
    monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", json.dumps(settings))
    return OpenAIModel(SimpleNamespace(model_name=model))


@pytest.mark.parametrize(("model", "style"), MODELS.items())
def test_each_provider_is_asked_as_it_documents(model, style, monkeypatch):
    prompts = [f"{fault} and more of it" for fault in ("plain", "blocked", "stopped", "refused", "rate")]
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    with ProviderServer(style, fault=lambda prompt: prompt.split()[0], reply=lambda prompt: "yes END more") as server:
        for _ in range(2):
            loaded = load(model, server, monkeypatch)
            responses = loaded.greedy_until(docs_of(prompts, stop_sequences=["\n", "END"]))
        answered = [prompt for prompt in prompts if not prompt.startswith("blocked")]
        assert not server.wrong and all(server.answered[prompt] == 1 for prompt in answered), "paid once"
        assert server.bodies[0][STYLES[style].limit] == 64
    assert [getattr(one, "kind", "") for one in responses] == ["", "filter", "filter", "refusal", ""]
    assert responses[0].text == responses[4].text == ["yes "]
    assert responses[0].reasonings == [STYLES[style].message and "thought" or None]
    spent = loaded.run_record()["tokens"]
    assert spent["tokens_paid_out"] == len(answered) * (REPLY + REASONING)
    prices = providers()[model.partition("/")[0]].token_prices(model.partition("/")[2])
    if style == "openrouter":
        assert spent["cost"] == pytest.approx(0.0025 * len(answered)), "as it says"
    elif prices:
        cached = sum(tokens_of(prompt) // 2 for prompt in answered) if style.startswith(("openai", "deepseek")) else 0
        cost = prices["input_token_price"] * (spent["tokens_paid_in"] - cached) + prices["cached_token_price"] * cached
        assert spent["cost"] == pytest.approx(cost + prices["output_token_price"] * spent["tokens_paid_out"])


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        ("openai/o3", {"generation_parameters": {"temperature": 0.7}}, "takes no temperature"),
        ("dashscope/qwen-max", {"budget": 1}, "a budget needs prices"),
        ("openai/o3", {"leave_out": ["stop"]}, "Unsupported parameter: temperature"),  # as the user said
    ],
)
def test_what_a_model_does_not_take_is_refused_where_the_user_asked_for_it(monkeypatch, model, settings, words):
    with ProviderServer("openai reasoning") as server, pytest.raises(CulturevalError, match=words):
        load(model, server, monkeypatch, **settings).greedy_until(docs_of(["a"]))


def test_images_are_scaled_into_the_limits_and_too_many_are_refused(monkeypatch):
    noise = Image.frombytes("RGB", (900, 700), os.urandom(900 * 700 * 3))
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    with ProviderServer("openai", fault=lambda prompt: "") as server:
        loaded = load("openai/gpt-4o", server, monkeypatch, image_mib=0.25, request_mib=0.4, most_images=2)
        docs = [docs_of([f"q{count}"], images=[noise] * count)[0] for count in (1, 2, 3)]
        one, two, three = loaded.greedy_until(docs)
        parts = [part for prompt in server.asked for part in prompt.split("\n")]
        sizes = sorted(int(part.split()[1][:-1]) for part in parts if "[image" in part)
    assert one.text and two.text and "3 images" in three.reason and "takes 2" in three.reason
    assert len(sizes) == 3 and sizes[2] <= 0.25 * 2**20 and sizes[1] <= 0.2 * 2**20 < sizes[2]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("openai:whisper-large", {"model": "whisper-large", "provider": "openai"}),
        ("hf:openai/gpt-4o", {"model": "openai/gpt-4o"}),
        ("google/gemma-2-2b-it", {"model": "google/gemma-2-2b-it"}),
        ("openai/whisper-large", {"model": "openai/whisper-large"}),
        ("http://h:1/v1#org/a", {"model": "org/a", "base_url": "http://h:1/v1", "api_key_env": "CULTUREVAL_API_KEY"}),
        ("https://api.mistral.ai/v1#m", {"model": "m", "api_key_env": "MISTRAL_API_KEY", "provider": "mistral"}),
    ],
)
def test_who_is_meant_by_a_name(name, settings, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_API_KEY", "k")
    found = read_model_settings(name)
    served = "provider" in settings or "base_url" in settings
    assert settings.items() <= found.items() and ("base_url" in found) == served
    assert read_model_settings(name, "http://else/v1") == {"model": name}


def test_a_folder_wins_and_a_wrong_name_is_a_sentence(tmp_path, monkeypatch):
    assert read_model_settings("openai/gpt-4o")["provider"] == "openai"
    (tmp_path / "openai" / "gpt-4o").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert read_model_settings("openai/gpt-4o") == {"model": "openai/gpt-4o"}
    with pytest.raises(CulturevalError, match="no provider is called 'opnai'. Did you mean openai"):
        read_model_settings("opnai:gpt-4o")
    with pytest.raises(CulturevalError, match="an address without a model: write http://h/v1#NAME"):
        read_model_settings("http://h/v1")
