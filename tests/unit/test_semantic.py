import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from cultureval.metrics import semantic
from cultureval.metrics.semantic import bertscore, try_bertscore
from cultureval.runtime.errors import CulturevalError

TEXTS = ["القاهرة عاصمة مصر", "نعم", "لا", "بيت من الشعر " * 200, "abc 12", "يصف الشاعر الصحراء", "لا أعرف " * 30]


def test_empty_texts_score_nothing(arabic_bert):
    predictions = ["", " \n\t", "نعم", "نعم", "​", "[SEP]", "نعم"]
    references = ["نعم", "نعم", "", "\u3000", "نعم", "نعم", "نعم"]
    scores = bertscore(predictions, references, arabic_bert)
    for column in scores.values():
        assert column.dtype == np.float64
        assert column[:-1].tolist() == [0.0] * 6
        assert column[-1] == pytest.approx(1.0, abs=1e-6)


def test_neither_batch_size_nor_neighbours_change_a_score(arabic_bert):
    predictions, references = TEXTS, TEXTS[1:] + TEXTS[:1]
    together = bertscore(predictions, references, arabic_bert, batch_size=32)
    one_by_one = bertscore(predictions, references, arabic_bert, batch_size=1)
    for name, column in together.items():
        np.testing.assert_allclose(column, one_by_one[name], rtol=0, atol=1e-6)
        alone = [bertscore([p], [r], arabic_bert)[name][0] for p, r in zip(predictions, references, strict=True)]
        np.testing.assert_allclose(column, alone, rtol=0, atol=1e-6)


def test_a_small_memory_changes_no_score(arabic_bert, monkeypatch):
    predictions, references = [text for text in TEXTS for _ in TEXTS], TEXTS * len(TEXTS)
    roomy = bertscore(predictions, references, arabic_bert)
    monkeypatch.setattr(semantic, "PAIRS_AT_ONCE", 5)
    tight = bertscore(predictions, references, arabic_bert)
    for name, column in roomy.items():
        np.testing.assert_allclose(column, tight[name], rtol=0, atol=1e-6)


def test_texts_are_cut_at_the_model_s_own_maximum(arabic_bert, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(arabic_bert)
    model.config.max_position_embeddings = 16
    model.embeddings.position_embeddings.weight = torch.nn.Parameter(
        model.embeddings.position_embeddings.weight[:16].clone()
    )
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(arabic_bert).save_pretrained(tmp_path)
    scores = bertscore(["ا " * 14 + "ب " * 30], ["ا " * 14 + "ت " * 90], str(tmp_path))
    assert scores["f1"][0] == pytest.approx(1.0, abs=1e-6)


def test_bad_arguments_are_refused_with_the_reason(arabic_bert):
    with pytest.raises(ValueError, match="2 predictions but 1 references"):
        bertscore(["أ", "ب"], ["أ"], arabic_bert)
    with pytest.raises(ValueError, match="item 1 has no reference"):
        bertscore(["أ", "ب"], [["أ"], []], arabic_bert)
    for layers in (0, 4):
        with pytest.raises(ValueError, match=f"num_layers={layers} is outside the 3 layers"):
            bertscore(["أ"], ["أ"], arabic_bert, num_layers=layers)


@pytest.mark.parametrize("lost", [["config.json"], ["tokenizer.json"], ["tokenizer.json", "tokenizer_config.json"]])
def test_a_model_without_its_files_is_found_before_the_run(arabic_bert, tmp_path, lost):
    try_bertscore(arabic_bert)
    folder = tmp_path / "model"
    shutil.copytree(arabic_bert, folder)
    for name in lost:
        Path(folder, name).unlink()
    with pytest.raises(CulturevalError, match="model' cannot be loaded .*CULTUREVAL_BERTSCORE_MODEL"):
        try_bertscore(str(folder))


def test_weights_that_are_not_there_are_not_made_up(arabic_bert, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(arabic_bert, folder)
    weights = load_file(folder / "model.safetensors")
    save_file({name: value for name, value in weights.items() if "layer.1" not in name}, folder / "model.safetensors")
    with pytest.raises(CulturevalError, match=r"lacks 16 of the weights of a BertModel.*: encoder.layer.1"):
        bertscore(["أ"], ["ب"], str(folder))


def test_the_sentence_encoder_is_the_mean_of_tokens_whatever_the_batch(arabic_bert):
    import torch
    from transformers import AutoModel, AutoTokenizer

    from cultureval.models.encoders.dual_encoder import EncoderSettings
    from cultureval.models.encoders.sentence_encoder import SentenceEncoder

    texts = ["قطة", "the cat sleeps in the old house by the sea", "بيت قديم"]
    found = SentenceEncoder(EncoderSettings(arabic_bert, device="cpu", batch_size=2)).encode(texts)
    tokenizer, model = AutoTokenizer.from_pretrained(arabic_bert), AutoModel.from_pretrained(arabic_bert).eval()
    for text, vector in zip(texts, found, strict=True):
        with torch.inference_mode():
            mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state.mean(dim=1)[0].numpy()
        assert np.allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
