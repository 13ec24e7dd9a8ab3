"""How much memory a piece of work took, on an accelerator or in this process."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def peak_memory(device: str, into: list[float]) -> Iterator[None]:
    """Append the peak MiB above the start: of the accelerator, or of this process (Linux only, else NaN)."""
    if device == "cuda":
        import torch

        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        yield
        into.append((torch.cuda.max_memory_allocated() - before) / 2**20)
        return
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not reset.exists():
        yield
        into.append(float("nan"))
        return
    reset.write_text("5", encoding="ascii")  # resets the high-water mark of resident memory
    before = _kib(status, "VmRSS")
    yield
    into.append((_kib(status, "VmHWM") - before) / 1024)


def _kib(status: Path, name: str) -> int:
    line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith(name))
    return int(line.split()[1])
