"""Answers are of the model that gave them, by what its servers say; one refused prompt does not end a run."""

import json
import logging
import re
import shutil
from types import SimpleNamespace

import pytest
import yaml
from datasets import Dataset
from faulty_server import FIRST_TOKENS, MODEL, FaultyServer, answer_text, docs_of, flatten

from cultureval.models.code_generation import CodeSettings, description_file, generate_solutions
from cultureval.models.openai_api import OpenAIModel
from cultureval.models.preflight import check_model
from cultureval.runtime import progress
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.qimma.code_data import load_problems

pytestmark = pytest.mark.usefixtures("own_folders")
QUERIES = [f"q{number}" for number in range(6)]


@pytest.fixture
def load(tmp_path):
    def build(*servers, **settings):
        file = tmp_path / "settings.yaml"
        given = {"model": MODEL, "base_url": [server.url for server in servers], "max_retries": 1}
        file.write_text(yaml.safe_dump(given | settings), encoding="utf-8")
        return OpenAIModel(SimpleNamespace(model_name=str(file)))

    return build


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
        with pytest.raises(CulturevalError, match="cannot be asked .*no earlier answer is reused"):
            load(server).greedy_until(docs_of(QUERIES))


def test_a_journal_that_is_deleted_in_mid_run_costs_the_next_run_what_it_had(load, tmp_path):
    def deletes(prompt, count):
        if (prompt, count) == ("q3", 1):
            shutil.rmtree(tmp_path / "journal")

    with FaultyServer(deletes) as server:
        assert asked(load(server, concurrency=1), server) == len(QUERIES)
        assert asked(load(server), server) == 3  # those before


def test_a_hostile_chat_template_of_the_tokenizer_is_a_sentence(load, tokenizer_folder, tmp_path):
    folder = shutil.copytree(tokenizer_folder, tmp_path / "tokenizer")
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}{{ 'x' * 10**10 }}")
    with FaultyServer() as server, pytest.raises(CulturevalError, match=r"takes more than 512 MiB.*chat_template: off"):
        load(server, tokenizer=str(folder)).loglikelihood(docs_of(["q"]))


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


@pytest.mark.parametrize("chat_template", ["on", "off"])
def test_prompts_too_long_to_be_answered_lose_their_beginning_where_the_server_counts_tokens(
    load, monkeypatch, caplog, chat_template
):
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    prompts = [" ".join(f"w{number}" for number in range(count)) for count in (30, 39, 40, 60)]
    given = {"chat_template": chat_template}
    # Limit of an answer -> tokens read of each prompt, at least half of what the model reads, and left for the answer.
    for limit, read, left in ((8, [30, 39, 32, 32], [8, 1, 8, 8]), (100, [30, 39, 20, 20], [10, 1, 20, 20])):
        docs = docs_of(prompts, generation_size=limit)
        with FaultyServer(entry={"max_model_len": 40}, features=("counts",)) as server:
            responses = load(server, **given).greedy_until(docs)
            model = load(server, **given)
            again = model.greedy_until(docs)
            assert model.run_record()["tasks"]["t"].get("short_limits", 0) == sum(one < limit for one in left)
            assert sum(server.asked.values()) == len(prompts)
            assert sorted(body["max_tokens"] for body in server.requests) == sorted(left)
        ends = [" ".join(prompt.split()[-count:]) for prompt, count in zip(prompts, read, strict=True)]
        cut = [len(prompt.split()) - count for prompt, count in zip(prompts, read, strict=True)]
        for answers in (responses, again):
            assert [answer.text for answer in answers] == [[answer_text(end)] for end in ends]
            assert [answer.truncated_tokens_count for answer in answers] == cut
    assert "t: the beginning of 2 prompts was cut" in caplog.text and "longer context, --no-resume" in caplog.text
    with FaultyServer(lambda prompt, count: "bad_request") as server:  # one that does not count
        (response,) = load(server, **given).greedy_until(docs_of(prompts[:1]))
        assert "the server refuses its prompt: " in response.reason and sum(server.asked.values()) == 1


