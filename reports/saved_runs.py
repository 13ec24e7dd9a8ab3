"""Results files as typed runs, for notebooks and for our own reports; the pandas form of their scores.

>>> from cultureval import reports
>>> runs = reports.load("results")
>>> reports.scores_table(runs).query("metric == 'acc'")
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cultureval.reports.run_record import SCHEMA, SECTION, Run, RunRecord
from cultureval.reports.task_records import task_records
from cultureval.runtime.errors import CulturevalError, described, wrong_settings

if TYPE_CHECKING:
    import pandas

MOST = 1e100  # no score is larger; percents and sums of it stay finite
MOST_DIGITS = 20
COLUMNS = ("model", "date", "suite", "group", "task", "metric", "value", "stderr", "n", "coverage", "signature", "file")


def load(path: str | Path) -> list[Run]:
    """Reads the results files of a path.

    Args:
        path: A results file, an output folder, or a folder in it, such as a model's. Files of stock LightEval and of
            versions before the section `cultureval` are read too: their records say what the catalogue knows.

    Returns:
        The runs, the newest first.

    Raises:
        CulturevalError: There is no results file, or some cannot be read; all of them are named, with the reasons.
    """
    runs, problems = [], []
    for file in _results_files(Path(path).expanduser()):
        try:
            runs.append(read_run(file))
        except CulturevalError as error:
            problems.append(str(error))
    if problems:
        raise CulturevalError("\n".join(problems))
    return sorted(runs, key=lambda run: (run.date, run.model), reverse=True)


def read_run(file: Path) -> Run:
    """Reads one results file.

    Raises:
        CulturevalError: It is not a results file of LightEval, or its section `cultureval` cannot be read.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"), parse_int=_whole_number)
    except OSError as error:
        raise CulturevalError(f"{file} cannot be read: {described(error)}.") from error
    except (ValueError, RecursionError) as error:
        remedy = "If it was half written, move it and the run's details out of the folder to leave the run out."
        raise CulturevalError(f"{file} cannot be read: {described(error)}. {remedy}") from error
    try:
        return run_of(content, file)
    except CulturevalError as error:
        raise CulturevalError(f"{file}: {error}") from error


def run_of(content: Any, file: Path) -> Run:
    """The run of a results file's content.

    Args:
        content: In LightEval's format, with our section or without.
        file: Where it was read; its name holds the date.

    Raises:
        CulturevalError: The content is of another format, or of a newer version.
    """
    general = content.get("config_general") if isinstance(content, Mapping) else None
    if not isinstance(general, Mapping) or not isinstance(content.get("results"), Mapping):
        raise CulturevalError("it is no results file of LightEval: it lacks `config_general` or `results`.")
    return Run(
        file=file,
        model=str(general.get("model_name") or "?"),
        date=file.stem.removeprefix("results_"),
        scores={str(task): _scores(str(task), values) for task, values in content["results"].items()},
        record=_record(content, general),
        content=content,
    )


def scores_table(runs: Iterable[Run]) -> "pandas.DataFrame":
    """The scores of runs as a long table: a row for each run, task or average, and metric.

    Args:
        runs: As `load` returns them.

    Returns:
        The columns of `COLUMNS`: `n` is the number of items that the standard error counts, `coverage` the share of
        rows that the metric has a value for, `signature` that of the task's group; averages, and metrics that do
        not apply to a task, have no `n` and `coverage`.
    """
    import pandas

    return pandas.DataFrame([row for run in runs for row in _rows(run)], columns=list(COLUMNS))


def _rows(run: Run) -> Iterator[tuple[Any, ...]]:
    signatures = {signature.group: signature.text for signature in run.record.signatures}
    suites = {record.group: record.suite for record in run.record.tasks.values()}
    for task, values in run.scores.items():
        record = run.record.tasks.get(task)
        group = task.partition("|")[0].partition(":")[0]
        signature = signatures.get(f"{group}|{task.partition('|')[2]}")
        for metric, value in values.items():
            if metric.endswith("_stderr") and metric.removesuffix("_stderr") in values:
                continue
            counted = None if record and metric in record.not_applicable else record
            n = counted.items if counted else None
            coverage = counted.scored.get(metric, counted.rows) / counted.rows if counted and counted.rows else None
            about = (run.model, run.date, suites.get(group), group, task, metric)
            yield (*about, value, run.stderr(task, metric), n, coverage, signature, str(run.file))


def _results_files(path: Path) -> list[Path]:
    if not path.exists():
        raise CulturevalError(f"{path} does not exist.")
    files = [path] if path.is_file() else sorted(path.rglob("results_*.json"))
    if not files:
        raise CulturevalError(
            f"{path} has no results file of LightEval (results/<model>/results_<date>.json): name the --output-dir of "
            "a run, or a file in it."
        )
    return files


def _whole_number(digits: str) -> int:
    """Of a JSON file; what no computer word holds is refused, since it cannot become a float."""
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _scores(task: str, values: Any) -> dict[str, float | None]:
    if not isinstance(values, Mapping):
        raise CulturevalError(f"the results of {task!r} are not a mapping of metrics.")
    for metric, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise CulturevalError(f"the value of {metric!r} of {task!r} is {value!r}, not a number.")
        if value is not None and MOST < abs(value) < math.inf:
            raise CulturevalError(f"the value of {metric!r} of {task!r} is {value!r}, which is no score.")
    return {metric: None if value is None or not math.isfinite(value) else value for metric, value in values.items()}


def _record(content: Mapping[str, Any], general: Mapping[str, Any]) -> RunRecord:
    section, configs = content.get(SECTION), content.get("config_tasks")
    if section is None:
        try:
            records = task_records(configs if isinstance(configs, Mapping) else {}, general.get("max_samples"))
        except (ValidationError, AttributeError, TypeError) as error:
            raise CulturevalError(f"its `config_tasks` or `max_samples` cannot be read: {described(error)}.") from error
        return RunRecord(schema=0, tasks=records)
    version = section.get("schema") if isinstance(section, Mapping) else None
    if isinstance(version, int) and version > SCHEMA:
        raise CulturevalError(
            f"its section `{SECTION}` has version {version}, and this cultureval reads up to {SCHEMA}: update it."
        )
    try:
        return RunRecord.model_validate(section)
    except ValidationError as error:
        raise CulturevalError(
            f"its section `{SECTION}` cannot be read: {wrong_settings(error, values=True)}."
        ) from error
