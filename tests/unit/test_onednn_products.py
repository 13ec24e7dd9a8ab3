"""oneDNN's matrix products are those of plain linear layers, and only fp32 layers within the block take them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import build_tiny_causal_lm, plain_scores
from torch import nn
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM

from cultureval.models.scoring.packed import ChoiceScorer, ScoringRequest
from cultureval.runtime.onednn_products import onednn_products

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch was built without oneDNN")


def taken(layer, values):
    """Whether oneDNN makes the product of a layer."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        layer(values)
    return "mkldnn::_linear_pointwise" in {event.key for event in profiled.key_averages()}


@given(
    batch=st.lists(st.integers(0, 5), max_size=2),
    width=st.integers(1, 70),
    size=st.integers(1, 70),
    bias=st.booleans(),
    strided=st.booleans(),
)
def test_products_are_those_of_a_plain_linear_layer(batch, width, size, bias, strided):
    layer = nn.Linear(width, size, bias=bias)
    values = torch.randn(*batch, 2 * width)[..., ::2] if strided else torch.randn(*batch, width)
    with torch.inference_mode():
        expected = layer(values)
        with onednn_products("cpu"):
            got = layer(values)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


@torch.inference_mode()
def test_only_whole_fp32_layers_within_the_block_take_them():
    layer, values = nn.Linear(8, 8), torch.randn(2, 8)
    part = nn.Linear(8, 8)
    part.weight = nn.Parameter(torch.randn(8, 16)[:, :8])  # oneDNN takes a thousand times longer for it
    assert not taken(layer, values)
    with onednn_products("cpu"):
        assert taken(layer, values)
        assert not taken(part, values)
        assert not taken(layer.double(), values.double())
    with onednn_products("meta"):
        assert not taken(layer.float(), values)


@pytest.mark.slow
@torch.inference_mode()
def test_scores_are_those_of_double_precision_but_for_the_rounding_of_fp32(tmp_path):
    sizes = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 4}
    model = AutoModelForCausalLM.from_pretrained(build_tiny_causal_lm(tmp_path, **sizes)).eval()
    numbers = torch.Generator().manual_seed(0)
    prompt, *choices = (torch.randint(9, 300, (size,), generator=numbers).tolist() for size in (80, *range(1, 21)))
    (scores,) = ChoiceScorer(model).score([ScoringRequest(prompt, choices)])
    for score, (exact, _) in zip(scores, plain_scores(model.double(), prompt, choices), strict=True):
        assert score.logprob == pytest.approx(exact, abs=5e-5 * score.tokens)