def test_code_is_of_the_model_that_wrote_it_too(tmp_path):
    entry = {"root": "/models/one", "max_model_len": 400}

    def written(server, limit=None, folder=tmp_path):
        problems = load_problems("mbpp", "samples", limit=limit)
        settings = CodeSettings(MODEL, "mbpp", base_url=server.url)
        docs = problems.docs(1, thinking=False, server=True)
        file, _ = generate_solutions(settings, docs, problems.description(), folder, True, lambda task, reply: reply)
        made = json.loads(description_file(file).read_text(encoding="utf-8"))
        return made["server"], len(file.read_text(encoding="utf-8").splitlines())

    with FaultyServer(entry=entry, features=("counts",)) as first, FaultyServer(entry=entry) as elsewhere:
        server, count = written(first, limit=2)
        assert server == {"id": MODEL, **entry, "probe": server["probe"]} and count == sum(first.answered.values()) == 2
        assert all(len(flatten(body["messages"]).split()) + body["max_tokens"] == 400 for body in first.requests)
        assert written(elsewhere) == (server, 6) and sum(elsewhere.asked.values()) == 4
        with FaultyServer(entry=entry | {"root": "/models/two"}) as other:
            with pytest.raises(CulturevalError, match="generated with another server"):
                written(other)
            assert not other.asked
    with pytest.raises(CulturevalError, match="cannot be asked"):
        written(first)
    with FaultyServer(entry=entry | {"root": "/models/three"}) as turning:
        turning.plan = lambda prompt, count: turning.entry.update(root="/models/two")
        with pytest.raises(CulturevalError, match="has changed its model during the run"):
            written(turning, folder=tmp_path / "turning")


@pytest.mark.parametrize("fault", ["bad_request", "no_choices", "filter_answer", "refusal"])
def test_code_of_a_refused_problem_is_named_or_left_out_and_never_an_empty_solution(tmp_path, monkeypatch, fault):
    problems = load_problems("mbpp", "samples")
    refused, *others = problems.rows
    words = problems.rows[refused]["prompt"].strip()
    with FaultyServer(lambda prompt, count: fault if words in prompt else None) as server:
        named = tmp_path / "server.yaml"
        named.write_text(yaml.safe_dump({"model": MODEL, "base_url": [server.url, server.url]}))
        docs = problems.docs(1, thinking=False, server=True)
        arguments = (CodeSettings(str(named), "mbpp"), docs, {}, tmp_path, True, lambda task, reply: reply)
        with pytest.raises(CulturevalError, match=f"{refused}: .*--on-refused unscored"):
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


def refuses(word):
    return lambda prompt, count: "bad_request" if word in prompt else None


def test_a_refused_prompt_is_named_with_what_to_do_or_left_unscored(load, tokenizer_folder, monkeypatch):
    with FaultyServer(refuses("q3")) as server:
        with pytest.raises(
            CulturevalError, match=r"t, item 3: the server refuses its prompt: .*bad; .*Correct .*--on-refused unscored"
        ):
            load(server).greedy_until(docs_of(QUERIES))
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
        for times in (2, 3):  # at every repetition, and only that one is asked again
            responses = load(server).greedy_until(docs_of(QUERIES))
            assert [bool(one.text) for one in responses] == [True, True, True, False, True, True]
            assert "bad" in responses[3].reason
            assert server.asked["q3"] == times and {*server.answered.values()} == {1}
    for plan, kind in ((refuses("["), "server"), (lambda prompt, count: "filter_prompt", "filter")):
        with FaultyServer(plan) as server:
            (response,) = load(server, tokenizer=tokenizer_folder).loglikelihood(docs_of(["س"], choices=["نعم", "لا"]))
            assert response.kind == kind and "refuses its prompt" in response.reason


UNUSABLE = {"bad_request": "server", "filter_prompt": "filter", "filter_answer": "filter", "refusal": "refusal"}
UNUSABLE |= dict.fromkeys(("wrong_key", "forbidden", "not_found", "legal", "odd_status"), "server")
UNUSABLE |= dict.fromkeys(
    ("rate_for_one", "a_day", "no_choices", "no_message", "cut_json", "page", "500", "drop", "hang"), "no_answer"
)


@pytest.mark.parametrize("fault", UNUSABLE)
def test_every_unusable_reply_has_a_kind_and_ends_in_a_result(load, monkeypatch, fault):
    """One prompt of six gets it each time; the others are answered before and after, one by one."""
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    with FaultyServer(lambda prompt, count: fault if prompt == "q3" else None) as server:
        patience = {"concurrency": 2, "give_up_s": 1} if fault == "rate_for_one" else {"concurrency": 1}
        responses = load(server, max_retries=5, timeout_s=0.5, **patience).greedy_until(docs_of(QUERIES))
        tries = server.asked["q3"]
    assert [getattr(one, "kind", "") for one in responses] == ["", "", "", UNUSABLE[fault], "", ""]
    others = [query for query in QUERIES if query != "q3"]
    assert responses[3].reason and [one.text for one in responses if one.text] == [[answer_text(one)] for one in others]
    if fault not in ("rate_for_one", "a_day"):
        assert tries == (3 if fault in ("no_choices", "no_message") else 6 if UNUSABLE[fault] == "no_answer" else 1)


