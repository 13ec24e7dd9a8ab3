"""The files of finished runs: finds and reads results and details, ours and stock LightEval's.

An output folder has results/<model>/results_<date>.json and details/<model>/<date>/details_<task>_<date>.parquet.
Unreadable files are left out and listed, with the reason.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from cultureval.runs.record import SCHEMA, SECTION, RunRecord, task_records
from cultureval.runtime.errors import CulturevalError, described, escaped, wrong_settings
from cultureval.tasks.catalogue import known_task
from cultureval.tasks.harnesses.foreign import add_recorded

if TYPE_CHECKING:
    import pyarrow

DERIVED = b"cultureval.derived_from"  # metadata of a judgement's details: the judged details


@dataclass(frozen=True)
class LeftOut:
    """An unreadable file, and the reason as a sentence."""

    file: Path
    reason: str

    @property
    def sentence(self) -> str:
        """The message for people."""
        return f"left out: {self.file}: {self.reason.removeprefix(f'{self.file}: ')}"


@dataclass(frozen=True)
class ResultsFile:
    """One results file.

    Attributes:
        path: The file.
        content: All of it.
        scores: Task with `|k`, or average -> metric -> score in the file; None where it is undefined.
        model: The model's name.
        record: The section `cultureval`; for stock LightEval's files made from the file and the catalogue.
        details: Task with `|k` -> its details, where they were saved.
        judged: For a judgement: task -> the judged details.
    """

    path: Path
    content: Mapping[str, Any]
    scores: Mapping[str, Mapping[str, float | None]]
    model: str
    record: RunRecord
    details: Mapping[str, Path] = field(default_factory=dict)
    judged: Mapping[str, Path] = field(default_factory=dict)

    @property
    def date(self) -> str:
        """The date of the run in the file's name."""
        return date_of(self.path)


def find_results(path: Path) -> list[Path]:
    """The results files of a path: a file, an output folder, or a folder in or above one.

    Raises:
        CulturevalError: The path does not exist, or has no results file.
    """
    if not path.exists():
        raise CulturevalError(f"{path} does not exist: name the --output-dir of a run, or a file in it.")
    files = [path] if path.is_file() else results_below(path)
    if not files:
        raise CulturevalError(
            f"{path} has no results file of LightEval (results/<model>/results_<date>.json): name the --output-dir of "
            "a run, or a file in it."
        )
    return files


def results_below(folder: Path) -> list[Path]:
    """The results files below a folder; [] where the folder does not exist."""
    return sorted(folder.rglob("results_*.json"))


class _Content(BaseModel):
    """The required parts of a results file, with their types."""

    config_general: dict[str, Any]
    results: dict[str, dict[str, float | None]]
    config_tasks: dict[str, dict[str, Any]] = {}
    cultureval: RunRecord | None = None


def read_results(path: Path) -> ResultsFile:
    """Reads a results file of LightEval, with our section or without.

    Raises:
        CulturevalError: The file cannot be read, has another format, or a newer version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        known = _Content.model_validate(content)
    except ValidationError as error:
        wrong = wrong_settings(error, values=True)
        raise CulturevalError(f"{path}: it is no results file of LightEval: {wrong}.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CulturevalError(
            f"{path}: it cannot be read: {described(error)}. Move it out of the folder to leave the run out."
        ) from error
    name = known.config_general.get("model_name") or model_folder(path) or "?"
    judged = known.config_general.get("judged")
    root = output_folder(path)
    bases = [root / str(place) for place in judged.get("details") or ()] if root and isinstance(judged, Mapping) else []
    scores = {
        task: {metric: None if value != value else value for metric, value in values.items()}  # nan is None
        for task, values in known.results.items()
    }
    return ResultsFile(
        path,
        content,
        scores,
        escaped(str(name)),
        _record(path, known),
        {task_of(file): file for file in saved_details(path)},
        {task_of(file): file for file in bases if root and file.resolve().is_relative_to(root.resolve())},
    )


def _record(path: Path, content: _Content) -> RunRecord:
    """The section `cultureval`, else a record from LightEval's sections. Headlines are the catalogue's."""
    record = content.cultureval
    if record is None:
        tasks = task_records(content.config_tasks, content.config_general.get("max_samples"))
        record = RunRecord(schema=0, tasks=tasks)
    if record.schema_ > SCHEMA:
        raise CulturevalError(
            f"{path}: its section `{SECTION}` has version {record.schema_}, newer than {SCHEMA}: update cultureval."
        )
    found = {}
    for name, task in record.tasks.items():
        add_recorded(task)
        known = known_task(name)
        metrics = tuple(dict.fromkeys([*(known.metrics[:1] if known else ()), *task.metrics]))
        found[name] = task.model_copy(update={"metrics": metrics})
    return record.model_copy(update={"tasks": found})


def read_details(file: Path, paths: Sequence[str] | None = None) -> "pyarrow.Table":
    """Reads a details file: columns `doc`, `metric`, `model_response`.

    Args:
        paths: Columns to read, also nested ones (`doc.specific.cluster`), where the file has them; None: all.

    Raises:
        CulturevalError: The file cannot be read, or is not a details file of LightEval.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            table = opened.read(columns=None if paths is None else list(paths), use_threads=paths is None)
            names = opened.schema_arrow.names
    except (OSError, pyarrow.ArrowException) as error:
        raise CulturevalError(f"{file} cannot be read as details of LightEval: {described(error)}.") from error
    if missing := sorted({"doc", "metric", "model_response"} - set(names)):
        raise CulturevalError(f"{file} is not a details file of LightEval: {', '.join(missing)} is missing.")
    return table


def saved_details(results: Path) -> list[Path]:
    """The details files of a results file; [] where it is in no output folder."""
    root, model = output_folder(results), model_folder(results)
    if root is None or model is None:
        return []
    return sorted((root / "details" / model / date_of(results)).glob("details_*.parquet"))


def task_of(details: Path) -> str:
    """The task with `|k` in the name of a details file."""
    return details.name.removeprefix("details_").removesuffix(f"_{details.parent.name}.parquet")


def date_of(results: Path) -> str:
    """The date of a run in the name of its results file."""
    return results.stem.removeprefix("results_")


def output_folder(results: Path) -> Path | None:
    """The output folder of a results file; None where there is none."""
    return next((folder.parent for folder in results.absolute().parents if folder.name == "results"), None)


def model_folder(results: Path) -> str | None:
    """A results file's folder below `results` of its output folder; None without an output folder."""
    root = output_folder(results)
    return results.absolute().parent.relative_to(root / "results").as_posix() if root else None
