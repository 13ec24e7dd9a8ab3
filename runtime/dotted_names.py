"""Loading of objects named by strings such as "package.module:attribute"."""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from cultureval.runtime.errors import CulturevalError, described


def load_attribute(name: str) -> Any:
    """The attribute of a module that a string of the form of Python's entry points names: "package.module:attribute".

    Raises:
        CulturevalError: The string has another form, the module cannot be imported, or it has no such attribute.
    """
    module, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise CulturevalError(f"{name!r} is not of the form 'package.module:attribute'.")
    try:
        return getattr(import_module(module), attribute)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a module may also call sys.exit
        if isinstance(error, AttributeError) and _is_without(module, attribute):
            raise CulturevalError(f"{name}: the module {module} has no {attribute!r}.") from error
        raise CulturevalError(f"{name}: importing {module} failed with {described(error)}") from error


def lazy_call(name: str, *arguments: Any, **named: Any) -> Callable[..., Any]:
    """A function ("package.module:function") with its first arguments, whose module is loaded when it is called."""
    return partial(_call, name, *arguments, **named)


def _call(name: str, *arguments: Any, **named: Any) -> Any:
    return load_attribute(name)(*arguments, **named)


def _is_without(module: str, attribute: str) -> bool:
    return module in sys.modules and not hasattr(sys.modules[module], attribute)
