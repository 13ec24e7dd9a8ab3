"""Two judges are two judges: by name and by what their servers list, never by an address; none answers for the dead."""

import json
from statistics import fmean

import pytest
from faulty_server import MODEL, FaultyServer

from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.asking import Asker, open_askers
from cultureval.metrics.judges.items import JudgeItem
from cultureval.metrics.judges.judge import judge_items, judge_signature, judge_with_all
from cultureval.metrics.judges.settings import JudgeSettings, judge_identity
from cultureval.runtime.errors import CulturevalError

TEMPLATE = "jeem_caption_reference"
CRITERIA = judge_template(TEMPLATE).criteria
ITEMS = [
    JudgeItem(str(number), {"country": "Egypt", "reference": "قطة على كرسي", "generated": f"قطة رقم {number}"})
    for number in range(4)
]


@pytest.fixture(autouse=True)
def own_journal(own_folders):
    """A journal of the test's own."""


def always(score, **server):
    """A server whose judge gives everything the same score."""
    lines = "\n".join(f"{name}: {score}/5" for name in CRITERIA)
    return FaultyServer(reply=lambda *_: lines, **server)


def settings_of(server, **settings):
    return JudgeSettings(**{"model": MODEL, "base_url": server.url, "max_retries": 0} | settings)


def fluency(*judges):
    """The mean fluency that each judge gives."""
    found = judge_with_all(open_askers(judges), {TEMPLATE: ITEMS})
    return [fmean(verdict.scores["Fluency"] for verdict in verdicts) for verdicts in found.values()]


def asker_of(server, **settings):
    judge = settings_of(server, **settings)
    return Asker(judge, judge_identity(judge))


def test_judges_of_one_model_name_keep_their_verdicts_and_the_same_one_elsewhere_finds_them():
    with always(1, entry={"root": "/m/one"}) as one, always(5, entry={"root": "/m/five"}) as five:
        assert fluency(settings_of(one, name="one"), settings_of(five, name="five")) == [1, 5]
        with always(1, entry={"root": "/m/one"}) as moved:
            assert fluency(settings_of(moved, name="one")) == [1] and not moved.asked
        one.entry = {"root": "/m/other"}
        one.reply = five.reply
        assert fluency(settings_of(one, name="one")) == [5], "another checkpoint under the name"
    with pytest.raises(CulturevalError, match="The judge one: .*start the server"):
        fluency(settings_of(one, name="one"))


def test_a_judge_whose_replies_name_another_model_stops_and_these_verdicts_are_not_used():
    with always(3) as server:
        server.plan = lambda prompt, count: setattr(server, "served", "other") if "رقم 2" in prompt else None
        judge = asker_of(server, concurrency=1)
        found = judge_items(judge, TEMPLATE, ITEMS)
    assert "other" in judge.stopped and judge.failed
    assert [one.outcome for one in found] == ["scored", "scored", "not_asked", "not_asked"]


def test_a_wrong_key_stops_and_one_refused_item_does_not():
    for fault, outcomes in (("wrong_key", ["not_asked"] * 3), ("forbidden", ["scored"] * 3)):
        with always(3) as server:
            server.plan = lambda prompt, count, fault=fault: fault if "رقم 0" in prompt else None
            found = judge_items(asker_of(server, concurrency=1, name=fault), TEMPLATE, ITEMS)
        assert [one.outcome for one in found][1:] == outcomes


def test_the_signature_holds_what_a_verdict_depends_on():
    with always(3, entry={"root": "/m/one"}) as server:
        identity, template = judge_identity(settings_of(server)), judge_template(TEMPLATE)
        lines = {
            judge_signature(settings_of(server, **changed), template, identity)
            for changed in ({}, {"revision": "b"}, {"temperature": 1.0}, {"max_tokens": 9}, {"delimit": True})
        }
    assert len(lines) == 5 and all("root=/m/one" in line for line in lines) and json.dumps(sorted(lines))
