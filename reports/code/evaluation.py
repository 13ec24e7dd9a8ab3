"""Solutions judged in the sandbox and scored by EvalPlus's rules: the report, its files, and its text."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cultureval.metrics.code.judging import Solution, SolutionVerdict, check_canonical_solutions, judge_with_canonicals
from cultureval.metrics.code.report import failing_canonicals, judge_name, verdict_row
from cultureval.reports.code.result_files import evalplus_results, task_rows, write_run
from cultureval.reports.code.samples import Sample, check_complete, read_samples
from cultureval.reports.submissions import safe_name
from cultureval.runs.scores import Score
from cultureval.runs.signature import manifest_field
from cultureval.runs.writing import complete_or_absent, write_summary
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import CulturevalError, counted, shown_names
from cultureval.runtime.rounding import printed
from cultureval.runtime.signatures import installed_versions, signature
from cultureval.tasks.qimma.code_data import REPO, ProblemSet

Report = dict[str, Any]
PACKAGES = ("cultureval", "evalplus", "numpy")
LISTS = {  # lists of a report -> what they are
    "not_judged": "Not judged, and not counted",
    "canonical_failures": "Canonical solutions that do not pass (see `cultureval check --canonicals`)",
    "rewritten": "Not judged as written, but without what is no part of a program",
    "cut": "Too long to be read whole",
    "missing_tasks": "Problems without a solution, so that the scores are not comparable",
}
FILES = {"EvalPlus's results": "evalplus_results", "Verdicts": "verdicts", "LightEval's results": "results"}
TESTS = {"base": "base tests", "plus": "base and extra tests"}


def evaluate_solutions(
    samples: Path,
    problem_set: ProblemSet,
    output_dir: Path,
    partial: bool = False,
    workers: int | None = None,
    model_name: str | None = None,
) -> Report:
    """Judges and scores solutions, and writes EvalPlus's, our own and LightEval's files.

    Args:
        samples: EvalPlus's file of solutions.
        partial: Score incomplete samples.
        workers: Parallel sandboxes; None: one per core.
        model_name: Name in the results; None: the file's.

    Returns:
        The scores, data and reliability that `--json` prints, and the paths of the files.

    Raises:
        CulturevalError: The solutions or their data are not what is needed, or none could be judged.
    """
    started = time.time()
    found, complete = _solutions(samples, problem_set, partial, workers)
    verdicts, failing = _judged(found, problem_set, workers)
    report = _reliability(found, verdicts) | complete
    report |= {"dataset": problem_set.dataset.name, "task": problem_set.dataset.task}
    name = model_name or samples.resolve().name.removesuffix(".jsonl")
    report |= {"model": safe_name(name), "canonical_failures": failing, "data_difference": problem_set.other_data}
    report["signature"] = _signature(problem_set, found)
    report |= write_files(samples, output_dir, problem_set, found, verdicts)
    saved = write_run(output_dir, problem_set, task_rows(problem_set, found, verdicts), report, started)
    report |= {"results": str(saved.file)} | _scores(saved.scores[f"{problem_set.dataset.task}|0"])
    write_summary(saved.file, report_text(report))
    return report


def _solutions(
    samples: Path, problem_set: ProblemSet, partial: bool, workers: int | None
) -> tuple[list[Sample], Report]:
    """The solutions of the problems, and what is said of how complete they are."""
    read = read_samples(samples, {**problem_set.rows, **problem_set.left_out}, workers)
    found = [one for one in read if one.task_id in problem_set.rows]
    missing, unequal = check_complete(found, problem_set.rows, partial)
    notes, more = [unequal] if unequal else [], len(read) - len(found)
    notes += [f"{counted(more, 'solution')} of discarded problems in the file, not scored."] if more else []
    return found, {"missing_tasks": missing, "notes": notes}


def _judged(
    samples: Sequence[Sample], problem_set: ProblemSet, workers: int | None
) -> tuple[list[SolutionVerdict], list[Report]]:
    """Verdicts on the samples, in their order, and the problems whose canonical solutions do not pass."""
    task_ids = {sample.task_id for sample in samples}
    problems = {task_id: problem for task_id, problem in problem_set.problems().items() if task_id in task_ids}
    solutions = [Solution(sample.task_id, sample.number, sample.code) for sample in samples]
    verdicts, canonical = judge_with_canonicals(problems, solutions, problem_set.dataset.name, workers=workers)
    return verdicts, failing_canonicals(canonical)


def _reliability(found: Sequence[Sample], verdicts: Sequence[SolutionVerdict]) -> Report:
    """How many solutions there are, which were not judged, and which not as written."""
    if all(verdict.base == "not_judged" for verdict in verdicts):
        raise CulturevalError(f"Not one of {len(verdicts)} solutions could be judged: {verdicts[0].reason}.")
    return {
        "tasks": len({sample.task_id for sample in found}),
        "samples": len(found),
        "not_judged": [verdict_row(one) for one in verdicts if "not_judged" in (one.base, one.plus)],
        "rewritten": [f"{sample.task_id} sample {sample.number}" for sample in found if sample.rewritten],
        "cut": [f"{sample.task_id} sample {sample.number}" for sample in found if sample.cut],
    }


def _scores(scores: Mapping[str, Score]) -> Report:
    """pass@k and its errors in EvalPlus's form, and how many problems they are of."""
    passes = {name: score for name, score in scores.items() if "pass@" in name}
    values: dict[str, dict[str, float]] = {suite: {} for suite in TESTS}
    errors: dict[str, dict[str, float | None]] = {suite: {} for suite in TESTS}
    for metric, score in passes.items():
        suite, _, name = metric.partition("_")
        values[suite][name], errors[suite][name] = score.value, score.error
    n, asked = next(iter(passes.values()))[2:4]
    return {"pass_at_k": values, "standard_errors": errors, "scored": n, "asked": asked}


