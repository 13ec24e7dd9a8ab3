"""Two judges are two judges: by name and by what their servers say, never by an address; none answers for the dead."""

import errno
import itertools
import json
import re

import pytest
from faulty_server import MODEL, FaultyServer

from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.identity import anonymity, judge_identity
from cultureval.metrics.judges.judge import judge_items, judge_signature, judge_with_all
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import JudgeItem, reuse_line, summarize
from cultureval.models.preflight import check_model
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal

TEMPLATE = "jeem_caption_reference"
CRITERIA = judge_template(TEMPLATE).criteria
ITEMS = [
    JudgeItem(str(number), {"country": "Egypt", "reference": "قطة على كرسي", "generated": f"قطة رقم {number}"})
    for number in range(4)
]


@pytest.fixture(autouse=True)
def own_journal(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))


def always(score, **server):
    """A server whose judge gives everything the same score, and answers the question who it is in its own way."""
    lines = "\n".join(f"{name}: {score}/5" for name in CRITERIA)
    return FaultyServer(reply=lambda *_: lines, **{"probe_answer": f"the {score}th stall"} | server)


def settings_of(server, **settings):
    return JudgeSettings(**{"model": MODEL, "base_url": server.url, "max_retries": 0, "backoff_s": 0.01} | settings)


def means(judges, journal):
    """Name of each judge -> its mean fluency."""
    found = judge_with_all(judges, {TEMPLATE: ITEMS}, Journal(journal))
    return {name: summarize(one.verdicts, CRITERIA)["fluency"] for (name, _), one in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("described", [True, False])
def test_two_judges_of_one_model_name_keep_their_verdicts_in_every_order(tmp_path, described):
    """Servers that differ in nothing that they say are told apart by the judges' names."""
    entries = [{"root": "/models/four"}, {"root": "/models/one"}] if described else [None, None]
    told = {} if described else {"probe_answer": "the same"}
    with always(4, entry=entries[0], **told) as four, always(1, entry=entries[1], **told) as one:
        judges = [settings_of(four, name="four"), settings_of(one, name="one")]
        for order in [*itertools.permutations(judges), judges[:1], judges[1:], judges]:
            expected = {judge.name: {"four": 4.0, "one": 1.0}[judge.name] for judge in order}
            assert means(order, tmp_path) == expected
        assert len(four.requests) == len(one.requests) == len(ITEMS)
        one.down = True
        with pytest.raises(CulturevalError, match="The judge one .* cannot be asked .*: start the server.*no earlier"):
            means(judges, tmp_path)
        assert means(judges[:1], tmp_path) == {"four": 4.0}
    with always(4, entry=entries[0], **told) as again:  # on another port
        assert means([settings_of(again, name="four")], tmp_path) == {"four": 4.0} and not again.requests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"probe_answer": "a"}, {"probe_answer": "b"}),
        ({"entry": {"root": "/models/a"}}, {"entry": {"root": "/models/b"}}),
        ({"entry": {"max_model_len": 8192}}, {"entry": {"max_model_len": 4096}}),
    ],
)
def test_another_checkpoint_under_the_same_name_finds_no_verdicts(tmp_path, first, second):
    same = {"probe_answer": "the same"}
    with always(4, **same | first) as four:
        assert means([settings_of(four)], tmp_path) == {"tiny": 4.0}
    with always(1, **same | second) as one:
        assert means([settings_of(one)], tmp_path) == {"tiny": 1.0} and len(one.requests) == len(ITEMS)
    with always(4, **same | first) as again:
        assert means([settings_of(again)], tmp_path) == {"tiny": 4.0} and not again.requests


@pytest.mark.slow
@pytest.mark.parametrize("change", ["served", "probe_answer"])
def test_a_judge_that_changes_its_model_stops_and_no_verdict_of_the_other_is_used(tmp_path, change):
    """Said in every reply, or only where the server is asked again who it is, after the last one."""
    with always(4) as server:
        before = getattr(server, change)
        server.plan = lambda prompt, count: setattr(server, change, "m-B") if "رقم 2" in prompt else None
        settings = settings_of(server, concurrency=1, output_token_price=1.0)
        stopped = judge_items(settings, TEMPLATE, ITEMS, Journal(tmp_path))
        assert "has changed its model during the run" in stopped.stopped and stopped.failed
        assert [one.outcome for one in stopped.verdicts].count("scored") == (2 if change == "served" else 0)
        assert {one.outcome for one in stopped.verdicts[2:]} == {"not_asked"}
        server.plan = lambda prompt, count: None
        setattr(server, change, before)
        again = judge_items(settings, TEMPLATE, ITEMS, Journal(tmp_path))
        assert all(one.outcome == "scored" for one in again.verdicts)
        asked = sum(server.asked.values())
        assert asked == (5 if change == "served" else 8), "what the first model answered is asked once"
        assert again.cost == 5.0 * asked, "5 tokens each, also of those that are not used"


