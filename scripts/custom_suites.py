"""The option `--custom-suites`, of every command for which suites matter.

Suites bring commands, options and tasks along, so that the values of `--custom-suites` are read from the whole command
line and are in the current settings before a command is looked up (`main.Commands`).
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

FLAG = "--custom-suites"
HELP = "A suite that is not installed: a module, .py file or folder. Repeatable."


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
        custom_suites: Annotated[list[str] | None, typer.Option(FLAG, metavar="MODULE_OR_PATH", help=HELP)] = None,
    ) -> None:
        """Never called."""

    (option,) = parameters_of(command)
    option.expose_value = False
    return option
