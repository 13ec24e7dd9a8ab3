"""Scores of runs as files that others read: the Every Eval Ever schema, and `.eval_results` of a model's card.

Sources: every-eval-ever 0.3.0 (`eval.schema.json`); https://huggingface.co/docs/hub/eval-results. Only scores, names
and settings travel: no prompt, no answer, no row.
"""

import hashlib
import json
import math
import re
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from cultureval.runs.frame import ends
from cultureval.runs.loading import Run, facts_of
from cultureval.runs.protocol import protocol
from cultureval.runs.record import TaskRecord, is_sample
from cultureval.runs.scores import Score
from cultureval.runs.table import higher_is_better
from cultureval.runs.warnings import warnings
from cultureval.runtime.data.scorers import is_hub_id
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError, counted
from cultureval.tasks.catalogue import groups, known_task

ARGUMENTS = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "max_new_tokens": "max_tokens"}
Schema = Literal["eee", "model-card"]


class SharedScore(NamedTuple):
    """The score of a task (with `|k`), or of a whole group, with the records of its tasks."""

    name: str
    metric: str
    score: Score
    records: Sequence[TaskRecord]

    def hub_data(self) -> tuple[str, str]:
        """The hub's data set of its rows, and their commit; "" where it is not one, or unknown."""
        sources = {(record.source, record.revision) for record in self.records}
        repo, revision = sources.pop() if len(sources) == 1 else ("", "")
        known = known_task(self.records[0].task)
        is_elsewhere = known and any(source.repo == repo and not source.on_hub for source in known.sources)
        return (repo, revision) if repo and is_hub_id(repo) and not is_elsewhere else ("", "")

    def reason(self, schema: Schema) -> str:
        """Why it does not travel; "" if it does."""
        if any(map(is_sample, self.records)):
            return "its rows are made-up samples"
        if schema == "model-card" and any(record.limit is not None for record in self.records):
            return "it has only the rows of --limit"
        known = known_task(self.records[0].task)
        if schema == "model-card" and known and known.kind.load:
            return "its benchmark is not one of our suites"
        return (
            "its rows are not of one data set on the hub" if schema == "model-card" and not self.hub_data()[0] else ""
        )


def export(runs: Sequence[Run], folder: Path, schema: Schema) -> tuple[list[Path], list[str]]:
    """Writes a file for each run; returns the files, and a sentence for each reason to leave scores out.

    Raises:
        CulturevalError: No score of the runs may travel.
    """
    files, left_out = [], Counter[str]()
    for run in runs:
        scores = list(shared_scores(run, headlines=schema == "model-card"))
        left_out.update(f"{run.name}: {reason}" for score in scores if (reason := score.reason(schema)))
        if travel := [score for score in scores if not score.reason(schema)]:
            developer, name = model_parts(run.model)
            digest = hashlib.sha256("\n".join(sorted(map(str, run.files.values()))).encode()).digest()
            key = uuid.UUID(bytes=digest[:16], version=4)  # a second export of the run replaces the first
            if schema == "eee":
                files.append(folder / "data" / "cultureval" / developer / name / f"{key}.json")
                text = json.dumps(eval_log(run, travel), ensure_ascii=False, indent=1, allow_nan=False)
            else:
                files.append(folder / developer / name / ".eval_results" / f"cultureval-{key.hex[:8]}.yaml")
                text = yaml.safe_dump(card_entries(run, travel), allow_unicode=True, sort_keys=False)
            write_atomically(files[-1], text.encode())
    sentences = [f"{sentence} ({counted(number, 'score')} left out)" for sentence, number in left_out.items()]
    if not files:
        raise CulturevalError(f"--export {schema}: no recorded score may be exported. {'; '.join(sentences)}")
    return files, sentences


def shared_scores(run: Run, headlines: bool = False) -> Iterator[SharedScore]:
    """The scores of a run's recorded tasks and whole groups; with `headlines` the main number of each whole group."""
    members: dict[str, list[str]] = {}
    for task in run.record.tasks.values():
        members.setdefault(f"{task.group}:_average|{task.shots}", []).append(task.task)
    sizes, found = {group: len(tasks) for group, tasks in groups().items()}, dict[str, list[str]]()
    for average, tasks in members.items():
        found |= {} if headlines else {task: [task] for task in tasks}
        if len(tasks) == sizes.get(average.split(":")[0], len(tasks)):
            found[average if len(tasks) > 1 else tasks[0]] = tasks
    for name, tasks in found.items():
        records = [run.record.tasks[task] for task in tasks]
        for metric in [records[0].headline] if headlines else run.scores[tasks[0]]:
            score = run.score(name, metric)
            if score and math.isfinite(score.value):
                yield SharedScore(name, metric, score, records)


