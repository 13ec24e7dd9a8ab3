"""`cultureval lighteval`: LightEval's own command line, which starts offline and loads only one sub-command's code."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.start_up import OwnTasks, prepare_lighteval
from cultureval.runtime.patches.table import expect, imports_at_load, patched, source_of

if TYPE_CHECKING:
    from typer import Typer

PROGRAM = "cultureval lighteval"
EXAMPLE = f"{PROGRAM} accelerate model_name=MODEL qimma_aratrust"


@dataclass(frozen=True)
class SubCommand:
    """One sub-command of LightEval: the module that holds it, and its help (LightEval's own where it has one)."""

    module: str
    help: str


SUB_COMMANDS = {
    "accelerate": SubCommand("main_accelerate", "Evaluate models using accelerate and transformers as backend."),
    "baseline": SubCommand("main_baseline", "Compute baselines for given tasks."),
    "nanotron": SubCommand("main_nanotron", "Evaluate models using nanotron as backend."),
    "vllm": SubCommand("main_vllm", "Evaluate models using vllm as backend."),
    "custom": SubCommand("main_custom", "Evaluate custom models (can be anything)."),
    "sglang": SubCommand("main_sglang", "Evaluate models using sglang as backend."),
    "eval": SubCommand("main_inspect", "Evaluate models using inspect-ai as backend."),
    "bundle": SubCommand("main_inspect", "Bundle the logs of `eval` for viewing, and push them to the hub."),
    "endpoint": SubCommand(
        "main_endpoint", "Evaluate models using some endpoint (tgi, inference endpoint, openai) as backend."
    ),
    "tasks": SubCommand("main_tasks", "List or inspect tasks."),
}


def lighteval_command(args: list[str], own: OwnTasks) -> int | None:
    """Runs LightEval's command line.

    Args:
        args: What follows `cultureval lighteval`: a sub-command of LightEval and its arguments.

    Returns:
        The exit code; None is success.

    Raises:
        CulturevalError: No such sub-command, task or module of custom tasks.
    """
    if not args or args[0] in ("--help", "-h"):
        print(overview())
        return 0 if args else 2
    if args[0] not in SUB_COMMANDS:
        raise CulturevalError(f"LightEval has no command {args[0]!r}; it has {', '.join(SUB_COMMANDS)}.")
    args = [*args[:-1], "--help"] if args[-1] == "-h" else args  # LightEval knows only the long form
    prepare_lighteval(own)
    try:
        lighteval_app(SUB_COMMANDS[args[0]].module)(args, prog_name=PROGRAM)
    except SystemExit as end:
        return end.code
    return None


def overview() -> str:
    """The help of `cultureval lighteval` itself, from plain data: importing LightEval takes seconds."""
    width = max(map(len, SUB_COMMANDS))
    rows = [f"  {name:<{width}}  {command.help}".rstrip() for name, command in SUB_COMMANDS.items()]
    return "\n".join(
        [
            f"Usage: {PROGRAM} COMMAND [ARGS]...",
            "",
            "LightEval's own command line: same options, same results files. It starts without internet, knows our",
            "tasks without --custom-tasks, and imports LightEval's built-in tasks only when one is requested.",
            "",
            "Commands:",
            *rows,
            "",
            f"Options of a command: {PROGRAM} COMMAND --help",
            f"Example: {EXAMPLE}",
        ]
    )


def lighteval_app(module: str) -> "Typer":
    """LightEval's own Typer app, with the code of one of its modules of sub-commands and stubs for the others."""
    others = {command.module for command in SUB_COMMANDS.values()} - {module}
    with _stub_modules(others):
        app = importlib.import_module("lighteval.__main__").app
        if module == "main_inspect":
            mend_inspect_eval(importlib.import_module("lighteval.main_inspect"))
        return app


@contextmanager
def _stub_modules(modules: set[str]) -> Iterator[None]:
    """Lets `lighteval.__main__` find stub modules in place of these; `sys.modules` is restored at the end."""
    import lighteval

    for name in modules:
        stand_in = _StubModule(f"lighteval.{name}")
        sys.modules[stand_in.__name__] = stand_in
        setattr(lighteval, name, stand_in)
    try:
        yield
    finally:
        for name in [*modules, "__main__"]:
            sys.modules.pop(f"lighteval.{name}", None)
            vars(lighteval).pop(name, None)


class _StubModule(ModuleType):
    """A stub for a module of sub-commands that are not run: `app` has no commands, every function does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name == "app":
            from typer import Typer

            return Typer()
        if name.startswith("__"):
            raise AttributeError(name)

        def not_run() -> None:
            """Has LightEval's name, so that the app takes it for the command."""

        not_run.__name__ = name
        return not_run


@patched(
    "lighteval",
    "lighteval.__main__",
    "It imports the code of all sub-commands: those that are not run are replaced by stubs in sys.modules.",
)
def _every_module_of_commands_is_imported() -> None:
    found = {name.removeprefix("lighteval.") for name in imports_at_load("lighteval.__main__")}
    mains = {name for name in found if name.startswith("main_")}
    expect(mains, "`lighteval` no longer imports the code of all its sub-commands: start it without stubs")
    changed = mains ^ {command.module for command in SUB_COMMANDS.values()}
    expect(not changed, f"LightEval's modules of sub-commands have changed ({', '.join(changed)}): update SUB_COMMANDS")


RENAMED = {"frequence_penalty": "frequency_penalty", "log_probs": "logprobs"}
GONE = {"response_format": "--response-format"}


def mend_inspect_eval(module: ModuleType) -> None:
    """Changes the loaded module `lighteval.main_inspect`: the options' names, and the table's column.

    LightEval 0.13 passes options under names that the Inspect of today refuses, whether they are given or not, so that
    no task runs. Its table shows a metric called `accuracy`, and `-` for all tasks without one.
    """
    stock_cell = module._format_metric_cell

    def cell(data: Mapping[str, Mapping[str, Any]], column: str, metric: str, stderr_metric: str) -> str:
        found = data.get(column) or {}
        if metric in found or not found:
            return stock_cell(data, column, metric, stderr_metric)
        first = next(iter(found))  # the headline
        return f"{stock_cell(data, column, first, stderr_metric)} {first}"

    module.inspect_ai_eval_set = _eval_set  # type: ignore[attr-defined]
    module._format_metric_cell = cell  # type: ignore[attr-defined]


def _eval_set(tasks: Any, **given: Any) -> Any:
    """Inspect's `eval_set`, with the options that were given, which it must have."""
    from inspect_ai import eval_set

    wanted = {RENAMED.get(name, name): value for name, value in given.items() if value is not None}
    for name, option in GONE.items():
        if name in wanted:
            raise CulturevalError(f"Inspect no longer has {option}: leave it out, or run `inspect eval`.")
    return eval_set(tasks, **wanted)


@patched(
    "lighteval",
    "lighteval.main_inspect.inspect_ai_eval_set",
    "It passes options that Inspect refuses, so that `lighteval eval` runs nothing.",
)
def _options_are_refused() -> None:
    from inspect_ai.model import GenerateConfig

    for name in (*RENAMED, *GONE):
        expect(name not in GenerateConfig.model_fields, f"Inspect takes {name} again: remove it from this patch")
        expect(f"{name}=" in source_of("lighteval.main_inspect"), f"LightEval no longer passes {name}")
    for name in RENAMED.values():
        expect(name in GenerateConfig.model_fields, f"Inspect no longer has {name}")


@patched(
    "lighteval",
    "lighteval.main_inspect._format_metric_cell",
    "Its table leaves out all metrics but one called accuracy.",
)
def _the_table_shows_accuracy() -> None:
    source = source_of("lighteval.main_inspect")
    expect('metric: str = "accuracy"' in source, "LightEval's table of `eval` no longer shows accuracy alone")
    expect("_format_metric_cell(data, col, metric, stderr_metric)" in source, "LightEval's table is made otherwise now")
