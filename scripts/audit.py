"""`cultureval audit`: finds bad items by checks and judges, and brings back what people decide."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note, print_result
from cultureval.scripts.audit_code import code
from cultureval.scripts.curate import curate
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
from cultureval.tasks.options import read_data_options

if TYPE_CHECKING:
    from cultureval.audit.items import AuditItem
    from cultureval.audit.judging import Audit, Rule
    from cultureval.metrics.judges.settings import JudgeSettings


def run(
    source: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Tasks, groups, suites (qimma), or files and folders of data."),
    ],
    judges: Annotated[
        list[str] | None,
        typer.Option(help="Two judges or more, A,B: YAML files or models' ids; default: checks alone. Repeatable."),
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
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=COLUMN,...",
            help="Columns of data by path: question=Q,options=A+B+C+D,gold=answer,context=passage,image=file,first=1 "
            "(index of the first option).",
        ),
    ] = None,
    sample: Sample = None,
    seed: Seed = 0,
    dry_run: JudgeNothing = False,
    budget: JudgeBudget = None,
    delimit: Delimit = None,
    output_dir: OutputDir = "audit",
    resume: ReuseVerdicts = None,
) -> None:
    """Looks for bad items by fourteen checks, and with two judges or more by the ten criteria of QIMMA's paper.

    Example: cultureval audit run qimma_arabicmmlu --judges qwen.yaml,deepseek.yaml
    """
    require_extra("audit")
    from cultureval.audit.checks import run_checks
    from cultureval.audit.judging import Rule
    from cultureval.audit.review import write_review
    from cultureval.audit.sources import columns_given, read_items
    from cultureval.reports.audit import MANIFEST, write_audit

    folder = Path(output_dir).expanduser()
    _require_no_people(folder / MANIFEST)
    with data_settings(data, form, resume):
        asked = _judges(judges or [], budget, delimit)
        items = read_items(source, read_data_options(), columns_given(columns) if columns else None)
        if dry_run:
            return print("\n".join([*_costs(asked, _drawn(items, sample, seed)), "Nothing was judged."]))
        checked = run_checks(items)
        audit = _audited(asked, _drawn(items, sample, seed), Rule(rule, threshold, gap)) if asked else None
    manifest, text = write_audit(checked, audit, folder)
    waiting = write_review(items, manifest.rows, folder)
    review = f"\n\n{waiting:,} items for people: {folder}/review.csv, or tasks.json of Label Studio." if waiting else ""
    print_result(f"{text}{review}", folder)
    if audit and audit.stopped:
        raise CulturevalError(
            "; ".join(audit.stopped) + ". Verdicts so far are saved: run the same command to continue."
        )


def _judges(names: Sequence[str], budget: float | None, delimit: bool | None) -> "list[JudgeSettings]":
    from cultureval.audit.judging import auditing
    from cultureval.metrics.judges.settings import find_judges

    parts = [part for name in names for part in name.split(",")]
    return [one.with_(budget=budget, delimit=delimit) for one in auditing(find_judges(parts))] if parts else []


def _drawn(items: "Sequence[AuditItem]", sample: int | None, seed: int) -> "list[AuditItem]":
    from cultureval.audit.sources import sampled_items

    return sampled_items([item for item in items if item.split == "test"], sample, seed)


def _costs(judges: "Sequence[JudgeSettings]", items: "Sequence[AuditItem]") -> list[str]:
    from cultureval.audit.judging import estimates

    return [f"{judge}  {template}: {one}" for (judge, template), one in estimates(judges, items).items()]


def _audited(judges: "Sequence[JudgeSettings]", items: "Sequence[AuditItem]", rule: "Rule") -> "Audit":
    from cultureval.audit.judging import audit_items

    if not items:
        raise CulturevalError("There are few-shot examples alone, which are not judged.")
    print_note(f"{len(items):,} items, {len(judges)} judges; --dry-run tells the cost before.")
    return audit_items(judges, items, rule)


def _require_no_people(manifest: Path) -> None:
    """Refuses to replace a manifest that holds decisions of people."""
    from cultureval.tasks.manifest import read_manifest

    if manifest.is_file() and any(by.startswith("person:") for row in read_manifest(manifest).rows for by in row.by):
        raise CulturevalError(f"{manifest} holds people's decisions, which this would replace: move it elsewhere.")


def apply(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Filled-in review.csv files, or JSON exports of Label Studio."),
    ],
    manifest: Annotated[
        list[Path], typer.Option(help="The manifest of the audit that asked for the review. Repeatable.")
    ],
    write_manifest: Annotated[Path, typer.Option(help="Write the manifest with people's decisions here.")],
    annotator: Annotated[str | None, typer.Option(help="Who filled in CSV files without names.")] = None,
    min_verdicts: Annotated[int, typer.Option(min=1, help="Votes that an item needs to be decided.")] = 1,
) -> None:
    """Decides by the majority of people's verdicts, for `eval --manifest`; ties stay open. Prints agreement.

    Example: cultureval audit apply amal.csv basim.csv --manifest audit/manifest.jsonl --write-manifest decided.jsonl
    """
    from cultureval.audit.review import decide, read_verdicts
    from cultureval.reports.audit import reviewed_text
    from cultureval.tasks.manifest import merged, read_manifest
    from cultureval.tasks.manifest import write_manifest as write_rows

    if write_manifest.expanduser().exists():
        raise CulturevalError(f"{write_manifest} is there already: name another file, or remove it.")
    reviewed = decide(
        merged([read_manifest(file.expanduser()) for file in manifest]), read_verdicts(files, annotator), min_verdicts
    )
    write_rows(write_manifest, reviewed.manifest)
    print_result(reviewed_text(reviewed), write_manifest)


audit = typer.Typer(
    help="Finds bad items before they mislead. Example: cultureval audit run qimma --data DIR",
    no_args_is_help=True,
    rich_markup_mode=None,
)
audit.command("run")(run)
audit.command("apply")(apply)
audit.command("code")(code)
audit.add_typer(curate, name="curate")
