"""What was asked in the tasks of a run: from the catalogue and from the configurations that LightEval writes."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cultureval.runs.record import TaskRecord
from cultureval.runtime.rows_report import RowsReport
from cultureval.tasks import catalogue
from cultureval.tasks.catalogue import all_tasks

COPIED = ("suite", "benchmark", "group", "subset", "domain", "metrics")
SAMPLE_ROWS = Path(catalogue.__file__).with_name("sample_rows.txt")  # made by tests/unit/test_sample_rows.py


def is_sample(record: TaskRecord) -> bool:
    """Whether a task's rows are those of the shipped samples, whatever their folder is called."""
    return not {record.content_hash, record.rows_hash}.isdisjoint(_sample_rows())


@cache
def _sample_rows() -> frozenset[str]:
    """The hashes of the shipped samples' rows, alone and with their few-shot examples."""
    return frozenset(SAMPLE_ROWS.read_text(encoding="utf-8").split())


def task_records(configs: Mapping[str, Any], limit: int | None) -> dict[str, TaskRecord]:
    """The records of the tasks that the catalogue knows, without what only a run knows.

    Args:
        configs: Task with `|k` -> its configuration, as `config_tasks` of a results file.
        limit: At most this many rows per task were asked; None: all.

    Returns:
        By name with `|k`, in the catalogue's order (LightEval's is that of a set, another in each process); tasks of
        other packages are left out.
    """
    places = {name: place for place, name in enumerate(all_tasks())}
    known = [name for name in configs if name.partition("|")[0] in places]
    records = {}
    for name in sorted(known, key=lambda name: (places[name.partition("|")[0]], name)):
        config = configs[name]
        records[name] = _task_record(name, config if isinstance(config, Mapping) else {}, limit)
    return records


def _task_record(name: str, config: Mapping[str, Any], limit: int | None) -> TaskRecord:
    bare, _, shots = name.partition("|")
    task = all_tasks()[bare]
    report: RowsReport = config.get("rows_report") or {}
    rows = config.get("effective_num_docs")  # as LightEval counts them
    return TaskRecord(
        task=name,
        **{field: getattr(task, field) for field in COPIED},
        shots=int(shots) if shots.isdigit() else 0,
        rows=rows if isinstance(rows, int) and rows > 0 else 0,
        expected_rows=report.get("expected_rows", task.expected_rows),
        limit=limit,
        form=report.get("form", ""),
        source=report.get("source", ""),
        revision=report.get("revision") or "",
        rows_hash=report.get("fingerprint", ""),
        content_hash=report.get("content", ""),
        prompt_hash=report.get("prompt", ""),
        parity=report.get("parity", ""),
        skipped_rows=len(report.get("skipped_rows", ())),
        refused=len(report.get("refused_rows", ())),
        other_data=report.get("other_data", ""),
        notes=(*report.get("notes", ()), *filter(None, [report.get("caveat")])),
    )
