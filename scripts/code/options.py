"""Options that the sub-commands of `cultureval code` share, and a clean standard output for them."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.settings import Settings, current_settings

Dataset = Annotated[Literal["humaneval", "mbpp"], typer.Option(help="humaneval (HumanEval+) or mbpp (MBPP+).")]
Data = Annotated[
    str | None,
    typer.Option(help="Data root, folder of the data files themselves, or `samples`; default: hub."),
]
Prompts = Annotated[
    Path | None, typer.Option(help="Refined prompts (task_id, prompt or Fixed): only docstrings' Arabic may differ.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Sandboxes at work at once; default: one a core.")]
UnsafeNoSandbox = Annotated[
    bool, typer.Option("--unsafe-no-sandbox", help="Run strangers' code WITHOUT a sandbox; the results are marked.")
]


@contextlib.contextmanager
def notes_on_stderr() -> Iterator[None]:
    """While EvalPlus and its libraries work, what they print goes to standard error: ours is for results."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def data_or_setting(data: str | None) -> str:
    """The data root that the command names, or else the settings'; "" is the hub."""
    return str(Settings.data_root.given(current_settings())) if data is None else data


def prepare_hub(data: str) -> None:
    """Sees to it that nothing waits for a hub that does not answer; not asked where the data are a folder."""
    if not data and (problem := go_offline_if_unreachable()):
        print(f"cultureval: the hub does not answer ({problem}).", file=sys.stderr)
