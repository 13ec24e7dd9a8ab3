"""Loading transformers' models without what an evaluation does not use.

transformers 5 imports scikit-learn for one class of assisted generation, SciPy for losses of object detection, what
PyTorch has for tensors on several devices, and its compiler (`torch._dynamo`) to mark functions for it: together more
than transformers and PyTorch themselves. Here they are imported when they are used, and the marks are made when the
compiler is loaded.

It also lists the files of every installed distribution to name two or three of them, and looks at every line of 1,500
files for what they export: half of the time of `import transformers`. Here the former is done when it is needed, and
the latter begins at the line that matters.
"""

import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache, cached_property, partial, wraps
from types import ModuleType
from typing import Any

from cultureval.runtime.patches.lighteval.deferred_imports import defer_imports
from cultureval.runtime.patches.table import expect, expect_imports, patched, source_of

COMPILER = "torch._dynamo"
STRUCTURE = "transformers.utils.import_utils"
TYPES = "transformers.distributed.utils"
LOSSES = ("for_object_detection", "deformable_detr", "grounding_dino", "lw_detr", "rf_detr", "rt_detr")
DISTRIBUTED = {"torch.distributed.tensor", "torch.distributed.tensor.placement_types"}
FSDP = {"torch.distributed._composable.fsdp", "torch.distributed.fsdp"}
DEFERRED: dict[str, set[str]] = {
    "accelerate.commands.config.sagemaker": {"boto3"},
    "transformers.distributed.fsdp": FSDP,
    **{f"transformers.loss.loss_{name}": {"scipy.optimize"} for name in LOSSES},
    "transformers.distributed.sharding_utils": {*DISTRIBUTED, "torch.distributed.tensor._utils"},
    "transformers.distributed.tensor_parallel": DISTRIBUTED,
    "transformers.generation.candidate_generator": {"sklearn.metrics"},
    "transformers.generation.utils": {"accelerate.hooks"},
    "transformers.masking_utils": {f"{COMPILER}._trace_wrapped_higher_order_op"},
}
# Decorators that return the function that they mark.
MARKS = ("allow_in_graph", "assume_constant_result")

_all_distributions = importlib.metadata.packages_distributions
_marked: list[tuple[str, Callable[..., Any]]] = []


@cache
def prepare_transformers() -> None:
    """Makes transformers load faster; call it before anything imports PyTorch. Called again, it changes nothing."""
    then = {STRUCTURE: _read_less, TYPES: _know_types_that_are_loaded}
    within = {STRUCTURE: _distributions_when_needed}
    if "torch" in sys.modules:  # then its compiler may be loaded as well, and is left as it is
        defer_imports(DEFERRED, then, within)
    else:
        defer_imports(
            DEFERRED,
            then | {"torch._compile": _call_as_is, "torch.compiler": _mark_later, COMPILER: _make_marks},
            within,
        )


class _CompilerToCome:
    """Stands for `torch._dynamo` until it is imported, which any use but a mark does."""

    def __getattr__(self, name: str) -> Any:
        return partial(_mark, name) if name in MARKS else getattr(importlib.import_module(COMPILER), name)


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


class _Distributions(Mapping[str, list[str]]):
    """The distributions of each installed package, as `importlib.metadata` lists them, read at the first use."""

    @cached_property
    def _found(self) -> Mapping[str, list[str]]:
        return _all_distributions()

    def __getitem__(self, name: str) -> list[str]:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _distributions_when_needed() -> AbstractContextManager[Any]:
    """A context in which `packages_distributions()` reads nothing yet."""
    from unittest.mock import patch

    return patch.object(importlib.metadata, "packages_distributions", _Distributions)


def _read_less(utilities: ModuleType) -> None:
    """Changes how transformers finds a package's distribution, and the names that a file exports."""
    stock_names, stock_exports = utilities._candidate_distribution_names, utilities.fetch__all__

    @wraps(stock_names)
    def distribution_names(pkg_name: str) -> list[str]:
        name = pkg_name.replace("_", "-")
        return [name] if _provides(name, pkg_name) else stock_names(pkg_name)

    @wraps(stock_exports)
    def exports(file_content: str) -> list[str]:
        start = file_content.rfind("\n__all__") + 1  # that of the last line which begins so
        return stock_exports(file_content[start:]) if start or file_content.startswith("__all__") else []

    utilities._candidate_distribution_names, utilities.fetch__all__ = distribution_names, exports


