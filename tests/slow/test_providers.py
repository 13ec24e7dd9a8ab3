"""Models of providers: who is asked, with what, at what cost; nothing is paid twice, and every item has an outcome."""

import json
import multiprocessing
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from forked_commands import StartedCommand, own_variables
from lighteval.tasks.requests import Doc
from PIL import Image
from provider_servers import KEY, REASONING, REPLY, STYLES, ProviderServer, fault_of, tokens_of
from waiting import PATIENCE, wait_until

from cultureval.models.openai_api import OpenAIModel
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import open_journal
from cultureval.runtime.servers.providers import providers, read_on

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


def ask(model, prompts, server, monkeypatch, **settings):
    """The responses to prompts, and the model."""
    provider = providers()[model.partition("/")[0]]
    monkeypatch.setenv(provider.address, server.url)
    monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", json.dumps({**settings}))
    loaded = OpenAIModel(SimpleNamespace(model_name=model))
    fields = {"choices": ["x"], "gold_index": 0, "task_name": "t", "generation_size": 64}
    docs = [Doc(query=prompt, id=prompt, stop_sequences=["\n", "END"], **fields) for prompt in prompts]
    return loaded.greedy_until(docs), loaded


@pytest.mark.parametrize(("model", "style"), MODELS.items())
def test_each_provider_is_asked_as_it_documents(model, style, monkeypatch):
    prompts = [f"{fault} and more of it" for fault in ("plain", "blocked", "stopped", "refused", "rate")]
    wanted = {prompt: 2 if prompt.startswith("rate") else 1 for prompt in prompts}
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    with ProviderServer(style, fault=lambda prompt: prompt.split()[0], reply=lambda prompt: "yes END more") as server:
        responses, loaded = ask(model, prompts, server, monkeypatch)
        assert not server.wrong and server.asked == wanted
        ask(model, prompts, server, monkeypatch)
        assert server.asked == wanted, "what was answered, filters included, is paid once"
        body = server.bodies[0]
    assert [getattr(one, "kind", "") for one in responses] == ["", "filter", "filter", "refusal", ""]
    assert responses[0].text == responses[4].text == ["yes "]
    assert responses[0].reasonings == [STYLES[style].message and "thought" or None]
    assert body[STYLES[style].limit] == 64
    spent, provider = loaded.run_record()["tokens"], providers()[model.partition("/")[0]]
    answered = [prompt for prompt in prompts if not prompt.startswith("blocked")]
    assert spent["tokens_paid_out"] == len(answered) * (REPLY + REASONING)
    told = style.startswith(("openai", "openrouter", "google", "deepseek", "dashscope"))
    assert spent.get("tokens_reasoning", 0) == (len(answered) * REASONING if told else 0)
    prices = provider.token_prices(model.partition("/")[2])
    if prices:
        cached = sum(tokens_of(prompt) // 2 for prompt in answered) if style.startswith(("openai", "deepseek")) else 0
        cost = prices["input_token_price"] * (spent["tokens_paid_in"] - cached) + prices["cached_token_price"] * cached
        assert spent["cost"] == pytest.approx(cost + prices["output_token_price"] * spent["tokens_paid_out"])
    assert spent.get("cost", 0) == pytest.approx(0.0025 * len(answered)) or style != "openrouter"


IMPOSSIBLE = [{"completion_tokens": 10_000_000}, {"prompt_tokens": 10_000_000}, {"cost": 1e6}]
IMPOSSIBLE += [{"prompt_tokens": 0}, {"completion_tokens": 0}, {"prompt_tokens_details": {"cached_tokens": 10**9}}]


@pytest.mark.parametrize("wrong", IMPOSSIBLE)
def test_counts_that_cannot_be_are_estimated_and_told_and_do_not_end_the_budget(monkeypatch, capsys, wrong):
    usage = {"prompt_tokens": 5, "completion_tokens": 1} | wrong
    with ProviderServer("openai", fault=lambda prompt: "") as server:
        server.style = replace(server.style, usage=lambda *tokens: usage)
        responses, loaded = ask("openai/gpt-4o", ["a", "b", "c"], server, monkeypatch, budget=0.01)
    assert [one.text for one in responses] == [["x"]] * 3
    assert "3 tokens, cost 0.0" in capsys.readouterr().err, "signs of life show what is paid"
    spent = loaded.run_record()["tokens"]
    assert spent["impossible_usage"] == 3 and 1e-5 < spent["cost"] < 0.001
    tasks = loaded.run_record()["tasks"].values()
    for way in ("in", "out"):
        assert spent[f"tokens_paid_{way}"] == sum(task[f"tokens_{way}"] for task in tasks) < 100


@pytest.mark.parametrize("status", [401, 403, 404, 451])
def test_a_prompt_refused_by_the_status_of_a_wrong_key_is_one_row_and_a_wrong_key_ends_the_run(monkeypatch, status):
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    with ProviderServer("openai", fault=lambda prompt: "blocked" if prompt == "b" else "") as server:
        server.style = replace(server.style, blocked=(status, {"error": {"message": "not this"}}))
        responses, _ = ask("openai/gpt-4o", ["a", "b", "c"], server, monkeypatch, concurrency=1)
        assert [getattr(one, "kind", "") for one in responses] == ["", "server", ""] and "not this" in responses[
            1
        ].reason
        server.fault = lambda prompt: "blocked"
        with pytest.raises(CulturevalError, match=f"{status}.*refuses a short question too: (set|correct|look)"):
            ask("openai/gpt-4o", ["d", "e", "f"], server, monkeypatch, concurrency=1)


def test_what_a_model_does_not_take_is_refused_where_the_user_asked_for_it(monkeypatch):
    with ProviderServer("openai reasoning") as server:
        with pytest.raises(CulturevalError, match="takes no temperature"):
            ask("openai/o3", ["a"], server, monkeypatch, generation_parameters={"temperature": 0.7})
        with pytest.raises(CulturevalError, match="takes no n"):
            ask("anthropic/claude-opus-4-8", ["a"], server, monkeypatch, n=2)
        with pytest.raises(CulturevalError, match="a budget needs prices"):
            ask("dashscope/qwen-max", ["a"], server, monkeypatch, budget=1)
        with pytest.raises(CulturevalError, match="Unsupported parameter: temperature.*leave_out"):  # as the user said
            ask("openai/o3", ["b"], server, monkeypatch, leave_out=["stop"])


def test_images_are_scaled_into_the_limits_and_too_many_are_refused(monkeypatch, tmp_path):
    noise = Image.frombytes("RGB", (900, 700), os.urandom(900 * 700 * 3))
    fields = {"choices": ["x"], "gold_index": 0, "task_name": "t", "generation_size": 8}
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    with ProviderServer("openai", fault=lambda prompt: "") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        limits = {"image_mib": 0.25, "request_mib": 0.4, "most_images": 2}
        monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", json.dumps(limits))
        loaded = OpenAIModel(SimpleNamespace(model_name="openai/gpt-4o"))
        docs = [Doc(query=f"q{count}", images=[noise] * count, id=str(count), **fields) for count in (1, 2, 3)]
        one, two, three = loaded.greedy_until(docs)
        sizes = [
            int(part.split()[1][:-1]) for prompt in server.asked for part in prompt.split("\n") if "[image" in part
        ]
    assert one.text and two.text and "3 images" in three.reason and "takes 2" in three.reason
    assert len(sizes) == 3 and max(sizes) <= 0.25 * 2**20 and sorted(sizes)[1] <= 0.2 * 2**20 < sorted(sizes)[2]


PRICE = providers()["openai"].token_prices("gpt-4o")
TASKS = ("qimma_gen_palmx", "qimma_gen_mizanqa", "qimma_gen_aratrust")
ROWS = 29
CONCURRENCY = 3


def cost_of(prompt):
    cached = tokens_of(prompt) // 2
    sent = PRICE["input_token_price"] * (tokens_of(prompt) - cached) + PRICE["cached_token_price"] * cached
    return sent + PRICE["output_token_price"] * (REPLY + REASONING)


@pytest.mark.parametrize("no_network", [[]])  # the server is on this machine
def test_a_closed_model_run(cultureval, no_network, tmp_path):
    """Refusals, filters, rate limits, a budget that is spent, a SIGKILL and a rerun: nothing is paid twice."""
    settings = {"concurrency": CONCURRENCY, "generation_parameters": {"max_new_tokens": 20}}
    with ProviderServer(delay=0.03, reply=lambda prompt: "الإجابة النهائية: أ") as server:
        variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url, "HF_HUB_OFFLINE": "1"}
        variables["CULTUREVAL_MODEL_SETTINGS"] = json.dumps(settings)
        command = ("eval", "openai/gpt-4o", *TASKS, "--data", "samples", "--on-refused", "unscored")

        told = cultureval(*command, "--dry-run", **variables)
        assert told.returncode == 0 and not server.asked, told.stderr
        assert (
            f"as read on {read_on()}" in told.stdout and f"{ROWS} requests (in the journal: 0 answers)" in told.stdout
        )

        stopped = cultureval(*command, "--budget", "0.006", **variables)
        advice = "The same command, with a larger --budget, goes on"
        assert stopped.returncode == 2 and advice in stopped.stderr, stopped.stderr
        billed = sum(cost_of(prompt) for prompt in server.answered if fault_of(prompt) != "blocked")
        assert 0.004 < billed <= 0.006 and not list(tmp_path.rglob("results_*"))

        before = dict(server.answered)

        def started(*more):
            arguments, environment = [*command, *more], own_variables(tmp_path) | variables
            return StartedCommand(
                "cultureval.scripts.main", arguments, tmp_path, environment, network=True, loaded="ours"
            )

        killed = started("--budget", "1")
        wait_until(lambda: server.answered.total() >= len(before) + 6 or not killed.is_alive(), every=0.002)
        killed.kill()
        assert killed.end().returncode < 0
        kept = len(open_journal_of(tmp_path))

        ended = started("--budget", "1").end()
        assert ended.returncode == 0, ended.stderr
        # Of each of the two processes, what was in flight when the server asked to be left alone came early.
        assert len(server.asked) == ROWS and not server.wrong and not server.early > 2 * CONCURRENCY
        twice = {prompt: count for prompt, count in server.answered.items() if count > 1}
        assert len(twice) <= CONCURRENCY and {*twice.values()} <= {2}, "only what was in flight at the SIGKILL"
        assert sum(server.answered.values()) - ROWS <= CONCURRENCY and kept >= len(before) + 6 - CONCURRENCY
    (file,) = tmp_path.rglob("results_*.json")
    check_results(json.loads(file.read_text(encoding="utf-8")), server.asked, " ".join(ended.stdout.split()))
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    assert KEY not in "".join(one.stdout + one.stderr for one in (told, stopped, ended))


