"""Commands of suites: `cultureval compare SUITE ...`, `analyze`, `agreement` and `score` in the same way.

They are fields of the registered suites; the function of a command is loaded when it is called or listed.
"""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from cultureval.runtime.errors import CulturevalError, did_you_mean, shorten
from cultureval.runtime.printing import print_result
from cultureval.runtime.saving import require_folder
from cultureval.scripts.compare import compare_runs
from cultureval.scripts.options import ALL_FORMATS, Figures
from cultureval.scripts.suite_options import FLAG, WithCustomSuites, command_group, with_option
from cultureval.tasks.catalogue import all_suites
from cultureval.tasks.registration import unknown_name_hint
from cultureval.tasks.suite import Suite

if TYPE_CHECKING:
    from cultureval.reports.submissions import ScoredSubmissions

RUNS = "runs"  # the comparison of any runs


def agreement_with(suite: str) -> Callable[..., None]:
    """The command for the human ratings of a suite."""

    def agreement(
        human: Annotated[
            Path, typer.Argument(metavar="HUMAN.csv", help="The human ratings; columns: see `cultureval tasks SUITE`.")
        ],
        results: Annotated[
            list[Path] | None,
            typer.Argument(metavar="RESULTS...", help="Output folders or results files of the models."),
        ] = None,
        model: Annotated[
            list[str] | None,
            typer.Option("--model", help="HUMAN_NAME=RESULTS_NAME, if the names of a model differ. Repeatable."),
        ] = None,
        output: Annotated[Path | None, typer.Option(help="CSV file for all correlations with their intervals.")] = None,
    ) -> None:
        from cultureval.reports.human_ratings import agreement_report

        print(agreement_report(suite, human, results or [], dict(map(_pair, model or ())), output))

    return agreement


def _pair(text: str) -> tuple[str, str]:
    name, sign, other = text.partition("=")
    if not sign or not name or not other:
        raise CulturevalError(f"--model {text!r}: write HUMAN_NAME=RESULTS_NAME.")
    return name, other


Gold = Annotated[Path, typer.Option(help="The gold file, or a folder with the released layout.")]
Pred = Annotated[list[Path], typer.Option(help="A submission file, or a folder. Repeatable.")]
OutputDir = Annotated[Path, typer.Option(help="Output folder of results, tables (JSON, CSV) and plots.")]
ModelName = Annotated[
    str | None, typer.Option(help="Name in the results; default: that of the submission's file or folder.")
]
FOLDER = Path("results/score")


def score_outputs_with(name: str, scorer: Callable[[Sequence[Path], Path], str]) -> Callable[..., None]:
    """The command that prints what a scorer of outputs returns, which writes the results files itself."""

    def score(pred: Pred, output_dir: OutputDir = FOLDER) -> None:
        require_folder(output_dir)
        _finish(name, scorer(pred, output_dir), output_dir)

    return score


def score_submissions_with(
    name: str, scorer: "Callable[[Path, Sequence[Path], Path], ScoredSubmissions]"
) -> Callable[..., None]:
    """The command that saves and prints what a scorer of submission files returns."""

    def score(gold: Gold, pred: Pred, output_dir: OutputDir = FOLDER, model_name: ModelName = None) -> None:
        from cultureval.reports.submissions import ScoredSubmissions, save_submissions

        started = time.time()
        require_folder(output_dir)
        output_dir.mkdir(parents=True, exist_ok=True)
        scored = scorer(gold, pred, output_dir)
        if not isinstance(scored, ScoredSubmissions):
            raise CulturevalError(f"The scorer of {name} returned {shorten(scored)}, not ScoredSubmissions.")
        files = save_submissions(scored, gold, output_dir, started, model_name)
        results = "\n".join(f"Results: {file.resolve()}" for file in files)
        _finish(name, f"{scored.text}\nTables: {output_dir.resolve()}\n{results}", output_dir)
        if scored.problems:
            raise CulturevalError("\n".join(["Not scored:", *(f"  {problem}" for problem in scored.problems)]))

    return score


def _finish(name: str, text: str, output_dir: Path) -> None:
    path = output_dir / f"{name}.txt"
    path.write_text(f"{text}\n", encoding="utf-8")
    print_result(text, path)


def analyze_alqasida(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Output folders or results files.")],
    output_dir: Annotated[Path, typer.Option(help="Output folder of tables (CSV) and plots.")] = Path(
        "results/analysis"
    ),
    figures: Figures = ALL_FORMATS,
) -> None:
    """Correlations, analysis of variance, trees, plots. Example: cultureval analyze alqasida results"""
    from cultureval.reports.alqasida.analysis import write_analysis
    from cultureval.reports.charts import chart_formats

    formats = chart_formats(figures, "--figures")
    print(write_analysis([path.expanduser() for path in results], output_dir, formats))
    print(f"Tables and plots: {output_dir.resolve()}")


