"""Servers that change their model during a run: no answer is filed under another's name, or taken in silence."""

import asyncio
import errno
import itertools
import json
import os
import re
import signal
import threading
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml
from faulty_server import MODEL, FaultyServer
from lighteval.tasks.requests import Doc

from cultureval.models import openai_api
from cultureval.models.code_generation import CodeSettings, generate_solutions
from cultureval.models.openai_api import OpenAIModel
from cultureval.reports.code.evaluation import generation_of, signature_of
from cultureval.reports.code.result_files import generating_model, other_models
from cultureval.reports.code.samples import read_samples
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.interruption import Interrupted
from cultureval.runtime.journal import ROOM, Journal
from cultureval.runtime.servers import identity, identity_watch, journalled_answers, openai_client
from cultureval.runtime.servers.identity import IdentityQuestion, ServerIdentity, require_answer
from cultureval.runtime.servers.identity_watch import IdentityWatch
from cultureval.runtime.servers.settings import ServerSettings
from cultureval.samples.tiny_models.text_parts import train_tokenizer
from cultureval.tasks.qimma.code_data import load_problems

pytestmark = pytest.mark.usefixtures("own_folders")
QUERIES = [f"q{number}" for number in range(7)]


@pytest.fixture
def load(tmp_path):
    def build(server, **settings):
        file = tmp_path / "settings.yaml"
        given = {"model": MODEL, "base_url": server.url, "backoff_s": 0.02, "concurrency": 1}
        file.write_text(yaml.safe_dump(given | settings), encoding="utf-8")
        return OpenAIModel(SimpleNamespace(model_name=str(file)))

    return build


def docs(queries=QUERIES, **fields):
    given = {"choices": ["x"], "gold_index": 0, "task_name": "t"} | fields
    return [Doc(query=query, id=query, **given) for query in queries]


def texts(model):
    return [response.text[0] for response in model.greedy_until(docs())]


class Changing(FaultyServer):
    """Answers with the name of its model, which is `A` until `becomes` is called."""

    def __init__(self, at="q3", change=("served",), fault=None, **more):
        super().__init__(self._plan, reply=lambda prompt, index: f"{self.weights}: {prompt}", **more)
        self.at, self.change, self.fault, self.weights = at, change, fault, "A"

    def becomes(self, weights):
        self.weights = weights
        for name in self.change:
            setattr(self, name, f"{'m' if name == 'served' else name}-{weights}")

    def _plan(self, prompt, count):
        if (prompt, count) == (self.at, 1):
            self.becomes("B")
            return self.fault
        return None


class InTurns(FaultyServer):
    """Two models behind one address: each question who it is reaches the other one."""

    def __init__(self, answers=("a market",), entries=({},), **more):
        super().__init__(**more)
        self.answers, self.entries = itertools.cycle(answers), itertools.cycle(entries)

    probe_answer = property(lambda self: next(self.answers), lambda self, value: None)
    entry = property(lambda self: next(self.entries), lambda self, value: None)


def test_two_models_in_turns_behind_one_address_are_never_taken_for_one(load, caplog):
    with InTurns(("a market", "another market")) as server:
        model = load(server)
        assert len(texts(model)) == 7 and "7 of the run's answers came while" in caplog.text
        assert "set `identify: model`" in caplog.text, "else a server that rounds as it likes is paid for ever"
        assert model.run_record()["tasks"]["t"]["of_other_models"] == 7
        server.answers = itertools.cycle(["a market"])
        assert len(texts(load(server))) == 7 and {*server.answered.values()} == {2}
    entries = [{"root": root, "max_model_len": length} for root, length in (("/a", 64), ("/b", 32))]
    with InTurns(entries=entries) as server, pytest.raises(CulturevalError, match="has changed its model.*/b"):
        texts(load(server))


