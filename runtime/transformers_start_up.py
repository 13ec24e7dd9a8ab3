"""Loading transformers' models without what an evaluation does not use.

transformers 5 imports scikit-learn for one class of assisted generation, SciPy for losses of object detection, what
PyTorch has for tensors on several devices, and its compiler (`torch._dynamo`) to mark functions for it: together more
than transformers and PyTorch themselves. Here they are imported when they are used, and the marks are made when the
compiler is loaded.
"""

import sys
from collections.abc import Callable
from functools import cache, partial, wraps
from types import ModuleType
from typing import Any

from cultureval.runtime.lighteval_patches.deferred_imports import defer_imports
from cultureval.runtime.patches import Patch, expect, expect_imports, source_of

COMPILER = "torch._dynamo"
LOSSES = ("for_object_detection", "deformable_detr", "grounding_dino", "lw_detr", "rf_detr", "rt_detr")
DISTRIBUTED = {"torch.distributed.tensor", "torch.distributed.tensor.placement_types"}
FSDP = {"torch.distributed._composable.fsdp", "torch.distributed.fsdp"}
DEFERRED: dict[str, set[str]] = {
    "transformers.distributed.fsdp": FSDP,
    **{f"transformers.loss.loss_{name}": {"scipy.optimize"} for name in LOSSES},
    "transformers.distributed.sharding_utils": {*DISTRIBUTED, "torch.distributed.tensor._utils"},
    "transformers.distributed.tensor_parallel": DISTRIBUTED,
    "transformers.generation.candidate_generator": {"sklearn.metrics"},
    "transformers.masking_utils": {f"{COMPILER}._trace_wrapped_higher_order_op"},
}
# Decorators that return the function that they mark.
MARKS = ("allow_in_graph", "assume_constant_result")

_marked: list[tuple[str, Callable[..., Any]]] = []


@cache
def prepare_transformers() -> None:
    """Makes transformers load faster; call it before anything imports PyTorch. Called again, it changes nothing."""
    if "torch" in sys.modules:  # then its compiler may be loaded as well, and is left as it is
        defer_imports(DEFERRED)
    else:
        defer_imports(
            DEFERRED, then={"torch._compile": _call_as_is, "torch.compiler": _mark_later, COMPILER: _make_marks}
        )


class _CompilerToCome:
    """Stands for `torch._dynamo` until it is imported, which any use but a mark does."""

    def __getattr__(self, name: str) -> Any:
        return partial(_mark, name) if name in MARKS else getattr(_compiler(), name)


def _compiler() -> Any:
    from importlib import import_module

    return import_module(COMPILER)


def _mark(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    _marked.append((name, function))
    return function


def _make_marks(compiler: ModuleType) -> None:
    while _marked:
        name, function = _marked.pop()
        getattr(compiler, name)(function)


def _call_as_is(private: ModuleType) -> None:
    """Changes `torch._compile` so that a function that is not to be compiled is called without loading the compiler."""
    stock = private._disable_dynamo

    @wraps(stock)
    def disable(fn: Any = None, recursive: bool = True) -> Any:
        if fn is None:
            return partial(disable, recursive=recursive)
        uncompiled = stock(fn, recursive)

        @wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            return (uncompiled if COMPILER in sys.modules else fn)(*args, **kwargs)

        return call

    private._disable_dynamo = disable


def _mark_later(public: ModuleType) -> None:
    """Changes `torch.compiler` so that `disable` and `allow_in_graph` do not import the compiler."""
    stock_disable, stock_allow = public.disable, public.allow_in_graph

    @wraps(stock_disable)
    def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
        if COMPILER in sys.modules or not (fn is None or isinstance(fn, type(_mark))):
            return stock_disable(fn, recursive, reason=reason)
        from torch._compile import _disable_dynamo

        return _disable_dynamo(fn, recursive)

    @wraps(stock_allow)
    def allow_in_graph(fn: Any) -> Any:
        return stock_allow(fn) if COMPILER in sys.modules or not callable(fn) else _mark("allow_in_graph", fn)

    public.disable, public.allow_in_graph = disable, allow_in_graph
    sys.modules["torch"]._dynamo = _CompilerToCome()


def _compiler_is_loaded_by_marks() -> None:
    import torch

    lines = source_of("torch.compiler")
    expect(
        lines.count(f"import {COMPILER}") > 1, "torch.compiler no longer imports its compiler when it marks functions"
    )
    called = torch._compile._disable_dynamo(lambda: "called")
    expect(called() == "called", "torch._compile._disable_dynamo no longer returns a function to call")


def _marks_return_their_function() -> None:
    compiler = _compiler()
    for name in MARKS:

        def marked() -> None:
            pass

        expect(getattr(compiler, name)(marked) is marked, f"{COMPILER}.{name} no longer returns the function it marks")


PATCHES = (
    *(
        Patch(
            "transformers",
            f"{module} (its imports)",
            "It imports at start-up what most runs never use: those imports are deferred.",
            ("5.19.0",),
            partial(expect_imports, module, DEFERRED[module]),
        )
        for module in DEFERRED
    ),
    Patch(
        "torch",
        "torch.compiler.disable, torch._compile._disable_dynamo (which imports the compiler at the first call)",
        "transformers marks functions for the compiler, which takes as long to load as PyTorch and is not used.",
        ("2.13.0",),
        _compiler_is_loaded_by_marks,
    ),
    Patch(
        "torch",
        "torch.compiler.allow_in_graph, torch._dynamo.allow_in_graph, torch._dynamo.assume_constant_result",
        "The same; these marks are made when the compiler is loaded.",
        ("2.13.0",),
        _marks_return_their_function,
    ),
)
