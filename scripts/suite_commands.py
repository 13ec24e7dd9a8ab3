"""Commands of suites: `cultureval compare SUITE RESULTS...`, `cultureval analyze SUITE RESULTS...`.

They are fields of the registered suites; the function of a command is loaded when it is called or listed.
"""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_suites
from cultureval.tasks.registration import unknown_suite_hint


class SuiteCommands(TyperGroup):
    """A group of commands, each of which is a field of a registered suite.

    Attributes:
        field: The field of `Suite` that names the function of the command.
    """

    field: ClassVar[str]

    def list_commands(self, ctx: typer.Context) -> list[str]:
        """The names of the suites with this command."""
        return [name for name, suite in all_suites().items() if getattr(suite, self.field)]

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:
        """As typer does; the error about an unknown suite says how one that is not installed is named."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}; the suites with one are {', '.join(known)}.{unknown_suite_hint()}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:
        """The command of a suite; one that cannot be loaded is still listed, and raises its error when called."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = typer.Typer(add_completion=False, rich_markup_mode=None)
        try:
            command.command(cmd_name)(all_suites()[cmd_name].part(self.field))
        except CulturevalError as error:
            command.command(cmd_name, help="Cannot be loaded.", context_settings={"ignore_unknown_options": True})(
                _refusal(error)
            )
        return typer.main.get_command(command)


def _refusal(error: CulturevalError) -> Callable[[list[str] | None], None]:
    def refuse(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
        raise error

    return refuse


class Comparisons(SuiteCommands):
    """`cultureval compare`."""

    field = "comparison"


class Analyses(SuiteCommands):
    """`cultureval analyze`."""

    field = "analysis"


comparisons = typer.Typer(
    help="Compares finished runs: tables, tests of differences, plots. Example: cultureval compare m2cqa out/",
    cls=Comparisons,
    no_args_is_help=True,
    rich_markup_mode=None,
)
analyses = typer.Typer(
    help="Shows which features explain scores: tables and plots. Example: cultureval analyze alqasida results",
    cls=Analyses,
    no_args_is_help=True,
    rich_markup_mode=None,
)
