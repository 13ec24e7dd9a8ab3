"""Saved runs of M2CQA in the shape of LightEval's files, made of accuracies instead of a model."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from cultureval.metrics.m2cqa.statement_items import PROFILES, ROLES
from cultureval.runs.record import RunRecord, task_records


def drawn_verdicts(items, q_plus, rejected, seed, invalid=0.0):
    """[items, 3] verdicts: Q+ judged true and Q- judged false at these rates, and some outputs without a verdict."""
    draw = np.random.default_rng(seed)
    verdicts = np.full((items, 3), "true", dtype="<U7")
    verdicts[:, 0] = np.where(draw.random(items) < q_plus, "true", "false")
    verdicts[:, 1:] = np.where(draw.random((items, 2)) < rejected, "false", "true")
    verdicts[draw.random((items, 3)) < invalid] = "invalid"
    return verdicts


def write_run(
    root,
    model,
    cells,
    date="2026-01-01T00-00-00",
    ids=None,
    report=None,
    fields=None,
    recorded=None,
    group="m2cqa",
    **general,
):
    """Write details and results of one run.

    cells: {"tf_en": verdicts [N, 3]}; report: what differs from the usual rows_report; fields: number of an item ->
    further fields of its statements; recorded: of the model in the section `cultureval`, which is there if it is given;
    group: of the tasks;
    general: of config_general.
    """
    configs = {}
    for name, verdicts in cells.items():
        rows = []
        for number, row in enumerate(verdicts):
            item = ids[number] if ids else f"item-{number:05}"
            for role, verdict in zip(ROLES, row, strict=True):
                specific = {"item_id": item, "role": role, "rows_of_task": 3 * len(verdicts)}
                specific |= fields(number) if fields else {}
                doc = {"query": "?", "choices": ["x"], "gold_index": [0], "specific": specific}
                rows.append(
                    {"doc": doc, "metric": dict.fromkeys(PROFILES, str(verdict)), "model_response": {"text": ["x"]}}
                )
        folder = root / "details" / model / date
        folder.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), folder / f"details_{group}:{name}|0_{date}.parquet")
        variety = name.rpartition("_")[2]
        of_rows = {"source": "QCRI/M2CQA", "revision": "abc", "fingerprint": f"hash-{variety}", "prompt": f"p-{name}"}
        configs[f"{group}:{name}|0"] = {"rows_report": of_rows | (report or {})}
    content = {
        "config_general": {"max_samples": None, "model_config": {"image_placement": "first"}} | general,
        "config_tasks": configs,
        "versions": dict.fromkeys(configs, 0),
        "results": {},
    }
    if recorded is not None:
        tasks = task_records(configs, content["config_general"]["max_samples"])
        section = RunRecord(tasks=tasks, model=recorded)
        content["cultureval"] = section.model_dump(mode="json", by_alias=True)
    folder = root / "results" / model
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"results_{date}.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file
