"""The files of `cultureval score humaneval`: EvalPlus's results, and a run of the task in LightEval's format."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.code.report import offered_k, problem_scores, verdict_in_details
from cultureval.reports.code.samples import Sample
from cultureval.runs.record import ModelRecord, task_records
from cultureval.runs.recording import run_record
from cultureval.runs.signature import signature_of_line
from cultureval.runs.writing import SavedRun, save_run
from cultureval.runtime.errors import counted, shown_names
from cultureval.runtime.rows_report import RowsReport
from cultureval.runtime.sandbox.jail import TEST_SUITES
from cultureval.tasks.qimma.code_data import REPO

if TYPE_CHECKING:
    from cultureval.metrics.code.judging import SolutionVerdict
    from cultureval.tasks.qimma.code_data import ProblemSet


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
    problem_set: "ProblemSet", samples: Sequence[Sample], verdicts: "Sequence[SolutionVerdict]"
) -> list[dict[str, Any]]:
    """The rows of the task's details: a problem with all of its solutions."""
    found: dict[str, list[tuple[Sample, SolutionVerdict]]] = {}
    for sample, verdict in zip(samples, verdicts, strict=True):
        found.setdefault(sample.task_id, []).append((sample, verdict))
    rows = []
    ks = offered_k(map(len, found.values()))
    for task_id, pairs in found.items():
        own = [verdict for _, verdict in pairs]
        metric = problem_scores(own, ks)
        unscored = "not judged" if math.isnan(metric["plus_pass@1"]) else ""
        specific = {"task_id": task_id, "verdict": verdict_in_details(own), "unscored": unscored}
        doc = {
            "task_name": f"{problem_set.dataset.task}|0",
            "query": problem_set.rows[task_id]["prompt"],
            "id": task_id,
        }
        doc |= {"choices": [""], "gold_index": 0, "specific": specific}
        rows.append({"doc": doc, "metric": metric, "model_response": {"text": [sample.code for sample, _ in pairs]}})
    return rows


def write_run(
    output_dir: Path,
    problem_set: "ProblemSet",
    rows: Sequence[Mapping[str, Any]],
    report: Mapping[str, Any],
    started: float,
) -> SavedRun:
    """Writes LightEval's results and details files, as a run of the task would."""
    name = f"{problem_set.dataset.task}|0"
    defects = [one["task_id"] for one in report["canonical_failures"]]
    failing = f"{counted(len(defects), 'canonical solution')} does not pass: {shown_names(defects)}." if defects else ""
    known: RowsReport = {
        "source": REPO,
        "form": "original",
        "revision": problem_set.revision,
        "fingerprint": problem_set.fingerprint[:16],
        "rows": len(rows),
        "expected_rows": problem_set.dataset.rows,
        "notes": [*report["notes"], *([failing] if failing else [])],
        "other_data": report["data_difference"],
    }
    tasks = task_records({name: {"rows_report": known, "effective_num_docs": report["tasks"]}}, None)
    signature = signature_of_line(f"{name.partition(':')[0]}|0", report["signature"])
    record = run_record(started, tasks, [signature], ModelRecord(backend="code files"))
    return save_run(output_dir, report["model"], {name: rows}, record)
