"""What runs of a plan that share a process keep for the next run: rows of tasks, and the modules of a model."""

from typing import Any

_kept: dict[str, tuple[Any, Any]] | None = None  # None: this process has one run, and keeps nothing


def begin() -> None:
    """From now on the runs of this process keep values for each other."""
    global _kept
    _kept = {}


def take(name: str, facts: Any) -> Any:
    """The value of an earlier run that was kept with equal facts, else None; it is kept no longer."""
    before, value = (_kept or {}).pop(name, (None, None))
    return value if before == facts else None


def keep(name: str, facts: Any, value: Any) -> None:
    """Keeps a value for the next run, where runs share the process."""
    if _kept is not None:
        _kept[name] = facts, value
