"""The device of evaluated models and scoring models, and a run's hardware."""

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings

if TYPE_CHECKING:
    import torch


def choose_device(name: str = "auto") -> "torch.device":
    """The torch device of a name such as cpu, cuda or cuda:1; a CulturevalError where this machine does not have it.

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
    """The device of models that score: that of the evaluated model (`device`), else "auto"."""
    return str(choose_device(current_settings().model_settings.get("device") or "auto"))


def hardware() -> dict[str, Any]:
    """System, processor, cores that this process may use, memory in GiB (None where unknown), names of the GPUs.

    GPUs are looked for only where torch is loaded already, since importing it takes seconds.
    """
    torch = sys.modules.get("torch")
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):  # not Linux
        lines, memory = [], None
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {
        "system": platform.platform(),
        "cpu": next(named, "") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": memory,
        "gpus": [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())] if torch else [],
    }
