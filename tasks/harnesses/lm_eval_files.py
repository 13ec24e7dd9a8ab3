"""Our tasks as files of lm-evaluation-harness: a YAML file for each task and group, made from the catalogue.

`lm_eval --include_path "$(cultureval tasks --lm-eval-path)" --tasks qimma_aratrust` finds them. A task's file has the
class of `lm_eval_tasks`, which builds prompts and scores as our own runs do.
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
MEMBERS = "cultureval_members"  # a field of a group's metadata


class _Function(str):
    """The dotted name of an object that lm-eval imports."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))


def harness_name(name: str) -> str:
    """The name of a task or group in harnesses: small letters, digits and `_`; `:_mean` becomes `_mean`."""
    return re.sub(r"[^\w+]+", "_", name.replace(":_", ":")).strip("_").lower().replace("+", "plus")


def write_task_files() -> Path:
    """Writes the files of all registered suites into the cache; returns their folder."""
    files = task_files()
    content = hashlib.sha256("\0".join([*files, *files.values()]).encode()).hexdigest()[:16]
    folder = user_cache() / "lm_eval" / content
    for path, text in files.items():
        write_atomically(folder / path, text.encode("utf-8"))
    return folder


def task_files() -> dict[str, str]:
    """The files of all suites: relative path -> content.

    Tasks with images and choices have no file: lm-eval's vision models cannot score choices.

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
            stem = content.get("group") or content["task"]
            if stem in {Path(path).stem for path in contents}:
                raise CulturevalError(f"{name}: two tasks or groups would be named {stem!r} in lm-eval: rename one.")
            contents[f"{name}/{stem}.yaml"] = content
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
    """The paper's averages, LightEval's groups (without an average if they declare means), and the suite."""
    by_name = {task.task: task for task in tasks}
    averages = suite.part("averages")() if suite.averages else ()
    found = [_group(average.name, average.parts, {SCORE: average.members}, average.title) for average in averages]
    members = {group: [name for name in names if name in by_name] for group, names in groups(suite.name).items()}
    for group, names in members.items():
        if names and names != [group] and group != suite.name:
            mixed = any(by_name[name].mean for name in names)
            found.append(_group(group, names, {} if mixed else _same(names, by_name)))
    if tasks and suite.name not in {*by_name, *(average.name for average in averages)}:
        listed = [group for group, names in members.items() if names]
        found.append(_group(suite.name, members[suite.name] if listed == [suite.name] else listed, {}, suite.title))
    return found


def _same(names: list[str], tasks: Mapping[str, Task]) -> dict[str, dict[str, str]]:
    """The mean of every metric over the tasks."""
    metrics = dict.fromkeys(metric for name in names for metric in tasks[name].metrics)
    return {metric: dict.fromkeys(names, metric) for metric in metrics}


def _group(
    name: str, children: Iterable[str], averaged: Mapping[str, Mapping[str, str]], alias: str = ""
) -> dict[str, Any]:
    content: dict[str, Any] = {"group": harness_name(name), "group_alias": alias or name}
    content["task"] = list(map(harness_name, children))
    if averaged:
        content["aggregate_metric_list"] = [{"metric": metric, "weight_by_size": False} for metric in averaged]
        metrics = {harness_name(member): metric for member, metric in averaged.get(SCORE, {}).items()}
        content["metadata"] = {MEMBERS: metrics}
    return content
