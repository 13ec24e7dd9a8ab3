"""Output folders of finished runs whose truths are known: what the tests that all views agree read.

A folder is drawn by hypothesis (`folders`) as plans of runs, and written (`write_folder`) as LightEval and the
commands `eval` and `judge` write them. Each truth is computed here from the planted items, by arithmetic of its own.
"""

import json
import math
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow
from hypothesis import strategies as st

from cultureval.metrics.proportions import wilson_error
from cultureval.metrics.standard_errors import clustered_standard_error
from cultureval.runs.files import find_saved_tasks, read_details
from cultureval.runs.record import ModelRecord, RunRecord
from cultureval.runs.signature import signature_record
from cultureval.runs.task_records import task_records
from cultureval.runs.writing import write_derived, write_details, write_results
from cultureval.runtime.rounding import without_nan
from cultureval.tasks.catalogue import all_tasks

TRUST, CAPTION = "qimma_aratrust", "jeem_caption:ae"
DIALECTS = tuple(name for name in all_tasks() if name.startswith("qimma_aradice:"))
AVERAGE = "qimma_aradice:_average|0"
NAMES = ("lab/a-7B", "lab/b-7B", "نموذج", "lab/nul\x00b", "two\nlines", "lab/\u202eright", "=1+1")
OPTIONS = ("أ", "هـ", "الرباط", "مدينة فاس القديمة", "نعم")
JUDGE, CRITERION = "judge_gpt_image_reference", "judge_gpt_image_reference_consistency"
FOREIGN = ('{"results": 1}', "[1, 2]", '{"config_general": {', "null", '{"config_general": {}, "results": {"a": 3}}')
KINDS = ("acc_norm", "acc")


@dataclass(frozen=True)
class Plan:
    """How a run is.

    Attributes:
        model: Place of its name in `NAMES`.
        seed: Of its answers.
        tasks: "trust", "dialects", "caption", or several.
        signed: Whether it has the section `cultureval`; else it is as stock LightEval writes it.
        unscored: Places of items without a score in each task.
        refused: Places of items that are in no details, as `--on-refused unscored` leaves them out.
        limit: As of `--limit`.
        edited: What of its results file was changed afterwards: "", "score", "average", or the error of either.
        details: "whole", "missing" or "cut".
        asked: What else was asked: "", "prompts", "prompt" (the second alone, which no signature tells) or "golds".
        hidden: Whether its signature says that the usual was asked.
        judged: Whether a judge scored its captions later.
        copied: Whether another output folder holds the same run.
        scores: Of each task's items by place, of choices 0 or 1 (more is no score); () those of the answers.
    """

    model: int = 0
    seed: int = 0
    tasks: tuple[str, ...] = ("trust",)
    signed: bool = True
    unscored: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    limit: int | None = None
    edited: str = ""
    details: str = "whole"
    asked: str = ""
    hidden: bool = False
    judged: bool = False
    copied: bool = False
    scores: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Folder:
    """An output folder.

    Attributes:
        items: Rows of each task as published.
        plans: Its runs, the oldest first; two of one model are reruns.
        foreign: Texts of `results_*.json` that are no results files.
    """

    items: int = 6
    plans: tuple[Plan, ...] = (Plan(),)
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True)
class Item:
    """One row: what was asked, what the model said, and what that is worth (None: unscored)."""

    name: str
    query: str
    options: tuple[str, ...]
    gold: int
    logprobs: tuple[float, ...]
    tokens: tuple[int, ...]
    scores: dict[str, float | None]

    def chosen(self, metric: str) -> str:
        """The option that a metric takes as the answer; of equals the first."""
        lengths = [len(one) if metric == "acc_norm" else 1 for one in self.options]
        values = [each / length for each, length in zip(self.logprobs, lengths, strict=True)]
        return self.options[values.index(max(values))]


