"""The current options of reading data, of every suite, from the current settings."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import all_of
from cultureval.runtime.settings import Option, Settings, check_names, current_settings, warn_of_unknown_variables
from cultureval.tasks.registration import registered


def all_options(settings: Settings | None = None) -> tuple[Option[Any], ...]:
    """The options of all suites that these (or the current) settings register; suites may share one."""
    return tuple(dict.fromkeys(option for suite in registered(settings).suites.values() for option in suite.options))


def check_variables() -> None:
    """Checks the variables CULTUREVAL_* of the settings and of suites' options; unknown ones are warned of."""
    options = all_options()
    warn_of_unknown_variables(options)
    all_of(partial(option.read, current_settings()) for option in options)


def read_data_options(settings: Settings | None = None) -> DataOptions:
    """The options of reading data, by default those of the current settings."""
    settings = current_settings() if settings is None else settings
    options = all_options(settings)
    check_names(settings.suite, [option.name for option in options])
    suite = {option.name: option.read(settings) for option in options}
    return DataOptions(settings.data_root, settings.form, suite, settings.manifest, settings.columns)


def with_defaults(options: DataOptions) -> DataOptions:
    """The same options, with the defaults of missing options of suites."""
    defaults: Mapping[str, Any] = {option.name: option.default for option in all_options()}
    return replace(options, suite={**defaults, **options.suite})


def options_of_model(model_type: str) -> dict[str, Any]:
    """The values of suites' options that follow from a model's type ("": unknown), for those that nobody gives."""
    settings = current_settings()
    given = {option.name for option in all_options(settings) if option.given(settings) not in ("", None)}
    decided: dict[str, Any] = {}
    for suite in registered(settings).suites.values():
        if decide := suite.part("of_model") if model_type else None:
            decided |= decide(model_type)
    return {name: value for name, value in decided.items() if name not in given}
