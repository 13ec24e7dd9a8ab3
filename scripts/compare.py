"""`cultureval compare SUITE RESULTS...`: finished runs beside each other; each suite adds its own command here."""

import typer

from cultureval.reports.m2cqa.comparison import compare_m2cqa

comparisons = typer.Typer(
    help="Finished runs beside each other: tables, tests of differences, plots. Example: cultureval compare m2cqa out/",
    no_args_is_help=True,
    rich_markup_mode=None,
)
comparisons.command("m2cqa")(compare_m2cqa)


@comparisons.callback()
def _suites() -> None:
    """Finished runs beside each other: tables, tests of differences, plots. Example: cultureval compare m2cqa out/"""
