"""The table of patches: every place where we change another library or use its private parts.

Each module beside this one holds the code of its patches, with an entry, `patched`, above each canary. A canary fails
when the library has changed so that the patch no longer fits, or no longer needs it. `cultureval doctor --patches`
prints the table.
"""

import ast
import logging
from collections.abc import Callable, Iterator, Set
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from platform import python_version

from cultureval.runtime.errors import CulturevalError

Canary = Callable[[], None]
FOLDER = Path(__file__).parent
MODULES = tuple(
    ".".join(["cultureval.runtime.patches", *file.relative_to(FOLDER).with_suffix("").parts])
    for file in sorted(FOLDER.rglob("*.py"))
    if file.stem not in ("__init__", "table")
)
TRIED = {
    "accelerate": "1.15.0",
    "bitsandbytes": "0.50.2",
    "evalplus": "0.3.1",
    "inspect_ai": "0.3.285",
    "lighteval": "0.13.0",
    "lm_eval": "0.4.13",
    "python": "3.11",
    "sacrebleu": "2.6.0",
    "torch": "2.13.0",
    "transformers": "5.19.0",
}  # library -> the version with which its patches were written and tried


class Changed(CulturevalError):
    """A library is not as a patch needs it, or no longer needs the patch; the message says what changed."""


@dataclass(frozen=True)
class Patch:
    """One place where we change another library or use a part of it that is not public.

    Attributes:
        library: Name of its distribution; "python" for the interpreter and its standard library.
        target: Dotted name of what is changed or used.
        reason: Why, in one sentence.
        version: The version with which the patch was written and tried.
        canary: Raises `Changed` where the patch no longer fits the library, or is no longer needed.
    """

    library: str
    target: str
    reason: str
    version: str
    canary: Canary

    def installed(self) -> str | None:
        """The library's version; None where it is not installed."""
        return installed_version(self.library)

    def problem(self) -> str | None:
        """The canary's error, in a sentence; None where the patch fits and is needed."""
        disabled = logging.root.manager.disable
        logging.disable(max(disabled, logging.WARNING))  # what LightEval warns of in a canary is no news to the user
        try:
            with redirect_stdout(StringIO()):  # some libraries print what they do
                self.canary()
        except Exception as error:  # a library that has changed may raise anything
            return str(error) if isinstance(error, Changed) else f"{type(error).__name__}: {error}"
        finally:
            logging.disable(disabled)
        return None


def installed_version(library: str) -> str | None:
    """A library's version without its local part (torch's "+cpu"), Python's minor one; None where not installed."""
    if library == "python":
        return python_version().rpartition(".")[0]
    try:
        return version(library).partition("+")[0]
    except PackageNotFoundError:
        return None


_entries: list[Patch] = []


def patched(library: str, target: str, reason: str) -> Callable[[Canary], Canary]:
    """Enters a patch into the table; decorates its canary. The arguments are as of `Patch`."""

    def enter(canary: Canary) -> Canary:
        _entries.append(Patch(library, target, reason, TRIED[library], canary))
        return canary

    return enter


def all_patches() -> list[Patch]:
    """Every entry of `MODULES`, library by library."""
    for name in MODULES:
        import_module(name)
    return sorted(_entries, key=lambda patch: (patch.library, patch.target))


def expect(holds: object, change: str) -> None:
    """For canaries: raises `Changed` with what has changed in the library, and what to do, unless a condition holds."""
    if not holds:
        raise Changed(change)


def source_of(module: str) -> str:
    """The source of a library's module, without importing it; raises `Changed` where there is no such module."""
    top, *rest = module.split(".")
    spec = find_spec(top)
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        place = Path(folder, *rest)
        for file in (place.with_suffix(".py") if rest else place / "__init__.py", place / "__init__.py"):
            if file.is_file():
                return file.read_text(encoding="utf-8")
    raise Changed(f"the module {module} no longer exists")


def imports_at_load(module: str) -> set[str]:
    """The modules that a library's module imports when it is loaded, as its import statements write them."""

    def walk(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                yield child.module or ""
            elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield from walk(child)

    return set(walk(ast.parse(source_of(module))))


def expect_imports(module: str, names: Set[str]) -> None:
    """Fails unless a module imports all these when it is loaded, which patches defer (`DEFERRED` of those patches)."""
    gone = names - imports_at_load(module)
    expect(not gone, f"{module} no longer imports {', '.join(sorted(gone))} when it is loaded: update DEFERRED")
