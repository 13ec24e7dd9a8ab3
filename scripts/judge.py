"""`cultureval judge`: judges saved answers with any judge, all or a sample; or labels their questions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cultureval.runtime.errors import GOES_ON, CulturevalError
from cultureval.runtime.printing import print_result
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import Delimit, JudgeBudget, JudgeNothing, ReuseVerdicts, Sample, Seed

if TYPE_CHECKING:
    from cultureval.metrics.judges.settings import JudgeSettings


def judge(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[label] RESULTS...",
            help="Output folders or results files; `label` first to label their questions and captions.",
        ),
    ],
    judges: Annotated[
        list[str] | None, typer.Option("--judge", help="YAML file, or model id; default: CULTUREVAL_JUDGE. Repeatable.")
    ] = None,
    sample: Sample = None,
    seed: Seed = 0,
    dry_run: JudgeNothing = False,
    budget: JudgeBudget = None,
    delimit: Delimit = None,
    resume: ReuseVerdicts = None,
) -> None:
    """Judges saved answers, or labels their questions and captions. Example: cultureval judge results --judge gpt-4o"""
    from cultureval.reports.judging import estimates, judge_and_save, saved_jobs

    label = results[0] == "label"
    paths = [Path(path).expanduser() for path in results[label:]]
    if not paths:
        raise CulturevalError("Which results? Name an output folder or a results file: cultureval judge results")
    chosen = _judges(judges or [], budget, delimit)
    work = saved_jobs(paths, label, sample, seed)
    with use_settings(current_settings().with_(resume=resume)):
        if dry_run:
            print(estimates(chosen, work))
            return
        report, path, stopped = judge_and_save(chosen, work, {"sample": sample, "seed": seed if sample else None})
    if path is None:
        print(report)
    else:
        print_result(report, path)
    if stopped:
        raise CulturevalError(f"{'; '.join(stopped)}. {GOES_ON}")


def _judges(names: list[str], budget: float | None, delimit: bool | None) -> list["JudgeSettings"]:
    """The named judges, else those of CULTUREVAL_JUDGE, with the command's settings."""
    from cultureval.metrics.judges.settings import configured_judges, find_judges

    found = find_judges(part for name in names for part in name.split(",")) if names else configured_judges()
    if not found:
        raise CulturevalError("Which judge? Give --judge (a YAML file or a model's id), or set CULTUREVAL_JUDGE.")
    return [one.with_(budget=budget, delimit=delimit) for one in found]
