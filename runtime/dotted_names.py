"""Loading of objects named by strings such as "package.module:attribute"."""

from importlib import import_module
from typing import Any

from cultureval.runtime.errors import CulturevalError


def load_attribute(name: str) -> Any:
    """Imports the module of such a string and returns its attribute.

    Args:
        name: "package.module:attribute", the form of Python's entry points.

    Raises:
        CulturevalError: The string has another form, the module cannot be imported, or it has no such attribute.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise CulturevalError(f"{name!r} is not of the form 'package.module:attribute'.")
    try:
        loaded = import_module(module)
    except Exception as error:
        raise CulturevalError(f"{name}: importing {module} failed with {type(error).__name__}: {error}") from error
    if not hasattr(loaded, attribute):
        raise CulturevalError(f"{name}: the module {module} has no {attribute!r}.")
    return getattr(loaded, attribute)
