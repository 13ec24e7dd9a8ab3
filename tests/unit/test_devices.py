"""One choice of device, for models that answer and models that score."""

from types import SimpleNamespace

import pytest
import torch

from cultureval.models.loading import load
from cultureval.models.settings import HFModelSettings
from cultureval.runtime.devices import choose_device, scoring_device
from cultureval.runtime.errors import CulturevalError
from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm


def machine(monkeypatch, kind=None, count=0):
    found = SimpleNamespace(
        is_available=lambda: kind is not None,
        current_accelerator=lambda: torch.device(kind),
        device_count=lambda: count,
    )
    monkeypatch.setattr(torch, "accelerator", found)


@pytest.mark.parametrize(
    ("kind", "rank", "device"), [(None, "1", "cpu"), ("mps", "0", "mps:0"), ("cuda", "3", "cuda:1")]
)
def test_the_accelerator_of_the_process_is_taken_whatever_its_kind(monkeypatch, kind, rank, device):
    machine(monkeypatch, kind, count=2)
    monkeypatch.setenv("LOCAL_RANK", rank)
    monkeypatch.delenv("CULTUREVAL_MODEL_SETTINGS", raising=False)
    assert str(choose_device()) == scoring_device() == device


def test_the_setting_goes_before_and_is_checked(monkeypatch):
    machine(monkeypatch, "cuda", count=2)
    monkeypatch.setenv("CULTUREVAL_MODEL_SETTINGS", '{"device": "cpu"}')
    assert scoring_device() == "cpu"
    assert str(choose_device("cuda:1")) == "cuda:1"
    for name in ("cuda:2", "mps", "gpu"):
        with pytest.raises(CulturevalError, match="choose cpu, cuda, cuda:0, cuda:1"):
            choose_device(name)


@pytest.fixture(scope="module")
def tiny_lm(tmp_path_factory):
    return build_tiny_causal_lm(tmp_path_factory.mktemp("models") / "tiny")


def test_models_attend_without_cudnn_which_plans_anew_for_every_length(tiny_lm):
    torch.backends.cuda.enable_cudnn_sdp(True)
    load(HFModelSettings(model_name=str(tiny_lm), device="cpu"))
    assert not torch.backends.cuda.cudnn_sdp_enabled()
