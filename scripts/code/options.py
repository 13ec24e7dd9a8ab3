"""Shared options of the sub-commands of `cultureval code`, and their standard output."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import Settings, current_settings, use_settings

Dataset = Annotated[Literal["humaneval", "mbpp"], typer.Option(help="humaneval (HumanEval+) or mbpp (MBPP+).")]
Data = Annotated[
    str | None,
    typer.Option(help="Data root, folder with the data files, or `samples`; default: hub."),
]
Prompts = Annotated[
    Path | None,
    typer.Option(help="Refined prompts (task_id, prompt or Fixed): only Arabic text in docstrings may differ."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Parallel sandboxes; default: one per core.")]
UnsafeNoSandbox = Annotated[
    bool, typer.Option("--unsafe-no-sandbox", help="Run generated code WITHOUT a sandbox; results are marked.")
]


@contextlib.contextmanager
def notes_on_stderr() -> Iterator[None]:
    """Redirect what EvalPlus and its libraries print to standard error; standard output is for results."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def data_in_settings(data: str | None) -> Iterator[str]:
    """The data root of the command line, else of the settings ("": the hub), which they hold: the sandbox hides it.

    Raises:
        MissingExtra: EvalPlus is not installed.
    """
    require_extra("code")
    with use_settings(current_settings().with_(data_root=data)) as settings:
        yield str(Settings.data_root.given(settings))


def prepare_hub(data: str) -> None:
    """Go offline if the hub does not answer; not checked if the data are a folder."""
    if not data and (problem := go_offline_if_unreachable()):
        print_note(f"the hub does not answer ({problem}).")