def test_an_answer_that_is_rounded_differently_in_a_batch_is_no_other_model(load, monkeypatch):
    class Rounding(FaultyServer):
        probe_answer = property(lambda self: "rounded" if self.in_flight else "same", lambda self, value: None)

    monkeypatch.setattr(identity_watch.IdentityWatch, "is_due", lambda watch, url: True)
    with Rounding(delay=0.05) as server:
        model = load(server, concurrency=4)
        assert len(texts(model)) == 7 and server.probes > 7
        assert "of_other_models" not in model.run_record()["tasks"]["t"]


def test_a_signal_that_ends_a_worker_has_the_answers_confirmed(load, monkeypatch):
    def ends(progress, note=""):
        if len(server.answered) == 3:
            raise Interrupted(signal.SIGTERM)

    with FaultyServer() as server:
        with monkeypatch.context() as patch, pytest.raises(Interrupted):
            patch.setattr(journalled_answers.Progress, "update", ends)
            texts(load(server))
        assert len(texts(load(server))) == 7 and {*server.answered.values()} == {1}


def test_a_full_disk_at_an_interruption_is_told_and_what_it_left_unconfirmed(load, monkeypatch, caplog):
    def ends(progress, note=""):
        raise Interrupted(signal.SIGTERM)

    def full(journal, checks):
        raise CulturevalError("the disk is full")

    monkeypatch.setattr(journalled_answers.Progress, "update", ends)
    monkeypatch.setattr(Journal, "confirm", full)
    with FaultyServer() as server, pytest.raises(Interrupted):
        texts(load(server))
    assert "the disk is full" in caplog.text and "1 of the run's answers came after the last time" in caplog.text


BUSY = (429, {"error": {"message": "slow down"}}, {"Retry-After": "1"})
BROKEN = (500, {"error": {"message": "broken"}})
LOST_LISTS = [None, BUSY, BROKEN, (200, b"<html>gateway</html>"), (200, {"data": []})]


@pytest.mark.parametrize("lost", LOST_LISTS)
def test_a_list_of_models_that_is_lost_at_the_end_is_asked_for_again(load, caplog, lost):
    """One hiccup of a gateway left all answers since the last check to be paid again, or was told as a change."""

    def loses(prompt, count):
        server.lost_lists[server.lists + 1] = lost

    with FaultyServer(loses, entry={"root": "/a", "max_model_len": 64}) as server:
        assert len(texts(load(server))) == 7
        assert len(texts(load(server))) == 7 and {*server.answered.values()} == {1}
    assert "anew" not in caplog.text


@pytest.mark.parametrize("lost", [BROKEN, (404, {}), (200, {"data": []})])
@pytest.mark.parametrize("change", [(), ("served",), ("probe_answer",)])
def test_a_list_of_models_that_fails_from_now_on_says_nothing_and_a_change_is_told_all_the_same(
    load, caplog, change, lost
):
    """With 404 it was told as a change of the model, and all answers were taken back."""
    with Changing(change=change, entry={"root": "/a", "max_model_len": 64}) as server:
        model = load(server)
        server.lost_lists = dict.fromkeys(range(2, 99), lost)
        if change:
            with pytest.raises(CulturevalError, match="has changed its model during the run"):
                texts(model)
        else:
            assert len(texts(model)) == 7 and "7 of the run's answers came after the last time" in caplog.text
            cause = {500: "InternalServerError: Error code: 500 - broken", 404: "NotFoundError: Error code: 404"}
            assert f"whose list of models fails ({cause.get(lost[0], 'IncompleteAnswer: its list')}" in caplog.text


@pytest.mark.parametrize(("lost", "times", "known"), [(BUSY, 1, True), (BROKEN, 2, True), (BROKEN, 3, False)])
def test_a_list_of_models_that_fails_at_the_start_is_asked_for_again_and_else_says_nothing(
    load, caplog, lost, times, known
):
    with FaultyServer(entry={"root": "/a", "max_model_len": 64}) as server:
        server.lost_lists = dict.fromkeys(range(1, times + 1), lost)
        model = load(server)
        assert len(texts(model)) == 7 and ("nothing of its weights" in caplog.text) != known
        assert "of_other_models" not in model.run_record()["tasks"]["t"]
    assert ("once the list answers, they are asked anew" in caplog.text) != known


