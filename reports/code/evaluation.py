"""Solutions judged in the sandbox and scored by EvalPlus's rules: the report, its files, and its text."""

import json
import math
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cultureval.metrics.code.judging import Solution, SolutionVerdict, judge_with_canonicals
from cultureval.metrics.code.report import failing_canonicals, score_verdicts, scorer_name
from cultureval.metrics.code.rules import TEST_SUITES
from cultureval.metrics.declared import SHARE, bounds_of_mean
from cultureval.reports.code.result_files import evalplus_results, generating_model, lighteval_results
from cultureval.reports.code.samples import Sample, Sanitize, check_complete, read_samples
from cultureval.runs.signature import manifest_field
from cultureval.runs.writing import complete_or_absent
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import CulturevalError, counted, escaped, shown_names
from cultureval.runtime.rounding import printed
from cultureval.runtime.rows_report import KINDS
from cultureval.runtime.signatures import installed_versions, signature
from cultureval.tasks.qimma.code_data import ProblemSet, require_whole
from cultureval.tasks.qimma.options import SHORTENED_CODE

PACKAGES = ("cultureval", "evalplus", "numpy")
MOST_NOTES = 20
NOTES = {
    "not_judged": "not judged, and not counted",
    "canonical_failures": "whose canonical solution does not pass (see `cultureval code check-data`)",
    "differs_from_evalplus": "with a different verdict by EvalPlus; ours is used",
}
READ = {
    "rewritten": "Not judged as written, but without what is no part of a program",
    "cut": "Too long to be read whole",
}
FILES = {"EvalPlus's results": "evalplus_results", "Verdicts": "verdicts", "LightEval's results": "results"}


def evaluate_solutions(
    samples: Path,
    problem_set: ProblemSet,
    output_dir: Path,
    *,
    sanitize: Sanitize = "auto",
    partial: bool = False,
    workers: int | None = None,
    sandboxed: bool = True,
    model_name: str | None = None,
) -> dict[str, Any]:
    """Judges and scores solutions, and writes EvalPlus's, our own and LightEval's files.

    Args:
        samples: EvalPlus's file or folder of solutions.
        sanitize: When EvalPlus's sanitiser is applied.
        partial: Score incomplete samples, and samples of shortened or other data than were asked.
        workers: Parallel sandboxes; None: one per core.
        sandboxed: Whether the solutions run in the sandbox.
        model_name: Name in the results; None takes the one that was generated with, or the file's.

    Returns:
        The report of `make_report`, and the paths of the files.

    Raises:
        CulturevalError: The solutions cannot be read or are incomplete, the data are shortened, the solutions were
            asked of others, or not one of them could be judged.
    """
    require_whole("" if partial else problem_set.shortened, "--partial")
    if not partial and (told := asked_of_others(samples, problem_set)):
        raise CulturevalError(f"{told} Give the data and --prompts that they were asked of, or --partial.")
    started = time.time()
    refused = refused_problems(samples, problem_set)
    given = read_samples(samples, {**problem_set.rows, **problem_set.left_out}, sanitize, workers)
    asked = [name for name in problem_set.rows if name not in refused]
    found = [one for one in given if one.task_id in asked]
    missing, unequal = check_complete(found, asked, partial)
    verdicts, canonical = _judged(found, problem_set, workers, sandboxed)
    if sanitize != "always":  # and EvalPlus never sanitises what it evaluates
        verdicts = [_of_given_text(*pair) for pair in zip(found, verdicts, strict=True)]
    report = make_report(samples, problem_set, found, verdicts, canonical, sandboxed)
    report |= {"refused": refused, "missing_tasks": missing, "unequal_samples": unequal}
    dropped = counted(len(given) - len(found), "solution")
    report["dropped_samples"] = (
        f"{dropped} of refused or discarded problems in the file, not scored." if found != given else ""
    )
    for of_suite in report["bounds"].values() if refused else ():
        for name, (worst, best) in of_suite.items():
            count = report["tasks"]
            lowest, _ = bounds_of_mean(worst * count, count, len(refused), SHARE)
            _, highest = bounds_of_mean(best * count, count, len(refused), SHARE)
            of_suite[name] = [lowest, highest]
    report["model"] = model_of(samples, model_name)
    return report | write_files(samples, output_dir, problem_set, found, verdicts, report, started)


