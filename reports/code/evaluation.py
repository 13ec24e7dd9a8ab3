"""Solutions judged in the sandbox and scored by EvalPlus's rules: the report, its files, and its text."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cultureval.metrics.code.judging import Solution, SolutionVerdict, judge_with_canonicals
from cultureval.metrics.code.report import failing_canonicals, named, scorer_name
from cultureval.metrics.code.rules import TEST_SUITES
from cultureval.reports.code.result_files import evalplus_results, generating_model, task_rows, write_run
from cultureval.reports.code.samples import Sample, Sanitize, check_complete, read_samples
from cultureval.runs.scores import Score
from cultureval.runs.signature import manifest_field
from cultureval.runs.writing import complete_or_absent
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import CulturevalError, counted, escaped, shown_names
from cultureval.runtime.rounding import printed
from cultureval.runtime.rows_report import KINDS
from cultureval.runtime.signatures import installed_versions, signature
from cultureval.tasks.qimma.code_data import SHORTENED_CODE, ProblemSet, require_whole

Report = dict[str, Any]
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
TESTS = {"base": "base tests", "plus": "base and extra tests"}


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
) -> Report:
    """Judges and scores solutions, and writes EvalPlus's, our own and LightEval's files.

    Args:
        samples: EvalPlus's file or folder of solutions.
        sanitize: When EvalPlus's sanitiser is applied.
        partial: Score incomplete samples, and samples of shortened or other data than were asked.
        workers: Parallel sandboxes; None: one per core.
        sandboxed: Whether the solutions run in the sandbox.
        model_name: Name in the results; None takes the one that was generated with, or the file's.

    Returns:
        The scores, data and reliability that `--json` prints, and the paths of the files.

    Raises:
        CulturevalError: The solutions cannot be read or are incomplete, the data are shortened, the solutions were
            asked of others, or not one of them could be judged.
    """
    started, made = time.time(), generation_of(samples)
    other = asked_of_others(made, problem_set)
    require_whole("" if partial else problem_set.shortened, "--partial")
    if not partial and other:
        raise CulturevalError(f"{other} Give the data and --prompts that they were asked of, or --partial.")
    refused = refused_problems(made, problem_set)
    given = read_samples(samples, {**problem_set.rows, **problem_set.left_out}, sanitize, workers)
    asked = [name for name in problem_set.rows if name not in refused]
    found = [one for one in given if one.task_id in asked]
    missing, unequal = check_complete(found, asked, partial)
    verdicts, canonical = _judged(found, problem_set, workers, sandboxed)
    if sanitize != "always":  # and EvalPlus never sanitises what it evaluates
        verdicts = [_of_given_text(*pair) for pair in zip(found, verdicts, strict=True)]
    dropped = (
        f"{counted(len(given) - len(found), 'solution')} of refused or discarded problems in the file, not scored."
    )
    report = _reliability(found, verdicts) | {
        "dataset": problem_set.dataset.name,
        "task": problem_set.dataset.task,
        "model": _model_of(samples, made, model_name),
        "data_difference": " ".join(filter(None, [problem_set.other_data, other])),
        "canonical_failures": failing_canonicals(canonical),
        "sandboxed": sandboxed,
        "signature": _signature(made, problem_set, found, sandboxed, other),
        "refused": refused,
        "missing_tasks": missing,
        "unequal_samples": unequal,
        "dropped_samples": dropped if found != given else "",
    }
    report |= write_files(samples, output_dir, problem_set, found, verdicts)
    rows = task_rows(problem_set, found, verdicts, refused)
    saved = write_run(output_dir, problem_set, rows, report, generating_model(made), started)
    return report | {"results": str(saved.file)} | _scores(saved.scores[f"{problem_set.dataset.task}|0"])


def _reliability(found: Sequence[Sample], verdicts: Sequence[SolutionVerdict]) -> Report:
    """How many solutions there are, and which were not judged, not as written, or otherwise by EvalPlus."""
    if all(verdict.base == "not_judged" for verdict in verdicts):
        raise CulturevalError(f"Not one of {len(verdicts)} solutions could be judged: {verdicts[0].reason}.")
    return {
        "tasks": len({sample.task_id for sample in found}),
        "samples": len(found),
        "not_judged": [named(one) for one in verdicts if "not_judged" in (one.base, one.plus)],
        "differs_from_evalplus": [named(one) for one in verdicts if one.differs],
        "rewritten": [f"{sample.task_id} sample {sample.number}" for sample in found if sample.rewritten],
        "cut": [f"{sample.task_id} sample {sample.number}" for sample in found if sample.cut],
    }


def _scores(scores: Mapping[str, Score]) -> Report:
    """pass@k and its errors in EvalPlus's form, and how many problems they are of."""
    found: Report = {
        "pass_at_k": {suite: {} for suite in TEST_SUITES},
        "standard_errors": {suite: {} for suite in TESTS},
    }
    for metric, score in scores.items():
        suite, _, name = metric.partition("_")
        if name.startswith("pass@"):
            found["pass_at_k"][suite][name] = score.value
            found["standard_errors"][suite][name] = score.error
            found |= {"scored": score.n, "asked": score.asked}
    return found


