"""`--parity paper` is what `lighteval vllm` computes, item by item; `--parity sound` what cultureval always computed.

The rows are real ones of ArabicMMLU, in prompts of ours; LightEval's own vLLM backend encodes them and sums up, over
plain forward passes of the same model.
"""

from dataclasses import replace

import pytest
from parity_rows import TABLE, docs_of, prepared_rows, texts_that_merge
from stock_vllm import BOS_CHAT, StockVLLM, merging_tokenizer
from tiny_models import build_tiny_causal_lm, plain_scores

from cultureval.models.hf import HFModel
from cultureval.models.jobs import ScoringJob
from cultureval.models.settings import HFModelSettings
from cultureval.runtime.journal import Journal
from cultureval.runtime.settings import Settings, use_settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TABLE.is_file(), reason="real ArabicMMLU rows are not part of the repository"),
]
EVERY = 50  # of the 2,480 rows


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    with use_settings(Settings().with_(cache=tmp_path_factory.mktemp("cache"), resume=False)):
        yield


@pytest.fixture(scope="module")
def rows(own_cache, tmp_path_factory):
    """Some rows of all subjects."""
    return prepared_rows(tmp_path_factory.mktemp("root"))[::EVERY]


@pytest.fixture(scope="module", params=[(True, False), (True, True), (False, True)])
def kind(request):
    """Whether the tokenizer merges the end of a prompt and the first label, and whether a chat template writes BOS."""
    return request.param


@pytest.fixture(scope="module")
def folder(kind, rows, tmp_path_factory):
    merges, chat = kind
    tokenizer = merging_tokenizer(texts_that_merge(rows), chat_template=BOS_CHAT if chat else None) if merges else None
    place = tmp_path_factory.mktemp("model")
    build_tiny_causal_lm(place, tokenizer=tokenizer, chat_template=chat)
    if chat:
        (place / "chat_template.jinja").write_text(BOS_CHAT, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def model(folder):
    return HFModel(HFModelSettings(model_name=str(folder), dtype="float32", device="cpu"))


def test_paper_is_lighteval_vllm_item_by_item_on_every_route(rows, kind, folder, model):
    docs = docs_of(rows, parity="paper")
    stock = StockVLLM(folder).scores(docs)
    for route in ("packed", "plain"):
        model.scorer.routes, model.journal = {False: route}, Journal(model.journal.folder, resume=False)
        for own, other in zip(model.loglikelihood(docs), stock, strict=True):
            assert own.input == other.input
            assert (own.input_tokens, own.output_tokens) == (other.input_tokens, other.output_tokens)
            assert own.logprobs == pytest.approx(other.logprobs, abs=1e-4)
            assert own.argmax_logits_eq_gold == other.argmax_logits_eq_gold
    merges, chat = kind
    contexts = [set(map(tuple, response.input_tokens)) for response in stock]
    assert {len(same) > 1 for same in contexts} == {merges}
    assert {context.count(model.tokenizer.bos_token_id) for same in contexts for context in same} == {1 + chat}
    empty = [response for response in stock if [] in response.output_tokens]
    assert bool(empty) == merges
    assert all(response.logprobs[response.output_tokens.index([])] == 0 for response in empty)


def test_sound_scores_are_those_of_before_and_not_the_papers(rows, model):
    docs = docs_of(rows, parity="sound")
    bos = model.tokenizer.bos_token_id
    for doc, own in zip(docs, model.loglikelihood(docs), strict=True):
        contexts, choices = model.tok_encode_pair(own.input, doc.choices, pairwise=True)
        assert (own.input_tokens, own.output_tokens) == (contexts[0], choices)
        assert own.input_tokens.count(bos) == 1
        expected = plain_scores(model.loaded.model, contexts[0], choices)
        assert own.logprobs == pytest.approx([total for total, _ in expected], abs=1e-4)
        paper = model.loglikelihood([replace(doc, specific=doc.specific | {"parity": "paper"})])[0]
        assert own.logprobs != pytest.approx(paper.logprobs, abs=1e-3)


def test_answers_are_reused_only_under_the_same_tokens(rows, model):
    never, sound, paper = (
        {ScoringJob(model, doc).key for doc in docs_of(rows[:3], **specific)}
        for specific in ({}, {"parity": "sound"}, {"parity": "paper"})
    )
    assert never == sound and not sound & paper
