"""Whole commands through a server: refused rows are counted, listed and bounded."""

import json
from types import SimpleNamespace

import pytest
import yaml
from datasets import Dataset
from faulty_server import MODEL, FaultyServer, docs_of

from cultureval.models.openai_api import OpenAIModel
from cultureval.runtime.errors import CulturevalError

pytestmark = [pytest.mark.usefixtures("own_folders"), pytest.mark.slow]
QUERIES = [f"q{number}" for number in range(6)]


@pytest.fixture
def load(tmp_path):
    def build(*servers, **settings):
        file = tmp_path / "settings.yaml"
        given = {"model": MODEL, "base_url": [server.url for server in servers], "max_retries": 1}
        file.write_text(yaml.safe_dump(given | settings), encoding="utf-8")
        return OpenAIModel(SimpleNamespace(model_name=str(file)))

    return build


def test_routes_and_tokens_are_of_scored_rows_whatever_the_others_lack(load, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    faults = {"q1": "refusal", "q2": "filter_answer", "q3": "no_choices", "q4": "bad_request"}
    with FaultyServer(lambda prompt, count: faults.get(prompt)) as server:
        model = load(server, concurrency=1)
        model.greedy_until(docs_of(QUERIES))
        record = model.run_record()
        assert record["tasks"]["t"] == {
            "routes": {"generation": 2},
            "tokens_in": 6,
            "tokens_out": 10,
            "short_limits": 0,
        }
        assert record["tokens"]["tokens_paid_in"] == 3 * 4, "what they took is paid"
    with FaultyServer(features=("top_logprobs",)) as server:
        model, docs = load(server, scoring="first_token"), docs_of(QUERIES, choices=["ب", "ج"])
        docs[2].choices = ["أ", "د"]
        responses = model.loglikelihood(docs)
        assert [getattr(one, "kind", "") for one in responses] == ["", "", "undecided", "", "", ""]
        found = model.run_record()["tasks"]["t"]
        assert found["routes"] == {"first token": 5} and found["tokens_in"] == 3 * 5
    docs = docs_of(QUERIES, choices=["ب", "ج"])
    with FaultyServer(lambda prompt, count: faults.get(prompt), features=("top_logprobs",)) as server:
        kinds = ["", "refusal", "filter", "no_answer", "server", ""]
        for _ in range(2):
            responses = load(server, scoring="first_token", revision="2").loglikelihood(docs)
            assert [getattr(one, "kind", "") for one in responses] == kinds
        assert server.asked["q1"] == server.asked["q2"] == 1, "what was refused is kept"
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "error")
        with pytest.raises(CulturevalError, match="--model-args on_refused=unscored"):
            load(server, scoring="first_token", revision="2").loglikelihood(docs[:3])


@pytest.mark.parametrize("no_network", [[]])  # the server is on this machine
def test_the_command_counts_lists_and_bounds_what_is_refused(cultureval, no_network, tmp_path, tokenizer_folder):
    """The server refuses the longest of AraTrust's seven prompts."""
    lengths = []

    def plan(prompt, count):
        lengths.append(len(prompt))
        return "bad_request" if len(prompt) >= limit else None

    limit = 10**9
    with FaultyServer(plan, entry={"root": "/models/one"}) as server:
        settings = {"model": MODEL, "base_url": server.url, "tokenizer": tokenizer_folder}
        (tmp_path / "server.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        arguments = ("eval", "server.yaml", "qimma_aratrust", "--data", "samples")
        all_of_them = cultureval(*arguments, HF_HUB_OFFLINE="1")
        assert all_of_them.returncode == 0, all_of_them.stderr
        limit = max(lengths)
        refused = cultureval(*arguments, "--no-resume", HF_HUB_OFFLINE="1")
        assert refused.returncode == 2
        assert "item" in refused.stderr and "the server refuses its prompt" in refused.stderr
        unscored = cultureval(*arguments, "--no-resume", "--model-args", "on_refused=unscored", HF_HUB_OFFLINE="1")
        assert unscored.returncode == 0, unscored.stderr
        cultureval(*arguments, HF_HUB_OFFLINE="1")  # the first run has all answers
        limited = cultureval(
            *arguments, "--no-resume", "--model-args", "on_refused=unscored", "--limit", "3", HF_HUB_OFFLINE="1"
        )
        assert limited.returncode == 0, limited.stderr
    assert "14.3% of qimma_aratrust (1 refused)" in flat(unscored.stdout)
    results = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((tmp_path / "results").rglob("results_*"))
    ]
    assert "do not agree" not in unscored.stderr + limited.stderr
    (last,) = results[-1]["cultureval"]["tasks"].values()
    assert last["rows"] + last["refused"] == last["limit"] == 3
    assert results[-1]["cultureval"]["timing"]["tokens_in"] == last["tokens_in"] > 0
    assert next(iter(results[2]["cultureval"]["tasks"].values()))["reused"] == 7
    (record,) = results[1]["cultureval"]["tasks"].values()
    assert (record["rows"], record["refused"], record["reused"]) == (6, 1, 0)
    (config,) = results[1]["config_tasks"].values()
    assert len(config["rows_report"]["refused_rows"]) == 1
    assert "bad" in config["rows_report"]["refused_rows"][0]["reason"]


@pytest.mark.parametrize("no_network", [[]])  # the server is on this machine
def test_a_label_that_is_not_among_the_first_tokens_is_scored_below_them(cultureval, no_network, tmp_path):
    """AraTrust's labels are three letters, of which the server never returns the first."""
    with FaultyServer(features=("top_logprobs",), entry={"root": "/models/one"}) as server:
        settings = {"model": MODEL, "base_url": server.url, "scoring": "first_token"}
        (tmp_path / "server.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        asked = ("eval", "server.yaml", "qimma_aratrust", "--data", "samples")
        done, again = (cultureval(*asked, HF_HUB_OFFLINE="1") for _ in range(2))
    assert done.returncode == again.returncode == 0, done.stderr
    (path, repeated) = sorted((tmp_path / "results").rglob("results_*.json"))
    results = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    for one, out in ((results, done.stdout), (json.loads(repeated.read_text(encoding="utf-8")), again.stdout)):
        (record,) = one["cultureval"]["tasks"].values()
        (signature,) = one["cultureval"]["signatures"]
        assert record["parity"] == signature["fields"]["parity"] == "first token"
        assert record["prompt_hash"] == signature["fields"]["prompt"] and "paper" not in record["prompt_hash"]
        assert "first token of a reply; not comparable" in " ".join(out.split()), "also where all answers are reused"
    assert record["rows"] == 7
    details = min((tmp_path / "results").rglob("details_*.parquet"))
    rows = Dataset.from_parquet(str(details), cache_dir=str(tmp_path / "cache"))
    right = [row["doc"]["gold_index"] in (1, [1]) for row in rows]
    assert {tuple(row["model_response"]["logprobs"]) for row in rows} == {(-4.0, -1.0), (-4.0, -1.0, -2.0)}
    assert [bool(row["metric"]["acc_norm"]) for row in rows] == right
    shown = cultureval("show", str(path), "qimma_aratrust", "row 1", HF_HUB_OFFLINE="1")
    assert shown.returncode == 0, shown.stderr


def flat(text):
    return " ".join(text.split())