def _judged(
    samples: Sequence[Sample], problem_set: ProblemSet, workers: int | None, sandboxed: bool
) -> tuple[list[SolutionVerdict], dict[str, SolutionVerdict]]:
    """Verdicts on the samples, in their order, and on the canonical solutions of their problems."""
    task_ids = {sample.task_id for sample in samples}
    problems = {task_id: problem for task_id, problem in problem_set.problems().items() if task_id in task_ids}
    solutions = [Solution(sample.task_id, sample.number, sample.code) for sample in samples]
    return judge_with_canonicals(problems, solutions, problem_set.dataset.name, workers=workers, sandboxed=sandboxed)


def _of_given_text(sample: Sample, verdict: SolutionVerdict) -> SolutionVerdict:
    """A verdict with EvalPlus's own on the text that the file holds, which fails where it is no program."""
    fails = {f"evalplus_{suite}": "fail" for suite in TEST_SUITES}
    return replace(verdict, **fails, **{f"{name}_details": [] for name in fails}) if sample.rewritten else verdict


def _signature(
    made: Mapping[str, Any], problem_set: ProblemSet, found: Sequence[Sample], sandboxed: bool, other: str
) -> str:
    """One line with everything that the scores depend on, including the generation settings if known."""
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
        asked_data=made["data_hash"] if other else None,
        refined_prompts=made.get("refined_prompts", problem_set.refined),
        scorer=scorer_name(sandboxed),
        **fields,
        **installed_versions(PACKAGES),
    )


def generation_of(samples: Path) -> dict[str, Any]:
    """The generation settings that `cultureval code generate` saved for a file; {} for other files."""
    name = samples.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".raw")
    try:
        content = json.loads(samples.with_name(f"{name}.generation.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def asked_of_others(made: Mapping[str, Any], problem_set: ProblemSet) -> str:
    """A sentence where `code generate` asked other problems than these, or with other prompts; "" for nothing known."""
    asked, judged = made.get("data_hash"), problem_set.content_hash
    differs = f"Asked of other problems (data_hash {asked}) than are judged ({judged}), so not comparable."
    return escaped(differs) if asked not in (None, judged) else ""


def refused_problems(made: Mapping[str, Any], problem_set: ProblemSet) -> dict[str, dict[str, str]]:
    """The problems that `code generate --on-refused unscored` left out, each with the `reason` and its kind.

    The name is the problem's; a file that somebody edited may hold anything, of which only what has this form counts.
    """
    told = made.get("refused")
    return {
        task_id: {"reason": escaped(str(one.get("reason", ""))[:500]), "kind": str(one["kind"])}
        for task_id, one in (told.items() if isinstance(told, dict) else ())
        if task_id in problem_set.rows and isinstance(one, dict) and one.get("kind") in KINDS
    }


def _model_of(samples: Path, made: Mapping[str, Any], given: str | None) -> str:
    """The model's name in the results, also a folder in them: as given, as saved when generating, or the file's."""
    name = given or made.get("model")
    if not isinstance(name, str) or not name.strip("/. "):
        name = samples.resolve().name.removesuffix(".gz").removesuffix(".jsonl")
    return "/".join(part for part in name.split("/") if part not in ("..", "."))


def write_files(
    samples: Path,
    output_dir: Path,
    problem_set: ProblemSet,
    found: Sequence[Sample],
    verdicts: Sequence[SolutionVerdict],
) -> dict[str, str]:
    """Writes EvalPlus's and our result files next to the samples; returns their paths."""
    folder = samples if samples.is_dir() else samples.parent
    if not os.access(folder, os.W_OK):
        folder = output_dir
        folder.mkdir(parents=True, exist_ok=True)
    stem = "" if samples.is_dir() else samples.name.removesuffix(".gz").removesuffix(".jsonl") + "_"
    theirs, ours = folder / f"{stem}eval_results.json", folder / f"{stem}verdicts.jsonl"
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


def _note(entry: Report) -> str:
    ours, theirs = (f"{entry[f'{who}base']}/{entry[f'{who}plus']}" for who in ("", "evalplus_"))
    reason = f" ({entry['reason']})" if entry["reason"] else ""
    return f"  {entry['task_id']} sample {entry['sample']}: base/plus {ours}, EvalPlus's own {theirs}{reason}"