@pytest.mark.parametrize("place", [0, 5])
def test_a_row_that_always_is_to_wait_is_of_no_answer_whenever_it_is_asked_and_a_server_that_says_it_to_all_stops(
    load, monkeypatch, place
):
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    fault = "rate_without_header"
    with FaultyServer(lambda prompt, count: fault if prompt == QUERIES[place] else None) as server:
        model = load(server, concurrency=1)
        kinds = [getattr(one, "kind", "") for one in model.greedy_until(docs_of(QUERIES))]
        assert kinds == ["no_answer" if number == place else "" for number in range(6)]
        assert server.asked[QUERIES[place]] == 4 and {*server.answered.values()} == {1}, "none is paid twice"
        assert model.run_record()["tokens"]["tokens_paid_in"] == 3 * 5
        kinds = [getattr(one, "kind", "") for one in load(server).greedy_until(docs_of(QUERIES))]
        assert kinds.count("no_answer") == 1 and {*server.answered.values()} == {1}, "nor in the next run"
        server.plan = lambda prompt, count: fault if prompt == QUERIES[place] and count < 11 else None
        assert [one.text for one in load(server).greedy_until(docs_of(QUERIES))] == [[answer_text(q)] for q in QUERIES]
    with FaultyServer(lambda prompt, count: fault) as server:
        with pytest.raises(CulturevalError, match="did not answer"):
            load(server, concurrency=1, revision="2").greedy_until(docs_of(QUERIES))
        assert len(server.asked) == 3, "not every row is tried"


@pytest.mark.parametrize("one_is_spent", [False, True])
def test_a_day_s_wait_of_one_row_is_that_row_s_also_where_two_servers_say_it(load, monkeypatch, one_is_spent):
    with (
        FaultyServer(lambda prompt, count: "a_day" if prompt == "q3" or one_is_spent else None) as server,
        FaultyServer(lambda prompt, count: "a_day" if prompt == "q3" else None) as other,
    ):
        with pytest.raises(CulturevalError, match="t, item 3: .*asks to wait with this row alone"):
            load(server, other, concurrency=1).greedy_until(docs_of(QUERIES))
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
        responses = load(server, other, concurrency=1).greedy_until(docs_of(QUERIES))
        assert [getattr(one, "kind", "") for one in responses] == ["", "", "", "no_answer", "", ""]
        if one_is_spent:
            assert server.asked["q1"] + server.asked["q4"] < 2, (
                "who says it is the last choice, not asked with each row"
            )
        server.plan = other.plan = lambda prompt, count: "a_day"
        with pytest.raises(CulturevalError, match="86400 s, longer than give_up_s allows"):
            load(server, other, concurrency=1, revision="2").greedy_until(docs_of(QUERIES))


@pytest.mark.parametrize("logprob", [float("nan"), 0.5])
def test_choices_of_one_row_without_log_probabilities_are_named_or_unscored(
    load, tokenizer_folder, monkeypatch, logprob
):
    asked = docs_of([f"س{number}" for number in range(9)], choices=["نعم نعم", "لا لا"])
    labels = docs_of(QUERIES, choices=["ب", "ج"])
    with FaultyServer(features=("prompt_logprobs",)) as server:
        model = load(server, tokenizer=tokenizer_folder)
        broken = model._prompts(asked[5]).contexts[0]

        def plan(prompt, count):
            server.last_entry = {"logprob": logprob, "rank": 1} if prompt.startswith(str(broken)[:-1]) else ...
            return None

        server.plan = plan
        with pytest.raises(CulturevalError, match=r"t, item 5: .*log-probability.*--on-refused unscored"):
            load(server, tokenizer=tokenizer_folder, concurrency=1).loglikelihood(asked)
        monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
        responses = load(server, tokenizer=tokenizer_folder, concurrency=1).loglikelihood(asked)
        assert [getattr(one, "kind", "") for one in responses] == [""] * 5 + ["no_answer"] + [""] * 3
    with FaultyServer(features=("top_logprobs",)) as server:
        server.plan = lambda prompt, count: monkeypatch.setitem(FIRST_TOKENS, "ب", logprob if prompt == "q3" else -1.0)
        responses = load(server, concurrency=1, scoring="first_token").loglikelihood(labels)
        assert [getattr(one, "kind", "") for one in responses] == ["", "", "", "no_answer", "", ""]


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
        with pytest.raises(CulturevalError, match="--on-refused unscored"):
            load(server, scoring="first_token", revision="2").loglikelihood(docs[:3])


