"""What we use of accelerate that is not public: the hook that brings offloaded weights."""

from typing import TYPE_CHECKING

from cultureval.runtime.patches.table import expect, patched

if TYPE_CHECKING:
    from torch import nn


def has_hook(module: "nn.Module") -> bool:
    """Whether a module's weights may come by a hook of its own when it is called, as offloaded weights do."""
    return hasattr(module, "_hf_hook")


@patched(
    "accelerate",
    "accelerate.hooks.add_hook_to_module (its _hf_hook)",
    "An offloaded lm_head has no weights to read: it must be called.",
)
def _hooks_are_kept_on_modules() -> None:
    from accelerate.hooks import ModelHook, add_hook_to_module
    from torch import nn

    layer = nn.Linear(1, 1)
    expect(not has_hook(layer), "every module has an accelerate hook")
    expect(has_hook(add_hook_to_module(layer, ModelHook())), "accelerate keeps a module's hook elsewhere")