@pytest.mark.parametrize("gone", [BROKEN, (404, {}), (200, {"data": []})])
def test_answers_that_a_list_of_models_without_the_root_hides_are_told(load, caplog, monkeypatch, gone):
    """The next run with a list that names no root paid for everything again in silence, and so did the one after it."""
    with FaultyServer(entry={"root": "/a", "max_model_len": 64}) as server:
        texts(load(server))
        assert "last run with this journal" not in caplog.text
        monkeypatch.setattr(identity, "LISTED", set())  # of this process
        monkeypatch.setattr(openai_client, "LISTED", set())
        for lists in (dict.fromkeys(range(1, 99), gone), {}):
            server.lists, server.lost_lists = 0, lists
            caplog.clear()
            texts(load(server))
            assert "root=/a;max_model_len=64;" in caplog.text
            assert "no answer of that one is taken for its own" in caplog.text
        assert {*server.answered.values()} == {2}, "those of the first run are taken again"


def test_a_failing_list_of_one_of_two_servers_is_named_before_anything_is_paid(load):
    """They were told to serve different models."""
    entry = {"root": "/a", "max_model_len": 64}
    with FaultyServer(entry=entry) as first, FaultyServer(entry=entry) as second:
        second.lost_lists = dict.fromkeys(range(1, 99), BROKEN)
        with pytest.raises(
            CulturevalError, match=f"The list of models of {second.url} fails .*broken.*leave that address"
        ):
            texts(load(first, base_url=[second.url, first.url]))
        assert not first.asked and not second.asked


@pytest.mark.parametrize("servers", [1, 2])
def test_what_a_list_says_that_failed_at_the_start_is_compared_from_then_on(load, servers):
    """Answers of /a and of /b, which the server or its twin said itself, were one score without a word."""
    with ExitStack() as stack:
        found = [stack.enter_context(FaultyServer(entry={"root": "/a", "max_model_len": 64})) for _ in range(servers)]
        for server in found:
            server.lost_lists = dict.fromkeys(range(1, 4), BROKEN)
        model = load(found[0], base_url=[server.url for server in found])
        model.identify()
        if servers == 2:
            found[1].entry = {"root": "/b", "max_model_len": 64}
        else:
            found[0].plan = lambda prompt, count: setattr(found[0], "entry", {"root": "/b"}) if prompt == "q5" else None
            model._watch.is_due = lambda url: True
        with pytest.raises(
            CulturevalError, match="it was .*root=/a.*and is .*root=/b|it was .*root=/b.*and is .*root=/a"
        ):
            texts(model)


def test_a_list_that_was_learned_of_in_mid_run_and_fails_again_confirms_nothing(load, caplog):
    """Its failure confirmed the answers of another model, and what it had been was told by what the other one said."""
    with FaultyServer(entry={"root": "/a", "max_model_len": 64}) as server:
        server.lost_lists = dict.fromkeys(range(1, 4), BROKEN)
        model = load(server)
        model.identify()
        server.plan = lambda prompt, count: server.lost_lists.update(dict.fromkeys(range(5, 99), BROKEN))
        model._watch.is_due = lambda url: True
        assert len(texts(model)) == 7 and "whose list of models fails" in caplog.text
        assert model._watch.first.whole.root == "/a" and model._watch.first.root is None
        watch = IdentityWatch(model._watch.first, model._watch.question)  # of another part of the run
        assert watch._differing(server.url, replace(watch.first, unlisted="", root="/b")) == {"root", "max_model_len"}
    first = ServerIdentity("m", probe="1", unlisted="500")
    first.learn(ServerIdentity("m", root="/z", probe="2"))
    assert not first.learned, "nothing of another model"


def test_a_list_of_models_that_fails_after_the_command_has_read_it_stops_before_anything_is_paid(load):
    """The identity then lacked what the list had said: the next run paid for all answers again, without a word."""
    with FaultyServer(entry={"root": "/a", "max_model_len": 64}) as server:
        require_answer(MODEL, ServerSettings((server.url,), backoff_s=0.02), MODEL)
        server.lost_lists = dict.fromkeys(range(2, 99), BROKEN)
        with pytest.raises(
            CulturevalError, match="its list of models fails, which it had just before.*broken.*Nothing"
        ):
            texts(load(server))
        assert not server.asked


