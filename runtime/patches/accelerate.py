"""What we use of accelerate that is not public: the hook that brings offloaded weights."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def has_hook(module: "nn.Module") -> bool:
    """Whether a module's weights may come by a hook of its own when it is called, as offloaded weights do."""
    return hasattr(module, "_hf_hook")
