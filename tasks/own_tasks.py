"""Our tasks in the form that the patch of LightEval's start-up takes."""

from cultureval.runtime.patches.lighteval.start_up import OwnTasks
from cultureval.tasks.catalogue import task_names
from cultureval.tasks.registration import unknown_name_hint

OWN_TASKS = OwnTasks("cultureval.tasks", task_names, unknown_name_hint)
INSPECT_TASKS = OwnTasks("cultureval.tasks.harnesses.inspect_table", task_names, unknown_name_hint)  # of `eval`
