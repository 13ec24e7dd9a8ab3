"""What we use of PyTorch that is not public: oneDNN's matrix product."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def onednn_linear(values: "Tensor", weight: "Tensor", bias: "Tensor | None") -> "Tensor":
    """`torch.nn.functional.linear` by oneDNN, for contiguous fp32 tensors on a CPU, without gradients."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(values, weight, bias, "none", [], "")
