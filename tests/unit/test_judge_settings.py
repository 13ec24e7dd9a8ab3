"""Where judges come from, and what a wrong setting says; what loads when no judge is asked for."""

import pytest
from faulty_server import MODEL, FaultyServer

from cultureval.metrics.judges.judge import signatures_of_judges
from cultureval.metrics.judges.lighteval import judge_metrics
from cultureval.metrics.judges.settings import (
    check_judges,
    configured_judges,
    find_judges,
    usable_judges,
)
from cultureval.reports.doctor import check_judges as doctor
from cultureval.runtime.errors import CulturevalError


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for name in ("CULTUREVAL_JUDGE", "CULTUREVAL_JUDGE_SETTINGS", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_judges_of_files_of_the_environment_and_of_a_model_s_id(tmp_path, monkeypatch):
    (tmp_path / "one.yaml").write_text("{model: org/a b, base_url: 'http://x/v1', input_token_price: 25e-7}")
    (tmp_path / "two.yml").write_text("{model: m, name: c, base_url: ['http://y/v1', 'http://z/v1'], delimit: true}")
    monkeypatch.setenv("CULTUREVAL_JUDGE", "one.yaml, two.yml,d")
    one, two, three = configured_judges()
    assert (one.name, one.temperature, one.input_token_price, one.api_key_env) == ("a-b", 0, 2.5e-6, None)
    assert two.base_url == ("http://y/v1", "http://z/v1")
    assert (three.base_url, three.api_key_env) == (("https://api.openai.com/v1",), "OPENAI_API_KEY")
    assert two.delimit and not one.delimit
    monkeypatch.setenv("OPENAI_BASE_URL", "http://here/v1")
    monkeypatch.setenv("CULTUREVAL_JUDGE_SETTINGS", '{"temperature": 0.5}')
    (other,) = find_judges(["gpt-x"])
    assert (other.model, other.base_url, other.temperature) == ("gpt-x", ("http://here/v1",), 0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{model: m, modle: n}", "no setting 'modle'.*model"),
        ("{model: m, api_key: sk-secret}", "^api_key looks like a key"),
        ("{model: m, extra_body: {a: [{Authorization: sk-secret}]}}", "^extra_body.a.Authorization looks like a key"),
        ("{model: m, api_key_env: sk-secret}", "api_key_env: give the name of an environment variable"),
        ("model: m\napi_key: 'sk-secret\n", "cannot be read.*line 3, column 1"),
        ("{base_url: 'http://x/v1'}", "model: Field required"),
        ("{model: m, concurrency: sk-secret}", "concurrency: Input should be a valid integer"),
        ("{model: m, delimit: never}", "delimit: Input should be a valid boolean"),
        ("{model: m, input_token_price: .inf}", "finite"),
        ("{model: m, budget: 3}", "budget needs"),
        ("{model: m, name: 'a|b'}", "name"),
        ("[1]", "lines"),
        ("judges: []", "no setting 'judges'"),
        ("{", "cannot be read"),
    ],
)
def test_wrong_settings_are_one_sentence_without_their_values(tmp_path, text, words):
    (tmp_path / "j.yaml").write_text(text)
    with pytest.raises(CulturevalError, match=words) as caught:
        find_judges(["j.yaml"])
    assert "sk-secret" not in str(caught.value)


def test_names_must_differ_and_the_environment_must_be_json(monkeypatch):
    with pytest.raises(CulturevalError, match="Two judges have the name 'm'"):
        find_judges(["a/m", "b/m"])
    monkeypatch.setenv("CULTUREVAL_JUDGE_SETTINGS", "{")
    with pytest.raises(CulturevalError, match="not JSON"):
        find_judges(["m"])


def test_without_a_judge_nothing_is_made():
    assert judge_metrics("jeem_vqa") == [] and signatures_of_judges("jeem_vqa") is None and check_judges() is None


def test_the_check_before_a_run_and_the_doctor_tell_what_is_wrong(monkeypatch, tmp_path):
    monkeypatch.setenv("JUDGE_KEY", "sk-secret")
    assert [finding.state for finding in doctor()] == ["optional"]
    with FaultyServer() as server:
        (tmp_path / "j.yaml").write_text(f"{{model: {MODEL}, base_url: '{server.url}', api_key_env: JUDGE_KEY}}")
        monkeypatch.setenv("CULTUREVAL_JUDGE", "j.yaml")
        check_judges()
        (finding,) = doctor()
        assert finding.state == "ok" and MODEL in finding.what
        assert "template:jeem_vqa#" in signatures_of_judges("jeem_vqa") and "|" not in signatures_of_judges("jeem_vqa")
        server.down = True
        with pytest.raises(CulturevalError, match=r"did not answer.*start the server.*--skip-unscorable"):
            check_judges()
        assert doctor()[0].state == "wrong" and not server.requests
        assert usable_judges()[0] == () and "did not answer" in usable_judges()[1]["tiny"]
    monkeypatch.delenv("JUDGE_KEY")
    with pytest.raises(CulturevalError, match="JUDGE_KEY"):
        check_judges()
    assert doctor()[0].state == "wrong"


def test_a_judge_that_takes_no_images_has_no_metrics_that_need_them(monkeypatch, tmp_path):
    (tmp_path / "j.yaml").write_text("{model: org/m, base_url: 'http://x/v1', images: false}")
    monkeypatch.setenv("CULTUREVAL_JUDGE", "j.yaml")
    metrics = judge_metrics("jeem_caption_image_reference", "jeem_caption_reference")
    assert {metric.metric_name for metric in metrics} == {
        "judge_m_reference",
        *(f"judge_m_reference_{name}" for name in ("consistency", "relevance", "fluency", "dialect_authenticity")),
    }
