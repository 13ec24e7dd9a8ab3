"""`cultureval audit run` and `report`: judges on ten criteria, and tables of what they decide."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note, print_result
from cultureval.scripts.audit.options import Columns, SourceNames, read_sources, require_no_people
from cultureval.scripts.options import (
    Data,
    Delimit,
    Form,
    JudgeBudget,
    JudgeNothing,
    OutputDir,
    ReuseVerdicts,
    Sample,
    Seed,
    data_settings,
)


def run(
    source: SourceNames,
    judges: Annotated[
        list[str] | None,
        typer.Option(help="Two judges or more: YAML files or models' ids, A,B; default: CULTUREVAL_JUDGE. Repeatable."),
    ] = None,
    rule: Annotated[
        Literal["blog", "paper"],
        typer.Option(
            help="blog: below the threshold from all judges discards, from one asks for a review. paper: from one, or "
            "a gap, asks for a review."
        ),
    ] = "blog",
    threshold: Annotated[int, typer.Option(min=1, max=10, help="A total of the ten criteria below it flags.")] = 7,
    gap: Annotated[
        int, typer.Option(min=1, max=10, help="Difference of totals that is a disagreement (rule paper).")
    ] = 3,
    data: Data = None,
    form: Form = None,
    columns: Columns = None,
    sample: Sample = None,
    seed: Seed = 0,
    dry_run: JudgeNothing = False,
    budget: JudgeBudget = None,
    delimit: Delimit = None,
    output_dir: OutputDir = "audit",
    resume: ReuseVerdicts = None,
) -> None:
    """Judges items by the paper's ten criteria, with two judges or more, and decides which to keep, discard or review.

    Example: cultureval audit run qimma_arabicmmlu --judges qwen.yaml,deepseek.yaml
    """
    from cultureval.audit.judging import Rule, audit_items, auditing, estimates
    from cultureval.audit.sources import sampled_items
    from cultureval.metrics.judges.settings import configured_judges, find_judges
    from cultureval.reports.audit.report import MANIFEST, write_audit

    folder = Path(output_dir).expanduser()
    require_no_people(folder / MANIFEST)
    with data_settings(data, form, resume):
        names = [part for name in judges or [] for part in name.split(",")]
        found = [
            one.with_(budget=budget, delimit=delimit)
            for one in auditing(find_judges(names) if names else configured_judges())
        ]
        items = read_sources(source, columns)
        items = sampled_items([item for item in items if item.split == "test"], sample, seed)
        if not items:
            raise CulturevalError(f"{', '.join(source)}: there are few-shot examples alone, which are not judged.")
        if dry_run:
            lines = [f"{judge}  {template}: {one}" for (judge, template), one in estimates(found, items).items()]
            return print("\n".join([*lines, "Nothing was judged."]))
        print_note(f"{len(items):,} items, {len(found)} judges; --dry-run tells the cost before.")
        audit = audit_items(found, items, Rule(rule, threshold, gap))
    print_result(write_audit(audit, folder), folder)
    if audit.stopped:
        raise CulturevalError(
            "; ".join(audit.stopped) + ". Verdicts so far are saved: run the same command to continue."
        )


def report(
    audits: Annotated[
        list[Path], typer.Argument(metavar="AUDIT...", help="Output folders of `audit run`, and manifests.")
    ],
    results: Annotated[
        list[Path] | None, typer.Option(help="Results of models, for scores before and after. Repeatable.")
    ] = None,
    output_dir: OutputDir = "audit-report",
) -> None:
    """Tables as text and CSV: kept and discarded, reasons, judges' agreement, scores of models before and after.

    Example: cultureval audit report audit --results results
    """
    from cultureval.reports.audit.report import write_report

    folder = Path(output_dir).expanduser()
    print_result(write_report(audits, results or (), folder), folder)
