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


@pytest.mark.parametrize(
    ("dtype", "has", "told"),
    [
        ("bfloat16", {"avx2": True, "avx512_bf16": False, "amx_bf16": False}, True),
        ("bfloat16", {"avx512_bf16": True}, False),
        ("bfloat16", {"architecture": "arm64", "bf16": True}, False),
        ("float32", {"avx2": True, "avx512_bf16": False}, False),
        ("bfloat16", None, False),  # an older torch, which does not say
    ],
)
def test_bfloat16_on_a_processor_without_it_is_told_once_with_what_to_do(
    monkeypatch, capsys, tiny_lm, dtype, has, told
):
    if has is None:
        monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    else:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: has, raising=False)
    load(HFModelSettings(model_name=str(tiny_lm), dtype=dtype, device="cpu"))
    assert capsys.readouterr().err.count("--dtype float32") == told


def test_models_attend_without_cudnn_which_plans_anew_for_every_length(tiny_lm):
    torch.backends.cuda.enable_cudnn_sdp(True)
    load(HFModelSettings(model_name=str(tiny_lm), device="cpu"))
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_torch_tells_what_this_processor_has():
    """The names that are looked for are torch's own; without them nothing would ever be told."""
    told = torch.cpu.get_capabilities()
    x86 = told["architecture"] in ("x86_64", "x86")
    assert {"avx512_bf16", "amx_bf16"} <= {*told} if x86 else "bf16" in told
