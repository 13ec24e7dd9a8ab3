"""The options of reading data that hold now: those of every suite together, from the current settings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cultureval.runtime.data.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import Option, Settings, current_settings
from cultureval.tasks.registration import registered


def all_options(settings: Settings | None = None) -> list[Option[Any]]:
    """The options of all suites that these settings, or else the current ones, register; suites may share one.

    Raises:
        CulturevalError: Two options have one name or one variable.
    """
    suites = registered(settings).suites.values()
    options = list({id(option): option for suite in suites for option in suite.part("options")}.values())
    for kind in ("name", "variable"):
        taken = [getattr(option, kind) for option in [*Settings.options(), *options]]
        if twice := sorted({name for name in taken if taken.count(name) > 1}):
            raise CulturevalError(f"Two options have the {kind} {twice[0]!r}: give each one of its own.")
    return options


def read_data_options(settings: Settings | None = None) -> DataOptions:
    """The options of reading data, by default those of the current settings.

    Raises:
        CulturevalError: An option holds a value that is not allowed, or the data root is not a folder.
    """
    settings = current_settings() if settings is None else settings
    suite = {option.name: option.read(settings) for option in all_options(settings)}
    return DataOptions(settings.data_root, settings.bad_rows, settings.form, suite)


def with_defaults(options: DataOptions) -> DataOptions:
    """The same options, those of suites that are absent at their defaults."""
    defaults: Mapping[str, Any] = {option.name: option.default for option in all_options()}
    return replace(options, suite={**defaults, **options.suite})
