"""Saved runs whose items are given: results and details in LightEval's layout."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from cultureval.reports.run_ranks import rank_items
from cultureval.runs.load_runs import read_run
from cultureval.runs.record import Run
from cultureval.runs.writing import write_details

DATE = "2026-01-01T00-00-00"
METRIC = "acc@0.5"
Item = tuple[str, str | None, float | None]  # name in the data, cluster, score


def save_run(
    root: Path,
    model: str,
    tasks: Mapping[str, Sequence[Item]],
    prompt: str = "prompt of {name}",
    answer: str = "answer",
    record: Mapping[str, Any] | None = None,
    date: str = DATE,
    **scores: float,
) -> Run:
    """Writes a run and reads it back.

    Args:
        root: Output folder.
        model: Name of the model.
        tasks: The items of each task.
        prompt: Text of the prompts, of the item's `{name}` and `{place}`.
        answer: Text of the answers.
        record: The section `cultureval` of the results; None: without one.
        date: Of the run.
        **scores: Scores in the results file, where they are not the items' means.
    """
    values = {}
    for task, rows in tasks.items():
        table = [
            {
                "doc": {
                    "id": str(place),
                    "query": prompt.format(name=name, place=place),
                    "choices": ["gold"],
                    "gold_index": [0],
                    "specific": {"source_row": name, "cluster": cluster},
                },
                "metric": {METRIC: score, "text": "x"},
                "model_response": {"text": [answer], "text_post_processed": [answer], "logprobs": []},
            }
            for place, (name, cluster, score) in enumerate(rows)
        ]
        write_details(root, model, date, task, pyarrow.Table.from_pylist(table))
        values[task] = {METRIC: scores.get(task, float(np.mean([row[2] for row in rows if row[2] is not None])))}
    file = root / "results" / model / f"results_{date}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"config_general": {"model_name": model}, "results": values}
    file.write_text(json.dumps(content | ({"cultureval": dict(record)} if record else {})))
    return read_run(file)


def rank_runs(runs, metrics, weights=None, names=None, **options):
    """Ranks of runs by task -> metric, and the sentences on who has none and why, on items left out, and notes."""
    labels = names or [run.model for run in runs]
    models = [(label, dict.fromkeys(metrics, run)) for label, run in zip(labels, runs, strict=True)]
    found = rank_items(
        models, {(task, key): (weights or {}).get(task, 1.0) for task, key in metrics.items()}, **options
    )
    without = [f"{label} has no rank: {why}." for label, why in found.without.items()]
    return found.ranking, [*without, *(f"{label}: {told}" for label, told in found.left_out.items()), *found.notes]