def _signature(problem_set: ProblemSet, found: Sequence[Sample]) -> str:
    """One line with everything that the scores depend on, as far as a file of solutions shows it."""
    return signature(
        task=f"{problem_set.dataset.task}/0-shot",
        problems=len({sample.task_id for sample in found}),
        samples=len(found),
        data=f"{REPO}@{problem_set.revision[:8]}",
        data_hash=problem_set.fingerprint[:8],
        manifest=manifest_field([vars(problem_set)]),
        refined_prompts=problem_set.refined,
        scorer=judge_name(),
        **installed_versions(PACKAGES),
    )


def write_files(
    samples: Path,
    output_dir: Path,
    problem_set: ProblemSet,
    found: Sequence[Sample],
    verdicts: Sequence[SolutionVerdict],
) -> dict[str, str]:
    """Writes EvalPlus's and our result files next to the samples; returns their paths."""
    folder = samples.parent if os.access(samples.parent, os.W_OK) else output_dir
    folder.mkdir(parents=True, exist_ok=True)
    stem = samples.name.removesuffix(".jsonl")
    theirs, ours = folder / f"{stem}_eval_results.json", folder / f"{stem}_verdicts.jsonl"
    with complete_or_absent(theirs) as evalplus, complete_or_absent(ours) as own:  # both, or those of before
        write_atomically(evalplus, json.dumps(evalplus_results(problem_set, found, verdicts)).encode("utf-8"))
        write_json_lines(own, map(asdict, verdicts))
    return {"evalplus_results": str(theirs), "verdicts": str(ours)}


def canonicals_text(problem_set: ProblemSet) -> tuple[str, bool]:
    """Judges the canonical solutions; which fail and how many pass, and whether all do."""
    name, problems = problem_set.dataset.name, problem_set.problems()
    failing = failing_canonicals(check_canonical_solutions(problems, name))
    lines = [f"{one['task_id']}: base {one['base']}, plus {one['plus']}: {one['reason']}" for one in failing]
    passing = len(problems) - len(failing)
    lines.append(f"{passing} of {len(problems)} canonical solutions of {name} pass their own tests.")
    return "\n".join(lines), not failing


def report_text(report: Report) -> str:
    """The report as text."""
    problems, solutions = counted(report["tasks"], "problem"), counted(report["samples"], "solution")
    lines = [f"{report['model']}: {report['task']}, {problems}, {solutions}"]
    of = f", {report['scored']} of {report['asked']} problems" if report["scored"] < report["asked"] else ""
    for level, title in TESTS.items():
        for name, value in report["pass_at_k"][level].items():
            error = report["standard_errors"][level][name]
            known = "" if error is None else f" ± {printed(error, 4)}"
            lines.append(f"  {name} ({title}): {printed(value, 4)}{known}{of}")
    for name, text in LISTS.items():
        if entries := report[name]:
            lines.append(f"{text}: {len(entries):,} ({shown_names(list(map(_named, entries)))}).")
    lines += [*report["notes"], *([report["data_difference"]] if report["data_difference"] else [])]
    lines.append(f"Signature: {report['signature']}")
    return "\n".join([*lines, *(f"{name}: {report[key]}" for name, key in FILES.items())])


def _named(entry: Report | str) -> str:
    """A problem, or a verdict on a solution, with the reason."""
    if isinstance(entry, str):
        return entry
    return f"{entry['task_id']} sample {entry['sample']}: {entry['base']}/{entry['plus']} {entry['reason']}".rstrip()