def test_verdicts_of_a_judge_that_is_gone_at_the_end_are_not_used_and_asked_anew(tmp_path):
    with always(4) as server:

        def reply(prompt, index):
            server.down = "رقم 3" in prompt
            return "\n".join(f"{name}: 4/5" for name in CRITERIA)

        server.reply = reply
        settings = settings_of(server, concurrency=1)
        found = judge_items(settings, TEMPLATE, ITEMS, Journal(tmp_path))
        assert found.failed and "nobody knows whether 4 of its answers are its own" in found.stopped
        assert {one.outcome for one in found.verdicts} == {"not_asked"}
        server.down, server.reply = False, lambda *_: "\n".join(f"{name}: 3/5" for name in CRITERIA)
        again = judge_items(settings, TEMPLATE, ITEMS, Journal(tmp_path))
        assert summarize(again.verdicts, CRITERIA)["fluency"] == 3.0 and sum(server.asked.values()) == 8


def test_a_judge_whose_verdicts_find_no_room_on_the_disk_is_not_asked_on(tmp_path, monkeypatch):
    def full(journal, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Journal, "_write", full)
    with always(4) as server, pytest.raises(CulturevalError, match="No space left.*asks again for the rest"):
        judge_items(settings_of(server, concurrency=1), TEMPLATE, ITEMS, Journal(tmp_path))
    assert sum(server.asked.values()) == 1


def test_a_refused_key_and_an_unknown_model_are_told_alike_of_judges_and_models_before_anything_is_asked(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("SOME_KEY", "sk-0123456789abcdef")
    refused = ("revoked", MODEL, "401.*: set SOME_KEY to a key that it takes")
    unknown = ("unknown_models", "org/other", f"does not serve 'org/other', but {MODEL}.*: correct model and base_url")
    for feature, model, words in (refused, unknown):
        with always(4, features=[feature]) as server:
            given = {"model": model, "api_key_env": "SOME_KEY"}
            (tmp_path / "model.yaml").write_text(json.dumps({"base_url": server.url, **given}))
            with pytest.raises(CulturevalError, match=f"^The judge .* cannot be asked .*{words}") as of_judge:
                means([settings_of(server, **given)], tmp_path)
            with pytest.raises(CulturevalError, match=f"^{model} at .* cannot be asked .*{words}") as of_model:
                check_model(str(tmp_path / "model.yaml"), images=False, likelihoods=False)
            assert not server.requests and "sk-0" not in f"{of_judge.value}{of_model.value}"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["wrong_key", "forbidden", "not_found"])
def test_the_status_of_a_wrong_key_leaves_one_item_out_where_others_are_answered_and_else_stops(tmp_path, fault):
    with always(4) as server:
        settings = settings_of(server, concurrency=1)
        server.plan = lambda prompt, count: fault if "رقم 1" in prompt else None
        found = judge_items(settings, TEMPLATE, ITEMS, Journal(tmp_path / "one"))
        assert [one.outcome for one in found.verdicts] == ["scored", "no_answer", "scored", "scored"]
        assert found.stopped is None

        def revoke(prompt, count):
            server.features.add("revoked")
            return fault

        server.plan = revoke
        found = judge_items(settings, TEMPLATE, ITEMS, Journal(tmp_path / "other"))
        assert {one.outcome for one in found.verdicts} == {"not_asked"} and len(server.requests) == 5


@pytest.mark.slow
def test_servers_of_one_judge_serve_one_model_and_one_of_them_may_be_down():
    with always(4) as one, always(4) as two, always(1) as other:
        both = (one.url, two.url)
        assert judge_identity(settings_of(one, base_url=both)) == judge_identity(settings_of(one))
        with pytest.raises(CulturevalError, match="do not serve the same model"):
            judge_identity(settings_of(one, base_url=(one.url, other.url)))
        by_list = judge_identity(settings_of(one, base_url=(one.url, other.url), identify="model"))
        assert by_list.known == {"id": MODEL}
        two.down = True
        assert judge_identity(settings_of(one, base_url=both)) == judge_identity(settings_of(one))