def answered_by(prompts, server_url, budget, results):
    """In a process of its own: answer the prompts, and say what was read and at what cost."""
    os.environ["OPENAI_BASE_URL"] = server_url
    given = {"concurrency": CONCURRENCY} | ({"budget": budget} if budget else {})
    os.environ["CULTUREVAL_MODEL_SETTINGS"] = json.dumps(given)
    loaded = OpenAIModel(SimpleNamespace(model_name="openai/gpt-4o"))
    fields = {"choices": ["x"], "gold_index": 0, "task_name": "t", "generation_size": 20}
    responses = loaded.greedy_until([Doc(query=prompt, id=prompt, **fields) for prompt in prompts])
    loaded.cleanup()
    results.put(([one.text for one in responses], loaded.run_record()["tokens"]["cost"]))


@pytest.mark.parametrize("budgets", [(None, None), (0.02, 0.02)])
def test_two_runs_at_once_pay_for_each_answer_once(budgets, monkeypatch):
    """With budgets one asks after the other, and the second finds all answers; without, they share the questions."""
    prompts = [f"prompt {number}" for number in range(40)]
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with ProviderServer(fault=lambda prompt: "", delay=0.02, reply=lambda prompt: f"to {prompt}") as server:
        runs = [context.Process(target=answered_by, args=(prompts, server.url, one, results)) for one in budgets]
        for run in runs:
            run.start()
        found = [results.get(timeout=PATIENCE) for _ in runs]
        for run in runs:
            run.join(PATIENCE)
    cost = sum(map(cost_of, prompts))
    assert [texts for texts, _ in found] == [[[f"to {prompt}"] for prompt in prompts]] * 2
    assert [spent for _, spent in found] == [pytest.approx(cost)] * 2 and cost < 0.02
    assert server.answered == dict.fromkeys(prompts, 1)


