"""All checks, and how they are run over items."""

from collections.abc import Iterator, Sequence

from cultureval.audit.checks import gold, options, wording
from cultureval.audit.checks.duplicates import of_kind
from cultureval.audit.checks.findings import Check, Finding, each
from cultureval.audit.items import AuditItem
from cultureval.runtime.errors import CulturevalError, did_you_mean
from cultureval.runtime.progress import Progress
from cultureval.tasks.manifest import Decision, ManifestRow

CHECKS: tuple[Check, ...] = (
    Check("missing_gold", "error", "Without a gold no answer can be right.", each(gold.missing_gold)),
    Check(
        "gold_out_of_range",
        "error",
        "The gold names an option that is not there, so that every answer is wrong.",
        each(gold.gold_out_of_range),
    ),
    Check("gold_not_in_options", "error", "The right answer cannot be chosen.", each(gold.gold_not_in_options)),
    Check("empty_question", "error", "Nothing is asked.", each(wording.empty_question)),
    Check("too_few_options", "error", "There is nothing to choose from.", each(options.too_few_options)),
    Check("empty_option", "error", "An empty option can be ruled out, or was lost.", each(options.empty_option)),
    Check(
        "duplicate_options",
        "error",
        "Two options that look the same are right or wrong together, and only one of them counts.",
        each(options.duplicate_options),
    ),
    Check(
        "marked_answer",
        "error",
        "An option that says whether it is right gives the answer away.",
        each(options.marked_answer),
    ),
    Check(
        "answer_in_question",
        "warning",
        "A question that states its answer asks nothing.",
        each(wording.answer_in_question),
    ),
    Check(
        "contained_option",
        "notice",
        "Where an option holds all of another, both may be right.",
        each(options.contained_option),
    ),
    Check(
        "all_of_the_above",
        "warning",
        "What an option says of the others is wrong when they stand elsewhere.",
        each(options.all_of_the_above),
    ),
    Check(
        "inconsistent_labels",
        "warning",
        "Labels inside the options contradict those that the prompt gives them.",
        each(options.inconsistent_labels),
    ),
    Check(
        "broken_encoding", "error", "Damaged text measures how a model guesses letters.", each(wording.broken_encoding)
    ),
    Check("markup", "warning", "Tags and signs of a page are no words of the question.", each(wording.markup)),
    Check(
        "zero_width",
        "warning",
        "Characters that nobody sees make other tokens of a text.",
        each(wording.zero_width),
    ),
    Check(
        "presentation_forms",
        "warning",
        "Tokenizers know letters, not the shapes that a typesetter gave them.",
        each(wording.presentation_forms),
    ),
    Check(
        "mixed_scripts",
        "warning",
        "A letter of another script makes other tokens of a word that looks right.",
        each(wording.mixed_scripts),
    ),
    Check(
        "absent_reference",
        "warning",
        "What the question refers to is not in the item.",
        each(wording.absent_reference),
    ),
    Check("absent_image", "warning", "Nobody can see what is asked about.", each(wording.absent_image)),
    Check("wrong_type", "warning", "A cell of another type was converted on its way (3 to 3.0).", wording.wrong_type),
    Check("refused_by_reader", "error", "The task cannot score the row.", each(wording.refused_by_reader)),
    Check(
        "gold_position",
        "warning",
        "A model that prefers a position is scored for its preference.",
        gold.gold_position,
    ),
    Check(
        "longest_option",
        "warning",
        "The right answer can be guessed by its length.",
        gold.longest_option,
    ),
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
    """The findings of the checks, check by check in the table's order.

    Args:
        items: Of one or several sources.
        only: Names of the checks to run; () runs all.
        without: Names of checks to leave out.

    Raises:
        CulturevalError: There is no check of a name.
    """
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