class SmallDisk:
    """Has room for some bytes of the journal, and what it keeps."""

    def __init__(self, monkeypatch, left):
        self.left, self.write, self.pwrite, self.truncate = left, os.write, os.pwrite, os.truncate
        monkeypatch.setattr(os, "write", lambda file, data: self.takes(data) or self.write(file, data))
        monkeypatch.setattr(os, "pwrite", lambda file, data, at: self.takes(data) or self.pwrite(file, data, at))
        monkeypatch.setattr(os, "truncate", self.gives_back)

    def takes(self, data):
        if len(data) > self.left:
            self.left = 0  # the beginning is written
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= len(data)

    def gives_back(self, file, size):
        self.left += os.fstat(file).st_size - size
        self.truncate(file, size)


def test_what_fits_on_a_disk_that_fills_is_confirmed_and_paid_once(load, monkeypatch, caplog):
    with FaultyServer() as server:
        with monkeypatch.context() as patch, pytest.raises(CulturevalError, match="No space left"):
            SmallDisk(patch, ROOM + 1500)
            texts(load(server, concurrency=1))
        lost = sum(server.answered.values())
        assert "No space left" not in caplog.text and "asks for them anew" not in caplog.text, "it is told once"
        assert len(texts(load(server))) == 7
        assert 2 < lost < 6 and sum(server.answered.values()) == 7 + 1, "the one that did not fit"


@pytest.mark.parametrize("patient", [True, False])
def test_a_short_question_that_is_asked_again_alone_is_as_patient_as_the_first(patient):
    asked = []

    class Question:
        async def ask(self, url, patient, listed):
            asked.append(patient)
            return ServerIdentity("m", probe="b" if len(asked) == 1 else "a")

    watch = IdentityWatch(ServerIdentity("m", probe="a"), Question())
    asyncio.run(watch.make_sure("", lambda: 0, patient=patient))
    assert asked == [patient] * 4


def test_each_notice_of_a_change_names_the_model_before_it(caplog):
    class Question:
        async def ask(self, url, patient, listed):
            return ServerIdentity("m", root=now[0])

    watch, now = IdentityWatch(ServerIdentity("m", root="/a"), Question(), goes_on=True), [""]
    for now[0] in ("/b", "/c", "/a"):
        asyncio.run(watch.make_sure("", lambda: 0))
    told = [record.getMessage() for record in caplog.records]
    roots = [re.findall(r"root=(/\w)", line) for line in told]
    assert roots == [["/a", "/b"], ["/b", "/c"], ["/c", "/a"]]


# Said in every reply; by the build; by the answer to the short question alone, after a lost connection or not.
CHANGES = [(("served",), None), (("fingerprint",), None), (("probe_answer",), "drop"), (("probe_answer",), None)]


@pytest.mark.parametrize(("change", "fault"), CHANGES)
def test_a_change_stops_the_run_and_each_model_keeps_its_own_answers(load, change, fault):
    with Changing(change=change, fault=fault) as server:
        server.becomes("A")
        with pytest.raises(
            CulturevalError, match="has changed its model during the run: .*--on-change continue"
        ) as told:
            texts(load(server))
        assert ("identify: model" in str(told.value)) == (change != ("served",)), "names are always compared"
        for weights in ("B", "A"):
            server.becomes(weights)
            assert texts(load(server)) == [f"{weights}: {query}" for query in QUERIES]
        if change == ("served",):
            assert set(server.answered.values()) == {2}, "no model was asked twice"


