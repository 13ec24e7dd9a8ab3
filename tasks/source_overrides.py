"""The file of `--sources`: other repositories, revisions, splits, files and column names for the data of benchmarks.

qimma_aratrust:                  # a task, a group of tasks, or a benchmark's name
  repo: my-lab/AraTrust
  revision: main
  split: validation
  files: ["{subset}/*.csv"]      # instead of splits; {subset} is each subset's name
  columns: {Question: question_text, Answer: gold}   # the name that we read: the name in the data
  gold_numbers: 1                # the number of the first option, 0 or 1; or text, where numbers are options' texts
  form: original                 # which copy is replaced where a benchmark has two; the others are not read
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from cultureval.runtime.errors import CulturevalError, did_you_mean, wrong_settings
from cultureval.runtime.text_templates import short_hash
from cultureval.tasks.suite import Source, Task


class Override(BaseModel):
    """What a user says about the data of a benchmark; None keeps ours.

    Attributes:
        form: Which copy is replaced: "curated" or "original"; None: the original, where there is one.
        repo: `org/name`, on the hub or below the data root.
        revision: Branch, tag or commit.
        split: Name of the evaluated split.
        files: Glob patterns of the evaluated files.
        columns: Name of a column that we read -> its name in the data.
        gold_numbers: As of `Source`.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    form: Literal["curated", "original"] | None = None
    repo: str | None = None
    revision: str | None = None
    split: str | None = None
    files: list[str] | None = None
    columns: dict[str, str] | None = None
    gold_numbers: Literal[0, 1, "text"] | None = None


def with_overrides(tasks: Mapping[str, Task], file: Path) -> dict[str, Task]:
    """The tasks with the sources that a YAML file gives them.

    Raises:
        CulturevalError: The file cannot be read, names no task or setting that there is, or fits none of its copies.
    """
    changed = dict(tasks)
    overrides = _read(file)
    names = {name: _named(name, tasks, file) for name in overrides}
    for name in sorted(names, key=lambda one: -len(names[one])):  # one task's entry is over its group's
        where, override = f"{file.name}, {name}", overrides[name]
        copies = [(task, _replaced(changed[task.task], override, where)) for task in names[name]]
        if override.repo and len({copy.repo for _, copy in copies}) > 1:
            own = ", ".join(task.task for task in names[name])
            raise CulturevalError(f"{where}: its subsets lie in several data sets; name them one by one: {own}.")
        for task, copy in copies:
            _check(copy, override, where, len(copies))
            given = f"{file.name}@{_hash(override, copy)}"
            changed[task.task] = replace(changed[task.task], sources=(_overridden(copy, override, given),))
    return changed


