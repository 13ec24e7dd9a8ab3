"""Saved LightEval runs: find results files and the details of each task from any path."""

import glob
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.reports.lighteval_files import write_details
from cultureval.reports.run_record import Run
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.errors import CulturevalError, escaped

if TYPE_CHECKING:
    import pyarrow

DERIVED = b"cultureval.derived_from"
PARTS = ("config_general", "config_tasks", "versions")  # of a results file that are read


@dataclass(frozen=True)
class SavedTask:
    """The details of one task of one run.

    Attributes:
        file: The parquet file `details_<task>_<date>.parquet`.
        root: The output folder of the run, with `results` and `details`.
        model: The model's folder in them.
        date: Date of the run.
        task: The task name with `|k`.
    """

    file: Path
    root: Path
    model: str
    date: str
    task: str

    @property
    def results_file(self) -> Path:
        """Where the run's results file is, if there is one."""
        return self.root / "results" / self.model / f"results_{self.date}.json"

    def table(self) -> "pyarrow.Table":
        """The details: columns `doc`, `metric`, `model_response`.

        Raises:
            CulturevalError: The file cannot be read, or is not a details file of LightEval.
        """
        return read_details(self.file)

    def results(self) -> dict[str, Any]:
        """The run's results file; {} if it is missing.

        Raises:
            CulturevalError: It is not JSON.
        """
        file = self.results_file
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError) as error:
            raise CulturevalError(f"{file} cannot be read: {error}") from error
        parts = [content, *(content.get(name) or {} for name in PARTS)] if isinstance(content, Mapping) else [content]
        if not all(isinstance(part, Mapping) for part in parts):
            raise CulturevalError(f"{file} is no results file of LightEval: {', '.join(PARTS)} are not mappings in it.")
        return content


def read_details(file: Path, paths: Sequence[str] | None = None) -> "pyarrow.Table":
    """Reads a details file; columns and errors as of `SavedTask.table`.

    Args:
        file: The file.
        paths: Only these columns, and columns within them (`doc.specific.cluster`), where there are such; None: all.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            table = opened.read(columns=None if paths is None else list(paths))
            names = opened.schema_arrow.names
    except (OSError, pyarrow.ArrowException) as error:
        raise CulturevalError(f"{file} cannot be read as details of LightEval: {error}") from error
    missing = {"doc", "metric", "model_response"} - set(names)
    if missing:
        raise CulturevalError(f"{file} is not a details file of LightEval: it lacks {', '.join(sorted(missing))}.")
    return table


def find_saved_tasks(paths: Sequence[Path]) -> list[SavedTask]:
    """The newest details of each model and task in the paths.

    Args:
        paths: Output folders, results files, folders of details or details files. Files that were derived from details
            (such as judgements) are skipped.

    Raises:
        CulturevalError: A path does not exist, or has no details.
    """
    newest: dict[tuple[Path, str, str], SavedTask] = {}
    for path in paths:
        found = [task for file in _details_files(path) if (task := _saved_task(file)) and not _is_derived(file)]
        if not found:
            raise CulturevalError(
                f"{path} has no details of LightEval (details/<model>/<date>/details_<task>_<date>.parquet): run "
                "`cultureval eval`, or lighteval with --save-details."
            )
        for task in found:
            place = (task.root, task.model, task.task)
            if place not in newest or newest[place].date < task.date:
                newest[place] = task
    return list(newest.values())


def names_of_runs(saved: Sequence[SavedTask]) -> dict[tuple[Path, str], str]:
    """A name for each run, by its output folder and model.

    It is the model's, with its folder if several output folders have that model.
    """
    runs = {(task.root, task.model) for task in saved}
    models = [model for _, model in runs]
    folders = [(model, root.name) for root, model in runs]
    names = {}
    for root, model in runs:
        place = root.name if folders.count((model, root.name)) == 1 else str(root)
        names[root, model] = escaped(model if models.count(model) == 1 else f"{model} ({place})")
    return names


def derived_from(task: SavedTask) -> list[SavedTask]:
    """The files that were derived from a task's details (its judgements), the oldest first."""
    import pyarrow.parquet

    found = []
    for file in sorted((task.root / "details" / task.model).glob(f"*/details_{glob.escape(task.task)}_*.parquet")):
        other = _saved_task(file)
        source = (pyarrow.parquet.read_schema(file).metadata or {}).get(DERIVED) if other else None
        if other and other.task == task.task and source == task.file.name.encode("utf-8"):
            found.append(other)
    return sorted(found, key=lambda other: other.date)


