"""Lazy imports inside named modules of another package.

LightEval imports packages at start-up that most runs never use (inspect_ai, scikit-learn, the code of every backend):
for annotations, for one metric out of forty, for one backend out of eleven. `defer_imports` takes a table of importing
modules and of the imports that each may defer. While such a module is loaded, its own import statements bind
`Deferred` objects instead of the real ones; each becomes the real object at its first use.

Guarantees:

- Only the import statements of the named modules are touched. `sys.modules`, other packages and user code see nothing
  but real modules.
- A deferred object can be called, subclassed, used in `isinstance`, `issubclass` and annotations, pickled and copied;
  each behaves as the real object does. At first use it also replaces itself in the importing module.
- A call made while the importing module is still loading (a decorator, a default object) is recorded and made at the
  first use of its result; so is an attribute that is read meanwhile (`torch.Tensor` in an annotation).
- What changes is *when* a missing or broken package is reported: at first use rather than at start-up.
"""

import builtins
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, Union

from cultureval.runtime.patches.table import expect, patched

Within = Callable[[], AbstractContextManager[Any]]


class Deferred:
    """A proxy of an object of a module (`source`) that `resolve` loads at the first use, for the module `importer`."""

    def __init__(self, source: str, resolve: Callable[[], Any], importer: ModuleType) -> None:
        self._source = source
        self._resolve: Callable[[], Any] | None = resolve
        self._object: Any = None
        self._importer = importer

    def real(self) -> Any:
        """The real object; from now on the importing module's names refer to it, too."""
        resolve = self._resolve
        if resolve is not None:
            self._object = resolve()
            self._resolve = None
            names = vars(self._importer)
            for name in [name for name, value in names.items() if value is self]:
                names[name] = self._object
        return self._object

    def __getattr__(self, name: str) -> Any:
        if is_loading(self._importer):
            if name.startswith("__"):
                raise AttributeError(name)  # `typing` inspects annotations; that must not load the object
            return Deferred(self._source, lambda: getattr(self.real(), name), self._importer)
        return getattr(self.real(), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the real object; while the importing module is loading, records the call instead."""
        if is_loading(self._importer):
            return Deferred(self._source, lambda: self.real()(*args, **kwargs), self._importer)
        return self.real()(*args, **kwargs)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.real(),)

    def __instancecheck__(self, instance: object) -> bool:
        # Nothing can be an instance of a class whose module is not loaded.
        return self._source in sys.modules and isinstance(instance, self.real())

    def __subclasscheck__(self, subclass: type) -> bool:
        return self._source in sys.modules and issubclass(subclass, self.real())

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007  (the operator is what is being defined)

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007

    def __getitem__(self, item: Any) -> Any:
        return self.real()[item]

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:
        return _itself, (self.real(),)

    def __repr__(self) -> str:
        # While its importer is loading, a dataclass there writes its signature, with the annotations, as its docstring.
        return f"<an object of {self._source}>" if is_loading(self._importer) else repr(self.real())


def _itself(value: Any) -> Any:
    """Rebuilds a pickled or copied `Deferred` as its real object."""
    return value


class _Names:
    """The stand-in module from which `from source import a, b` reads its names."""

    def __init__(self, source: str, importer: ModuleType) -> None:
        self._source = source
        self._importer = importer

    def __getattr__(self, name: str) -> Deferred:
        def resolve() -> Any:
            return getattr(builtins.__import__(self._source, fromlist=(name,)), name)

        return Deferred(self._source, resolve, self._importer)


def is_loading(module: ModuleType) -> bool:
    """Whether the module's own code is still running for the first time."""
    return getattr(module.__spec__, "_initializing", False)


class _DeferringLoader(SourceFileLoader):
    """Loads a source file whose imports of `sources` are deferred, `within` a context, then passes it to `then`."""

    def __init__(
        self,
        name: str,
        path: str,
        sources: Collection[str],
        then: Callable[[ModuleType], None] | None,
        within: Within | None,
    ) -> None:
        super().__init__(name, path)
        self._sources = sources
        self._then = then
        self._within = within or nullcontext

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module's code under an `__import__` of its own."""

        def import_or_defer(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: tuple[str, ...] | None = (),
            level: int = 0,
        ) -> Any:
            if level or name not in self._sources:
                return builtins.__import__(name, globals, locals, fromlist, level)
            if fromlist:
                return _Names(name, module)
            return Deferred(name, lambda: builtins.__import__(name), module)

        own_builtins = {**vars(builtins), "__import__": import_or_defer}
        vars(module)["__builtins__"] = own_builtins
        with self._within():
            super().exec_module(module)
        # Imports inside the module's functions run only when needed: they stay ordinary.
        own_builtins["__import__"] = builtins.__import__
        if self._then is not None:
            self._then(module)


class _DeferringFinder(MetaPathFinder):
    """Finds the modules of a table and gives them a `_DeferringLoader`."""

    def __init__(
        self,
        table: Mapping[str, Collection[str]],
        then: Mapping[str, Callable[[ModuleType], None]],
        within: Mapping[str, Within],
    ) -> None:
        self._table = dict(table)
        self._then = dict(then)
        self._within = dict(within)

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module in the table; None leaves other modules to the next finders."""
        if not any(name in one for one in (self._table, self._then, self._within)):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            given = self._table.get(name, ()), self._then.get(name), self._within.get(name)
            spec.loader = _DeferringLoader(name, spec.loader.path, *given)
        return spec


def defer_imports(
    table: Mapping[str, Collection[str]],
    then: Mapping[str, Callable[[ModuleType], None]] | None = None,
    within: Mapping[str, Within] | None = None,
) -> None:
    """Defers the imports of the named modules until the first use of what they import.

    Modules that are loaded already keep what they have imported.

    Args:
        table: Full name of the importing module -> names of the modules, as its import statements write them.
        then: Full name of a module -> function called with it as soon as it is loaded (now if it is already loaded).
        within: Full name of a module -> makes the context in which it is loaded.
    """
    sys.meta_path.insert(0, _DeferringFinder(table, then or {}, within or {}))
    for name, action in (then or {}).items():
        if name in sys.modules:
            action(sys.modules[name])


@patched(
    "python",
    "importlib.machinery.ModuleSpec._initializing",
    "Tells whether a module is still loading, so that calls made meanwhile are deferred as well.",
)
@patched(
    "python",
    "builtins.__import__ (of one module's __builtins__)",
    "Only the imports of named modules are deferred; all others stay as they are.",
)
def _modules_load_as_read() -> None:
    from importlib.util import spec_from_loader

    seen: list[object] = []

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> Any:
            return compile("import canary_of_imports", fullname, "exec")

        def exec_module(self, module: ModuleType) -> None:
            seen.append(is_loading(module))
            vars(module)["__builtins__"] = {**vars(builtins), "__import__": lambda name, *_: seen.append(name)}
            super().exec_module(module)

    class Finder(MetaPathFinder):
        def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
            return spec_from_loader(name, Loader(name, "canary.py")) if name == "canary_of_loading" else None

    finder = Finder()
    sys.meta_path.insert(0, finder)
    try:
        module = builtins.__import__("canary_of_loading")
    finally:
        sys.meta_path.remove(finder)
        sys.modules.pop("canary_of_loading", None)
    expect(seen[:1] == [True] and not is_loading(module), "a module's spec no longer says that the module is loading")
    expect(seen[1:] == ["canary_of_imports"], "a module's own `__builtins__` no longer decide how it imports")
