"""Which task configurations LightEval is about to run: it deep-copies those, and only those.

Listing and dumping tasks handle the configurations of the table itself. A configuration that reads its data lazily
must do so only in a run, and LightEval has no hook for that.
"""

import copy
from typing import Any, ClassVar, Self

from cultureval.runtime.patches.table import expect, patched


class RunAwareConfig:
    """A task configuration that knows whether LightEval runs it.

    Attributes:
        is_run: True in a deep copy, False in the table of tasks.
    """

    is_run: ClassVar[bool] = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = copy.copy(self)
        memo[id(self)] = copied
        vars(copied).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        vars(copied)["is_run"] = True
        return copied


class _Config(RunAwareConfig):
    name, metrics = "canary", ()


@patched(
    "lighteval",
    "lighteval.tasks.registry.Registry._update_task_configs",
    "It deep-copies exactly the configurations that it runs: a copy may therefore read its data.",
)
def _only_runs_are_copied() -> None:
    from cultureval.runtime.patches.lighteval.start_up import registry_without_builtin_tasks

    in_table = _Config()
    registry = registry_without_builtin_tasks("canary|2", [in_table])
    (run,) = registry.task_to_configs["canary"]
    expect(run.is_run, "LightEval no longer deep-copies the configurations that it runs")
    listed = registry_without_builtin_tasks(None, [in_table])
    expect(not listed.task_to_configs, "LightEval prepares all configurations for a list of tasks as for a run")
    expect(not in_table.is_run, "LightEval changes the configurations of the table itself")
