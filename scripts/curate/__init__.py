"""`cultureval curate`: its sub-commands under one name."""

import typer

from cultureval.scripts.curate import m2cqa
from cultureval.scripts.custom_suites import GroupWithCustomSuites, WithCustomSuites

curate = typer.Typer(
    cls=GroupWithCustomSuites,
    help="Makes data sets in the way of a paper. Example: cultureval curate m2cqa images --writer gpt.yaml ...",
    no_args_is_help=True,
    rich_markup_mode=None,
)
curate.command("m2cqa", cls=WithCustomSuites)(m2cqa.curate_m2cqa)
curate.command("agreement", cls=WithCustomSuites)(m2cqa.people_agreement)
