"""`cultureval audit`: finds bad items by checks and judges, and applies what people decide."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cultureval.runtime.csv_files import HOLDS_VERDICTS, require_unfilled
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_result
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.audit_code import code
from cultureval.scripts.curate import curate
from cultureval.scripts.options import Data, Form, JudgeBudget, JudgeNothing, OutputDir
from cultureval.tasks.options import read_data_options


def run(
    source: Annotated[
        list[str], typer.Argument(metavar="SOURCE...", help="Tasks, groups, suites, or files and folders of data.")
    ],
    judges: Annotated[
        list[str] | None, typer.Option(metavar="A,B", help="Two judges or more: YAML files or models' ids.")
    ] = None,
    rule: Annotated[
        Literal["blog", "paper"], typer.Option(help="blog discards what all judges reject; paper asks people.")
    ] = "blog",
    data: Data = None,
    form: Form = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME=COLUMN,...", help="Columns of a file: question=Q,options=A+B+C+D,gold=answer."),
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Judge this many random items per task.")] = None,
    dry_run: JudgeNothing = False,
    budget: JudgeBudget = None,
    output_dir: OutputDir = "audit",
) -> None:
    """Looks for bad items by fourteen checks and, with judges, by the ten criteria of QIMMA's paper.

    Example: cultureval audit run qimma_arabicmmlu --judges qwen.yaml,deepseek.yaml
    """
    require_extra("audit")
    from cultureval.audit.checks import run_checks
    from cultureval.audit.judging import audit_items, audit_judges, estimates
    from cultureval.audit.review import write_review
    from cultureval.audit.sources import read_columns, read_items, sampled_items
    from cultureval.metrics.judges.settings import find_judges
    from cultureval.reports.audit import write_audit

    folder = Path(output_dir).expanduser()
    _require_no_verdicts(folder)
    with use_settings(current_settings().with_(data_root=data, form=form)):
        names = [name for names in judges or [] for name in names.split(",")]
        settings = [judge.with_(budget=budget) for judge in audit_judges(find_judges(names))] if names else []
        items = read_items(source, read_data_options(), read_columns(columns) if columns else None)
        judged = sampled_items([item for item in items if item.split == "test"], sample)
        if settings and not judged:
            raise CulturevalError("These are few-shot examples alone, which are not judged: name test data.")
        if dry_run:
            costs = [f"{judge}  {template}: {cost}" for (judge, template), cost in estimates(settings, judged).items()]
            return print("\n".join([*costs, "Nothing was judged."]))
        checked = run_checks(items)
        audit = audit_items(settings, judged, rule) if settings else None
    manifest, text = write_audit(checked, audit, folder)
    waiting = write_review(items, manifest.rows, folder)
    review = f"\n\n{waiting:,} items for people: {folder}/review.csv, or tasks.json of Label Studio." if waiting else ""
    print_result(f"{text}{review}", folder)
    if audit and audit.stopped:
        raise CulturevalError(f"{'; '.join(audit.stopped)}. Verdicts are saved: run the same command to continue.")


def _require_no_verdicts(folder: Path) -> None:
    """Refuses to replace a review that people have filled in, or a manifest that they have decided."""
    from cultureval.audit.review import REVIEW
    from cultureval.reports.audit import MANIFEST
    from cultureval.tasks.manifest import read_manifest

    require_unfilled(folder / REVIEW)
    manifest = folder / MANIFEST
    if manifest.is_file() and any(row.by_people for row in read_manifest(manifest).rows):
        raise CulturevalError(f"{manifest} {HOLDS_VERDICTS}")


def apply(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Filled-in review.csv files, or JSON exports of Label Studio."),
    ],
    manifest: Annotated[list[Path], typer.Option(metavar="FILE", help="The manifest of the audit. Repeatable.")],
    write_manifest: Annotated[Path, typer.Option(metavar="FILE", help="The manifest with people's decisions.")],
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
    asked = merged([read_manifest(file.expanduser()) for file in manifest])
    reviewed = decide(asked, read_verdicts(files), min_verdicts)
    write_rows(write_manifest, reviewed.rows)
    print_result(reviewed_text(reviewed), write_manifest)


audit = typer.Typer(
    help="Finds bad items before they mislead. Example: cultureval audit run qimma --data DIR",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (run, apply, code, curate):
    audit.command(command.__name__)(command)