def saved_reply(response: Mapping[str, Any]) -> str:
    """The reply of a saved model response that was scored, without reasoning; "" where it has none.

    Args:
        response: `model_response` of a row of the details.
    """
    text = response.get("text")
    if isinstance(text, str):  # of LightEval's vision backend, which post-processing takes for a list of characters
        return text
    texts = response.get("text_post_processed") or text or [""]
    return texts[0] or ""


def saved_image(entry: Any) -> Path | bytes:
    """An image in the details: the file's bytes, or the path of a stored image.

    A path is read only if the file is named by the hash of its content, in this machine's store or at that path:
    details from someone else cannot make us send other files to a server.

    Returns:
        Bytes, or a path, which may not exist.
    """
    if isinstance(entry, Mapping):
        return entry["bytes"] if entry.get("bytes") else saved_image(entry.get("path") or "")
    path = Path(str(entry))
    try:
        return stored_image(path.name)
    except CulturevalError:
        named_by_content = path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == path.stem
        return path if named_by_content else path.with_name(f"{path.name} (not a stored image)")


def write_derived(task: SavedTask, date: str, table: "pyarrow.Table", metrics: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows of a task with new metrics next to its details, marked as derived from them.

    Args:
        task: The source of the rows.
        date: Date in the new file names.
        table: The rows.
        metrics: The new metrics of each row.

    Returns:
        The file.
    """
    import pyarrow

    column = pyarrow.array([dict(row) for row in metrics])
    table = table.set_column(table.column_names.index("metric"), "metric", column)
    table = table.replace_schema_metadata({DERIVED: str(task.file.name).encode("utf-8")})
    return write_details(task.root, task.model, date, task.task, table)


def _details_files(path: Path) -> list[Path]:
    if not path.exists():
        raise CulturevalError(f"{path} does not exist.")
    if path.suffix == ".json":
        return _details_of_results(path.absolute())
    if path.is_file():
        return [path]
    of_model = (
        path.absolute().rglob("results_*.json") if "results" in path.absolute().parts else ()
    )  # OUT/results/MODEL
    return sorted(path.rglob("details_*.parquet")) or [file for run in of_model for file in _details_of_results(run)]


def place_of_last(parts: Sequence[str], name: str) -> int:
    """The last place of a folder's name among the parts of a path, which has it."""
    return len(parts) - 1 - parts[::-1].index(name)


def has_details(file: Path) -> bool:
    """Whether a results file has details beside it."""
    return bool(_details_of_results(file.absolute()))


def details_of_run(run: Run, task: str, most: int | None = None) -> list[dict[str, Any]]:
    """The rows of the details of a task of a run; [] where they were not saved.

    Args:
        run: A results file.
        task: Its name with `|k`.
        most: At most this many rows, the first ones; None: all.

    Raises:
        CulturevalError: They cannot be read.
    """
    file = details_files_of_run(run).get(task)
    return read_details(file).slice(0, most).to_pylist() if file else []


def details_files_of_run(run: Run, derived: bool = False) -> dict[str, Path]:
    """The details of a run's tasks by their names with `|k`; {} where they were not saved.

    Args:
        run: A results file.
        derived: Whether files that were derived from others, such as judgements, are among them.

    Raises:
        CulturevalError: One cannot be read.
    """
    if "results" not in run.file.absolute().parts[:-1]:
        return {}
    saved = map(_saved_task, _details_of_results(run.file.absolute()))
    return {task.task: task.file for task in saved if task and (derived or not _is_derived(task.file))}


def _details_of_results(file: Path) -> list[Path]:
    parts = file.parts
    if "results" not in parts[:-1] or not file.name.startswith("results_"):
        raise CulturevalError(f"{file} is not a results file of LightEval (results/<model>/results_<date>.json).")
    place = place_of_last(parts, "results")
    folder = Path(*parts[:place], "details", *parts[place + 1 : -1], file.stem.removeprefix("results_"))
    return sorted(folder.glob("details_*.parquet"))


def _saved_task(file: Path) -> SavedTask | None:
    """The task of a details file; None if the path is not one of LightEval's."""
    file = file.absolute()
    date, parts = file.parent.name, file.parts
    suffix = f"_{date}.parquet"
    if "details" not in parts[:-2] or not file.name.startswith("details_") or not file.name.endswith(suffix):
        return None
    place = place_of_last(parts, "details")
    task = file.name.removeprefix("details_").removesuffix(suffix)
    return SavedTask(file, Path(*parts[:place]), "/".join(parts[place + 1 : -2]), date, task)


def _is_derived(file: Path) -> bool:
    import pyarrow
    import pyarrow.parquet

    try:
        return DERIVED in (pyarrow.parquet.read_schema(file).metadata or {})
    except (OSError, pyarrow.ArrowException) as error:
        raise CulturevalError(f"{file} cannot be read as details of LightEval: {error}") from error
