"""Our tasks as files of lm-evaluation-harness: a YAML file a task and a group, made from the catalogue.

`INCLUDE_PATH` holds those of our own suites, and ships in the wheel; `cultureval export lm-eval --to DIR` writes them
anew, also for suites of other packages. Each file of a task names the class of `lm_eval_tasks`, which asks and scores
as our own runs do.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_suites, all_tasks, groups, kind_of
from cultureval.tasks.suite import SCORE, Average, Suite, Task

INCLUDE_PATH = Path(__file__).with_name("lm_eval")
CLASS = "cultureval.tasks.harnesses.lm_eval_tasks.SuiteTask"
DATASET = "cultureval"  # `dataset_path` of every task; `dataset_name` is its name in our catalogue
MEMBERS = "cultureval_members"  # of a group's metadata
IMAGES = "images"
HEADER = "# Written by `cultureval export lm-eval`; do not edit.\n"


class _Function(str):
    """The dotted name of an object that lm-eval imports."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))


def harness_name(name: str) -> str:
    """The name of a task or group in harnesses: small letters, digits and `_`; LightEval's `_mean` loses its `_`."""
    return re.sub(r"[^\w+]+", "_", name.replace(":_", ":")).strip("_").lower().replace("+", "plus")


def can_be_asked(task: Task) -> bool:
    """Whether lm-eval can ask a task: its vision models generate, and do not score choices."""
    return not task.images or kind_of(task.task).generation_size > 0


def task_files(suites: Iterable[str]) -> dict[str, str]:
    """The files of suites: relative path -> content; raises CulturevalError where two tasks or groups have one name."""
    contents: dict[str, dict[str, Any]] = {}
    for name in suites:
        suite = all_suites()[name]
        tasks = [task for task in all_tasks().values() if task.suite == name and can_be_asked(task)]
        for content in [*map(_task, tasks), *_groups(suite, tasks)]:
            own = content["group"] if "group" in content else content["task"]
            if own in {Path(path).stem for path in contents}:
                raise CulturevalError(f"{name}: two tasks or groups would be named {own!r} in lm-eval: rename one.")
            contents[f"{name}/{own}.yaml"] = content
    return {
        path: HEADER + yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110)
        for path, content in contents.items()
    }


def write_task_files(folder: Path, suites: Iterable[str]) -> int:
    """Writes the files of suites into a folder, removes those of an earlier version there, and returns their number.

    Raises:
        CulturevalError: A sub-folder of a suite's name holds files that are not ours.
    """
    files = task_files(suites)
    for sub in {folder / Path(path).parent for path in files}:
        for old in sub.glob("*"):
            if not old.is_file() or old.suffix != ".yaml" or not old.read_text(encoding="utf-8").startswith(HEADER):
                raise CulturevalError(f"{old} was not written by `cultureval export`: name another folder.")
    for sub in {folder / Path(path).parent for path in files}:
        for old in sub.glob("*.yaml"):
            if str(old.relative_to(folder)) not in files:
                old.unlink()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return len(files)


def _task(task: Task) -> dict[str, Any]:
    kind = kind_of(task.task)
    content: dict[str, Any] = {"task": harness_name(task.task), "task_alias": task.task, "class": _Function(CLASS)}
    content |= {"dataset_path": DATASET, "dataset_name": task.task}
    if kind.generation_size > 0:
        stops = list(kind.stop_sequence)
        content["output_type"] = "generate_until"
        content["generation_kwargs"] = {"do_sample": False, "max_gen_toks": kind.generation_size, "until": stops}
    else:
        content["output_type"] = "multiple_choice"
    return content | ({"doc_to_image": IMAGES} if task.images else {})


def _groups(suite: Suite, tasks: list[Task]) -> list[dict[str, Any]]:
    """The groups of a suite: LightEval's, the means that its tables declare, its paper's averages, and all of it."""
    there = {task.task: task for task in tasks}
    means: dict[str, list[str]] = {}
    for task in tasks:
        if task.mean:
            means.setdefault(task.mean, []).append(task.task)
    found = []
    for group, names in groups(suite.name).items():
        inside = [name for name in names if name in there]
        if not inside or inside == [group] or group == suite.name:
            continue
        below = [mean for mean, parts in means.items() if parts[0] in inside]
        rest = [name for name in inside if there[name].mean is None]
        mixed = bool(below)  # tasks that differ in kind have no average
        found.append(_group(group, [*below, *rest], {} if mixed else _same(inside, there)))
    for mean, names in means.items():
        found.append(_group(mean, names, _same(names, there)))
    averages: list[Average] = list(suite.part("averages")() if suite.averages else ())
    for one in averages:
        found.append(_group(one.name, one.parts, {SCORE: one.members}, alias=one.title))
    if suite.name not in {one.name for one in averages}:
        listed = [name for name in groups(suite.name) if any(task.group == name for task in tasks)]
        if listed == [suite.name]:  # one group of the suite's name
            listed = [*means, *(task.task for task in tasks if task.mean is None)]
        if listed and listed != [suite.name] and suite.name not in there:  # a task of that name comes first
            found.append(_group(suite.name, listed, {}, alias=suite.title))
    return found


def _same(names: list[str], tasks: Mapping[str, Task]) -> dict[str, dict[str, str]]:
    """Every metric of the tasks as their mean."""
    metrics = dict.fromkeys(metric for name in names for metric in tasks[name].metrics)
    return {metric: dict.fromkeys(names, metric) for metric in metrics}


def _group(
    name: str,
    children: Iterable[str],
    averaged: Mapping[str, Mapping[str, str]],
    alias: str = "",
) -> dict[str, Any]:
    content: dict[str, Any] = {"group": harness_name(name), "group_alias": alias or name}
    content["task"] = list(map(harness_name, children))
    if averaged:
        content["aggregate_metric_list"] = [{"metric": metric, "weight_by_size": False} for metric in averaged]
        own = {harness_name(member): metric for member, metric in averaged.get(SCORE, {}).items()}
        content["metadata"] = {MEMBERS: own}
    return content
