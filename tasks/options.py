"""The options of suites, and the settings of an evaluation from the options of a command."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, ProblemList, all_of
from cultureval.runtime.model_settings import refuse_keys
from cultureval.runtime.settings import (
    Option,
    Settings,
    arguments_of,
    check_names,
    current_settings,
    warn_of_unknown_variables,
)
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
    check_names(settings.suite, [option.name for option in options], "--task-args has")
    suite = {option.name: option.read(settings) for option in options}
    return DataOptions(settings.data_root, settings.form, suite, settings.manifest, settings.columns)


def evaluation_settings(wrong: ProblemList, model_args: Any, task_args: Any, **own: Any) -> Settings:
    """The current settings under the options of an evaluation; an option with a problem is left out.

    Args:
        wrong: Collects the problems.
        model_args: Settings of the model, as `name=value,...` or a dictionary; `on_refused` is among them.
        task_args: Options of suites, in the same two ways.
        own: Settings by their names; None: not given.
    """
    settings = current_settings()
    for name, value in own.items():
        with wrong.collecting():
            settings = settings.with_(**{name: value})
    with wrong.collecting():
        of_model = arguments_of(model_args, "--model-args")
        refuse_keys(of_model)
        if named := sorted({"model", "model_name", "pretrained"} & {*of_model}):
            raise CulturevalError(f"--model-args {named[0]}: the model is the first argument, MODEL.")
        settings = settings.with_(on_refused=of_model.pop("on_refused", None))
        settings = settings.with_(model_settings=settings.model_settings | of_model)
    with wrong.collecting():
        settings = settings.with_(suite=arguments_of(task_args, "--task-args"))
        read_data_options(settings)  # unknown names and values are found before anything is loaded
    return settings


def with_defaults(options: DataOptions) -> DataOptions:
    """The same options, with the defaults of missing options of suites."""
    defaults: Mapping[str, Any] = {option.name: option.default for option in all_options()}
    return replace(options, suite={**defaults, **options.suite})


def options_of_model(model_type: str) -> dict[str, Any]:
    """The values of suites' options that follow from a model's type ("": unknown), for those that nobody gives."""
    settings = current_settings()
    set_names = {option.name for option in all_options(settings) if option.given(settings) not in ("", None)}
    decided: dict[str, Any] = {}
    for suite in registered(settings).suites.values():
        if decide := suite.part("of_model") if model_type else None:
            decided |= decide(model_type)
    return {name: value for name, value in decided.items() if name not in set_names}
