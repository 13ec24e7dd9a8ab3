"""The device on which models run, both those that are evaluated and those that score."""

import os
from typing import TYPE_CHECKING

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings

if TYPE_CHECKING:
    import torch

BFLOAT16 = ("avx512_bf16", "amx_bf16", "bf16")  # as torch calls it on x86 (two) and ARM


def choose_device(name: str = "auto") -> "torch.device":
    """The device of a name, such as cpu, cuda or cuda:1, which torch can use on this machine.

    "auto" is the accelerator of the process's local rank (CUDA, ROCm, MPS, XPU, ...), else the CPU.
    """
    import torch

    here, kind, count = [torch.device("cpu")], None, 0
    if torch.accelerator.is_available():
        kind, count = torch.accelerator.current_accelerator().type, torch.accelerator.device_count()
        here += [torch.device(kind), *(torch.device(kind, number) for number in range(count))]
    if name == "auto":
        return torch.device(kind, int(os.environ.get("LOCAL_RANK", 0)) % count) if kind else here[0]
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device not in here:
        raise CulturevalError(f"There is no device {name!r} that torch can use: choose {', '.join(map(str, here))}.")
    return device


def scoring_device() -> str:
    """The device of models that score: that of `cultureval eval --device`, else "auto"."""
    return str(choose_device(current_settings().model_settings.get("device") or "auto"))


def lacks_bfloat16(model: "torch.nn.Module", dtype: "torch.dtype") -> bool:
    """Whether a model of that dtype computes in bfloat16 on a processor that has no instructions for it.

    False where torch (before `torch.cpu.get_capabilities`) does not say what the processor has.
    """
    import torch

    if dtype != torch.bfloat16 or all(weights.device.type != "cpu" for weights in model.parameters()):
        return False
    told = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(told) and not any(told.get(name) for name in BFLOAT16)
