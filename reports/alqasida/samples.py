"""The samples of AL-QASIDA's saved runs as one table: one row per sample, with scores and features."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.metrics.alqasida.names import ADI2, ADI2_MACRO, ALDI, ARABIC_RATE, NADI, PROMPT_ALDI
from cultureval.metrics.standard_errors import clustered_standard_error
from cultureval.runs.files import SavedTask, find_saved_tasks, read_details
from cultureval.runs.load_runs import runs_of
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError

Sample = dict[str, Any]

KINDS = {"mono": "monolingual", "cross": "cross-lingual", "mt": "translation"}
ANALYSED = ("mono", "cross")
# In the authors' program: score, macro_score, prob, dialectness, acc.
SCORES = (ADI2, ADI2_MACRO, NADI, ALDI, ARABIC_RATE)
TASK = re.compile(r"alqasida(_dev)?_(?P<kind>mono|cross|mt):(?P<genre>[a-z]+)_(?P<languages>[a-z_]+)\|(?P<shots>\d+)")


def samples_of(paths: Sequence[Path]) -> tuple[list[Sample], list[Sample]]:
    """The samples and the tasks of saved runs.

    Args:
        paths: Output folders, results files or details files.

    Returns:
        (samples, tasks). A sample has `model`, `task`, `kind` (mono, cross, mt), `genre`, `dialect`, `n_shots`,
        `template`, `location`, `phrasing`, `prompt_length`, `cluster` (the request or sentence, where other samples
        have the same), `prompt_aldi` (nan if not measured) and `SCORES` (nan in translations into English or Standard
        Arabic, which are no dialects);
        a task `model`, `task`, `kind`, `genre`, `dialect`, `source`, `target`, and the metrics of the results file.

    Raises:
        CulturevalError: A path has no details of AL-QASIDA.
    """
    samples, tasks = [], []
    found = [(saved, match) for saved in find_saved_tasks(paths) if (match := TASK.fullmatch(saved.task))]
    runs = runs_of(saved for saved, _ in found)
    for saved, match in found:
        about, run = _about(saved, match), runs.get(saved.results_file)
        samples += list(_samples(saved, about))
        tasks.append(about | {"metrics": run.scores.get(saved.task, {}) if run else {}})
    if not samples:
        raise CulturevalError(f"{', '.join(map(str, paths))}: no details of AL-QASIDA's tasks (alqasida_...).")
    return samples, tasks


def _about(saved: SavedTask, found: re.Match[str]) -> Sample:
    source, _, target = found["languages"].partition("_to_")
    dialect = next((code for code in (source, target) if code not in ("", "eng", "msa")), source)
    return {
        "model": saved.model_name,
        "task": saved.task,
        "kind": found["kind"],
        "genre": found["genre"],
        "dialect": dialect,
        "source": source,
        "target": target or source,
        "n_shots": int(found["shots"]),
    }


def _samples(saved: SavedTask, about: Mapping[str, Any]) -> Iterable[Sample]:
    features = ("template", "location", "phrasing", "prompt_length", "cluster")
    for number, row in enumerate(read_details(saved.file).select(["doc", "metric"]).to_pylist()):
        specific, metric = specific_of(row["doc"]), row["metric"]
        if any(name not in metric for name in SCORES):
            raise CulturevalError(f"{saved.file}, row {number}: no scores of dialectal fidelity; run the task again.")
        # Runs of earlier versions hold 0 where a translation into English or Standard Arabic has no fidelity.
        known = metric if about["target"] not in ("eng", "msa") else {}
        scores = {name: float("nan") if known.get(name) is None else known[name] for name in (*SCORES, PROMPT_ALDI)}
        yield {**about, **{name: specific.get(name) for name in features}, **scores}


def series_name(row: Mapping[str, Any]) -> str:
    """A model's name, with the number of few-shot examples if any."""
    return f"{row['model']}, {row['n_shots']}-shot" if row["n_shots"] else row["model"]


def by_series(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """The samples of each model and number of few-shot examples, sorted by `series_name`."""
    return {key[0]: members for key, members in sorted(grouped(samples, (series_name,)).items())}


def grouped(
    samples: Sequence[Sample], by: Sequence[str | Callable[[Mapping[str, Any]], str]]
) -> dict[tuple[Any, ...], list[Sample]]:
    """Group samples by the values of columns or functions."""
    groups: dict[tuple[Any, ...], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[tuple(sample[name] if isinstance(name, str) else name(sample) for name in by)].append(sample)
    return groups


def mean_and_error(samples: Sequence[Sample], score: str) -> tuple[float, float]:
    """The mean of a score and its standard error over the samples that have it; nan if undefined.

    Samples of one request or sentence (`cluster`), at several places, in several dialects or directions, are one item.
    """
    scored = [sample for sample in samples if not math.isnan(sample[score])]
    if not scored:
        return math.nan, math.nan
    values = [sample[score] for sample in scored]
    clusters = [sample["cluster"] or number for number, sample in enumerate(scored)]
    return math.fsum(values) / len(values), clustered_standard_error(values, clusters, (0, 1))
