"""Whole commands and code solutions through a server: refused rows are counted, listed and bounded."""

import json
from types import SimpleNamespace

import pytest
import yaml
from datasets import Dataset
from faulty_server import MODEL, FaultyServer, docs_of

from cultureval.models.code_generation import CodeSettings, description_file, generate_solutions
from cultureval.models.openai_api import OpenAIModel
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.qimma.code_data import load_problems

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


def unchanged(given):
    return [reply for _, reply in given]


def test_code_is_of_the_model_that_wrote_it_too(tmp_path):
    entry = {"root": "/models/one", "max_model_len": 400}

    def written(server, limit=None, folder=tmp_path):
        problems = load_problems("mbpp", "samples", limit=limit)
        settings = CodeSettings(MODEL, "mbpp", base_url=server.url)
        docs = problems.docs(1, thinking=False, server=True)
        file, _ = generate_solutions(settings, docs, problems.description(), folder, True, unchanged)
        made = json.loads(description_file(file).read_text(encoding="utf-8"))
        return made["server"], len(file.read_text(encoding="utf-8").splitlines())

    with FaultyServer(entry=entry) as first, FaultyServer(entry=entry) as elsewhere:
        server, count = written(first, limit=2)
        assert server == {"id": MODEL, **entry} and count == sum(first.answered.values()) == 2
        assert written(elsewhere) == (server, 6) and sum(elsewhere.asked.values()) == 4
        with FaultyServer(entry=entry | {"root": "/models/two"}) as other:
            with pytest.raises(CulturevalError, match="generated with another server"):
                written(other)
            assert not other.asked
    with pytest.raises(CulturevalError, match="did not answer"):
        written(first)


@pytest.mark.parametrize("fault", ["bad_request", "no_choices", "filter_answer", "refusal"])
def test_code_of_a_refused_problem_is_named_or_left_out_and_never_an_empty_solution(tmp_path, monkeypatch, fault):
    problems = load_problems("mbpp", "samples")
    refused, *others = problems.rows
    words = problems.rows[refused]["prompt"].strip()
    with FaultyServer(lambda prompt, count: fault if words in prompt else None) as server:
        named = tmp_path / "server.yaml"
        named.write_text(yaml.safe_dump({"model": MODEL, "base_url": [server.url, server.url]}))
        docs = problems.docs(1, thinking=False, server=True)
        arguments = (CodeSettings(str(named), "mbpp"), docs, {}, tmp_path, True, unchanged)
        with pytest.raises(CulturevalError, match=f"{refused}: .*on_refused=unscored"):
            generate_solutions(*arguments)
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
        file, left_out = generate_solutions(*arguments)
        assert [*left_out] == [refused] == [*json.loads(description_file(file).read_text("utf-8"))["refused"]]
        written = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        assert [one["task_id"] for one in written] == others and all(one["solution"] for one in written)
        server.plan = lambda prompt, count: "bad_request"
        with pytest.raises(CulturevalError, match="No problem has a usable answer"):
            other = CodeSettings(str(named), "mbpp", max_new_tokens=9)
            generate_solutions(other, docs, {}, tmp_path / "none", *arguments[4:])


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
        with pytest.raises(CulturevalError, match="on_refused=unscored"):
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
        unscored = cultureval(*arguments, "--no-resume", "--on-refused", "unscored", HF_HUB_OFFLINE="1")
        assert unscored.returncode == 0, unscored.stderr
        cultureval(*arguments, HF_HUB_OFFLINE="1")  # the first run has all answers
        limited = cultureval(*arguments, "--no-resume", "--on-refused", "unscored", "--limit", "3", HF_HUB_OFFLINE="1")
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
