"""fp32 matrix products on a CPU by oneDNN, which comes with PyTorch.

PyTorch's default library, MKL, uses half the vector width of AMD processors; there oneDNN takes at most half of the
time. It computes in fp32, with errors about twice as large as MKL's. The context `onednn_products` redirects linear
layers; the model itself is not changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from cultureval.runtime.patches.transformers import keys_not_repeated


def onednn_products(device: torch.device | str) -> AbstractContextManager[Any]:
    """A context, without gradients, in which fp32 linear layers on a CPU run on oneDNN, if PyTorch has it."""
    applies = torch.device(device).type == "cpu" and torch.backends.mkldnn.is_available()
    return _OneDNNLinear() if applies else nullcontext()


@contextmanager
def fast_products(device: torch.device | str) -> Iterator[None]:
    """A context with all our speed-ups for a transformers model: oneDNN, and shared keys that are not repeated."""
    with onednn_products(device), keys_not_repeated():
        yield


class _OneDNNLinear(TorchFunctionMode):
    """Calls oneDNN for every fp32 linear layer."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is linear and not kwargs and torch.backends.mkldnn.enabled and _suits(*args):
            values, weight, bias = (*args, None)[:3]
            return torch.ops.mkldnn._linear_pointwise(values, weight, bias, "none", [], "")
        return func(*args, **(kwargs or {}))


def _suits(values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> bool:
    """Whether oneDNN is fast for these tensors; it is not for a weight that is a slice of a larger one."""
    plain = all(type(tensor) in (torch.Tensor, torch.nn.Parameter) for tensor in (values, weight))
    present = [tensor for tensor in (values, weight, bias) if tensor is not None]
    alike = all((tensor.device.type, tensor.dtype) == ("cpu", torch.float32) for tensor in present)
    return plain and alike and weight.layout == torch.strided and weight.is_contiguous()
