"""Our tasks as files of lm-evaluation-harness: a YAML file a task and a group, made from the catalogue on demand.

`lm_eval --include_path "$(cultureval tasks --lm-eval-path)" --tasks qimma_aratrust` finds them. Each file of a task
names the class of `lm_eval_tasks`, which asks and scores as our own runs do.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_suites, all_tasks, groups
from cultureval.tasks.suite import SCORE, Suite, Task

CLASS = "cultureval.tasks.harnesses.lm_eval_tasks.SuiteTask"
DATASET = "cultureval"  # `dataset_path` of every task; `dataset_name` is its name in our catalogue
MEMBERS = "cultureval_members"  # of a group's metadata


class _Function(str):
    """The dotted name of an object that lm-eval imports."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))


def harness_name(name: str) -> str:
    """The name of a task or group in harnesses: small letters, digits and `_`; LightEval's `_mean` loses its `_`."""
    return re.sub(r"[^\w+]+", "_", name.replace(":_", ":")).strip("_").lower().replace("+", "plus")


def write_task_files() -> Path:
    """Writes the files of all registered suites into the cache, and returns their folder."""
    files = task_files()
    content = hashlib.sha256("\0".join([*files, *files.values()]).encode()).hexdigest()[:16]
    folder = user_cache() / "lm_eval" / content
    for path, text in files.items():
        write_atomically(folder / path, text.encode("utf-8"))
    return folder


def task_files() -> dict[str, str]:
    """The files of all suites: relative path -> content.

    lm-eval's vision models generate and do not score choices: tasks with images and choices have no file.

    Raises:
        CulturevalError: Two tasks or groups would have one name.
    """
    contents: dict[str, dict[str, Any]] = {}
    for name, suite in all_suites().items():
        tasks = [
            task
            for task in all_tasks().values()
            if task.suite == name and (not task.images or task.kind.generation_size > 0)
        ]
        for content in [*map(_task, tasks), *_groups(suite, tasks)]:
            own = content.get("group") or content["task"]
            if own in {Path(path).stem for path in contents}:
                raise CulturevalError(f"{name}: two tasks or groups would be named {own!r} in lm-eval: rename one.")
            contents[f"{name}/{own}.yaml"] = content
    return {
        path: yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False)
        for path, content in contents.items()
    }


def _task(task: Task) -> dict[str, Any]:
    kind = task.kind
    content: dict[str, Any] = {"task": harness_name(task.task), "task_alias": task.task, "class": _Function(CLASS)}
    content |= {"dataset_path": DATASET, "dataset_name": task.task}
    if kind.generation_size > 0:
        stops = list(kind.stop_sequence)
        content["output_type"] = "generate_until"
        content["generation_kwargs"] = {"do_sample": False, "max_gen_toks": kind.generation_size, "until": stops}
    else:
        content["output_type"] = "multiple_choice"
    return content | ({"doc_to_image": "images"} if task.images else {})


def _groups(suite: Suite, tasks: list[Task]) -> list[dict[str, Any]]:
    """LightEval's groups (those with means of their own have no average here), the paper's averages, the suite."""
    there = {task.task: task for task in tasks}
    averages = suite.part("averages")() if suite.averages else ()
    found = [_group(one.name, one.parts, {SCORE: one.members}, one.title) for one in averages]
    inside = {group: [name for name in names if name in there] for group, names in groups(suite.name).items()}
    for group, names in inside.items():
        if names and names != [group] and group != suite.name:
            mixed = any(there[name].mean for name in names)
            found.append(_group(group, names, {} if mixed else _same(names, there)))
    if tasks and suite.name not in {*there, *(one.name for one in averages)}:
        listed = [group for group, names in inside.items() if names]
        found.append(_group(suite.name, inside[suite.name] if listed == [suite.name] else listed, {}, suite.title))
    return found


def _same(names: list[str], tasks: Mapping[str, Task]) -> dict[str, dict[str, str]]:
    """Every metric of the tasks as their mean."""
    metrics = dict.fromkeys(metric for name in names for metric in tasks[name].metrics)
    return {metric: dict.fromkeys(names, metric) for metric in metrics}


def _group(
    name: str, children: Iterable[str], averaged: Mapping[str, Mapping[str, str]], alias: str = ""
) -> dict[str, Any]:
    content: dict[str, Any] = {"group": harness_name(name), "group_alias": alias or name}
    content["task"] = list(map(harness_name, children))
    if averaged:
        content["aggregate_metric_list"] = [{"metric": metric, "weight_by_size": False} for metric in averaged]
        own = {harness_name(member): metric for member, metric in averaged.get(SCORE, {}).items()}
        content["metadata"] = {MEMBERS: own}
    return content
