"""A run of a closed model: refusals, filters, rate limits, a spent budget and a SIGKILL; nothing is paid twice."""

import json

import pytest
from forked_commands import StartedCommand, own_variables
from provider_servers import KEY, REASONING, REPLY, ProviderServer, fault_of, tokens_of
from waiting import wait_until

from cultureval.runtime.servers.providers import providers

PRICE = providers()["openai"].token_prices("gpt-4o")
TASKS = ("qimma_gen_palmx", "qimma_gen_mizanqa", "qimma_gen_aratrust")
ROWS, CONCURRENCY, BUDGET = 29, 3, 0.006


def cost_of(prompt):
    cached = tokens_of(prompt) // 2
    sent = PRICE["input_token_price"] * (tokens_of(prompt) - cached) + PRICE["cached_token_price"] * cached
    return sent + PRICE["output_token_price"] * (REPLY + REASONING)


@pytest.mark.parametrize("no_network", [[]])  # the server is on this machine
def test_a_closed_model_run(cultureval, no_network, tmp_path):
    settings = {"concurrency": CONCURRENCY, "generation_parameters": {"max_new_tokens": 20}}
    with ProviderServer(delay=0.03, reply=lambda prompt: "الإجابة النهائية: أ") as server:
        variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url, "HF_HUB_OFFLINE": "1"}
        variables["CULTUREVAL_MODEL_SETTINGS"] = json.dumps(settings)
        command = ("eval", "openai/gpt-4o", *TASKS, "--data", "samples", "--model-args", "on_refused=unscored")

        told = cultureval(*command, "--dry-run", **variables)
        assert told.returncode == 0 and not server.asked, told.stderr
        assert f"{ROWS} requests (in the journal: 0 answers)" in told.stdout

        stopped = cultureval(*command, "--budget", str(BUDGET), **variables)
        assert stopped.returncode == 2 and "Raise --budget" in stopped.stderr, stopped.stderr
        paid = [prompt for prompt in server.answered if fault_of(prompt) != "blocked"]
        in_flight = CONCURRENCY * max(map(cost_of, paid))
        assert BUDGET <= sum(map(cost_of, paid)) <= BUDGET + in_flight and not list(tmp_path.rglob("results_*"))

        def started(*more):
            arguments, environment = [*command, *more], own_variables(tmp_path) | variables
            main = "cultureval.scripts.main"
            return StartedCommand(main, arguments, tmp_path, environment, network=True, loaded="ours")

        before = len(server.answered)
        killed = started("--budget", "1")
        wait_until(lambda: len(server.answered) >= before + 6 or not killed.is_alive(), every=0.002)
        killed.kill()
        assert killed.end().returncode < 0
        ended = started("--budget", "1").end()
        assert ended.returncode == 0, ended.stderr
        assert len(server.asked) == ROWS and not server.wrong
        twice = [prompt for prompt, count in server.answered.items() if count > 1 and fault_of(prompt) != "blocked"]
        assert len(twice) <= CONCURRENCY, "only what was in flight at the SIGKILL"
    (file,) = tmp_path.rglob("results_*.json")
    check_results(json.loads(file.read_text(encoding="utf-8")), server.asked, " ".join(ended.stdout.split()))
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    assert KEY not in "".join(one.stdout + one.stderr for one in (told, stopped, ended))


def check_results(results, prompts, summary):
    """Every item is scored or refused, and the cost is that of the bill."""
    tasks = results["cultureval"]["tasks"].values()
    count = sum(fault_of(prompt) in ("blocked", "stopped", "refused") for prompt in prompts)
    assert count and sum(task["refused"] for task in tasks) == count
    assert sum(task["rows"] + task["refused"] for task in tasks) == ROWS
    timing = results["cultureval"]["timing"]
    paid = [prompt for prompt in prompts if fault_of(prompt) != "blocked"]
    assert timing["cost"] == pytest.approx(sum(map(cost_of, paid)), abs=5e-4)  # it is rounded
    assert "refused" in summary and "Cost: " in summary
