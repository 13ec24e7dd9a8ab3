"""The `cultureval` command: a table of sub-commands, each loaded when it is called."""

import errno
import gc
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import cultureval
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.interruption import interruption_message, orderly_end
from cultureval.runtime.printing import print_message, print_note, steady_streams
from cultureval.runtime.progress import is_terminal, plain_libraries
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts import compare, evaluate, judge, leaderboard, reconcile, score, show, tasks
from cultureval.scripts.audit import audit
from cultureval.tasks.options import check_variables

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
LIGHTEVAL = "lighteval"
CUSTOM_SUITES = "--custom-suites"


class Commands(TyperGroup):
    """All commands, with the suites that `--custom-suites` names at any place; Ctrl-C ends them with a message."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """As typer does; then those suites are in the settings, and wrong variables are reported."""
        if args[:1] == [LIGHTEVAL]:  # whose options are its own, and whose table of tasks warns
            return super().parse_args(ctx, args)
        with _exits_on_interrupt():
            args, named = without_custom_suites(args)
            if named:
                ctx.with_resource(use_settings(current_settings().with_(custom_suites=",".join(named))))
            helps = bool({*args} & {*ctx.help_option_names})  # which must not end in the error of a suite
            with suppress(CulturevalError) if helps else nullcontext():
                check_variables()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:
        """As typer does, which would say nothing at Ctrl-C."""
        with _exits_on_interrupt():
            return super().invoke(ctx)


def without_custom_suites(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """A command line without `--custom-suites VALUE` before a `--`, and the values."""
    rest: list[str] = []
    values: list[str] = []
    words = iter(args)
    for word in words:
        name, sign, value = word.partition("=")
        if word == "--":
            return [*rest, word, *words], values
        if name != CUSTOM_SUITES:
            rest.append(word)
        elif (suite := value if sign else next(words, "")) and not suite.startswith("-"):
            values.append(suite)
        else:
            raise CulturevalError(f"{CUSTOM_SUITES} needs a .py file or a module.")
    return rest, values


@contextmanager
def _exits_on_interrupt() -> Iterator[None]:
    """A context that Ctrl-C ends with a message, and with the exit code that shells have for it."""
    try:
        yield
    except KeyboardInterrupt as error:
        ahead = "\n" if is_terminal() else ""  # after a progress bar
        print(ahead, end="", file=sys.stderr)
        text, code = interruption_message(error)
        print_note(text)
        raise SystemExit(code) from error


app = typer.Typer(
    name="cultureval",
    cls=Commands,
    help="Culturally and dialectally grounded benchmarks for LightEval. Example: cultureval eval MODEL qimma",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # sub-commands inherit it
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("eval")(evaluate.evaluate)
app.command("tasks")(tasks.list_tasks)
app.command("check")(tasks.check)
app.command("fetch")(tasks.fetch)
app.command("show")(show.show)
app.command("compare")(compare.compare)
app.command("leaderboard")(leaderboard.leaderboard)
app.command("reconcile")(reconcile.reconcile)
app.command("judge")(judge.judge)
app.command("score")(score.score)
app.add_typer(audit, name="audit")
app.command("run")(evaluate.run)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"cultureval {cultureval.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    custom_suites: Annotated[
        str | None,
        typer.Option(metavar="FILE.py", help="Benchmarks that are not installed; at any place. Repeatable."),
    ] = None,
) -> None:
    """Options of the main command; `Commands` has read the second."""


@app.command(
    LIGHTEVAL,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    help="LightEval's own command line, started offline. Example: cultureval lighteval --help",
)
def lighteval(context: typer.Context) -> None:
    """Passes every argument to LightEval's command line."""
    from cultureval.runtime.patches.lighteval.command_line import lighteval_command
    from cultureval.tasks.catalogue import task_names

    arguments = ["--help" if word == "-h" else word for word in context.args]
    raise typer.Exit(lighteval_command(arguments, "cultureval.tasks", task_names()) or 0)