@pytest.mark.parametrize("fault", ["drop", "rate_without_header", "wrong_key"])
def test_a_server_that_answers_nothing_any_more_stops_the_run(load, monkeypatch, fault):
    monkeypatch.setenv("CULTUREVAL_ON_REFUSED", "unscored")
    with FaultyServer() as server:
        model = load(server, max_retries=2, give_up_s=1)

        def plan(prompt, count):
            server.features.add("revoked" if fault == "wrong_key" else "mute")
            return fault

        server.plan = plan
        with pytest.raises(CulturevalError, match="did not answer a request"):
            model.greedy_until(docs_of(QUERIES))


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
        again = cultureval(*arguments, HF_HUB_OFFLINE="1")  # the first run has all answers
        limited = cultureval(*arguments, "--no-resume", "--on-refused", "unscored", "--limit", "3", HF_HUB_OFFLINE="1")
        assert limited.returncode == 0, limited.stderr
    assert "Prompts that the server refused, which are unscored: qimma_aratrust 1." in flat(unscored.stdout)
    assert "7 of 7 answers reused, oldest of 20" in flat(again.stdout)
    results = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((tmp_path / "results").rglob("results_*"))
    ]
    assert "do not agree" not in unscored.stderr + limited.stderr
    (last,) = results[-1]["cultureval"]["tasks"].values()
    scored, refused_rows = last["row_counts"]["scored"], last["row_counts"].get("refused", 0)
    assert (scored, scored + refused_rows, last["row_counts"]["not_asked"]) == (last["rows"], 3, 4)
    assert results[-1]["cultureval"]["timing"]["tokens_in"] == last["tokens_in"] > 0
    (record,) = results[1]["cultureval"]["tasks"].values()
    assert (record["rows"], record["refused"], record["reused"]) == (6, 1, 0)
    metric = record["metrics"][0]
    score = next(iter(results[1]["results"].values()))[metric]
    assert record["bounds"][metric] == pytest.approx([score * 6 / 7, (score * 6 + 1) / 7])
    (config,) = results[1]["config_tasks"].values()
    assert len(config["rows_report"]["refused_rows"]) == 1
    assert "bad" in config["rows_report"]["refused_rows"][0]["reason"]


@pytest.mark.parametrize("no_network", [[]])  # the server is on this machine
def test_a_label_that_is_not_among_the_first_tokens_is_scored_below_them(cultureval, no_network, tmp_path):
    """AraTrust's labels are three letters, of which the server never returns the first."""
    with FaultyServer(features=("top_logprobs",), entry={"root": "/models/one"}) as server:
        settings = {"model": MODEL, "base_url": server.url}
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
        assert "of the first token: not comparable" in " ".join(out.split()), "also where all answers are reused"
    assert record["row_counts"]["scored"] == record["rows"] == 7
    details = min((tmp_path / "results").rglob("details_*.parquet"))
    rows = Dataset.from_parquet(str(details), cache_dir=str(tmp_path / "cache"))
    right = [row["doc"]["gold_index"] in (1, [1]) for row in rows]
    assert {tuple(row["model_response"]["logprobs"]) for row in rows} == {(-4.0, -1.0), (-4.0, -1.0, -2.0)}
    assert [bool(row["metric"]["acc_norm"]) for row in rows] == right
    shown = cultureval("show", str(path), "qimma_aratrust", "#0", HF_HUB_OFFLINE="1")
    assert shown.returncode == 0, shown.stderr