@pytest.mark.parametrize("change", ["served", "fingerprint", "probe_answer"])
@pytest.mark.parametrize("policy", ["stop", "continue"])
def test_a_change_while_the_order_of_requests_is_checked_is_no_prefix_cache(
    load, tmp_path, monkeypatch, change, policy
):
    """A change that the replies named was taken for log-probabilities that depend on the order of requests."""

    class Restarting(Changing):
        def _plan(self, prompt, count):
            if len(self.requests) == 4:
                self.becomes("B")
                self.shift = 3.0

    monkeypatch.setenv("CULTUREVAL_ON_CHANGE", policy)
    with Restarting(change=(change,), features=("prompt_logprobs",)) as server:
        server.becomes("A")
        train_tokenizer().save_pretrained(tmp_path / "tokenizer")
        model = load(server, tokenizer=str(tmp_path / "tokenizer"))
        asked = docs(["س", "ش"], choices=["نعم نعم", "لا لا"])
        if policy == "stop":
            with pytest.raises(CulturevalError, match="has changed its model during the run: .*--on-change continue"):
                model.loglikelihood(asked)
            return
        found = [response.logprobs for response in model.loglikelihood(asked)]
        assert model.run_record()["tasks"]["t"]["of_other_models"] == len(asked)
        of_b = load(server, tokenizer=str(tmp_path / "tokenizer"), revision="b")
        assert found == [response.logprobs for response in of_b.loglikelihood(asked)]


@pytest.mark.parametrize("change", ["served", "probe_answer"])
def test_two_models_at_two_addresses_are_no_prefix_cache(load, tmp_path, monkeypatch, change):
    """Which of them answered decided by how much the answers to one prompt differed."""

    class Restarting(Changing):
        def _plan(self, prompt, count):
            if len(self.requests) == 2:
                self.becomes("B")
                self.shift = 3.0

    monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "continue")
    train_tokenizer().save_pretrained(tmp_path / "tokenizer")
    asked = docs([f"س{number}" for number in range(6)], choices=["نعم نعم", "لا لا"])
    kind = {"change": (change,), "features": ("prompt_logprobs",)}
    with Changing(at=None, **kind) as steady, Restarting(**kind) as other:
        steady.becomes("A"), other.becomes("A")
        model = load(steady, tokenizer=str(tmp_path / "tokenizer"), base_url=[steady.url, other.url], concurrency=4)
        assert all(len(response.logprobs) == 2 for response in model.loglikelihood(asked))
        assert model.run_record()["tasks"]["t"]["of_other_models"] > 0 and steady.answered


@pytest.mark.parametrize("back_as", ["A", "B"])
def test_a_server_that_restarts_is_waited_for_and_asked_who_it_is(load, back_as):
    def back():
        server.becomes(back_as)
        server.down = False

    with Changing(change=("probe_answer",)) as server:
        server.becomes("A")
        restart = threading.Timer(1.0, back)

        def plan(prompt, count):
            if (prompt, count) == ("q3", 1):
                server.down = True
                restart.start()
                return "drop"
            return None

        server.plan, model = plan, load(server, max_retries=12)
        if back_as == "A":
            assert texts(model) == [f"A: {query}" for query in QUERIES]
        else:
            with pytest.raises(CulturevalError, match="has changed its model during the run"):
                texts(model)
        restart.join()


def test_a_change_is_found_also_where_the_run_fails_for_another_reason(load):
    with Changing(change=("probe_answer",)) as server:
        server.becomes("A")
        changes = server.plan
        server.plan = lambda prompt, count: "bad_request" if prompt == "q5" else changes(prompt, count)
        with pytest.raises(CulturevalError, match="has changed its model during the run: .*identify: model"):
            texts(load(server))
        server.becomes("A")
        server.plan = lambda prompt, count: None
        assert texts(load(server)) == [f"A: {query}" for query in QUERIES]


