"""The catalogue of tasks, and LightEval's TASKS_TABLE, built on first access.

`lighteval ... --custom-tasks cultureval.tasks` reads TASKS_TABLE. The rest of the catalogue is plain data and imports
neither LightEval nor torch.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "TASKS_TABLE":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cultureval.tasks.task_table import tasks_table

    return tasks_table()