def _judged(
    samples: list[Sample], problem_set: ProblemSet, workers: int | None, sandboxed: bool
) -> tuple[list[SolutionVerdict], dict[str, SolutionVerdict]]:
    """Verdicts on the samples, in their order, and on the canonical solutions of their problems."""
    task_ids = {sample.task_id for sample in samples}
    problems = {task_id: problem for task_id, problem in problem_set.problems().items() if task_id in task_ids}
    name = problem_set.dataset.name
    solutions = [Solution(sample.task_id, sample.number, sample.code) for sample in samples]
    return judge_with_canonicals(problems, solutions, name, workers=workers, sandboxed=sandboxed)


def _of_given_text(sample: Sample, verdict: SolutionVerdict) -> SolutionVerdict:
    """A verdict with EvalPlus's own on the text that the file holds, which fails where it is no program."""
    fails = {f"evalplus_{suite}": "fail" for suite in TEST_SUITES}
    return replace(verdict, **fails, **{f"{name}_details": [] for name in fails}) if sample.rewritten else verdict


def make_report(
    samples: Path,
    problem_set: ProblemSet,
    found: list[Sample],
    verdicts: list[SolutionVerdict],
    canonical: dict[str, SolutionVerdict],
    sandboxed: bool,
) -> dict[str, Any]:
    """Scores, data and reliability: the object that `--json` prints.

    Raises:
        CulturevalError: Not one sample could be judged.
    """
    scores = score_verdicts(verdicts)
    judged = [verdict for verdict in verdicts if verdict.base != "not_judged"]
    if not judged:
        raise CulturevalError(f"Not one of {len(verdicts)} solutions could be judged: {verdicts[0].reason}.")
    return {
        "dataset": problem_set.dataset.name,
        "task": problem_set.dataset.task,
        "tasks": len({sample.task_id for sample in found}),
        "samples": len(found),
        **scores,
        "rewritten": [f"{sample.task_id} sample {sample.number}" for sample in found if sample.rewritten],
        "cut": [f"{sample.task_id} sample {sample.number}" for sample in found if sample.cut],
        "data_difference": " ".join(filter(None, [problem_set.other_data, asked_of_others(samples, problem_set)])),
        "canonical_failures": failing_canonicals(canonical),
        "sandboxed": sandboxed,
        "signature": signature_of(samples, problem_set, found, sandboxed),
    }


def signature_of(samples: Path, problem_set: ProblemSet, found: list[Sample], sandboxed: bool) -> str:
    """One line with everything that the scores depend on, including the generation settings if known."""
    made = generation_of(samples)
    fields = {name: made.get(name, "unknown") for name in ("backend", "prompt", "temperature", "max_new_tokens")}
    if isinstance(server := made.get("server"), dict):
        fields["server"] = ";".join(f"{name}={value}" for name, value in server.items())
    return signature(
        task=f"{problem_set.dataset.task}/0-shot",
        problems=len({sample.task_id for sample in found}),
        samples=len(found),
        data=f"{problem_set.source}@{problem_set.revision[:8]}",
        data_hash=problem_set.fingerprint[:8],
        options=f"{SHORTENED_CODE.name}=score" if problem_set.shortened else None,
        manifest=manifest_field([vars(problem_set)]),
        asked_data=made["data_hash"] if asked_of_others(samples, problem_set) else None,
        refined_prompts=made.get("refined_prompts", problem_set.refined),
        scorer=scorer_name(sandboxed),
        **fields,
        **installed_versions(PACKAGES),
    )


def asked_of_others(samples: Path, problem_set: ProblemSet) -> str:
    """A sentence where `code generate` asked other problems than these, or with other prompts; "" for nothing known."""
    asked, judged = generation_of(samples).get("data_hash"), problem_set.content_hash
    differs = f"Asked of other problems (data_hash {asked}) than are judged ({judged}), so not comparable."
    return escaped(differs) if asked not in (None, judged) else ""