@dataclass(frozen=True)
class Planted:
    """A run that was written, with its truths.

    Attributes:
        plan: How it is.
        file: Its results file.
        tasks: The rows that are in its details, by task with `|k`.
        judged: The judge's scores of its captions; () where there is no judgement.
        claimed: Task, metric -> what its file claims falsely.
        copy: The same run in another output folder.
    """

    plan: Plan
    file: Path
    tasks: dict[str, list[Item]]
    judged: tuple[float, ...] = ()
    claimed: dict[tuple[str, str], float] = field(default_factory=dict)
    copy: Path | None = None

    @property
    def model(self) -> str:
        """The model's name."""
        return NAMES[self.plan.model]

    @cached_property
    def known(self) -> bool:
        """Whether its details can be read."""
        return self.plan.details == "whole"

    def values(self, task: str, metric: str) -> dict[str, float]:
        """Score of each item that has one."""
        return {one.name: one.scores[metric] for one in self.tasks[task] if one.scores[metric] is not None}

    def truth(self, task: str, metric: str) -> tuple[float | None, int, float | None]:
        """Score, number of items that it is of, and standard error; where details are lost what the file claims."""
        values = list(self.values(task, metric).values())
        mean = math.fsum(values) / len(values) if values else None
        error = None
        if mean in (0, None) and metric == "cider" or mean is None:
            pass
        elif mean in (0, 1) and len(values) > 1:
            error = wilson_error(0, len(values))
        elif len(values) > 1:
            error = math.sqrt(math.fsum((one - mean) ** 2 for one in values) / (len(values) - 1) / len(values))
        return (mean if self.known else self.claimed.get((task, metric), mean)), len(values), error

    def average(self, metric: str) -> float | None:
        """The mean of its dialects, from their truths; what its file claims counts nowhere."""
        found = [self.truth(f"{name}|0", metric)[0] for name in DIALECTS]
        return None if None in found else math.fsum(one for one in found if one is not None) / len(found)


def plans(names: int = len(NAMES)) -> st.SearchStrategy[Plan]:
    """Runs that are mostly whole, and each in a few ways not."""
    places = st.lists(st.integers(0, 5), max_size=3, unique=True).map(tuple)
    seldom = st.integers(0, 3).map(lambda drawn: drawn == 3)
    return st.builds(
        Plan,
        model=st.integers(0, names - 1),
        seed=st.integers(0, 7),
        tasks=st.sampled_from([("trust",), ("trust", "dialects"), ("trust", "caption"), ("dialects",)]),
        signed=seldom.map(lambda drawn: not drawn),
        unscored=st.one_of(st.just(()), places),
        refused=st.one_of(st.just(()), places),
        limit=st.one_of(st.none(), st.none(), st.integers(2, 4)),
        edited=st.sampled_from(["", "", "", "score", "average", "score's error", "average's error"]),
        details=st.sampled_from(["whole", "whole", "whole", "missing", "cut"]),
        asked=st.sampled_from(["", "", "prompts", "prompt", "golds"]),
        hidden=seldom,
        judged=st.booleans(),
        copied=seldom,
    )


def folders() -> st.SearchStrategy[Folder]:
    """Folders of one to three runs."""
    return st.builds(
        Folder,
        items=st.integers(4, 7),
        plans=st.lists(plans(), min_size=1, max_size=3).map(tuple),
        foreign=st.lists(st.sampled_from(FOREIGN), max_size=2).map(tuple),
    )


def write_folder(root: Path, folder: Folder) -> list[Planted]:
    """Writes a folder's runs below `root`, each in `out/results` and `out/details`, copies in `copy-<n>`."""
    written = [write_run(root / "out", plan, folder.items, number) for number, plan in enumerate(folder.plans)]
    found = []
    for number, one in enumerate(written):
        copy = root / f"copy-{number}" / one.file.relative_to(root / "out") if one.plan.copied else None
        if copy:
            _copied(one, root / "out", root / f"copy-{number}")
        found.append(replace(one, copy=copy))
    for number, text in enumerate(folder.foreign):
        place = root / "out" / "results" / f"other-{number}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"results_2026-01-01T00-00-0{number}.json").write_text(text, encoding="utf-8")
    return found


def write_run(root: Path, plan: Plan, items: int, number: int = 0) -> Planted:
    """Writes one run.

    Args:
        root: The output folder.
        plan: How it is.
        items: Rows of each task as published.
        number: Of the run, which its date and its judgement's follow.
    """
    date, place = f"2026-01-0{number + 1}T00-00-00", f"model-{plan.model}"
    rows = {task: _rows(task, plan, items) for task in _names(plan)}
    planted = Planted(replace(plan, judged=False), root / "results" / place / f"results_{date}.json", rows)
    scores = {task: _scores(planted, task) for task in rows}
    if set(DIALECTS) <= {task.partition("|")[0] for task in rows}:
        scores[AVERAGE] = _average(planted)
    claimed = _edit(scores, plan)
    for task, kept in rows.items():
        if plan.details != "missing" and kept:
            write_details(root, place, date, task, _table(kept))
    _write_results(root, place, date, scores, planted, items)
    judged = judge(root, planted) if plan.judged and planted.known else ()
    if plan.details == "cut":
        for file in (root / "details" / place / date).glob("*.parquet"):
            file.write_bytes(file.read_bytes()[:-40])
    return replace(planted, plan=plan, judged=judged, claimed=claimed)


