"""Ours beside pycocoevalcap 1.2, the common program of image captioning (its Python parts; no Java)."""

import random

import numpy as np
import pytest
from caption_scores import NAMES, corpus_scores, sample_scores
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
from rouge_score import rouge_scorer

WORDS = "رجل امرأة طفل يجلس تمشي في على السوق القديم شارع مزدحم أمام بيت أبيض شجرة نخيل كبيرة خبز شاي و ، .".split()


def pairs(count, seed, references=1, longest=25):
    rng = random.Random(seed)
    predictions, groups = [], []
    for _ in range(count):
        group = [rng.choices(WORDS, k=rng.randint(1, longest)) for _ in range(rng.randint(1, references))]
        near = [word for word in rng.choice(group) if rng.random() < 0.7] + rng.choices(WORDS, k=rng.randint(0, 5))
        predictions.append(" ".join(near) or "و")
        groups.append([" ".join(words) for words in group])
    return predictions, groups


def package_scores(predictions, groups):
    """Corpus values and arrays of per-item values, by name, raw."""
    given = {index: [text] for index, text in enumerate(predictions)}
    gold = dict(enumerate(groups))
    bleu, bleus = Bleu(4).compute_score(gold, given, verbose=0)
    rouge, rouges = Rouge().compute_score(gold, given)
    cider, ciders = Cider().compute_score(gold, given)
    corpus = dict(zip(NAMES, [*bleu, rouge, cider], strict=True))
    return corpus, dict(zip(NAMES, map(np.array, [*bleus, rouges, ciders]), strict=True))


@pytest.mark.parametrize(("seed", "references", "longest"), [(1, 1, 25), (2, 4, 25), (3, 1, 4), (4, 3, 3)])
def test_equal_to_pycocoevalcap_on_tokenised_arabic(seed, references, longest):
    predictions, groups = pairs(120, seed, references, longest)
    predictions[0], groups[1] = groups[0][0], [predictions[1]]
    corpus, items = package_scores(predictions, groups)
    ours, our_items = corpus_scores(predictions, groups, False), sample_scores(predictions, groups, False)
    assert tuple(ours) == tuple(our_items) == NAMES
    for name in NAMES:
        assert ours[name] == pytest.approx(100 * corpus[name], abs=1e-6), name
        np.testing.assert_allclose(our_items[name], 100 * items[name], rtol=0, atol=1e-6, err_msg=name)
    assert np.ptp(our_items["cider"]) > 100


def test_empty_predictions_score_as_in_pycocoevalcap():
    predictions, groups = pairs(6, 5)
    predictions[2] = ""
    corpus, items = package_scores(predictions, groups)
    for name, value in corpus_scores(predictions, groups, False).items():
        assert value == pytest.approx(100 * corpus[name], abs=1e-6)
        assert sample_scores(predictions, groups, False)[name][2] == pytest.approx(0, abs=1e-6)


def test_arabic_counts_which_the_common_rouge_package_scores_as_zero():
    text = "رجل يجلس أمام بيت أبيض في السوق القديم"
    theirs = rouge_scorer.RougeScorer(["rougeL"]).score(text, text)["rougeL"].fmeasure
    assert theirs == 0
    assert corpus_scores([text], [text])["rouge_l"] == pytest.approx(100)