@pytest.mark.parametrize("asked_often", [False, True])
def test_a_killed_run_leaves_no_answer_that_may_be_of_another_model(load, monkeypatch, caplog, asked_often):
    """Killed before the server was asked again who it is, which then has the first model once more."""
    if asked_often:
        due = itertools.cycle([False, False, False, True])
        monkeypatch.setattr(identity_watch.IdentityWatch, "is_due", lambda watch, url: next(due))

    async def killed(client, run, limit):
        pass

    with Changing(change=("probe_answer",), at="" if asked_often else "q3", delay=0.05) as server:
        server.becomes("A")
        changes = server.plan
        server.plan = lambda prompt, count: "bad_request" if prompt == "q5" else changes(prompt, count)
        with monkeypatch.context() as patch, pytest.raises(CulturevalError, match="bad"):
            patch.setattr(journalled_answers, "_make_sure_at_the_end", killed)
            texts(load(server))
        server.becomes("A")
        server.plan = lambda prompt, count: None
        assert texts(load(server)) == [f"A: {query}" for query in QUERIES]
        anew = sum(server.answered.values()) - len(QUERIES)
        assert f"{anew} answers of an earlier run are asked for anew" in caplog.text
        assert 0 < anew < 5 if asked_often else anew == 5
        assert texts(load(server)) == [f"A: {query}" for query in QUERIES]
        assert sum(server.answered.values()) == len(QUERIES) + anew, "what a check has followed is not paid again"


@pytest.mark.parametrize("fault", ["down", "mute", "revoked", "over_quota", "no_probe"])
def test_answers_of_a_server_that_does_not_say_who_it_is_at_the_end_are_marked_and_asked_anew(load, caplog, fault):
    with FaultyServer() as server:

        def reply(prompt, index):
            server.down = (prompt, fault) == ("q6", "down")
            server.features |= {fault} if prompt == "q6" else set()
            return prompt

        server.reply, model = reply, load(server, max_retries=1, give_up_s=5)
        assert texts(model) == QUERIES and "7 of the run's answers came after the last time" in caplog.text
        record = model.run_record()
        assert record["tasks"]["t"]["of_other_models"] == sum(record["model"]["other_models"].values()) == 7
        server.down, server.reply = False, lambda prompt, index: prompt
        server.features.discard(fault)
        again = load(server)
        assert texts(again) == QUERIES and {*server.answered.values()} == {2}
        assert "of_other_models" not in again.run_record()["tasks"]["t"]
        assert again.run_record()["tokens"]["tokens_paid_in"] == 3 * 2 * len(QUERIES), "both answers were paid"


@pytest.mark.parametrize(("change", "fault"), CHANGES)
def test_a_run_that_goes_on_is_marked_as_mixed_and_files_nothing_wrongly(load, change, fault, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "continue")
    with Changing(change=change, fault=fault) as server:
        server.becomes("A")
        model, mixed = load(server), [f"{'AB'[place > 2]}: {query}" for place, query in enumerate(QUERIES)]
        assert texts(model) == mixed
        record, signature = model.run_record(), model.signature_fields()["server"]
        assert record["tokens"]["tokens_paid_in"] == 3 * len(QUERIES)
        unseen = change == ("probe_answer",)
        if unseen and fault:  # what came before the lost connection may be of either as well
            assert record["tasks"]["t"]["of_other_models"] == 7
        else:
            assert record["tasks"]["t"]["of_other_models"] == (7 if unseen else 4)
        assert sum(record["model"]["other_models"].values()) == record["tasks"]["t"]["of_other_models"]
        assert " and " in signature
        server.becomes("A")
        if not unseen:
            again, before = load(server), sum(server.asked.values())
            assert texts(again) == mixed and sum(server.asked.values()) == before, "nothing is paid twice"
            repeated = again.run_record()
            assert repeated["tasks"]["t"]["reused"] == 7 and repeated["tokens"] == record["tokens"]
            assert repeated["model"]["other_models"] == record["model"]["other_models"]
        monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "stop")
        for weights in ("A", "B"):
            server.becomes(weights)
            assert texts(load(server)) == [f"{weights}: {query}" for query in QUERIES]
            assert "of_other_models" not in load(server).run_record()["tasks"].get("t", {})