def _names(plan: Plan) -> list[str]:
    names = {"trust": (TRUST,), "dialects": DIALECTS, "caption": (CAPTION,)}
    return [f"{name}|0" for one in plan.tasks for name in names[one]]


def _rows(task: str, plan: Plan, items: int) -> list[Item]:
    """The rows that are in the details: what a limit or a server left out is not."""
    found = []
    for place in range(items if plan.limit is None else min(plan.limit, items)):
        if place in plan.refused and plan.signed:
            continue
        shared, own = random.Random(f"{task} {place}"), random.Random(f"{task} {place} {plan.model} {plan.seed}")
        options = tuple(shared.sample(OPTIONS, 3))
        gold = (shared.randrange(3) + (plan.asked == "golds")) % 3
        logprobs = tuple(-own.randint(1, 24) / 4 for _ in options)
        item = Item(
            f"test.jsonl:{place}",
            f"{'أجب: ' if plan.asked == 'prompts' or plan.asked == 'prompt' and place == 1 else ''}سؤال {place} {task}",
            options,
            gold,
            logprobs,
            tuple(own.randint(1, 3) for _ in options),
            {},
        )
        item.scores.update(_worth(task, item, None if place in plan.unscored else own))
        if plan.scores:
            score = plan.scores[place]
            if score is not None and score <= 1 and not task.startswith(CAPTION):  # the answer that is worth it
                score = float(math.ceil(score))
                chosen = gold if score else (gold + 1) % 3
                item = replace(item, logprobs=tuple(-0.25 if one == chosen else -60.0 for one in range(3)))
            item.scores.update(dict.fromkeys(item.scores, score))
        found.append(item)
    return found


def _worth(task: str, item: Item, own: random.Random | None) -> dict[str, float | None]:
    if task.startswith(CAPTION):
        return dict.fromkeys(("cider", "rouge_l"), None if own is None else own.randint(0, 40) / 4)
    return {name: None if own is None else float(item.chosen(name) == item.options[item.gold]) for name in KINDS}


def _scores(planted: Planted, task: str) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for metric in ("cider", "rouge_l") if task.startswith(CAPTION) else KINDS:
        value, _, error = planted.truth(task, metric)
        found |= {metric: value, f"{metric}_stderr": error}
    return found


def _average(planted: Planted) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for metric in KINDS:
        errors = [planted.truth(f"{name}|0", metric)[2] for name in DIALECTS]
        known = [error for error in errors if error is not None]
        spread = math.hypot(*known) / len(errors) if len(known) == len(errors) else None
        found |= {metric: planted.average(metric), f"{metric}_stderr": spread}
    return found


def _edit(scores: dict[str, dict[str, float | None]], plan: Plan) -> dict[tuple[str, str], float]:
    """Changes a score of the file, and says which."""
    task = next((one for one in scores if (one == AVERAGE) == plan.edited.startswith("average")), None)
    metric = next(iter(scores[task])) + "_stderr" * plan.edited.endswith("error") if task and plan.edited else None
    if task is None or metric is None or scores[task].get(metric) is None:
        return {}
    scores[task][metric] = 0.001 if metric.endswith("_stderr") else 0.97 if scores[task][metric] != 0.97 else 0.96
    return {(task, metric): scores[task][metric] or 0.0}


def _table(rows: Sequence[Item]) -> pyarrow.Table:
    caption = "cider" in rows[0].scores
    table = [
        {
            "doc": {
                "id": one.name,
                "query": one.query,
                "choices": list(one.options),
                "gold_index": [one.gold],
                "specific": {"source_row": one.name, "cluster": ""},
            },
            "metric": one.scores,
            "model_response": {
                "text": [one.options[0]] if caption else [],
                "text_post_processed": [one.options[0]] if caption else [],
                "logprobs": [] if caption else list(one.logprobs),
                "output_tokens": [] if caption else [[7] * count for count in one.tokens],
            },
        }
        for one in rows
    ]
    metric = pyarrow.struct([(name, pyarrow.float64()) for name in rows[0].scores])
    found = pyarrow.Table.from_pylist(table)
    return found.set_column(1, "metric", pyarrow.array([one.scores for one in rows], metric))


def _write_results(root: Path, place: str, date: str, scores: dict[str, Any], planted: Planted, items: int) -> None:
    plan, model = planted.plan, NAMES[planted.plan.model]
    configs = {
        task: {"effective_num_docs": len(rows), "rows_report": {"expected_rows": items}}
        for task, rows in planted.tasks.items()
    }
    content = {
        "config_general": {"model_name": model, "max_samples": plan.limit},
        "results": without_nan(scores),
        "config_tasks": configs,
        "versions": dict.fromkeys(configs, 0),
    }
    if plan.signed:
        write_results(root, place, date, content, _record(planted, configs, items))
        return
    for config in configs.values():
        del config["rows_report"]
    planted.file.parent.mkdir(parents=True, exist_ok=True)
    planted.file.write_text(json.dumps(content), encoding="utf-8")


