"""Output folders of finished runs with planted scores, in LightEval's file format: what tests of views read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from cultureval.runs.files import DERIVED, model_folder, output_folder
from cultureval.runs.record import SECTION, ModelRecord, RunRecord, task_records
from cultureval.tasks.catalogue import all_tasks

Rows = Sequence[Mapping[str, Any]]


def choice_row(number: int, right: bool | None, options: int = 4, **specific: Any) -> dict[str, Any]:
    """A row of a multiple-choice task; None: it was refused.

    Its log-probabilities choose the first option, which is the gold one where the answer is right.
    """
    unscored = {} if right is not None else {"unscored": "refused"}
    score = None if right is None else float(right)
    return {
        "doc": {
            "id": str(number),
            "query": f"سؤال {number}؟",
            "choices": [f"خيار {place}" for place in range(options)],
            "gold_index": [0 if right else 1],
            "specific": {"id": str(number), "source_row": f"data.csv:{number + 2}", **unscored, **specific},
        },
        "metric": {"acc_norm": score, "acc": score},
        "model_response": {"text": [], "logprobs": [-1.0, *[-2.0] * (options - 1)] if right is not None else []},
    }


def text_row(number: int, metric: Mapping[str, Any], reply: str = "جواب", **specific: Any) -> dict[str, Any]:
    """A row of a generative task with its metrics (`_den`, `_sums` and verdicts of judges too)."""
    return {
        "doc": {
            "id": str(number),
            "query": f"صف الصورة {number}.",
            "choices": ["مرجع"],
            "gold_index": [0],
            "specific": {"id": str(number), "source_row": f"data.csv:{number + 2}", **specific},
        },
        "metric": dict(metric),
        "model_response": {"text": [reply], "text_post_processed": [reply]},
    }


def verdict(score: float | None, outcome: str = "scored") -> dict[str, Any]:
    """A judge's verdict as details have it."""
    return {"outcome": outcome if score is None else "scored", "reason": "", "reply": f"{score}"}


def plant(
    root: Path,
    tasks: Mapping[str, Rows],
    model: str = "lab/model-7B",
    date: str = "2026-11-01T10-00-00.000000",
    *,
    stock: bool = False,
    limit: int | None = None,
    details: bool = True,
    edited: Mapping[str, Mapping[str, float]] | None = None,
    record: Mapping[str, Any] | None = None,
    reports: Mapping[str, Mapping[str, Any]] | None = None,
    about: ModelRecord | None = None,
) -> Path:
    """Writes a run: results/<model>/results_<date>.json, and details; returns the results file.

    Args:
        tasks: Task with `|k` -> its rows.
        stock: Whether it is as stock LightEval writes it, without our section.
        limit: As of `--limit`.
        details: Whether its details were saved.
        edited: Scores that the file states otherwise than the items give.
        record: Fields of its record that differ.
        reports: Task -> fields of its `rows_report` (form, source, fingerprint, prompt, parity).
        about: What the record says of the model.
    """
    if details:
        for task, rows in tasks.items():
            write_details(root, model, date, task, rows)
    scores = {task: means(rows) | dict((edited or {}).get(task, {})) for task, rows in tasks.items()}
    configs = {
        task: {"effective_num_docs": len(rows), "rows_report": {"rows": len(rows), **(reports or {}).get(task, {})}}
        for task, rows in tasks.items()
    }
    if stock:
        configs = {task: {} for task in tasks}
    content: dict[str, Any] = {
        "config_general": {"model_name": model, "max_samples": limit, "lighteval_sha": "?"},
        "results": scores,
        "versions": dict.fromkeys(scores, 0),
        "config_tasks": configs,
    }
    if not stock:
        known = {name: config for name, config in configs.items() if name.partition("|")[0] in all_tasks()}
        records = task_records(known, limit)
        found = RunRecord(
            tasks=records, model=about or ModelRecord(backend="transformers", version="abc", dtype="float32")
        )
        content[SECTION] = found.model_copy(update=dict(record or {})).model_dump(by_alias=True, mode="json")
    file = root / "results" / model / f"results_{date}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return file


def write_details(root: Path, model: str, date: str, task: str, rows: Rows, judged: str = "") -> Path:
    """Writes the details of one task; `judged` names the details that a judgement's were made from."""
    file = root / "details" / model / date / f"details_{task}_{date}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pyarrow.Table.from_pylist([dict(row) for row in rows])
    pyarrow.parquet.write_table(table.replace_schema_metadata({DERIVED: judged.encode()} if judged else None), file)
    return file


def judge(results: Path, task: str, rows: Rows, date: str = "2026-11-02T10-00-00.000000") -> Path:
    """Writes a judgement of a run's task: rows with a judge's metrics; returns its results file."""
    root, model = output_folder(results), model_folder(results)
    assert root and model
    before = results.stem.removeprefix("results_")
    base = f"details/{model}/{before}/details_{task}_{before}.parquet"
    write_details(root, model, date, task, rows, judged=Path(base).name)
    content = json.loads(results.read_text(encoding="utf-8"))
    content["config_general"] |= {"judged": {"details": [base]}}
    content["results"] = {task: means(rows)}
    file = results.with_name(f"results_{date}.json")
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return file


def means(rows: Rows) -> dict[str, float | None]:
    """The scores of rows as their metrics state them: sum(value den) / sum(den), without corpus scores."""
    names = dict.fromkeys(
        name for row in rows for name, value in row["metric"].items() if not isinstance(value, dict | list | str)
    )
    found: dict[str, float | None] = {}
    for name in names:
        if name.endswith(("_den", "_sums")) or any(f"{name}_sums" in row["metric"] for row in rows):
            continue
        pairs = [(row["metric"].get(name), row["metric"].get(f"{name}_den", 1.0)) for row in rows]
        known = [(value, den) for value, den in pairs if value is not None and den]
        total = sum(den for _, den in known)
        found[name] = sum(value * den for value, den in known) / total if total else None
    return found