def test_what_to_do_after_a_change_can_be_done():
    question = IdentityQuestion.of(ServerSettings(("http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1")), "m")
    watch = IdentityWatch(ServerIdentity("m", probe="a"), question)
    told = str(watch.error("http://127.0.0.1:8/v1", ServerIdentity("m", probe="b"), 0))
    assert "out of base_url" in told and "--on-change" not in told and "identify: model" in told
    watch = IdentityWatch(ServerIdentity("m", "/m", fingerprint="1", probe="a"), question)
    for who, unsteady in (
        (ServerIdentity("m", fingerprint="2", served="m"), True),
        (ServerIdentity("m", served="n"), False),
    ):
        assert ("identify: model" in str(watch.error("", who, 0))) == unsteady, "told by a reply alone"


def test_code_of_two_models_is_marked_in_every_later_result(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "continue")
    with Changing(at="", change=("served",)) as server:
        server.becomes("A")
        file = tmp_path / "server.yaml"
        file.write_text(f"model: {MODEL}\nbase_url: {server.url}\nconcurrency: 1\n", "utf-8")
        settings = CodeSettings(str(file), "humaneval")
        server.plan = lambda prompt, count: server.becomes("B") if len(server.asked) == 4 else None
        problems = load_problems("humaneval", "samples")
        given = (problems.docs(1, thinking=False, server=True), problems.description())
        samples, refused = generate_solutions(settings, *given, tmp_path, True, lambda task, text: text)
        assert not refused and len(samples.read_text("utf-8").splitlines()) == len(problems.rows) > 4
        made = generation_of(samples)
        assert set(made["other_models"]) < set(problems.rows) and "served=m-B" in next(iter(other_models(made)))
        before, server.plan = sum(server.asked.values()), lambda prompt, count: None
        server.becomes("A")  # what is there stays what it is, also where nothing is asked
        generate_solutions(settings, *given, tmp_path, True, lambda task, text: text)
        assert generation_of(samples)["other_models"] == made["other_models"] and sum(server.asked.values()) == before
        server.becomes("B")  # whose own answers are in the journal
        generate_solutions(settings, *given, tmp_path / "b", True, lambda task, text: text)
        assert sum(server.asked.values()) == before + len(problems.rows) - len(made["other_models"])
    found = signature_of(samples, problems, read_samples(samples, problems.rows, "never"), True)
    assert "served=m-A" in found and " and " in found and "served=m-B" in found
    assert sum(generating_model(made).other_models.values()) == len(made["other_models"])


def test_scores_of_choices_are_watched_too(load, tmp_path):
    train_tokenizer().save_pretrained(tmp_path / "tokenizer")
    asked = docs(["س1", "س2", "س3"], choices=["نعم نعم", "لا لا"])
    with FaultyServer() as server:
        server.plan = lambda prompt, count: setattr(server, "served", "m-B" if len(server.asked) > 4 else MODEL)
        with pytest.raises(CulturevalError, match="has changed its model during the run"):
            load(server, tokenizer=str(tmp_path / "tokenizer"), parity_tolerance=9).loglikelihood(asked)


def test_answers_of_another_model_in_an_older_journal_are_not_taken(load):
    with FaultyServer() as server:
        model = load(server)
        assert len(texts(model)) == len(QUERIES)
        (file,) = model._journal.folder.glob("*.jsonl")
        keys = [json.loads(line)["key"] for line in file.read_text(encoding="utf-8").splitlines()][:2]
        model._journal.append({key: model._journal.get(key) | {"model": "m-B"} for key in keys})
        before = sum(server.asked.values())
        texts(load(server))
        assert sum(server.asked.values()) == before + 2


