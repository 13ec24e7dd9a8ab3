"""`cultureval lighteval`: LightEval's own command line, which starts offline and knows our tasks.

Stock LightEval 0.13 imports a hundred modules of built-in tasks for every run, and tiny_benchmarks downloads a file.
Here a run of our tasks imports none of them, and other runs leave out a module that cannot be downloaded.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.printing import print_note

PROGRAM = "cultureval lighteval"


def lighteval_command(args: list[str], module: str, names: Collection[str]) -> int | str | None:
    """Runs LightEval's command line with `args`, a sub-command and its arguments; returns the exit code.

    `module` holds our TASKS_TABLE. `names` are our tasks and groups, which need no `--custom-tasks`. Raises a
    CulturevalError on an unknown task, or a custom task with the name of a built-in one.
    """
    _start_offline(module, set(names))
    from lighteval.__main__ import app

    try:
        app(args, prog_name=PROGRAM)
    except SystemExit as end:
        return end.code
    return None


def _start_offline(module: str, names: set[str]) -> None:
    from lighteval.tasks.registry import Registry

    stock_init, stock_tasks = Registry.__init__, Registry._get_full_task_list_from_input_string
    load_files, load_folders, ours_only = Registry._load_from_files, Registry._load_from_subdirs, set()

    def init(self: Any, tasks: Any = None, load_multilingual: bool = False, custom_tasks: Any = None) -> None:
        asked = {entry.partition("|")[0] for entry in str(tasks).split(",")}
        ours_only.clear()
        if custom_tasks in (None, module) and asked <= names:
            custom_tasks = module
            ours_only.add(module)
        try:
            stock_init(self, tasks, load_multilingual, custom_tasks)
        except ValueError as error:
            raise CulturevalError(f"{error}. `cultureval tasks` lists our tasks.") from error

    Registry.__init__ = init
    Registry._load_from_files = staticmethod(
        lambda files, prefix: _loaded(load_files, [] if ours_only else files, prefix)
    )
    Registry._load_from_subdirs = staticmethod(lambda folders: _loaded(load_folders, [] if ours_only else folders))
    # Processes that share a run need one order of tasks; the order of a set differs.
    Registry._get_full_task_list_from_input_string = lambda self, tasks: sorted(stock_tasks(self, tasks))


def _loaded(load: Any, places: list[Path], *prefix: str) -> dict[str, Any]:
    """The built-in tasks of modules; a module that fails for want of the network is left out."""
    found: dict[str, Any] = {}
    for place in places:
        try:
            found |= load([place], *prefix)
        except OSError as error:  # requests' ConnectionError is one
            print_note(f"LightEval's {place.stem} is left out: {described(error)}.")
    return found
