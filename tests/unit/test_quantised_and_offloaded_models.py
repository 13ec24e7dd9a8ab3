"""Models in 4 and 8 bits, and models of which a part lies on disk, are scored by packing as well."""

import pytest
from tiny_models import folder_of, plain_scores, text_model

from cultureval.models.loading import load
from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.models.settings import HFModelSettings

PROMPT = list(range(20, 60))
CHOICES = [list(range(start, start + length)) for start, length in ((9, 1), (40, 2), (60, 5), (90, 8), (41, 3))]


def scores_of(model):
    scorer = ChoiceScorer(model)
    scores = [score.logprob for score in scorer.score([ScoringRequest(PROMPT, CHOICES)])[0]]
    assert scorer.routes == {False: "packed"}
    return scores


def plain(model):
    return [total for total, _ in plain_scores(model, PROMPT, CHOICES)]


@pytest.mark.parametrize(("dtype", "layer", "tolerance"), [("4bit", "Linear4bit", 1e-4), ("8bit", "Linear8bitLt", 0.5)])
def test_a_quantised_model_is_packed(dtype, layer, tolerance):
    model = load(HFModelSettings(model_name=str(folder_of("llama")), dtype=dtype, device="cpu")).model
    assert {type(one.mlp.up_proj).__name__ for one in model.model.layers} == {layer}
    assert scores_of(model) == pytest.approx(plain(model), abs=tolerance)
    assert plain(model) != pytest.approx(plain(text_model("llama")), abs=1e-3)


def test_a_model_with_a_layer_on_disk_is_packed():
    parts = ("model.embed_tokens", "model.rotary_emb", "model.norm", "lm_head", "model.layers.0")
    places = dict.fromkeys(parts, "cpu") | {"model.layers.1": "disk"}
    model = load(HFModelSettings(model_name=str(folder_of("llama")), dtype="float32", device_map=places)).model
    assert model.model.layers[1].mlp.up_proj.weight.device.type == "meta"
    assert scores_of(model) == pytest.approx(plain(text_model("llama")), abs=1e-4)
