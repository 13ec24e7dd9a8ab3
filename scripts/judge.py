"""`cultureval judge`: judges saved answers, labels their questions, and compares metrics and judges with people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cultureval.runtime.errors import GOES_ON, CulturevalError
from cultureval.runtime.printing import print_result
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import JudgeBudget, JudgeNothing
from cultureval.tasks.catalogue import all_suites

if TYPE_CHECKING:
    from cultureval.metrics.judges.settings import JudgeSettings

Results = Annotated[list[Path] | None, typer.Argument(metavar="RESULTS...", help="Output folders or results files.")]
Judges = Annotated[
    list[str] | None, typer.Option("--judge", help="YAML file, or model id; default: CULTUREVAL_JUDGE. Repeatable.")
]
Sample = Annotated[int | None, typer.Option(min=1, help="Judge this many random items per task (see --seed).")]
Seed = Annotated[int, typer.Option(help="Random seed of the sample; the same items for all models.")]
Delimit = Annotated[
    bool | None,
    typer.Option(
        "--delimit/--no-delimit",
        help="Delimiters around the texts in all prompts; default: the judge's setting, else not.",
    ),
]
ReuseVerdicts = Annotated[
    bool | None,
    typer.Option(
        "--resume/--no-resume",
        help="Reuse the verdicts that are in the journal; default: CULTUREVAL_RESUME, else reuse them.",
    ),
]
Ratings = Annotated[
    str, typer.Option("--ratings", metavar="SUITE=FILE.csv", help="Compare with people's ratings; judge nothing.")
]
Names = Annotated[
    list[str] | None,
    typer.Option("--rated-as", metavar="HUMAN=MODEL", help="--ratings: a model's two names. Repeatable."),
]


def judge(
    results: Results = None,
    judges: Judges = None,
    label: Annotated[
        bool, typer.Option("--label", help="Label types of questions, topics of captions instead.")
    ] = False,
    sample: Sample = None,
    seed: Seed = 0,
    dry_run: JudgeNothing = False,
    budget: JudgeBudget = None,
    delimit: Delimit = None,
    resume: ReuseVerdicts = None,
    ratings: Ratings = "",
    names: Names = None,
    output: Annotated[Path | None, typer.Option(help="--ratings: CSV file of all correlations.")] = None,
) -> None:
    """Judges saved answers with any judge, all or a sample. Example: cultureval judge results --judge gpt-4o"""
    paths = [path.expanduser() for path in results or ()]
    if ratings:
        return print(_agreement(ratings, paths, names or [], output))
    from cultureval.reports.judging import estimates, judge_and_save, saved_jobs

    if not paths:
        raise CulturevalError("Which results? Name an output folder or a results file: cultureval judge results")
    chosen = [judge.with_(budget=budget, delimit=delimit) for judge in _judges(judges or [])]
    work = saved_jobs(paths, label, sample, seed)
    with use_settings(current_settings().with_(resume=resume)):
        if dry_run:
            return print(estimates(chosen, work))
        report, path, stopped = judge_and_save(chosen, work, {"sample": sample, "seed": seed if sample else None})
    print_result(report, path) if path else print(report)
    if stopped:
        raise CulturevalError(f"{'; '.join(stopped)}. {GOES_ON}")


def _judges(names: list[str]) -> "list[JudgeSettings]":
    """The named judges, else those of CULTUREVAL_JUDGE."""
    from cultureval.metrics.judges.settings import configured_judges, find_judges

    found = find_judges(part for name in names for part in name.split(",")) if names else configured_judges()
    if not found:
        raise CulturevalError("Which judge? Give --judge (a YAML file or a model's id), or set CULTUREVAL_JUDGE.")
    return list(found)


def _agreement(ratings: str, results: list[Path], names: list[str], output: Path | None) -> str:
    from cultureval.reports.human_ratings import agreement_report

    suite, _, file = ratings.partition("=")
    rated = [name for name, suite in all_suites().items() if suite.ratings]
    if suite not in rated or not file:
        raise CulturevalError(
            f"--ratings {ratings!r}: write SUITE=FILE.csv; {', '.join(rated)} have ratings of people."
        )
    pairs = dict(pair.partition("=")[::2] for pair in names)
    if not all([*pairs, *pairs.values()]):
        raise CulturevalError(f"--rated-as {' '.join(names)}: write HUMAN=MODEL.")
    return agreement_report(suite, Path(file).expanduser(), results, pairs, output)