def test_what_a_server_cannot_do_is_told_before_data_are_read_with_what_works(
    tmp_path, tokenizer_folder, capsys, monkeypatch
):
    def checked(server, images=False, likelihoods=True, labels=(), answers=1, **settings):
        given = {"model": MODEL, "base_url": server.url, "tokenizer": tokenizer_folder}
        (tmp_path / "model.yaml").write_text(yaml.safe_dump(given | settings), encoding="utf-8")
        return check_model(str(tmp_path / "model.yaml"), images, likelihoods, labels, answers)

    with FaultyServer(entry={"max_model_len": 64}, features=("prompt_logprobs", "counts")) as server:
        assert checked(server).no_likelihoods is None
        told = capsys.readouterr().err
        assert "choices by log-probabilities of prompts; 64 tokens of context" in told and "own count" in told
    with FaultyServer(features=("top_logprobs",)) as server:
        assert checked(server).no_likelihoods is None
        told = capsys.readouterr().err
        assert "choices by first-token log-probabilities, since the server gives none of prompts" in told
        assert "first_token" in checked(server, scoring="full").no_likelihoods
    with FaultyServer(features=("top_logprobs", "no_parts_of_letters")) as server:
        assert checked(server, labels=(("A", "B"), ("أ", "ب"), ("ج", "د"))).no_likelihoods is None
        told = capsys.readouterr().err
        assert "options أ ب: the first token of its reply is a part of a character, of which it gives none" in told
        assert "options ج د: none of them is among the 1 likeliest first tokens; rows that are so have no score" in told
        assert checked(server, labels=(("A", "B"),)).no_likelihoods is None
        assert "have no score" not in capsys.readouterr().err
    with FaultyServer(features=("rejects_prompt_logprobs", "no_images", "no_system")) as server:
        found = checked(server, images=True)
        assert "Unexpected keys" in found.no_likelihoods and "qimma_gen" in found.no_likelihoods
        assert "takes no images" in found.no_images
        with pytest.raises(CulturevalError, match="refuses a system prompt"):
            checked(server, system_prompt="Be brief.")
        assert not server.answered
    with (
        FaultyServer(features=("no_temperature",)) as server,
        pytest.raises(CulturevalError, match="leave_out: .temper"),
    ):
        checked(server, likelihoods=False)
    with FaultyServer(features=("no_chat",)) as server, pytest.raises(CulturevalError, match="chat_template: off"):
        checked(server, likelihoods=False, tokenizer=None)
    with FaultyServer() as server:
        checked(server, likelihoods=False, n=3, answers=5)
        server.features.add("no_n")
        with pytest.raises(CulturevalError, match="several answers to one question .*1 choices instead of 3.*set n to"):
            checked(server, likelihoods=False, n=3, answers=5)
        checked(server, likelihoods=False, n=3), checked(server, likelihoods=False, answers=5)


@pytest.mark.parametrize(
    ("feature", "told"),
    [
        ("over_quota", "daily limit reached.*7200 s.*: repeat the command later, since it asks to wait"),
        ("mute", "500.*broken.*: look into its log, since it is there and fails"),
        ("page", "text or a page, not JSON.*: what it sends is no answer: correct base_url"),
        ("empty", "0 choices instead of 1.*: what it sends is no answer"),
        ("revoked", "401.*: name its key in api_key_env"),
    ],
)
def test_who_fails_at_the_start_is_told_for_what_it_is_and_not_to_refuse_chat_messages(tmp_path, feature, told):
    with FaultyServer(features=(feature,)) as server:
        given = {"model": MODEL, "base_url": server.url, "max_retries": 4}
        (tmp_path / "model.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
        with pytest.raises(CulturevalError, match=f"cannot be asked .*{told}"):
            check_model(str(tmp_path / "model.yaml"), False, False)
        assert server.probes == {"over_quota": 1, "revoked": 1, "empty": 3}.get(feature, 5), "as in the run"


def test_a_wait_at_the_start_is_obeyed_and_told_while_it_lasts(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_PAUSE", 3)
    with FaultyServer(features=("busy_at_first",)) as server:
        given = {"model": MODEL, "base_url": server.url, "give_up_s": 60}
        (tmp_path / "model.yaml").write_text(yaml.safe_dump(given), encoding="utf-8")
        check_model(str(tmp_path / "model.yaml"), False, False)
        told = capsys.readouterr().err
    waits = rf"{MODEL}: asking the server what it can do, 3 s, {re.escape(server.url)} asks to wait: [12] s more"
    assert re.search(waits, told), "of four, at the first sign of life"


@pytest.mark.parametrize("name", ["ours/model.gguf", "ours", "gone.gguf"])
def test_a_gguf_file_is_told_to_be_served_also_where_its_folder_is_named(name, tmp_path):
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(CulturevalError, match=r"llama-server -m .*\.gguf\)"):
        check_model(str(tmp_path / name), False, False)


def flat(text):
    return " ".join(text.split())
