"""Solutions judged in the sandbox and scored by EvalPlus's rules: the report, its files, and its text."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cultureval.metrics.code.judging import Solution, SolutionVerdict, judge_with_canonicals
from cultureval.metrics.code.report import failing_canonicals, judge_name, verdict_row
from cultureval.reports.code.result_files import evalplus_results, task_rows, write_run
from cultureval.reports.code.samples import Sample, check_complete, read_samples
from cultureval.reports.submissions import safe_name
from cultureval.runs.scores import Score
from cultureval.runs.signature import manifest_field
from cultureval.runs.writing import complete_or_absent
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import CulturevalError, counted, escaped, shown_names
from cultureval.runtime.rounding import printed
from cultureval.runtime.signatures import installed_versions, signature
from cultureval.tasks.qimma.code_data import REPO, ProblemSet

Report = dict[str, Any]
PACKAGES = ("cultureval", "evalplus", "numpy")
TOLD = {  # lists of a report -> what they are
    "not_judged": "Not judged, and not counted",
    "canonical_failures": "Canonical solutions that do not pass (see `cultureval check --canonicals`)",
    "rewritten": "Not judged as written, but without what is no part of a program",
    "cut": "Too long to be read whole",
    "refused": "Problems without a usable answer, not scored",
    "missing_tasks": "Problems without a solution, so that the scores are not comparable",
}
FILES = {"EvalPlus's results": "evalplus_results", "Verdicts": "verdicts", "LightEval's results": "results"}
TESTS = {"base": "base tests", "plus": "base and extra tests"}


def evaluate_solutions(
    samples: Path,
    problem_set: ProblemSet,
    output_dir: Path,
    *,
    partial: bool = False,
    workers: int | None = None,
    model_name: str | None = None,
) -> Report:
    """Judges and scores solutions, and writes EvalPlus's, our own and LightEval's files.

    Args:
        samples: EvalPlus's file of solutions.
        partial: Score incomplete samples, and samples of other data than were asked.
        workers: Parallel sandboxes; None: one per core.
        model_name: Name in the results; None takes the one that was generated with, or the file's.

    Returns:
        The scores, data and reliability that `--json` prints, and the paths of the files.

    Raises:
        CulturevalError: The solutions or their data are not what is needed, or none could be judged.
    """
    started, made = time.time(), generation_of(samples)
    other = asked_of_others(made, problem_set, partial)
    refused = refused_problems(made, problem_set)
    found, complete = _solutions(samples, problem_set, refused, partial, workers)
    verdicts, failing = _judged(found, problem_set, workers)
    report = _reliability(found, verdicts) | complete
    report |= {"dataset": problem_set.dataset.name, "task": problem_set.dataset.task, "refused": refused}
    name = model_name or str(made.get("model") or samples.resolve().name.removesuffix(".jsonl"))
    report |= {"model": safe_name(name), "canonical_failures": failing}
    report["data_difference"] = " ".join(filter(None, [problem_set.other_data, other]))
    report["signature"] = _signature(made, problem_set, found, other)
    report |= write_files(samples, output_dir, problem_set, found, verdicts)
    saved = write_run(output_dir, problem_set, task_rows(problem_set, found, verdicts, refused), report, made, started)
    return report | {"results": str(saved.file)} | _scores(saved.scores[f"{problem_set.dataset.task}|0"])


def _solutions(
    samples: Path, problem_set: ProblemSet, refused: Mapping[str, Any], partial: bool, workers: int | None
) -> tuple[list[Sample], Report]:
    """The solutions of the problems that need one, and what is said of how complete they are."""
    asked = [name for name in problem_set.rows if name not in refused]
    given = read_samples(samples, {**problem_set.rows, **problem_set.left_out}, workers)
    found = [one for one in given if one.task_id in asked]
    missing, unequal = check_complete(found, asked, partial)
    notes, more = [unequal] if unequal else [], len(given) - len(found)
    notes += [f"{counted(more, 'solution')} of refused or discarded problems in the file, not scored."] if more else []
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


def _signature(made: Mapping[str, Any], problem_set: ProblemSet, found: Sequence[Sample], other: str) -> str:
    """One line with everything that the scores depend on, including the generation settings if known."""
    fields = {name: made.get(name, "unknown") for name in ("backend", "prompt", "temperature", "max_new_tokens")}
    if isinstance(server := made.get("server"), dict):
        fields["server"] = ";".join(f"{name}={value}" for name, value in server.items())
    return signature(
        task=f"{problem_set.dataset.task}/0-shot",
        problems=len({sample.task_id for sample in found}),
        samples=len(found),
        data=f"{REPO}@{problem_set.revision[:8]}",
        data_hash=problem_set.fingerprint[:8],
        manifest=manifest_field([vars(problem_set)]),
        asked_data=made["data_hash"] if other else None,
        refined_prompts=made.get("refined_prompts", problem_set.refined),
        scorer=judge_name(),
        **fields,
        **installed_versions(PACKAGES),
    )


def generation_of(samples: Path) -> dict[str, Any]:
    """The generation settings that `cultureval code generate` saved for a file; {} for other files."""
    name = samples.name.removesuffix(".jsonl").removesuffix(".raw")
    file = samples.with_name(f"{name}.generation.json")
    try:
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}
    except (TypeError, ValueError) as error:
        raise CulturevalError(f"{file} is not what `cultureval code generate` writes: {error}.") from error


def asked_of_others(made: Mapping[str, Any], problem_set: ProblemSet, partial: bool) -> str:
    """A sentence where `code generate` asked other problems than these, or with other prompts; "" for nothing known.

    Raises:
        CulturevalError: They are others, and `partial` is not set.
    """
    asked, judged = made.get("data_hash"), problem_set.content_hash
    told = f"Asked of other problems (data_hash {asked}) than are judged ({judged}), so not comparable."
    other = escaped(told) if asked not in (None, judged) else ""
    if other and not partial:
        raise CulturevalError(f"{other} Give the data and --prompts that they were asked of, or --partial.")
    return other


def refused_problems(made: Mapping[str, Any], problem_set: ProblemSet) -> dict[str, dict[str, str]]:
    """The problems that `code generate --on-refused unscored` left out, each with the `reason` and its `kind`."""
    told = {name: one for name, one in made.get("refused", {}).items() if name in problem_set.rows}
    return {name: {field: escaped(str(one[field])[:500]) for field in ("reason", "kind")} for name, one in told.items()}


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
    for name, text in TOLD.items():
        if entries := report[name]:
            each = entries.items() if isinstance(entries, dict) else [(one, {}) for one in entries]
            lines.append(f"{text}: {len(entries):,} ({shown_names([_named(*one) for one in each])}).")
    lines += [*report["notes"], *([report["data_difference"]] if report["data_difference"] else [])]
    lines.append(f"Signature: {report['signature']}")
    return "\n".join([*lines, *(f"{name}: {report[key]}" for name, key in FILES.items())])


def _named(entry: Report | str, about: Mapping[str, str]) -> str:
    """A problem, or a verdict on a solution, with the reason."""
    if isinstance(entry, str):
        return f"{entry}: {about['reason']}" if about else entry
    return f"{entry['task_id']} sample {entry['sample']}: {entry['base']}/{entry['plus']} {entry['reason']}".rstrip()