def _read(file: Path) -> dict[str, Override]:
    try:
        text = file.read_text(encoding="utf-8")
        _refuse_repeated_keys(yaml.compose(text, Loader=yaml.SafeLoader), file)
        content = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CulturevalError(f"{file} cannot be read as YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not content:
        raise CulturevalError(f"{file} is not a mapping from tasks, groups or benchmarks to their sources.")
    overrides = {}
    for name, settings in content.items():
        if not isinstance(settings, dict) or not settings:
            raise CulturevalError(f"{file.name}, {name}: give a mapping with {', '.join(Override.model_fields)}.")
        for key in (str(key) for key in settings if key not in Override.model_fields):
            near = did_you_mean(key, Override.model_fields)
            known = ", ".join(Override.model_fields)
            raise CulturevalError(f"{file.name}, {name}: there is no setting {key!r}.{near} The settings are {known}.")
        try:
            overrides[str(name)] = Override(**settings)
        except ValidationError as error:
            raise CulturevalError(f"{file.name}, {name}: {wrong_settings(error, values=True)}.") from error
    return overrides


def _refuse_repeated_keys(node: yaml.Node | None, file: Path, levels: int = 3) -> None:
    """YAML keeps the last of two equal keys without a word; entries, their settings and columns are looked at."""
    if not isinstance(node, yaml.MappingNode) or not levels:
        return
    seen: set[str] = set()
    for key, value in node.value:
        name = str(key.value)
        if name in seen:
            raise CulturevalError(f"{file.name}, line {key.start_mark.line + 1}: {name!r} is there twice.")
        seen.add(name)
        _refuse_repeated_keys(value, file, levels - 1)


def _named(name: str, tasks: Mapping[str, Task], file: Path) -> list[Task]:
    """The tasks of a task's, group's or benchmark's name."""
    found = [task for task in tasks.values() if name in (task.task, task.group, task.benchmark)]
    if not found:
        known = {one for task in tasks.values() for one in (task.task, task.group, task.benchmark)}
        near = did_you_mean(name, sorted(known))
        raise CulturevalError(f"{file.name}: there is no task, group or benchmark {name!r}.{near}")
    return found


def _replaced(task: Task, override: Override, where: str) -> Source:
    """The copy of a task's data that an override replaces."""
    forms = [source.form for source in task.sources]
    form = override.form or ("original" if "original" in forms else forms[0])
    copies = [source for source in task.sources if source.form == form]
    if not copies:
        raise CulturevalError(f"{where}: {task.task} has no {form} copy, only {', '.join(dict.fromkeys(forms))}.")
    return next((source for source in copies if source.repo == override.repo), copies[0])


def _check(source: Source, override: Override, where: str, tasks: int) -> None:
    """Checks that the reader of a source can do what an override says."""
    own = [name for name in ("split", "files") if getattr(override, name) is not None and source.find]
    own += ["columns"] if override.columns is not None and source.read else []
    if own:
        raise CulturevalError(
            f"{where}: the files of {source.repo} have a reader of their own, without `{'`, `'.join(own)}`; give "
            "`repo` or `revision`."
        )
    if override.repo is not None and (override.repo.count("/") != 1 or not all(override.repo.split("/"))):
        raise CulturevalError(f"{where}: the repo {override.repo!r} is not `org/name`.")
    if override.files and override.split:
        raise CulturevalError(f"{where}: give `split` or `files`, not both.")
    for pattern in override.files or ():
        if pattern.startswith("/") or ".." in Path(pattern).parts:
            raise CulturevalError(
                f"{where}: {pattern!r} leads out of the data set's folder; give a path below it, such as data/*.csv."
            )
        if unknown := [slot for slot in re.findall(r"\{[^}]*\}?", pattern) if slot != "{subset}"]:
            raise CulturevalError(
                f"{where}: {pattern!r} has {unknown[0]}, which stands for nothing; {{subset}}, the name of a subset, "
                "is the only slot of a pattern."
            )
        if tasks > 1 and "{subset}" not in pattern and not source.subset_of:
            raise CulturevalError(f"{where}: {pattern!r} gives {tasks} subsets the same files; write {{subset}} in it.")


def _overridden(source: Source, override: Override, given: str) -> Source:
    changes: dict[str, Any] = {"given": given}
    if override.repo is not None and override.repo != source.repo:
        changes |= {"repo": override.repo, "revision": None, "on_hub": True, "archive": None, "how_to_get": ""}
    if override.revision is not None:
        changes["revision"] = override.revision
    if override.split is not None:
        changes |= {"splits": (override.split,), "pool_splits": False, "files": ()}
    if override.files is not None:
        changes |= {"files": tuple(override.files), "files_first": True}
    if override.gold_numbers is not None:
        changes["gold_numbers"] = override.gold_numbers
    if override.columns is not None:
        changes["columns"] = dict(override.columns)
    return replace(source, **changes)


def _hash(override: Override, source: Source) -> str:
    given = override.model_dump(exclude={"gold_numbers"} if override.gold_numbers is None else None)
    content = json.dumps([source.given, given], sort_keys=True, ensure_ascii=False)
    return short_hash(content)
