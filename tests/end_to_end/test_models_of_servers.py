"""Answers are of the model that gave them, by what its servers say; one refused prompt does not end a run."""

import logging
from types import SimpleNamespace

import pytest
import yaml
from faulty_server import MODEL, FaultyServer, answer_text
from lighteval.tasks.requests import Doc

from cultureval.models.openai_api import OpenAIModel
from cultureval.runtime.errors import CulturevalError
from cultureval.samples.tiny_models.text_parts import train_tokenizer

QUERIES = [f"q{number}" for number in range(6)]


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))


@pytest.fixture
def load(tmp_path):
    def build(*servers, **settings):
        file = tmp_path / "settings.yaml"
        given = {"model": MODEL, "base_url": [server.url for server in servers], "backoff_s": 0.02, "max_retries": 1}
        file.write_text(yaml.safe_dump(given | settings), encoding="utf-8")
        return OpenAIModel(SimpleNamespace(model_name=str(file)))

    return build


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer().save_pretrained(folder)
    return str(folder)


def docs_of(queries, **fields):
    given = {"choices": ["x"], "gold_index": 0, "task_name": "t"} | fields
    return [Doc(query=query, id=str(number), **given) for number, query in enumerate(queries)]


def asked(model, server):
    """How many questions a server gets from a model that answers all."""
    before = sum(server.asked.values())
    assert [one.text for one in model.greedy_until(docs_of(QUERIES))] == [[answer_text(query)] for query in QUERIES]
    return sum(server.asked.values()) - before


def test_the_same_model_elsewhere_goes_on_and_another_of_its_name_is_asked_anew(load):
    entry = {"root": "/models/one", "max_model_len": 64}
    with FaultyServer(entry=entry) as first, FaultyServer(entry=entry) as elsewhere:
        assert asked(load(first), first) == len(QUERIES)
        model = load(elsewhere)
        assert asked(model, elsewhere) == 0
        record = model.run_record()
        assert record["tasks"]["t"]["reused"] == len(QUERIES)
        server = record["model"]["server"]
        assert (server["root"], server["max_model_len"], len(server["probe"])) == ("/models/one", 64, 8)
        assert (
            model.signature_fields()["server"]
            == f"id={MODEL};root=/models/one;max_model_len=64;probe={server['probe']}"
        )
        assert asked(load(first, elsewhere), elsewhere) == 0
    for others in ({"entry": entry | {"root": "/models/two"}}, {"entry": entry | {"max_model_len": 32}}):
        with FaultyServer(**others) as other:
            assert asked(load(other), other) == len(QUERIES)
    with FaultyServer(entry=entry, probe_answer="another market") as other:
        assert asked(load(other), other) == len(QUERIES)
        assert asked(load(other, identify="model"), other) == len(QUERIES)  # of what is listed alone
    with FaultyServer(entry=entry, probe_answer="a third market") as third:
        assert asked(load(third, identify="model"), third) == 0
    with FaultyServer(entry=entry) as first, FaultyServer(probe_answer="another market", entry=entry) as other:
        with pytest.raises(CulturevalError, match="do not serve the same model"):
            load(first, other).greedy_until(docs_of(QUERIES))


def test_a_dead_server_is_an_error_before_anything_is_reused(load):
    with FaultyServer() as server:
        assert asked(load(server), server) == len(QUERIES)
        server.down = True
        with pytest.raises(CulturevalError, match="does not answer .*no earlier answer was reused"):
            load(server).greedy_until(docs_of(QUERIES))


def test_a_server_that_tells_nothing_is_said(load, caplog):
    with FaultyServer() as server, caplog.at_level(logging.WARNING):
        asked(load(server, revision="v1"), server)
        assert "say nothing" not in caplog.text
        asked(load(server), server)
    assert f"The servers of {MODEL} say nothing of its weights" in caplog.text


def test_a_base_model_is_known_by_how_it_continues_a_text(load, tokenizer_folder):
    docs = docs_of(["س1", "س2"], choices=["نعم نعم", "لا لا"])
    counts = []
    for answer in ("a", "b", "a"):
        with FaultyServer(features=("no_chat", "prompt_logprobs"), probe_answer=answer) as server:
            load(server, tokenizer=tokenizer_folder).loglikelihood(docs)
            counts.append(sum(server.asked.values()))
    assert counts[0] == counts[1] > 0 and counts[2] == 0


def test_prompts_are_shortened_to_what_the_server_says_it_reads(load, tokenizer_folder, caplog):
    docs = docs_of(["ما هي العاصمة؟ " * 5], choices=["نعم نعم", "لا"])
    with FaultyServer(entry={"max_model_len": 12}) as server, caplog.at_level(logging.WARNING):
        (response,) = load(server, tokenizer=tokenizer_folder).loglikelihood(docs)
        longest = max(len(request["prompt"]) for request in server.requests)
    assert longest == 11 and response.truncated_tokens_count > 0  # a request generates one
    assert "were cut to keep max_length" in caplog.text
