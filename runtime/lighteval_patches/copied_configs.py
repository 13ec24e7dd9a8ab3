"""Which task configurations LightEval is about to run: it deep-copies those, and only those.

Listing and dumping tasks handle the configurations of the table itself. A configuration that reads its data when it is
first asked for them must do so in a run alone, and LightEval has no hook for that.
"""

import copy
from typing import Any, ClassVar, Self

from cultureval.runtime.patches import Patch, expect


class KnowsItIsRun:
    """A task configuration that can tell whether it is one that LightEval runs.

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


class _Config(KnowsItIsRun):
    name, metrics = "canary", ()


def _only_runs_are_copied() -> None:
    from cultureval.runtime.lighteval_patches.start_up import registry_without_builtin_tasks

    in_table = _Config()
    registry = registry_without_builtin_tasks("canary|2", [in_table])
    (run,) = registry.task_to_configs["canary"]
    expect(run.is_run, "LightEval no longer deep-copies the configurations that it runs")
    listed = registry_without_builtin_tasks(None, [in_table])
    expect(not listed.task_to_configs, "LightEval prepares all configurations for a list of tasks as for a run")
    expect(not in_table.is_run, "LightEval changes the configurations of the table itself")


PATCHES = (
    Patch(
        "lighteval",
        "lighteval.tasks.registry.Registry._update_task_configs",
        "Only what it deep-copies is run: that is how a configuration knows that its data are wanted.",
        ("0.13.0",),
        _only_runs_are_copied,
    ),
)
