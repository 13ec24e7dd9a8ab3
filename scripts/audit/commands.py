"""`cultureval audit`: its sub-commands under one name."""

from typing import Any

import typer
from typer.core import TyperGroup

from cultureval.scripts.audit import (
    apply,
    check,
    code,
    export,
    import_verdicts,
    report,
    responses,
    review,
    run,
    shortcuts,
)
from cultureval.scripts.custom_suites import WithCustomSuites, with_option


class AuditCommands(TyperGroup):
    """The sub-commands; each takes suites that are not installed, before or after its name."""

    def get_params(self, ctx: typer.Context) -> list[Any]:
        """The group's own parameters, `--custom-suites`, and `--help`."""
        return with_option(super().get_params(ctx))


audit = typer.Typer(
    cls=AuditCommands,
    help="Finds bad items before they mislead. Example: cultureval audit check qimma --data DIR",
    no_args_is_help=True,
    rich_markup_mode=None,
)
audit.command("check", cls=WithCustomSuites)(check.check)
audit.command("run", cls=WithCustomSuites)(run.run)
audit.command("responses", cls=WithCustomSuites)(responses.responses)
audit.command("shortcuts", cls=WithCustomSuites)(shortcuts.shortcuts)
audit.command("export", cls=WithCustomSuites)(export.export)
audit.command("review", cls=WithCustomSuites)(review.review)
audit.command("import", cls=WithCustomSuites)(import_verdicts.import_verdicts)
audit.command("apply", cls=WithCustomSuites)(apply.apply)
audit.command("report", cls=WithCustomSuites)(report.report)
audit.command("code", cls=WithCustomSuites)(code.code)
