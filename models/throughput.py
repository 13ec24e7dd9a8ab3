"""How fast a transformers model computed: tokens a second, tokens saved by sharing, share of the card's peak."""

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Dense 16-bit products with fp32 accumulation, TFLOP/s, by the data sheets of NVIDIA.
PEAKS = {
    "NVIDIA A100-SXM4-40GB": 312,
    "NVIDIA A100-SXM4-80GB": 312,
    "NVIDIA L40S": 362,
    "NVIDIA GeForce RTX 4090": 165,
    "NVIDIA H100 80GB HBM3": 989,
    "NVIDIA H200": 989,
    "NVIDIA B200": 2250,
}


def peak_share(model: "PreTrainedModel", tokens: int, seconds: float) -> float | None:
    """The share of a card's peak that a model reached, 0 to 1: two operations per weight and token.

    A lower bound: embeddings, lm_head, attention scores and the last feed-forward block are not counted, since most
    tokens do not need them.

    Args:
        model: The model.
        tokens: Computed tokens.
        seconds: The time of these.

    Returns:
        None for an unknown card, several devices, quantised or 32-bit weights, experts and images.
    """
    config, peak = model.config, _peak(model)
    is_dense = not any("expert" in name for name in config.to_dict()) and config.get_text_config() is config
    in_16_bits = model.dtype in (torch.bfloat16, torch.float16) and not getattr(config, "quantization_config", None)
    layers = getattr(model.get_decoder(), "layers", None)
    if not (peak and is_dense and in_16_bits and seconds and layers):
        return None
    last = getattr(layers[-1], "mlp", None)
    counted = sum(part.numel() for part in layers.parameters())
    weights = counted - (sum(part.numel() for part in last.parameters()) if last else 0)
    return 2 * weights * tokens / seconds / (peak * 1e12)


def _peak(model: "PreTrainedModel") -> float | None:
    """TFLOP/s of the card that holds the whole model."""
    devices = {parameter.device for parameter in model.parameters()}
    if len(devices) > 1 or (device := devices.pop()).type != "cuda":
        return None
    return PEAKS.get(torch.cuda.get_device_name(device))
