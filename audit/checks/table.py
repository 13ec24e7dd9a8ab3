"""All checks, and how they are run over items."""

from collections.abc import Iterator, Sequence

from cultureval.audit.checks import options, wording
from cultureval.audit.checks.duplicates import of_kind
from cultureval.audit.checks.findings import Check, Finding
from cultureval.audit.items import AuditItem
from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.extras import require_extra
from cultureval.runtime.progress import Progress
from cultureval.tasks.manifest import Decision, ManifestRow

CHECKS: tuple[Check, ...] = (
    *(options.missing_gold, options.gold_out_of_range, options.gold_not_in_options, wording.empty_question),
    *(options.too_few_options, options.empty_option, options.duplicate_options, options.marked_answer),
    *(wording.answer_in_question, options.contained_option, options.all_of_the_above),
    *(options.inconsistent_labels, wording.broken_encoding, wording.markup, wording.zero_width),
    *(wording.presentation_forms, wording.mixed_scripts, wording.absent_reference, wording.absent_image),
    *(wording.wrong_type, wording.refused_by_reader, options.gold_position, options.longest_option),
    Check("exact_duplicate", "error", "A repeated item counts twice.", of_kind("exact_duplicate")),
    Check("near_duplicate", "warning", "A nearly repeated item counts nearly twice.", of_kind("near_duplicate")),
    Check(
        "duplicate_across_sources",
        "warning",
        "One item in two benchmarks makes their scores depend on each other.",
        of_kind("duplicate_across_sources"),
    ),
    Check(
        "few_shot_in_test",
        "error",
        "The prompt of a few-shot run holds the item and its answer.",
        of_kind("few_shot_in_test"),
    ),
)
DECISIONS: dict[str, Decision] = {"error": "discard", "warning": "review", "notice": "keep"}


def run_checks(items: Sequence[AuditItem], only: Sequence[str] = (), without: Sequence[str] = ()) -> list[Finding]:
    """The findings of the checks, check by check in the table's order; of `only` these (() of all), `without` those.

    Raises:
        CulturevalError: There is no check of a name.
        MissingExtra: What the checks need is not installed.
    """
    require_extra("audit")
    names = [check.name for check in CHECKS]
    for name in (*only, *without):
        if name not in names:
            raise CulturevalError(
                f"There is no check {name!r}.{did_you_mean(name, names)} They are {', '.join(names)}."
            )
    chosen = [check for check in CHECKS if (not only or check.name in only) and check.name not in without]
    with Progress(len(chosen), "audit", "check") as bar:
        findings = []
        for check in chosen:
            findings += _of(check, items)
            bar.update()
    return findings


def _of(check: Check, items: Sequence[AuditItem]) -> Iterator[Finding]:
    for found in check.look(items):
        item = found.item
        place = ("", "") if found.of_subset else (item.row, item.hash)
        yield Finding(
            *(check.name, check.severity, item.source, item.subset, item.task, *place, found.detail, found.other)
        )


def manifest_rows(items: Sequence[AuditItem], findings: Sequence[Finding]) -> list[ManifestRow]:
    """A decision on each evaluated item: errors discard it, warnings ask for a review, all else keeps it."""
    by_row: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.row:
            by_row.setdefault((finding.source, finding.row), []).append(finding)
    rows = []
    for item in items:
        if item.split != "test":
            continue
        own = by_row.get((item.source, item.row), [])
        decisions = {DECISIONS[finding.severity] for finding in own}
        decision = next((one for one in ("discard", "review") if one in decisions), "keep")
        reasons = list(dict.fromkeys(f"check:{finding.check}" for finding in own))
        rows.append(manifest_row(item, decision, reasons, ["check"]))
    return rows


def manifest_row(item: AuditItem, decision: Decision, reasons: list[str], by: list[str]) -> ManifestRow:
    """The line of a manifest on an item."""
    return ManifestRow(
        source=item.source,
        revision=item.revision,
        subset=item.subset,
        row=item.row,
        hash=item.hash,
        decision=decision,
        reasons=reasons,
        by=by,
    )
