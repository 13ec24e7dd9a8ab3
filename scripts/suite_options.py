"""The option `--custom-suites`, of every command for which suites matter, and the options of suites themselves.

Suites bring commands, options and tasks along, so that the values of `--custom-suites` are read from the whole command
line and are in the current settings before a command is looked up (`main.Commands`). Each `Option` of a registered
suite is an option of its name (`--box-format`).
"""

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import Option, current_settings, use_settings
from cultureval.tasks.registration import registered

FLAG = "--custom-suites"
HELP = "Benchmarks that are not installed: a .py file or a module. Repeatable."
PREFIX = "suite_option_"  # of the parameters' names, so that none is that of the command's own
WIDEST_VALUES = 40  # characters of values that help shows beside an option; more stand in its text
SuiteOptions = tuple[tuple[Option[Any], str], ...]  # options and the suites that they are of


class WithCustomSuites(TyperCommand):
    """A command with the option `--custom-suites`."""

    def get_params(self, ctx: typer.Context) -> list[Any]:
        """The command's own parameters, `--custom-suites`, and `--help`."""
        return with_option(super().get_params(ctx))


class GroupWithCustomSuites(TyperGroup):
    """A group of commands; each takes suites that are not installed, before or after its name."""

    def get_params(self, ctx: typer.Context) -> list[Any]:
        """The group's own parameters, `--custom-suites`, and `--help`."""
        return with_option(super().get_params(ctx))


def command_group(text: str, cls: type[TyperGroup] = GroupWithCustomSuites) -> typer.Typer:
    """A group of commands with its help."""
    return typer.Typer(help=text, cls=cls, no_args_is_help=True, rich_markup_mode=None)


def with_option(parameters: Sequence[Any]) -> list[Any]:
    """Parameters of a command, of which `--help` is the last, with `--custom-suites` before it."""
    return [*parameters[:-1], _option(), *parameters[-1:]]


def parameters_of(function: Callable[..., Any]) -> list[Any]:
    """The parameters of the command that typer makes of a function."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(function)
    return list(typer.main.get_command(app).params)


def custom_suites_of(args: Sequence[str]) -> list[str]:
    """The values of `--custom-suites` in a command line that is not parsed yet."""
    following = [value for flag, value in zip(args, args[1:], strict=False) if flag == FLAG]
    return following + [arg.partition("=")[2] for arg in args if arg.startswith(f"{FLAG}=")]


@cache
def _option() -> Any:
    """The option as typer makes it; its value is not passed to the command, since it is in the settings."""

    def command(
        custom_suites: Annotated[list[str] | None, typer.Option(FLAG, metavar="FILE.py", help=HELP)] = None,
    ) -> None:
        """Never called."""

    (option,) = parameters_of(command)
    option.expose_value = False
    return option


class WithSuiteOptions(WithCustomSuites):
    """A command with the options of all suites, also of those that `--custom-suites` names.

    Their values are in the current settings when the command's function is called.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """As typer does, with the options of the suites that are registered now."""
        helps = bool({*args} & {*ctx.help_option_names})
        ctx.meta[__name__] = self._options(may_fail=helps or ctx.resilient_parsing)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: typer.Context) -> list[Any]:
        """The command's own parameters, those of suites, and `--help`."""
        own = super().get_params(ctx)
        taken = {flag for parameter in own for flag in parameter.opts}
        options = ctx.meta.get(__name__) or self._options(may_fail=True)
        return [*own[:-1], *(one for one in _parameters(options) if not {*one.opts} & taken), *own[-1:]]

    def invoke(self, ctx: typer.Context) -> Any:
        """As typer does, under settings with the values of suites' options."""
        given = {name.removeprefix(PREFIX): ctx.params.pop(name) for name in [*ctx.params] if name.startswith(PREFIX)}
        self._warn_of_hidden(ctx)
        with use_settings(current_settings().with_(given)):
            return super().invoke(ctx)

    def _options(self, may_fail: bool) -> SuiteOptions:
        try:
            suites = registered().suites.items()
            options = [(option, name) for name, suite in suites for option in suite.part("options")]
            return tuple({option: name for option, name in reversed(options)}.items())[::-1]  # suites may share one
        except CulturevalError:
            if may_fail:  # help and completion must not end in the error of a suite
                return ()
            raise

    def _warn_of_hidden(self, ctx: typer.Context) -> None:
        shown = {parameter.name for parameter in self.get_params(ctx)}
        for option, _ in ctx.meta[__name__]:
            if PREFIX + option.name not in shown:
                why = f"{option.flag} is another option of {ctx.command_path}"
                print_note(f"{why}; that of the suite is set by {option.variable}.")


@cache
def _parameters(options: SuiteOptions) -> list[Any]:
    """The parameters of a command that has just these options."""

    def command(**values: str) -> None:
        """Never called."""

    parameters = [
        inspect.Parameter(
            PREFIX + option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_type(option, suite)
        )
        for option, suite in options
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return parameters_of(command)


def _type(option: Option[Any], suite: str) -> Any:
    kind: Any = Literal[option.values] if option.values else str
    metavar = None if len("|".join(option.values)) < WIDEST_VALUES else option.name.upper()
    text = f"{suite}: {option.help.replace('`', '')}."
    return Annotated[kind | None, typer.Option(option.flag, help=text, metavar=metavar)]