def test_a_run_says_what_is_reused_and_where_a_server_tells_nothing(tmp_path):
    with always(4) as server:
        settings = settings_of(server)
        first, again = (
            judge_with_all([settings], {TEMPLATE: ITEMS}, Journal(tmp_path))["tiny", TEMPLATE] for _ in range(2)
        )
        assert reuse_line(first.verdicts) is None
        assert reuse_line(again.verdicts).startswith("4 of 4 verdicts are reused, of 2")
        assert "say nothing of its weights" in anonymity(settings, again.identity)
        assert anonymity(settings.with_(revision="v1"), again.identity) is None
    with always(4, entry={"root": "/models/four"}) as server:
        assert anonymity(settings_of(server), judge_identity(settings_of(server))) is None


def test_the_signature_holds_what_a_verdict_depends_on():
    with always(4, entry={"root": "/models/four", "max_model_len": 8192}) as server:
        settings = settings_of(server)
        identity = judge_identity(settings)
        lines = {
            judge_signature(changed, judge_template(TEMPLATE), identity)
            for changed in (
                settings,
                settings.with_(max_tokens=99),
                settings.with_(extra_body={"top_k": 1}),
                settings.with_(extra_body={"top_k": 2}),
                settings.with_(delimit="never"),
                settings.with_(name="other"),
            )
        }
        assert len(lines) == 6
        assert all(f"|server:id={MODEL};root=/models/four;max_model_len=8192;probe=" in line for line in lines)


@pytest.mark.slow
def test_a_server_that_can_holds_replies_to_the_form(tmp_path):
    asked = {}
    for owner, changes in (("vllm", {}), ("vllm", {"hold_to_form": False}), ("sglang", {}), ("me", {})):
        with always(4, entry={"owned_by": owner}) as server:
            settings = settings_of(server, **changes)
            identity = judge_identity(settings)
            judge_items(settings, TEMPLATE, ITEMS[:1], Journal(tmp_path / str(len(asked))), identity=identity)
            line = judge_signature(settings, judge_template(TEMPLATE), identity)
            asked[owner, bool(changes)] = (server.requests[0], "held_to_form:" in line)
    pattern = asked["vllm", False][0]["structured_outputs"]["regex"]
    assert re.fullmatch(pattern, "Consistency: 4/5\nRelevance: 1/5\nFluency: 5/5\nDialect Authenticity: 2/5")
    assert not re.fullmatch(pattern, "Consistency: 6/5\nRelevance: 1/5\nFluency: 5/5\nDialect Authenticity: 2/5")
    assert asked["sglang", False][0]["regex"] == pattern
    for key, (request, told) in asked.items():
        held = key in (("vllm", False), ("sglang", False))
        assert told == held and (held or not {"structured_outputs", "regex"} & set(request))


@pytest.mark.slow
@pytest.mark.parametrize("feature", ["schema", "no_schema", "neither"])
def test_other_servers_are_tried_with_a_schema_and_believed_only_if_they_hold_to_it(tmp_path, feature):
    """One that answers the schema's only reply; one that refuses the field; one that passes over it."""
    scores = '{"Consistency": 4, "Relevance": 3, "Fluency": 5, "Dialect Authenticity": 1}'
    with FaultyServer(reply=lambda *_: scores, features=[feature]) as server:
        settings = settings_of(server)
        identity = judge_identity(settings)
        (verdict,) = judge_items(settings, TEMPLATE, ITEMS[:1], Journal(tmp_path), identity=identity).verdicts
        (request,) = server.requests
        line = judge_signature(settings, judge_template(TEMPLATE), identity)
        never = settings.with_(hold_to_form=False)
        before = server.probes
        assert not judge_identity(never).holds_schema and server.probes == before + 1  # no second question
        judge_items(never, TEMPLATE, ITEMS[:1], Journal(tmp_path), identity=identity)
        assert "response_format" not in server.requests[-1]
        assert len(server.requests) == (2 if feature == "schema" else 1)  # a reply in another form is another reply
    assert verdict.scores == dict(zip(CRITERIA, (4, 3, 5, 1), strict=True))
    assert identity.holds_schema == ("held_to_form:response_format" in line) == (feature == "schema")
    if feature == "schema":
        schema = request["response_format"]["json_schema"]["schema"]
        assert schema["required"] == list(CRITERIA) and not schema["additionalProperties"]
        assert schema["properties"]["Fluency"] == {"type": "integer", "enum": [1, 2, 3, 4, 5]}
    else:
        assert "response_format" not in request


def test_an_own_form_is_left_alone():
    own = {"structured_outputs": {"json": {}}}
    with always(4, entry={"owned_by": "vllm"}) as server:
        judge_items(settings_of(server, extra_body=own), TEMPLATE, ITEMS[:1])
        assert server.requests[0]["structured_outputs"] == own["structured_outputs"]