def generation_of(samples: Path) -> dict[str, Any]:
    """The generation settings that `cultureval code generate` saved for a file; {} for other files."""
    name = samples.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".raw")
    try:
        content = json.loads(samples.with_name(f"{name}.generation.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def refused_problems(samples: Path, problem_set: ProblemSet) -> dict[str, dict[str, str]]:
    """The problems that `code generate --on-refused unscored` left out, each with the `reason` and its kind.

    The name is the problem's; a file that somebody edited may hold anything, of which only what has this form counts.
    """
    told = generation_of(samples).get("refused")
    return {
        task_id: {"reason": escaped(str(one.get("reason", ""))[:500]), "kind": str(one["kind"])}
        for task_id, one in (told.items() if isinstance(told, dict) else ())
        if task_id in problem_set.rows and isinstance(one, dict) and one.get("kind") in KINDS
    }


def model_of(samples: Path, given: str | None) -> str:
    """The model's name in the results: as given, as saved when generating, or from the file name.

    LightEval uses it as a folder, which must be inside the output folder.
    """
    name = given or generation_of(samples).get("model")
    if not isinstance(name, str) or not name.strip("/. "):
        name = samples.resolve().name.removesuffix(".gz").removesuffix(".jsonl")
    return "/".join(part for part in name.split("/") if part not in ("..", "."))


def write_files(
    samples: Path,
    output_dir: Path,
    problem_set: ProblemSet,
    found: list[Sample],
    verdicts: list[SolutionVerdict],
    report: dict[str, Any],
    started: float,
) -> dict[str, str]:
    """Writes EvalPlus's and our result files next to the samples, and LightEval's; returns their paths."""
    folder = samples if samples.is_dir() else samples.parent
    if not os.access(folder, os.W_OK):
        folder = output_dir
        folder.mkdir(parents=True, exist_ok=True)
    stem = "" if samples.is_dir() else samples.name.removesuffix(".gz").removesuffix(".jsonl") + "_"
    theirs, ours = folder / f"{stem}eval_results.json", folder / f"{stem}verdicts.jsonl"
    with complete_or_absent(theirs) as evalplus, complete_or_absent(ours) as own:  # both, or those of before
        write_atomically(evalplus, json.dumps(evalplus_results(problem_set, found, verdicts)).encode("utf-8"))
        write_json_lines(own, map(asdict, verdicts))
    model = generating_model(generation_of(samples))
    results = lighteval_results(output_dir, problem_set, found, verdicts, report, model, started)
    return {"evalplus_results": str(theirs), "verdicts": str(ours), "results": str(results)}


def report_text(report: dict[str, Any]) -> str:
    """The report as text."""
    problems, solutions = counted(report["tasks"], "problem"), counted(report["samples"], "solution")
    lines = [f"{report['model']}: {report['task']}, {problems}, {solutions}"]
    for level, title in (("base", "base tests"), ("plus", "base and extra tests")):
        for name, value in report["pass_at_k"][level].items():
            error = report["standard_errors"][level][name]
            worst, best = report["bounds"][level][name]
            doubt = (
                f", between {printed(worst, 4)} and {printed(best, 4)} if those without a verdict failed or passed"
                if report["not_judged"] or report["refused"]
                else ""
            )
            known = "" if math.isnan(error) else f" ± {printed(error, 4)}"
            lines.append(f"  {name} ({title}): {printed(value, 4)}{known}{doubt}")
    for name, text in NOTES.items():
        if report[name]:
            lines.append(f"{len(report[name])} {text}:")
            lines += [_note(entry) for entry in report[name][:MOST_NOTES]]
            lines += [f"  and {len(report[name]) - MOST_NOTES} more"] if len(report[name]) > MOST_NOTES else []
    for name, text in READ.items():
        if report[name]:
            lines.append(f"{text}: {len(report[name])} of {solutions} ({shown_names(report[name])}).")
    if report["refused"]:
        each = [f"{task_id} ({one['reason']})" for task_id, one in report["refused"].items()]
        lines.append(f"{counted(len(each), 'problem')} without a usable answer, not scored: {shown_names(each)}.")
    if report["missing_tasks"]:
        lines.append(
            f"Incomplete, so not comparable: {counted(len(report['missing_tasks']), 'problem')} without a solution."
        )
    lines += [report[name] for name in ("unequal_samples", "dropped_samples", "data_difference") if report[name]]
    if not report["sandboxed"]:
        lines.append("JUDGED WITHOUT A SANDBOX: the solutions could do anything, so trust neither scores nor machine.")
    lines.append(f"Signature: {report['signature']}")
    lines += [f"{name}: {report[key]}" for name, key in FILES.items()]
    return "\n".join(lines)


def _note(entry: dict[str, Any]) -> str:
    ours, theirs = (f"{entry[f'{who}base']}/{entry[f'{who}plus']}" for who in ("", "evalplus_"))
    reason = f" ({entry['reason']})" if entry["reason"] else ""
    return f"  {entry['task_id']} sample {entry['sample']}: base/plus {ours}, EvalPlus's own {theirs}{reason}"
