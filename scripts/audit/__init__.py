"""`cultureval audit`: its sub-commands under one name."""

import typer

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
from cultureval.scripts.custom_suites import GroupWithCustomSuites, WithCustomSuites

audit = typer.Typer(
    cls=GroupWithCustomSuites,
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