def test_an_alias_of_a_provider_that_moves_on_is_noticed_and_may_be_gone_on_with(load, monkeypatch):
    """Nobody is asked who it is, so that the replies of the earlier run say whom to expect."""
    monkeypatch.setattr(openai_api, "identity_question", lambda config: None)
    monkeypatch.setattr(openai_api, "model_identity", lambda config: ServerIdentity(id=config.model, root="provider"))
    with FaultyServer() as server:
        server.plan = lambda prompt, count: "bad_request" if (prompt, server.served) == ("q5", "m-1") else None
        server.served = "m-1"
        with pytest.raises(CulturevalError, match="bad"):
            texts(load(server))
        server.served = "m-2"
        with pytest.raises(CulturevalError, match="has changed its model during the run: .*m-1.*m-2.*Name the ver"):
            texts(load(server))
        before = sum(server.asked.values())
        with pytest.raises(CulturevalError, match="has changed its model during the run"):
            texts(load(server, concurrency=4))
        assert sum(server.asked.values()) == before + 1, "one reply tells it, to a question that it has not answered"
        monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "continue")
        model = load(server)
        for asked in (load(server), model):
            assert len(texts(asked)) == len(QUERIES) and max(server.answered.values()) == 1
            assert asked.run_record()["tasks"]["t"]["of_other_models"] == 2
            assert asked.run_record()["tokens"]["tokens_paid_in"] == 3 * len(QUERIES)


def test_what_an_alias_of_a_provider_answered_is_found_under_its_versions_names(load, monkeypatch):
    """The alias leads to one version, then to another, which stops the run; each is then named, as the advice says."""
    monkeypatch.setattr(openai_api, "identity_question", lambda config: None)
    monkeypatch.setattr(openai_api, "model_identity", lambda config: ServerIdentity(id=config.model, root="provider"))
    first, second = f"{MODEL}-2026-05-01", f"{MODEL}-2026-11-01"

    def moves(prompt, count):
        server.served = second if prompt >= "q5" else first

    with FaultyServer(moves) as server:
        with pytest.raises(CulturevalError, match="has changed its model during the run"):
            texts(load(server))
        server.plan = lambda prompt, count: None
        for version, had in ((first, 5), (second, 1)):
            server.served, before = version, sum(server.asked.values())
            model = load(server, model=version)
            for loaded in (model, load(server, model=version)):
                assert len(texts(loaded)) == len(QUERIES)
                assert sum(server.asked.values()) - before == len(QUERIES) - had
            assert model.run_record()["tokens"]["tokens_paid_in"] == 3 * len(QUERIES)
            assert model.run_record()["tasks"]["t"]["reused"] == had


def test_another_model_s_answer_after_a_reply_of_no_use_is_found_again(load, monkeypatch):
    def changes(prompt, count):
        server.served = "m-B" if (prompt, count) == ("q3", 2) else MODEL
        return "broken_off" if (prompt, count) == ("q3", 1) else None

    with FaultyServer(changes) as server:
        with pytest.raises(CulturevalError, match="has changed its model during the run"):
            texts(load(server))
        server.served = MODEL
        monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "continue")
        model = load(server)
        assert len(texts(model)) == len(QUERIES) and server.asked["q3"] == 2
        assert model.run_record()["tokens"]["tokens_paid_in"] == 3 * (len(QUERIES) + 1)


def test_what_another_run_files_meanwhile_as_the_other_model_s_is_taken_by_one_that_goes_on(load, monkeypatch):
    def beside(prompt, index):
        if prompt == "q0":
            monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "stop")
            with pytest.raises(CulturevalError, match="has changed its model during the run"):
                load(server).greedy_until(docs(QUERIES[1:]))
        elif prompt == "q1":
            server.served = "m-B"
        return f"{prompt} of {server.served}"

    monkeypatch.setenv("CULTUREVAL_ON_CHANGE", "continue")
    with FaultyServer(reply=beside) as server:
        model = load(server)
        assert texts(model) == [f"{query} of m-B" for query in QUERIES]
        assert {*server.answered.values()} == {1} and model.run_record()["tasks"]["t"]["of_other_models"] == 7


def test_a_server_is_asked_again_from_time_to_time_and_its_name_behind_an_alias_counts(load, monkeypatch):
    monkeypatch.setattr(identity_watch, "LEAST_PAUSE_S", 0.0)
    monkeypatch.setattr(identity_watch, "SHARE", 1e6)
    with FaultyServer(delay=0.02) as server:
        server.served = "org/tiny-2026-11"
        model = load(server)
        texts(model)
        assert server.probes > 3 and model.run_record()["model"]["server"]["served"] == "org/tiny-2026-11"
