"""A run that is killed at any moment goes on where it was: nothing is lost, nothing is asked twice without need."""

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from faulty_server import MODEL, FaultyServer, answer_text
from forked_commands import StartedCommand
from waiting import wait_until

from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm
from cultureval.samples.tiny_models.text_parts import train_tokenizer

KILLS = 5
CONCURRENCY = 4


def start(model_class, model, method, docs, folder, result):
    """In a process of its own: answer the docs and write the responses down."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    variables = {"CULTUREVAL_JOURNAL": str(folder / "journal"), "CULTUREVAL_CACHE": str(folder / "cache")}
    variables |= {"HF_HOME": str(folder / "hf"), "PYTHONPATH": str(Path(__file__).parents[1])}
    arguments = [json.dumps([*model_class, model, method, docs, result])]
    return StartedCommand("answering", arguments, folder, os.environ | variables, network=True, loaded="ours")


def finish(*arguments):
    ended = start(*arguments).end()
    assert ended.returncode == 0, ended.stderr
    return json.loads(Path(arguments[-1]).read_text())


def journal_records(folder):
    return sum(file.read_bytes().count(b"\n") for file in (Path(folder) / "journal").glob("*/*.jsonl"))


def kill_at_random_moments(arguments, folder, total, times=KILLS):
    """Kill the run some times, each time after some progress and a random while, then let it finish."""
    chance = random.Random(20261121)
    kills = 0
    while kills < times:
        before = journal_records(folder)
        process = start(*arguments)
        wanted = min(before + chance.randint(0, max(1, total // (times + 3))), total - 1)
        wait_until(lambda: journal_records(folder) >= wanted or not process.is_alive(), every=0.002)  # noqa: B023
        time.sleep(chance.random() * 0.02)
        assert process.is_alive(), "the run ended before it could be killed: give it more to do"
        process.kill()
        assert process.end().returncode == -signal.SIGKILL
        kills += 1
    return finish(*arguments)


@pytest.fixture
def settings(tmp_path):
    tokenizer = tmp_path / "tokenizer"
    train_tokenizer().save_pretrained(tokenizer)

    def write(server):
        file = tmp_path / "settings.yaml"
        values = {"model": MODEL, "base_url": server.url, "tokenizer": str(tokenizer), "chat_template": "on"}
        file.write_text(yaml.safe_dump(values | {"concurrency": CONCURRENCY}))
        return str(file)

    return write


SERVER_MODEL = ("cultureval.models.openai_api", "OpenAIModel")


@pytest.mark.slow
def test_generations_by_a_server(tmp_path, settings):
    queries = [f"question {number}" for number in range(260)]
    docs = [({"query": query, "id": str(i)}, []) for i, query in enumerate(queries)]
    faults = {"question 17": "500", "question 101": "drop"}
    with FaultyServer(lambda prompt, count: faults.get(prompt) if count == 1 else None, delay=0.01) as server:
        arguments = (SERVER_MODEL, settings(server), "greedy_until", docs, str(tmp_path), str(tmp_path / "result"))
        rows = kill_at_random_moments(arguments, tmp_path, len(docs))
        assert rows == [[[answer_text(query)], [], []] for query in queries]
        repeated = Counter(server.answered) - Counter(dict.fromkeys(queries, 1))
        assert sum(repeated.values()) <= KILLS * CONCURRENCY, "those in flight"
        asked = sum(server.asked.values())
        assert finish(*arguments) == rows and sum(server.asked.values()) == asked


@pytest.mark.parametrize("method", ["loglikelihood", "greedy_until"])
def test_a_transformers_model(tmp_path, method):
    folder = build_tiny_causal_lm(tmp_path / "model")
    settings = {"model_name": str(folder), "device": "cpu", "token_budget": 48, "batch_size": 2}
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(settings | {"generation_parameters": {"max_new_tokens": 6}}))
    choices = ["نعم", "لا أدري"] if method == "loglikelihood" else []
    docs = [({"query": f"سؤال {i} " + "كلمة " * (i % 7), "id": str(i)}, choices) for i in range(260)]
    model, afresh, killed = ("cultureval.models.hf", "HFModel"), tmp_path / "afresh", tmp_path / "killed"
    wanted = finish(model, str(file), method, docs, str(afresh), str(tmp_path / "wanted"))
    arguments = (model, str(file), method, docs, str(killed), str(tmp_path / "got"))
    got = kill_at_random_moments(arguments, killed, len(docs), times=2)
    assert [[row[0], row[2]] for row in got] == [[row[0], row[2]] for row in wanted]
    assert [row[1] for row in got] == [pytest.approx(row[1], abs=1e-5) for row in wanted]
    assert journal_records(killed) == journal_records(afresh) == len(docs)  # no answer was written twice
