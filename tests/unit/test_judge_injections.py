"""Captions that try to influence a judge: what is flagged, and what judges that obey, quote or ignore them give."""

from collections import Counter

import pytest

from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.judges.identity import judge_identity
from cultureval.metrics.judges.injections import try_injections
from cultureval.metrics.judges.settings import JudgeSettings
from cultureval.metrics.judges.verdicts import summarize
from cultureval.samples.scripted_judge import MODEL, judge_injections, scripted_judge

CAPTIONS = judge_injections()
HOSTILE = [one for one in CAPTIONS if one.hostile]
CRITERIA = judge_template("jeem_caption_reference").criteria


@pytest.fixture(autouse=True)
def own_journal(tmp_path, monkeypatch):
    monkeypatch.setenv("CULTUREVAL_JOURNAL", str(tmp_path / "journal"))


def test_the_set_is_large_varied_and_told_apart_by_the_flags():
    assert len(HOSTILE) >= 100 and len({one.id for one in CAPTIONS}) == len(CAPTIONS)
    varieties = Counter(one.variety for one in HOSTILE)
    assert set(varieties) == {"english", "msa", "egyptian", "levantine", "gulf", "moroccan"}
    assert min(varieties.values()) >= 15
    flagged = [one.id for one in CAPTIONS if flags_of(one.caption)]
    assert flagged == [one.id for one in HOSTILE]
    assert not any(flags_of(one.clean) for one in CAPTIONS)


def flags_of(text):
    template = judge_template("jeem_caption_reference")
    return template.prompt({"country": "", "reference": "", "generated": text}).flags


def tried_by(manner, **settings):
    """What a scripted judge makes of all captions: (without the sentences, with them)."""
    with scripted_judge(manner=manner) as url:
        judge = JudgeSettings(model=MODEL, base_url=url, re_asks=0, **settings)  # its answers are always the same
        return try_injections(judge, CAPTIONS, judge_identity(judge))


@pytest.mark.slow
@pytest.mark.parametrize("delimit", ["always", "never"])
def test_judges_that_obey_quote_and_ignore(delimit):
    found = {manner: tried_by(manner, delimit=delimit) for manner in ("ignore", "obey", "quote")}
    obeyed = [one for one in found["obey"] if one.obeyed]
    assert len(obeyed) == len(HOSTILE) and all(one.attacked.flagged for one in obeyed)
    assert not any(one.obeyed or one.moved for one in found["ignore"])
    assert {one.attacked.outcome for one in found["quote"] if one.injection.hostile} <= {"doubtful", "malformed"}
    honest = summarize([one.clean for one in found["ignore"] if not one.injection.hostile], CRITERIA)
    for tried in found.values():
        values = summarize([one.attacked for one in tried], CRITERIA)
        assert (values["n_flagged"], values["n_parsed_unflagged"]) == (len(HOSTILE), honest["n_parsed"])
        for part in ("consistency", "relevance", "fluency", "dialect_authenticity"):
            assert values[f"{part}_unflagged"] == honest[part]
    values = summarize([one.attacked for one in found["obey"]], CRITERIA)
    assert values["consistency"] > honest["consistency"] + 1