class SuiteCommands(TyperGroup):
    """A group of commands, each of which is a field of a registered suite.

    Attributes:
        field: The field of `Suite` that names the function of the command.
        missing: The error about a command that does not exist, before its name.
    """

    field: ClassVar[str]
    missing: ClassVar[str] = "No such command"

    def get_params(self, ctx: typer.Context) -> list[Any]:
        """The group's own parameters, `--custom-suites`, and `--help`."""
        return with_option(super().get_params(ctx))

    def list_commands(self, ctx: typer.Context) -> list[str]:
        """The names of the commands."""
        return list(self.suites())

    def suites(self) -> dict[str, Suite]:
        """The suite of each command: those that have this field."""
        return {name: suite for name, suite in all_suites().items() if getattr(suite, self.field)}

    def function(self, suite: Suite, name: str) -> tuple[Callable[..., Any], str | None]:
        """The function of a command (CulturevalError if it cannot be loaded), and its help where not the docstring."""
        return suite.part(self.field), None

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:
        """As typer does; the error about an unknown suite says how one that is not installed is named."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = did_you_mean(args[0], known)
            ctx.fail(f"{self.missing} {args[0]!r}.{near} There are {', '.join(known)}.{unknown_name_hint()}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:
        """The command of a suite; one that cannot be loaded is still listed, and raises its error when called."""
        suite = self.suites().get(cmd_name)
        if suite is None:
            return None
        try:
            function, text = self.function(suite, cmd_name)
            return command_of(cmd_name, function, text)
        except CulturevalError as error:
            command = typer.Typer(add_completion=False, rich_markup_mode=None)
            command.command(cmd_name, help="Cannot be loaded.", context_settings={"ignore_unknown_options": True})(
                _refusal(error)
            )
            return typer.main.get_command(command)


def command_of(name: str, function: Callable[..., Any], text: str | None = None) -> Any:
    """A command as typer makes it of a function, with `--custom-suites`; its help is `text`, else the docstring."""
    command = typer.Typer(add_completion=False, rich_markup_mode=None)
    command.command(name, cls=WithCustomSuites, help=text)(function)
    return typer.main.get_command(command)


def _refusal(error: CulturevalError) -> Callable[[list[str] | None], None]:
    def refuse(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
        raise error

    return refuse


class Comparisons(SuiteCommands):
    """`cultureval compare`: of suites that have their own, and of any runs: `compare runs`, which may be left out."""

    field = "comparison"
    missing = "No such file, folder or command"

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """As typer does, after `runs` where the first argument is a path or an option instead of a command.

        A folder that has a command's name is a path where no other follows it.
        """
        place = 0
        while args[place : place + 1] == [FLAG]:  # with its value: the group's only option
            place += 2
        while place < len(args) and args[place].startswith(f"{FLAG}="):
            place += 1
        first, second = [*args[place:], "", ""][:2]
        is_path = os.path.exists(first) and (first not in self.list_commands(ctx) or second[:1] in ("", "-"))
        if is_path or first[:1] == "-" and first not in ctx.help_option_names:
            args = [*args[:place], RUNS, *args[place:]]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: typer.Context) -> list[str]:
        """The names of the commands."""
        return [RUNS, *super().list_commands(ctx)]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:
        """The command of a suite, or of any runs."""
        return command_of(RUNS, compare_runs) if cmd_name == RUNS else super().get_command(ctx, cmd_name)


class Analyses(SuiteCommands):
    """`cultureval analyze`."""

    field = "analysis"


class Agreements(SuiteCommands):
    """`cultureval agreement`: the same command for the human ratings of every suite that has some."""

    field = "ratings"

    def function(self, suite: Suite, name: str) -> tuple[Callable[..., Any], str | None]:
        """The command bound to the suite."""
        example = f"cultureval agreement {name} HUMAN.csv results"
        return agreement_with(name), f"Kendall's tau-c of metrics with people, Gwet's AC1. Example: {example}"


class Submissions(SuiteCommands):
    """`cultureval score`: a command for every official format of every suite, and for outputs made elsewhere."""

    field = "submissions"

    def suites(self) -> dict[str, Suite]:
        """The suite of each format and of outputs; one whose formats cannot be loaded stands for itself."""
        found = {name: suite for name, suite in all_suites().items() if suite.outputs}
        for name, suite in super().suites().items():
            try:
                found |= dict.fromkeys(suite.scorers(), suite)
            except CulturevalError:
                found[name] = suite
        return found

    def function(self, suite: Suite, name: str) -> tuple[Callable[..., Any], str | None]:
        """The command bound to the scorer of the format, or of outputs."""
        if suite.outputs and name == suite.name:
            text = f"Scores outputs that were made elsewhere. Example: cultureval score {name} --pred PRED"
            return score_outputs_with(name, suite.part("outputs")), text
        example = f"cultureval score {name} --gold GOLD --pred PRED"
        command = score_submissions_with(name, suite.scorers()[name])
        return command, f"Scores submissions in the official format. Example: {example}"


comparisons = command_group(
    "Compares finished runs item by item: intervals, tests, items that flipped. Example: cultureval compare A B",
    Comparisons,
)
analyses = command_group(
    "Shows which features explain scores: tables and plots. Example: cultureval analyze alqasida results", Analyses
)
agreements = command_group(
    "Agreement of metrics and judges with people. Example: cultureval agreement jeem HUMAN.csv results", Agreements
)
submissions = command_group(
    "Scores submission files in an official format. Example: cultureval score cvlue-vqa --gold G --pred P", Submissions
)