def main() -> None:
    """Entry point of the command: user errors end it with one sentence and exit code 2.

    So do files that cannot be read or written.
    """
    plain_libraries()
    try:
        with steady_streams(), orderly_end():
            _run()
    finally:
        gc.freeze()  # the end of the process frees everything, and need not look for garbage first


def _run() -> None:
    try:
        sys.exit(app(standalone_mode=False))  # an exit code, or None
    except typer.TyperException as error:  # a wrong command line
        _name_our_option(error)
        with io.StringIO() as text:
            error.show(text)  # type: ignore[attr-defined]
            message = text.getvalue().rstrip().replace(": Value error, ", ": ")
            print_message(_with_near_name(message) + _model_forgotten(error))
        sys.exit(error.exit_code)
    except CulturevalError as error:
        print_note(str(error))
        sys.exit(2)
    except Exception as error:
        message = _file_problem(error)
        if message is None:
            raise
        print_note(message)
        sys.exit(2)


def _name_our_option(error: Any) -> None:
    """Where an unknown option is another harness's or an earlier one, the message says what to write here."""
    if not hasattr(error, "possibilities"):
        return
    from cultureval.library import our_name

    options = {option for parameter in error.ctx.command.get_params(error.ctx) for option in parameter.opts}
    ours, of_args = our_name(error.option_name)
    if error.option_name in ("--model", "--tasks") and "--model-args" in options:
        hint = "Write cultureval eval MODEL TASKS."
    elif (hyphened := error.option_name.replace("_", "-")) in options:
        hint = f"Write {hyphened}."
    elif f"--{ours}" in options | {CUSTOM_SUITES}:
        value = f" {of_args}." if "=" in of_args else f" {of_args}=..." if of_args else "."
        hint = f"Write --{ours}{value}"
    elif "--num-fewshot" in options and hyphened == "--fewshot-as-multiturn":
        hint = "Leave it out."
    else:
        return
    error.message, error.possibilities = f"{error.message}. {hint}", []


def _with_near_name(message: str) -> str:
    """The message; where it lists the values of an option, with the one that resembles what was given."""
    found = re.search(r"'([^'\n]*)' is not one of ((?:'[^'\n]*'(?:,\s+)?)+)\.?$", message)
    return message + did_you_mean(found[1], re.findall("'([^']*)'", found[2])) if found else message


def _model_forgotten(error: Any) -> str:
    """A sentence where tasks are missing, since their name stands where the model's does; else ""."""
    if getattr(getattr(error, "param", None), "name", "") != "tasks":
        return ""
    from cultureval.tasks.catalogue import all_tasks, groups, suites

    name = error.ctx.params.get("model")
    known = name in {*suites(), *groups(), *all_tasks()}
    return f" {name} names tasks; MODEL comes first: `cultureval {error.ctx.info_name} MODEL {name}`." if known else ""


def _file_problem(error: BaseException) -> str | None:
    """The sentence for a file that cannot be read or written; None for any other error."""
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"{error.filename} does not exist."
    cause: BaseException | None = error
    while cause is not None:  # libraries raise their own errors from those of a full disk
        if isinstance(cause, OSError) and cause.errno in NO_ROOM:
            place = cause.filename or f"The output folder or the cache ({user_cache()})"
            return (
                f"{place} cannot be written: {os.strerror(cause.errno)}. Make room, or use another folder (for the "
                "cache: CULTUREVAL_CACHE); what has been kept is used by the next run."
            )
        cause = cause.__cause__
    if isinstance(error, OSError) and error.filename is not None:
        of_cache = Path(os.fsdecode(error.filename)).is_relative_to(user_cache())
        another = " Another folder for the cache: CULTUREVAL_CACHE=FOLDER." if of_cache else ""
        return f"{error.filename} cannot be read or written: {error.strerror}.{another}"
    return None


if __name__ == "__main__":
    main()
