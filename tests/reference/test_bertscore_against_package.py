import random

import bert_score
import numpy as np
import pytest
import torch
import transformers

from cultureval.metrics.semantic import CAPTION_LAYER, bertscore

WORDS = "القاهرة عاصمة مصر نهر النيل قصيدة الشاعر يصف الصحراء ليلا abc 12 ، ؛ لا نعم".split()


def arabic_texts(count, longest, seed):
    shuffler = random.Random(seed)
    return [" ".join(shuffler.choices(WORDS, k=shuffler.randint(1, longest))) for _ in range(count)]


def package_scores(model, predictions, references, num_layers):
    scorer = bert_score.BERTScorer(model_type=model, num_layers=num_layers, device="cpu", nthreads=0)
    scorer._tokenizer.model_max_length = 512
    return [column.numpy() for column in scorer.score(predictions, references)]


@pytest.mark.slow
@pytest.mark.parametrize("num_layers", [None, 1, 2])
def test_equal_to_the_package_on_short_long_and_odd_texts(arabic_bert, num_layers):
    predictions = ["نعم", " نعم لا ", "[SEP] نعم", "عاصمة", *arabic_texts(20, 30, 1), "كلمة " * 400, "نعم " * 600]
    references = ["نعم", "لا", "نعم لا", "مصر [CLS]", *arabic_texts(20, 30, 2), "قصيدة طويلة " * 300, "لا"]
    ours = bertscore(predictions, references, arabic_bert, num_layers)
    theirs = package_scores(arabic_bert, predictions, references, num_layers or 3)
    for name, column in zip(("precision", "recall", "f1"), theirs, strict=True):
        np.testing.assert_allclose(ours[name], column, rtol=0, atol=1e-6)
    assert ours["f1"][0] == pytest.approx(1.0, abs=1e-6)
    assert np.ptp(ours["f1"]) > 0.05


def test_equal_to_the_package_with_several_references(arabic_bert):
    predictions = arabic_texts(6, 10, 3)
    references = [arabic_texts(1 + index % 3, 10, 10 + index) for index in range(6)]
    ours = bertscore(predictions, references, arabic_bert)
    theirs = package_scores(arabic_bert, predictions, references, 3)
    for name, column in zip(("precision", "recall", "f1"), theirs, strict=True):
        np.testing.assert_allclose(ours[name], column, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_equal_to_the_package_at_layer_nine_of_twelve(tmp_path, arabic_bert):
    """JEEM's setting: a base-sized encoder cut at layer 9."""
    config = transformers.AutoConfig.from_pretrained(arabic_bert, num_hidden_layers=12)
    torch.manual_seed(9)
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(arabic_bert).save_pretrained(tmp_path)
    predictions, references = arabic_texts(12, 60, 5), arabic_texts(12, 60, 6)
    ours = bertscore(predictions, references, str(tmp_path), CAPTION_LAYER)
    theirs = package_scores(str(tmp_path), predictions, references, 9)
    for name, column in zip(("precision", "recall", "f1"), theirs, strict=True):
        np.testing.assert_allclose(ours[name], column, rtol=0, atol=1e-6)
    assert np.abs(ours["recall"] - bertscore(predictions, references, str(tmp_path))["recall"]).max() > 1e-3