def model_parts(model: str) -> tuple[str, str]:
    """Developer and name of a model, as parts of a path; of a folder its last name alone travels."""
    is_folder = Path(model).is_absolute() or model.startswith((".", "~"))
    parts = [re.sub(r"[^\w.-]", "_", part).strip(".") for part in model.rstrip("/").split("/")]
    return ("unknown", parts[-1]) if is_folder or len(parts) == 1 else (parts[0], "_".join(parts[1:]))


def _notes(run: Run, score: SharedScore) -> dict[str, str]:
    """What a score depends on: the signature that people quote, and the run's warnings on its tasks."""
    group = f"{score.records[0].group}|{score.records[0].shots}"
    lines = {signature.group: signature.text for signature in run.record.signatures}
    sentences = [warning.sentence for warning in warnings(run, [record.task for record in score.records])]
    asked = f"{score.score.n} of {score.score.asked} items have a score"
    return {"n": asked, "signature": lines.get(group, ""), "warnings": " ".join(sentences)}


def card_entries(run: Run, scores: Sequence[SharedScore]) -> list[dict[str, Any]]:
    """The data of a `.eval_results` file: an entry for each score, in its unit, with error and signature as notes."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = []
    for score in scores:
        (repo, revision), (value, error, _, _, low, high) = score.hub_data(), score.score
        notes = f"{score.metric}, {score.records[0].shots}-shot"
        notes += "" if error is None else f"; standard error {error:.6g}, 95% interval {low:.6g} to {high:.6g}"
        notes = "; ".join(filter(None, [notes, *_notes(run, score).values()]))
        date = run.record.timing.started or None
        entries.append(EvalResultEntry(repo, score.records[0].group, value, revision or None, date=date, notes=notes))
    return eval_result_entries_to_yaml(entries)


def eval_log(run: Run, scores: Sequence[SharedScore]) -> dict[str, Any]:
    """The data of an Every Eval Ever file: a run with its scores."""
    record, backend, now = run.record, run.record.model.backend, str(int(time.time()))
    developer, name = model_parts(run.model)
    about = {fact: facts_of(record)[fact] for fact in ("version", "dtype", "quantisation", "chat template")}
    about |= {"deployment_type": "unknown", "model_availability": "unknown"}
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"cultureval/{developer}/{name}/{now}",
        "evaluation_timestamp": record.timing.started or run.date,
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": "cultureval",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "cultureval" if record.schema_ else "lighteval",
            "version": record.versions.get("cultureval", "unknown"),
            "additional_details": record.versions,
        },
        "model_info": {
            "name": name,
            "id": f"{developer}/{name}",
            "inference_engine": {"name": backend, "version": record.versions.get(backend, "unknown")},
            "additional_details": about,
        },
        "evaluation_results": [_evaluation_result(run, score) for score in scores],
    }


def _evaluation_result(run: Run, score: SharedScore) -> dict[str, Any]:
    (repo, revision), (value, error, n, _, low, high) = score.hub_data(), score.score
    tasks = [record.task for record in score.records]
    data = {
        "dataset_name": score.records[0].group,
        "source_type": "other",
        "additional_details": {"revision": revision},
    }
    data |= {"source_type": "hf_dataset", "hf_repo": repo} if repo else {}
    shared = dict(set.intersection(*(set(protocol(run, task, score.metric).items()) for task in tasks)))
    settings = run.record.model.settings if "generation" in shared else {}
    sampled = {name: settings[own] for own, name in ARGUMENTS.items() if settings.get(own) is not None}
    uncertainty: dict[str, Any] = {"num_samples": n}
    if error is not None:
        uncertainty["standard_error"] = {"value": error, "method": "jackknife over clusters"}
        uncertainty["confidence_interval"] = {"lower": low, "upper": high, "confidence_level": 0.95}
    limits = zip(("min_score", "max_score"), sorted(ends(tasks[0], score.metric)), strict=True)
    return {
        "evaluation_name": score.name,
        "source_data": data,
        "metric_config": {
            "metric_name": score.metric,
            "lower_is_better": not higher_is_better(tasks[0], score.metric),
            **{name: limit for name, limit in limits if math.isfinite(limit)},
        },
        "score_details": {"score": value, "details": _notes(run, score), "uncertainty": uncertainty},
        "generation_config": {"generation_args": sampled, "additional_details": shared},
    }
