"""The device on which models run, both those that are evaluated and those that score, and a run's hardware."""

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import current_settings

if TYPE_CHECKING:
    import torch

BFLOAT16 = ("avx512_bf16", "amx_bf16", "bf16")  # as torch calls it on x86 (two) and ARM
WAITS = Path("/proc/self/schedstat")  # nanoseconds of the main thread on a core and waiting for one, its turns


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


def shares_busy_cores(model: "torch.nn.Module") -> bool:
    """Whether a model computes in several threads, in a process that has waited for a core longer than it had one.

    False where the system does not say that (Linux does). Its load is that of all cores, also those that a container or
    a job has not.
    """
    import torch

    if torch.get_num_threads() == 1 or all(weights.device.type != "cpu" for weights in model.parameters()):
        return False
    try:
        ran, waited, _ = map(int, WAITS.read_text(encoding="ascii").split())
    except OSError:
        return False
    return waited > ran


def hardware() -> dict[str, Any]:
    """System, processor, cores that this process may use, memory, names of the GPUs.

    GPUs are looked for only where torch is loaded already, since importing it takes seconds.
    """
    gpus: list[str] = []
    if "torch" in sys.modules:
        import torch

        gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return {
        "system": platform.platform(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": memory_gib(),
        "gpus": gpus,
    }


def cpu_name() -> str:
    """The processor's name as the system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def memory_gib() -> float | None:
    """Main memory in GiB; None where the system does not say."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None
