"""Loading of objects named by strings such as "package.module:attribute"."""

from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from typing import Any

from cultureval.runtime.errors import CulturevalError, described


def load_attribute(name: str) -> Any:
    """The attribute that "package.module:attribute" names; raises a CulturevalError where it cannot be loaded."""
    try:
        if not name.partition(":")[2]:
            raise ValueError("it is not of the form 'package.module:attribute'")
        return resolve_name(name)
    except (Exception, SystemExit) as error:
        raise CulturevalError(f"{name}: it cannot be loaded: {described(error)}") from error


def lazy_call(name: str, *arguments: Any, **named: Any) -> Callable[..., Any]:
    """A call of the function "package.module:function" with first arguments; calling it loads the module."""
    return partial(_call, name, *arguments, **named)


def _call(name: str, *arguments: Any, **named: Any) -> Any:
    return load_attribute(name)(*arguments, **named)
