"""What we use of PyTorch that is not public: oneDNN's matrix product."""

from typing import TYPE_CHECKING

from cultureval.runtime.patches.table import expect, patched

if TYPE_CHECKING:
    from torch import Tensor


def onednn_linear(values: "Tensor", weight: "Tensor", bias: "Tensor | None") -> "Tensor":
    """`torch.nn.functional.linear` by oneDNN, for contiguous fp32 tensors on a CPU, without gradients."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(values, weight, bias, "none", [], "")


@patched(
    "torch",
    "torch.ops.mkldnn._linear_pointwise",
    "fp32 products on AMD's processors take twice as long with the default library, MKL, as with oneDNN.",
)
def _onednn_is_not_the_default() -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile

    if not torch.backends.mkldnn.is_available():
        return
    numbers = torch.Generator().manual_seed(0)
    values, weight, bias = (torch.randn(size, generator=numbers) for size in ((3, 16), (8, 16), (8,)))
    with torch.inference_mode():
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            plain = torch.nn.functional.linear(values, weight, bias)
        same = torch.allclose(onednn_linear(values, weight, bias), plain, rtol=1e-5, atol=1e-5)
    expect(same, "mkldnn::_linear_pointwise no longer computes a linear layer")
    used = [event.key for event in profiled.key_averages() if "mkldnn" in event.key]
    expect(not used, f"PyTorch now uses oneDNN for fp32 products by itself ({', '.join(used)})")
