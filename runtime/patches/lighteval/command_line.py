"""`cultureval lighteval`: LightEval's own command line, which starts offline and knows our tasks.

Stock LightEval 0.13 imports a hundred modules of built-in tasks for every run, and tiny_benchmarks downloads a file
meanwhile: here what cannot be downloaded is left out, and none is imported where only our tasks are asked for.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.printing import print_note

PROGRAM = "cultureval lighteval"


def lighteval_command(args: list[str], module: str, names: Collection[str]) -> int | str | None:
    """Runs LightEval's command line.

    Args:
        args: What follows `cultureval lighteval`: a sub-command of LightEval and its arguments.
        module: The module that holds our TASKS_TABLE.
        names: Our tasks and groups, which need no `--custom-tasks`.

    Returns:
        The exit code; None is success.

    Raises:
        CulturevalError: A task is unknown, or custom tasks have the name of built-in ones.
    """
    from lighteval.tasks import registry

    registry.Registry = _registry(registry.Registry, module, set(names))
    from lighteval.__main__ import app

    try:
        app(args, prog_name=PROGRAM)
    except SystemExit as end:
        return end.code
    return None


def _registry(stock: Any, module: str, names: set[str]) -> type:
    class Registry(stock):  # type: ignore[misc]
        only_ours = False

        def __init__(self, tasks: Any = None, load_multilingual: bool = False, custom_tasks: Any = None) -> None:
            asked = {entry.partition("|")[0] for entry in str(tasks).split(",")}
            Registry.only_ours = custom_tasks in (None, module) and asked <= names
            try:
                super().__init__(tasks, load_multilingual, module if Registry.only_ours else custom_tasks)
            except ValueError as error:
                raise CulturevalError(f"{error}. `cultureval tasks` lists our tasks.") from error

        @staticmethod
        def _load_from_files(files: list[Path], module_prefix: str) -> dict[str, Any]:
            return {} if Registry.only_ours else _loaded(stock._load_from_files, files, module_prefix)

        @staticmethod
        def _load_from_subdirs(subdirs: list[Path]) -> dict[str, Any]:
            return {} if Registry.only_ours else _loaded(stock._load_from_subdirs, subdirs)

        def _get_full_task_list_from_input_string(self, tasks: str | Path) -> list[str]:
            return sorted(super()._get_full_task_list_from_input_string(tasks))  # one order in all processes of a run

    return Registry


def _loaded(load: Any, places: list[Path], *prefix: str) -> dict[str, Any]:
    """The built-in tasks of modules, without those that need the network and do not get it."""
    found: dict[str, Any] = {}
    for place in places:
        try:
            found |= load([place], *prefix)
        except OSError as error:  # requests' ConnectionError is one
            print_note(f"LightEval's {place.stem} is left out: {described(error)}.")
    return found
