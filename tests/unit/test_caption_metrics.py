"""JEEM's reference metrics as LightEval runs them."""

import numpy as np
import pytest
from caption_scores import corpus_scores, sample_scores
from lighteval.metrics import apply_metric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.metrics.jeem.lighteval import caption_metrics
from cultureval.metrics.semantic import bertscore, check_caption_bertscore
from cultureval.runtime.data.content_store import store_texts
from cultureval.runtime.errors import CulturevalError

REFERENCES = ["رجل يجلس في السوق القديم", "طفلة تحمل الخبز إلى البيت", "قارب كبير يعبر النهر", "شجرة نخيل أمام البيت"]
REPLIES = ["رجل يجلس أمام السوق", "", "قارب كبير يعبر النهر", "نخلة امام البيت القديم"]

CAPTION_VARIABLES = ("CULTUREVAL_CAPTION_BERTSCORE_MODEL", "CULTUREVAL_CAPTION_BERTSCORE_LAYER")


@pytest.fixture(autouse=True)
def settings(monkeypatch, tmp_path, arabic_bert):
    monkeypatch.setenv("CULTUREVAL_CACHE", str(tmp_path))
    monkeypatch.setenv(CAPTION_VARIABLES[0], str(arabic_bert))
    monkeypatch.setenv(CAPTION_VARIABLES[1], "2")


def items(count, clusters=("",) * 4):
    named = store_texts(REFERENCES)
    docs = [
        Doc("", [text], 0, specific={"reference_set": named, "cluster": cluster}, id=str(place), task_name="t|0")
        for place, (text, cluster) in enumerate(zip(REFERENCES, clusters, strict=True))
    ]
    return docs[:count], [ModelResponse(text=[reply]) for reply in REPLIES[:count]]


def scores(docs, responses):
    """Corpus values and lists of per-item values by name, as LightEval aggregates them."""
    metrics = caption_metrics()
    rows = apply_metric(responses, docs, metrics)
    corpus = {}
    for metric in metrics:
        corpus |= metric.get_corpus_aggregations()[metric.metric_name]([row[metric.metric_name] for row in rows])
    return corpus, {name: [row[name] for row in rows] for name in rows[0]}


def test_values_are_those_of_the_pure_functions(arabic_bert):
    corpus, rows = scores(*items(4))
    for suffix, normalize in (("", True), ("_raw", False)):
        for name, value in corpus_scores(REPLIES, REFERENCES, normalize).items():
            assert corpus[f"{name}{suffix}"] == pytest.approx(value)
        for name, values in sample_scores(REPLIES, REFERENCES, normalize).items():
            np.testing.assert_allclose(rows[f"{name}{suffix}"], values)
    expected = bertscore(REPLIES, REFERENCES, arabic_bert, 2)
    np.testing.assert_allclose(rows["bertscore_recall"], 100 * expected["recall"])
    assert corpus["bertscore_f1"] == pytest.approx(100 * expected["f1"].mean())
    assert corpus["bleu_1"] > corpus["bleu_1_raw"]
    assert list(corpus)[0] == "cider"
    docs, _ = items(4)
    strings = [ModelResponse(text=reply) for reply in REPLIES]  # as of LightEval's vision backend
    assert scores(docs, strings)[0] == pytest.approx(corpus)


def test_a_limited_run_keeps_the_document_frequencies_of_all_references():
    part, _ = scores(*items(2))
    whole = sample_scores(REPLIES, REFERENCES)["cider"]
    assert part["cider"] == pytest.approx(whole[:2].mean()) and whole[0] > 0


def test_standard_errors_know_of_shared_images():
    apart, _ = scores(*items(4))
    shared, _ = scores(*items(4, ("image1", "image1", "image2", "image2")))
    alone, _ = scores(*items(4, ("image",) * 4))
    for name in ("bleu_2", "cider", "bertscore_recall"):
        assert apart[name] == pytest.approx(shared[name])
        assert apart[f"{name}_stderr"] > 0 and shared[f"{name}_stderr"] > 0
        assert apart[f"{name}_stderr"] != pytest.approx(shared[f"{name}_stderr"])
        assert np.isnan(alone[f"{name}_stderr"])


@pytest.mark.parametrize(
    ("layer", "message"), [("three", "LAYER=three: it should be a valid integer"), ("40", "outside the")]
)
def test_a_wrong_layer_is_one_sentence(monkeypatch, layer, message):
    monkeypatch.setenv(CAPTION_VARIABLES[1], layer)
    with pytest.raises(CulturevalError, match=message):
        check_caption_bertscore()


def test_a_missing_model_names_its_variable(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv(CAPTION_VARIABLES[0], "nowhere/to-be-found")
    with pytest.raises(CulturevalError, match=CAPTION_VARIABLES[0]):
        check_caption_bertscore()
