"""The options that several commands share, each said once, and the options of suites themselves.

Suites bring commands, options and tasks along, so that the values of `--custom-suites` are read from the whole command
line and are in the current settings before a command is looked up (`main.Commands`). Each `Option` of a registered
suite is an option of its name (`--box-format`).
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import Option, Settings, current_settings, use_settings
from cultureval.tasks.registration import registered

# What is read.
Tasks = Annotated[
    list[str], typer.Argument(metavar="TASKS...", help="Tasks, groups, suites (qimma) or files; TASK|2 is 2-shot.")
]
Data = Annotated[str | None, typer.Option(help="Data root (DIR/<org>/<name>), or `samples`; default: hub.")]
Form = Annotated[
    Literal["auto", "curated", "original"] | None,
    typer.Option(help="Version of the data: QIMMA's curated copy or the original."),
]
SourcesFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.yaml", help="Other repositories, revisions, splits, files or column names of benchmarks' data."
    ),
]
Manifests = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Manifest of an audit, whose discarded rows are left out. Repeatable."),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ...; default: cuda if available.")]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16, float16, auto, 4bit, 8bit.")]
# What is written, printed and uploaded; the last seven are LightEval's own.
OutputDir = Annotated[str, typer.Option(help="Output folder of results and details.")]
OnlyJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Full = Annotated[bool, typer.Option("--full", help="All scores, notes and signatures above the summary.")]
AsJson = Annotated[bool, typer.Option("--json", help="The summary as one JSON document on standard output.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop where a file cannot be read.")]
Figures = Annotated[
    str,
    typer.Option(metavar="FORMATS", help="Formats of the figures, separated by commas: pdf, svg, png; or none."),
]
ALL_FORMATS = "pdf,svg,png"
ResultsPathTemplate = Annotated[
    str | None,
    typer.Option(metavar="TEMPLATE", help="Folder of the results file, with {output_dir}, {org} and {model}."),
]
SaveDetails = Annotated[bool, typer.Option(help="Write details of each row, which `judge`, `show` and `compare` read.")]
PushToHub = Annotated[
    bool, typer.Option("--push-to-hub", help="Upload results and details to the hub; needs --results-org.")
]
PushToTensorboard = Annotated[
    bool, typer.Option("--push-to-tensorboard", help="Upload TensorBoard logs to the hub; needs --results-org.")
]
PublicRun = Annotated[bool, typer.Option("--public-run", help="Make what is uploaded public; default: private.")]
ResultsOrg = Annotated[str | None, typer.Option(metavar="ORG", help="Account or organisation on the hub.")]
Wandb = Annotated[
    bool, typer.Option("--wandb", help="Log scores to trackio, else Weights & Biases; needs WANDB_PROJECT.")
]
# Of commands that ask judges, or other models, for replies which cost something.
Sample = Annotated[int | None, typer.Option(min=1, help="Judge this many random items per task (see --seed).")]
Seed = Annotated[int, typer.Option(help="Random seed of the sample; the same items for all models.")]
JudgeNothing = Annotated[bool, typer.Option(help="Print the number of calls and their estimated cost; judge nothing.")]
JudgeBudget = Annotated[float | None, typer.Option(min=0, help="Maximal cost of each judge's verdicts.")]
Delimit = Annotated[
    Literal["always", "never"] | None,
    typer.Option(help="Marks around the texts in all prompts, or the papers' wording; default: the judge's setting."),
]
ReuseVerdicts = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Reuse the verdicts that are in the journal; default: CULTUREVAL_RESUME, else reuse them.",
    ),
]
ReuseReplies = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Reuse the replies that are in the journal; default: CULTUREVAL_RESUME, else reuse them.",
    ),
]
FLAG = "--custom-suites"
HELP = "A suite that is not installed: a module, .py file or folder. Repeatable."
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


def with_sources(settings: Settings, sources: Path | None) -> Settings:
    """The settings with the value of `--sources`."""
    return settings.with_(sources=str(sources) if sources else None)


@contextmanager
def data_settings(
    data: str | None, form: str | None, sources: Path | None = None, resume: bool | None = None
) -> Iterator[Settings]:
    """A context whose settings hold the values of these options."""
    settings = with_sources(current_settings(), sources)
    with use_settings(settings.with_(data_root=data, form=form, resume=resume)) as used:
        yield used


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
        custom_suites: Annotated[list[str] | None, typer.Option(FLAG, metavar="MODULE_OR_PATH", help=HELP)] = None,
    ) -> None:
        """Never called."""

    (option,) = parameters_of(command)
    option.expose_value = False
    return option


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