def _provides(distribution: str, package: str) -> bool:
    """Whether the installed distribution of a name has a package, as `packages_distributions` tells it."""
    try:
        found = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    if declared := (found.read_text("top_level.txt") or "").split():
        return package in declared
    return any(file.parts[0] == package and file.suffix == ".py" for file in found.files or ())


def _know_types_that_are_loaded(utilities: ModuleType) -> None:
    """Changes transformers' question for a tensor on several devices: nothing is one before their module is loaded."""
    stock = utilities.is_dtensor

    @wraps(stock)
    def is_dtensor(obj: object) -> bool:
        return "torch.distributed.tensor" in sys.modules and stock(obj)

    utilities.is_dtensor = is_dtensor


@patched(
    "transformers",
    "transformers.distributed.utils.is_dtensor",
    "It loads what PyTorch has for tensors on several devices to ask whether a tensor is one of those.",
)
def _types_are_loaded_to_be_asked_for() -> None:
    utilities = importlib.import_module(TYPES)
    source = inspect.getsource(inspect.unwrap(utilities.is_dtensor))
    expect("    from torch.distributed.tensor import DTensor" in source, "is_dtensor no longer loads what it asks for")
    expect(not utilities.is_dtensor(None), "is_dtensor takes None for a tensor")


@patched(
    "transformers",
    "transformers.utils.import_utils._candidate_distribution_names, PACKAGE_DISTRIBUTION_MAPPING",
    "It lists the files of all installed distributions when it is imported: those of a name are asked first.",
)
def _names_are_read_at_import() -> None:
    utilities = importlib.import_module(STRUCTURE)
    lines = source_of(STRUCTURE).splitlines()
    assigned = "PACKAGE_DISTRIBUTION_MAPPING = importlib.metadata.packages_distributions()"
    expect(assigned in lines, "transformers no longer reads all distributions when it is imported")
    stock = inspect.unwrap(utilities._candidate_distribution_names)
    for package in ("torch", "tokenizers", "accelerate", "PIL"):
        version = importlib.metadata.version(utilities._candidate_distribution_names(package)[0])
        expect(
            version == importlib.metadata.version(stock(package)[0]),
            f"transformers finds the distribution of {package} in another way",
        )


@patched(
    "transformers",
    "transformers.utils.import_utils.fetch__all__",
    "It looks at every line of 1,500 files when it is imported: the search begins at the last line that can count.",
)
def _exports_are_read_from_all_lines() -> None:
    utilities = importlib.import_module(STRUCTURE)
    stock, ours = inspect.unwrap(utilities.fetch__all__), utilities.fetch__all__
    for content in ("a = 1\n__all__ = ['a']\n", "__all__ = [\n    'a',\n    'b',\n]\n", "x = '__all__'\n", "a = 1\n"):
        expect(ours(content) == stock(content), "transformers reads what a file exports in another way")
    expect("file_content.splitlines()" in inspect.getsource(stock), "transformers no longer looks at every line")


@patched(
    "torch",
    "torch.compiler.disable, torch._compile._disable_dynamo (which imports the compiler at the first call)",
    "transformers marks functions for the compiler, which takes as long to load as PyTorch and is not used.",
)
def _compiler_is_loaded_by_marks() -> None:
    import torch

    lines = source_of("torch.compiler")
    expect(
        lines.count(f"import {COMPILER}") > 1, "torch.compiler no longer imports its compiler when it marks functions"
    )
    called = torch._compile._disable_dynamo(lambda: "called")
    expect(called() == "called", "torch._compile._disable_dynamo no longer returns a function to call")


@patched(
    "torch",
    "torch.compiler.allow_in_graph, torch._dynamo.allow_in_graph, torch._dynamo.assume_constant_result",
    "The same; these marks are made when the compiler is loaded.",
)
def _marks_return_their_function() -> None:
    compiler = importlib.import_module(COMPILER)
    for name in MARKS:

        def marked() -> None:
            pass

        expect(getattr(compiler, name)(marked) is marked, f"{COMPILER}.{name} no longer returns the function it marks")


for module in DEFERRED:
    patched(
        module.partition(".")[0],
        f"{module} (its imports)",
        "It imports at start-up what most runs never use: those imports are deferred.",
    )(partial(expect_imports, module, DEFERRED[module]))