def _record(planted: Planted, configs: dict[str, Any], items: int) -> RunRecord:
    plan = planted.plan
    records = {}
    for name, record in task_records(configs, plan.limit).items():
        rows = planted.tasks[name]
        refused = min(plan.limit or items, items) - len(rows)
        changed = {"rows": len(rows), "items": len(rows), "expected_rows": items, "form": "original"}
        asked = "" if plan.hidden else plan.asked
        changed |= {"rows_hash": "ab"[asked == "golds"] * 16, "prompt_hash": "cd"[asked == "prompts"] * 8}
        if refused:
            spans = {
                metric: _bounds(planted, name, metric, refused) for metric in record.metrics[:1] if "cider" != metric
            }
            changed |= {"refused": refused, "refused_by": {"server": refused}, "bounds": spans}
        counts = {metric: len(planted.values(name, metric)) for metric in rows[0].scores} if rows else {}
        changed |= {"scored": {metric: count for metric, count in counts.items() if count < len(rows)}}
        records[name] = record.model_copy(update=changed)
    groups = dict.fromkeys(record.group for record in records.values())
    model = f"{NAMES[plan.model]}@{plan.model}"
    fields = {"model": model, "backend": "transformers", "dtype": "bfloat16", "cultureval": "0.1.0"}
    signatures = tuple(signature_record(f"{one}|0", task=f"{one}/0-shot/v0", **fields) for one in groups)
    about = ModelRecord(backend="transformers", version=f"{plan.model:08}", dtype="bfloat16")
    return RunRecord(tasks=records, signatures=signatures, model=about)


def _bounds(planted: Planted, task: str, metric: str, refused: int) -> tuple[float, float]:
    values = list(planted.values(task, metric).values())
    count = max(len(values) + refused, 1)
    return math.fsum(values) / count, (math.fsum(values) + refused) / count


def judge(root: Path, planted: Planted, hour: int = 12, share: float = 0.5) -> tuple[float, ...]:
    """A judgement of half of the captions (or another share), as `cultureval judge` writes it; the judge's marks."""
    task, date = f"{CAPTION}|0", planted.file.stem.removeprefix("results_")
    if not planted.tasks.get(task):
        return ()
    (saved,) = [one for one in find_saved_tasks([planted.file]) if one.task == task]
    count = math.ceil(len(planted.tasks[task]) * share)
    marks = tuple(float(random.Random(f"{place} {planted.plan.seed}").randint(1, 5)) for place in range(count))
    later = date.replace("T00", f"T{hour:02}")
    verdicts = [{JUDGE: {"outcome": "scored", "reason": "", "reply": "", "asked": 1}, CRITERION: one} for one in marks]
    write_derived(saved, later, read_details(saved.file).slice(0, count), verdicts)
    mean = math.fsum(marks) / count
    counts = {f"{JUDGE}_n_items": count, f"{JUDGE}_n_parsed": count, f"{JUDGE}_n_unscored": 0, CRITERION: mean}
    error = clustered_standard_error(marks, range(count), (1.0, 5.0))
    counts |= {f"{CRITERION}_stderr": error, f"{CRITERION}_missing_as_1": mean, f"{CRITERION}_missing_as_5": mean}
    before = json.loads(planted.file.read_text(encoding="utf-8"))
    general = before["config_general"] | {"judged": {"details": [str(saved.file.relative_to(root))]}}
    content = {"config_general": general, "results": {task: counts}, "config_tasks": {}, "versions": {}}
    known = RunRecord.model_validate(before.get("cultureval") or {"schema": 0})
    kept = {name: one.model_copy(update={"rows": count, "scored": {}}) for name, one in known.tasks.items()}
    record = known.model_copy(update={"tasks": {name: one for name, one in kept.items() if name == task}})
    write_results(root, saved.model, later, content, record)
    return marks


def _copied(planted: Planted, root: Path, target: Path) -> None:
    place, date = planted.file.parent.name, planted.file.stem.removeprefix("results_")
    for folder in (Path("details", place, date),):
        if (root / folder).is_dir():
            shutil.copytree(root / folder, target / folder)
    (target / "results" / place).mkdir(parents=True, exist_ok=True)
    shutil.copy(planted.file, target / "results" / place)
