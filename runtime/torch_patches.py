"""What we use of PyTorch that is not public: oneDNN's matrix product, and the file of its largest library."""

import ctypes
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from cultureval.runtime.patches import Patch, expect

if TYPE_CHECKING:
    from torch import Tensor

LIBRARY = "libtorch_cpu.so"
OF_ACCELERATORS = ("libtorch_cuda.so", "libtorch_hip.so", "libtorch_xpu.so")


def onednn_linear(values: "Tensor", weight: "Tensor", bias: "Tensor | None") -> "Tensor":
    """`torch.nn.functional.linear` by oneDNN, for contiguous fp32 tensors on a CPU, without gradients."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(values, weight, bias, "none", [], "")


def load_ahead() -> None:
    """Begins to load PyTorch's largest library in a thread, which needs no lock of Python's, beside other imports.

    Builds with parts for accelerators are left alone: they find the libraries of those in an order of their own.
    """
    folder = _library_folder()
    if folder is None or "torch" in sys.modules or any((folder / name).exists() for name in OF_ACCELERATORS):
        return
    if (library := folder / LIBRARY).is_file():
        Thread(target=_load, args=(str(library),), daemon=True).start()


def _library_folder() -> Path | None:
    spec = find_spec("torch")
    return Path(spec.submodule_search_locations[0], "lib") if spec and spec.submodule_search_locations else None


def _load(library: str) -> None:
    with suppress(OSError):  # importing torch says what is wrong with it
        ctypes.CDLL(library)


def _library_is_loaded_at_import() -> None:
    import torch  # noqa: F401

    folder, maps = _library_folder(), Path("/proc/self/maps")
    if folder and maps.is_file():
        place = str((folder / LIBRARY).resolve())
        expect(place in maps.read_text(encoding="utf-8"), f"importing torch no longer loads {LIBRARY}")


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


PATCHES = (
    Patch(
        "torch",
        f"torch/lib/{LIBRARY}",
        "It takes a sixth of the import of torch to load, and can be loaded beside other imports.",
        ("2.13.0",),
        _library_is_loaded_at_import,
    ),
    Patch(
        "torch",
        "torch.ops.mkldnn._linear_pointwise",
        "fp32 products on AMD's processors take twice as long with the default library, MKL, as with oneDNN.",
        ("2.13.0",),
        _onednn_is_not_the_default,
    ),
)
