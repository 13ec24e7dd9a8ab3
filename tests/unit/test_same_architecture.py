"""A checkpoint is read into a model that is there only if it has exactly the model's tensors."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from cultureval.models.same_architecture import with_weights
from cultureval.models.settings import HFModelSettings
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm


@pytest.mark.parametrize("family", ["llama", "gemma3"])
def test_the_weights_are_those_of_the_checkpoint_tied_ones_too(tmp_path, family):
    first, second = (build_tiny_causal_lm(tmp_path / str(seed), family, seed=seed) for seed in (0, 1))
    model, fresh = (AutoModelForCausalLM.from_pretrained(folder) for folder in (first, second))
    assert with_weights(model, str(second), HFModelSettings(model_name=str(second))) is model
    assert all(torch.equal(tensor, fresh.state_dict()[name]) for name, tensor in model.state_dict().items())


def lacks(tensors):
    return dict(list(tensors.items())[1:])


def has_more(tensors):
    return tensors | {"lm_head.extra": torch.ones(2)}


def is_wider(tensors):
    name = list(tensors)[0]
    return tensors | {name: torch.cat([tensors[name]] * 2)}


def has_a_single_row(tensors):  # which `copy_` would spread over all rows
    name = next(name for name in tensors if tensors[name].dim() == 2)
    return tensors | {name: tensors[name][:1].clone()}


def is_in_bfloat16(tensors):
    return {name: tensor.bfloat16() for name, tensor in tensors.items()}


@pytest.mark.parametrize("change", [lacks, has_more, is_wider, has_a_single_row, is_in_bfloat16])
def test_any_other_tensors_are_loaded_anew(tmp_path, change):
    first, second = (build_tiny_causal_lm(tmp_path / str(seed), seed=seed) for seed in (0, 1))
    save_file(change(load_file(second / "model.safetensors")), second / "model.safetensors", {"format": "pt"})
    model = AutoModelForCausalLM.from_pretrained(first)
    assert with_weights(model, str(second), HFModelSettings(model_name=str(second))) is None


def test_a_broken_or_missing_file_or_an_adapter_is_loaded_anew(tmp_path):
    folder = build_tiny_causal_lm(tmp_path / "model")
    model, settings = AutoModelForCausalLM.from_pretrained(folder), HFModelSettings(model_name=str(folder))
    (folder / "adapter_config.json").write_text("{}")
    assert with_weights(model, str(folder), settings) is None
    (folder / "adapter_config.json").unlink()
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert with_weights(model, str(folder), settings) is None
    file.unlink()
    assert with_weights(model, str(folder), settings) is None
    assert with_weights(None, str(folder), settings) is None
