"""The files of `cultureval score humaneval`: EvalPlus's results, and a run of the task in LightEval's format."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from cultureval.metrics.code.report import offered_k, problem_scores, verdict_in_details
from cultureval.reports.code.samples import Sample
from cultureval.runs.record import ModelRecord, task_records
from cultureval.runs.recording import run_record
from cultureval.runs.signature import signature_of_line
from cultureval.runs.writing import SavedRun, save_run
from cultureval.runtime.errors import CulturevalError, counted, shown_names, wrong_settings
from cultureval.runtime.rows_report import RowsReport
from cultureval.runtime.sandbox.jail import TEST_SUITES
from cultureval.tasks.qimma.code_data import REPO

if TYPE_CHECKING:
    from cultureval.metrics.code.judging import SolutionVerdict
    from cultureval.tasks.qimma.code_data import ProblemSet

BACKENDS = {"hf": "transformers", "openai": "server"}
# Of what `code generate` saves: fields of the record, the problems' data, and what is no setting of the model.
NOT_SETTINGS = {"model", "model_hash", "backend", "batch_size", "loaded", "base_url", "server"}
NOT_SETTINGS |= {"dataset", "problems", "data_hash", "data_revision", "refused"}


def evalplus_results(
    problem_set: "ProblemSet", samples: Sequence[Sample], verdicts: "Sequence[SolutionVerdict]"
) -> dict[str, Any]:
    """EvalPlus's result file, with our verdicts.

    Unjudged samples are excluded, because EvalPlus has only two outcomes and would count them as failed.
    """
    problems = problem_set.problems()
    results: dict[str, list[dict[str, Any]]] = {}
    for sample, verdict in zip(samples, verdicts, strict=True):
        if "not_judged" in (verdict.base, verdict.plus):
            continue
        entry: dict[str, Any] = {"task_id": sample.task_id, "solution": sample.code}
        for suite in TEST_SUITES:
            entry[f"{suite}_status"] = getattr(verdict, suite)
        for suite in TEST_SUITES:
            entry[f"{suite}_fail_tests"] = _failing_test(verdict, suite, problems[sample.task_id])
        results.setdefault(sample.task_id, []).append(entry)
    return {"date": datetime.now().strftime("%Y-%m-%d %H:%M"), "hash": problem_set.evalplus_hash, "eval": results}


def _failing_test(verdict: "SolutionVerdict", suite: str, problem: dict[str, Any]) -> list[Any]:
    """The arguments of the first test that failed, as EvalPlus lists it; none of extra tests that were not tried."""
    first = next((name for name in TEST_SUITES if getattr(verdict, name) == "fail"), "")
    if suite != first or verdict.failing_call is None:
        return []
    place = verdict.failing_call
    failing = list(problem[f"{suite}_input"])[place : place + 1]
    if not verdict.task_id.startswith("Mbpp/"):
        return failing
    from evalplus.data.mbpp import mbpp_serialize_inputs

    return mbpp_serialize_inputs(verdict.task_id, failing)


def task_rows(
    problem_set: "ProblemSet",
    samples: Sequence[Sample],
    verdicts: "Sequence[SolutionVerdict]",
    refused: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The rows of the task's details: a problem with all of its solutions, also those that the model refused.

    Args:
        refused: By name of the problem.
    """
    found: dict[str, list[tuple[Sample, SolutionVerdict]]] = {name: [] for name in refused}
    for sample, verdict in zip(samples, verdicts, strict=True):
        found.setdefault(sample.task_id, []).append((sample, verdict))
    rows = []
    ks = offered_k(len(pairs) for pairs in found.values() if pairs)
    for task_id, pairs in found.items():
        own = [verdict for _, verdict in pairs]
        metric: Mapping[str, float | None] = problem_scores(own, ks) if own else {}
        known = own and metric["plus_pass@1"] == metric["plus_pass@1"]
        unscored = "" if known else "not judged" if own else "refused"
        specific = {"task_id": task_id, "verdict": verdict_in_details(own), "unscored": unscored}
        doc = {
            "task_name": f"{problem_set.dataset.task}|0",
            "query": problem_set.rows[task_id]["prompt"],
            "id": task_id,
        }
        doc |= {"choices": [""], "gold_index": 0, "specific": specific}
        rows.append({"doc": doc, "metric": metric, "model_response": {"text": [sample.code for sample, _ in pairs]}})
    names = dict.fromkeys(name for row in rows for name in row["metric"])
    return [row | {"metric": {name: row["metric"].get(name) for name in names}} for row in rows]


def write_run(
    output_dir: Path,
    problem_set: "ProblemSet",
    rows: Sequence[Mapping[str, Any]],
    report: Mapping[str, Any],
    made: Mapping[str, Any],
    started: float,
) -> SavedRun:
    """Writes LightEval's results and details files, as a run of the task would.

    Args:
        made: What `cultureval code generate` saved beside the solutions; {} for other solutions.
    """
    name = f"{problem_set.dataset.task}|0"
    defects = [one["task_id"] for one in report["canonical_failures"]]
    told = f"{counted(len(defects), 'canonical solution')} does not pass: {shown_names(defects)}." if defects else ""
    known: RowsReport = {
        "source": REPO,
        "form": "original",
        "revision": problem_set.revision,
        "fingerprint": problem_set.fingerprint[:16],
        "rows": len(rows),
        "expected_rows": problem_set.dataset.rows,
        "refused_rows": [{"item": item, **refusal} for item, refusal in report["refused"].items()],
        "notes": [*report["notes"], *([told] if told else [])],
        "other_data": report["data_difference"],
    }
    tasks = task_records({name: {"rows_report": known, "effective_num_docs": report["tasks"]}}, None)
    signature = signature_of_line(f"{name.partition(':')[0]}|0", report["signature"])
    record = run_record(started, tasks, [signature], generating_model(made))
    return save_run(output_dir, report["model"], {name: rows}, record)


def generating_model(made: Mapping[str, Any]) -> ModelRecord:
    """The record of the model that wrote the solutions, from what `cultureval code generate` saved beside them."""
    if not made:
        return ModelRecord(backend="code files")
    loaded = made.get("loaded") or {}
    try:
        return ModelRecord(
            **{"dtype": made.get("dtype", "")}
            | {name: loaded[name] for name in ModelRecord.model_fields & loaded.keys()},
            backend=BACKENDS.get(str(made.get("backend")), str(made.get("backend"))),
            version=made.get("model_hash"),
            batch_size=made.get("batch_size"),
            chat_template=str(made.get("prompt", "")).startswith("chat"),
            settings={name: value for name, value in made.items() if name not in NOT_SETTINGS | {*loaded}},
        )
    except ValidationError as error:
        told = wrong_settings(error, values=True)
        raise CulturevalError(
            f"The solutions' .generation.json is not of `cultureval code generate`: {told}."
        ) from error