def open_journal_of(tmp_path):
    os.environ["CULTUREVAL_JOURNAL"] = str(tmp_path / "cache" / "journal")
    return open_journal()


def check_results(results, prompts, summary):
    """Every item is scored or refused, by whom is counted, and the cost is that of the bill."""
    tasks = results["cultureval"]["tasks"].values()
    refused = {"filter": {"blocked", "stopped"}, "refusal": {"refused"}}
    for kind, faults in refused.items():
        count = sum(fault_of(prompt) in faults for prompt in prompts)
        assert count and sum(task["refused_by"].get(kind, 0) for task in tasks) == count
    assert sum(task["rows"] + task["refused"] for task in tasks) == ROWS
    timing = results["cultureval"]["timing"]
    blocked = [prompt for prompt in prompts if fault_of(prompt) == "blocked"]
    exact = sum(cost_of(prompt) for prompt in prompts if prompt not in blocked)
    # A blocked prompt has no counts, and is estimated as paid.
    assert exact < timing["cost"] < exact + sum(10 + len(prompt) for prompt in blocked) * PRICE["input_token_price"]
    assert timing["tokens_reasoning"] == REASONING * (ROWS - len(blocked)) and timing["tokens_cached"]
    assert "Answers that the provider's filter stopped" in summary and "All answers cost" in summary


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("openai:whisper-large", {"model": "whisper-large", "provider": "openai"}),
        ("google:gemma-3-27b-it", {"model": "gemma-3-27b-it", "provider": "google"}),
        ("hf:openai/gpt-4o", {"model": "openai/gpt-4o"}),
        ("google/gemma-2-2b-it", {"model": "google/gemma-2-2b-it"}),
        ("openai/gpt-oss-20b", {"model": "openai/gpt-oss-20b"}),
        ("openai/whisper-large", {"model": "openai/whisper-large"}),
        ("http://h:1/v1#org/a", {"model": "org/a", "base_url": "http://h:1/v1", "api_key_env": "CULTUREVAL_API_KEY"}),
        ("https://api.mistral.ai/v1#m", {"model": "m", "api_key_env": "MISTRAL_API_KEY", "provider": "mistral"}),
    ],
)
def test_who_is_meant_by_a_name(name, settings, monkeypatch):
    from cultureval.runtime.model_settings import read_model_settings

    monkeypatch.setenv("CULTUREVAL_API_KEY", "k")
    found = read_model_settings(name)
    assert settings.items() <= found.items() and ("base_url" in found) == (
        "provider" in settings or "base_url" in settings
    )
    assert read_model_settings(name, "http://else/v1") == {"model": name}


def test_a_folder_wins_and_the_hubs_cache_is_ambiguous(tmp_path, monkeypatch):
    from cultureval.runtime.model_settings import read_model_settings
    from cultureval.runtime.servers import providers as table

    assert read_model_settings("openai/gpt-4o")["provider"] == "openai"
    monkeypatch.setattr(table, "cached_file", lambda name, file: tmp_path)
    with pytest.raises(CulturevalError, match="hf:openai/gpt-4o for the hub's, or openai:gpt-4o to ask OpenAI"):
        read_model_settings("openai/gpt-4o")
    (tmp_path / "openai" / "gpt-4o").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert read_model_settings("openai/gpt-4o") == {"model": "openai/gpt-4o"}
    with pytest.raises(CulturevalError, match="no provider is called 'opnai'. Did you mean openai"):
        read_model_settings("opnai:gpt-4o")
    with pytest.raises(CulturevalError, match="an address without a model: write http://h/v1#NAME"):
        read_model_settings("http://h/v1")
