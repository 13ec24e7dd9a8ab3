"""What `cultureval audit` writes and prints: findings, decisions, judges' verdicts, reviews, refined code.

`audit run` writes `manifest.jsonl` (no text of an item), `findings.csv`, `decisions.csv`, with judges also
`verdicts.jsonl`, `criteria.csv` and `agreement.csv`, and `summary.txt`, which is printed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import counted
from cultureval.runtime.rounding import printed_or_na
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.manifest import Manifest, ManifestRow, merged, write_manifest
from cultureval.tasks.suite import Task

if TYPE_CHECKING:
    import pandas

    from cultureval.audit.checks import CheckResults, Finding
    from cultureval.audit.code_refinement import Refined
    from cultureval.audit.judging import Audit, JudgedItem
    from cultureval.audit.review import Reviewed

MANIFEST = "manifest.jsonl"
DECISIONS = {"keep": "kept", "discard": "discarded", "review": "to review"}
PLACE = ("source", "subset", "task", "row", "hash")
ITEM = (*PLACE, "revision", "benchmark", "form", "question", "context", "gold")
FINDING = ("check", "severity", *PLACE, "detail", "repeated")
VERDICT = ("outcome", "reason", "reply", "scores", "notes")
MOST_REASONS, MOST_ROWS, FEW_FINDINGS = 5, 40, 3  # of what is printed; the files hold all
PUBLISHED = {"HumanEval+": (145, 19), "MBPP+": (308, 70)}  # QIMMA's paper: modified, unchanged
REASONS = {
    "human_check": "the model asks for a person",
    "not_only_arabic": "more than the Arabic of the docstring changed",
    "no_reply": "no readable reply",
}
REFINED_COLUMNS = ("task_id", "reason", "detail", "original", "proposed", "verdict")


def write_audit(checked: "CheckResults", audit: "Audit | None", folder: Path) -> tuple[Manifest, str]:
    """Writes the manifest and the tables of an audit; returns the manifest and the summary.

    Args:
        checked: What the checks found.
        audit: The judges' verdicts; None without judges.
    """
    rows = list(checked.rows)
    if audit:
        judged = [item.manifest_row() for item in audit.items]
        rows = list(merged([Manifest("", tuple(some)) for some in (rows, judged)]).rows)
        write_json_lines(folder / "verdicts.jsonl", map(_record, audit.items))
    manifest = write_manifest(folder / MANIFEST, rows)
    write_csv(folder / "findings.csv", list(map(_finding, checked.findings)), FINDING)
    tables = {"decisions": _decisions(rows)} if rows else {}
    tables |= _judges_tables(audit) if audit else {}
    for name, table in tables.items():
        write_csv(folder / f"{name}.csv", table.to_dict("records"))
    parts = [findings_text(checked), *(_table_text(name, table) for name, table in tables.items())]
    text = "\n\n".join([*parts, *([judging_text(audit)] if audit else [])])
    write_atomically(folder / "summary.txt", f"{text}\n".encode("utf-8", "backslashreplace"))
    return manifest, text


def _finding(finding: "Finding") -> dict[str, Any]:
    place = {name: getattr(finding.item, name) for name in PLACE}
    repeated = finding.repeated.id if finding.repeated else ""
    about = {"check": finding.check.name, "severity": finding.check.severity}
    return about | place | {"detail": finding.detail, "repeated": repeated}


def findings_text(checked: "CheckResults") -> str:
    """The findings as a table of checks, and under it the first of each check."""
    rows, parts, findings, items = [], [], checked.findings, checked.items
    for check in dict.fromkeys(finding.check for finding in findings):
        own = [finding for finding in findings if finding.check == check]
        rows.append((check.name, check.severity, f"{len(own):,}", f"{len(own) / len(items):.1%}"))
        lines = [f"  {finding.item.source} {finding.item.row}: {finding.detail}" for finding in own[:FEW_FINDINGS]]
        more = [f"  ... and {len(own) - FEW_FINDINGS:,} more in findings.csv"] if len(own) > FEW_FINDINGS else []
        parts.append("\n".join([f"{check.name}: {check.reason}", *lines, *more]))
    table = [terminal_table(("check", "severity", "items", "share"), rows, align="llrr")] if rows else []
    found = len({finding.item.id for finding in findings})
    tests = sum(item.split == "test" for item in items)
    examples = f" and {counted(len(items) - tests, 'few-shot example')}" if tests < len(items) else ""
    total = f"{counted(tests, 'item')}{examples} of {counted(len({item.source for item in items}), 'data set')}"
    return "\n\n".join([*table, *parts, f"{total}: {found:,} with findings, {len(findings):,} findings."])


def _record(judged: "JudgedItem") -> dict[str, Any]:
    verdicts = {name: {part: getattr(verdict, part) for part in VERDICT} for name, verdict in judged.verdicts.items()}
    return {name: getattr(judged.item, name) for name in ITEM} | {
        "options": judged.item.options or judged.item.answers,
        "decision": judged.decision,
        "reasons": judged.reasons,
        "verdicts": verdicts,
    }


def judging_text(audit: "Audit") -> str:
    """Missing verdicts with their reasons, the rule, cost and signatures of an audit."""
    missing = Counter(
        f"{name}: {verdict.outcome}, {verdict.reason.partition(': ')[0][:100]}"
        for item in audit.items
        for name, verdict in item.verdicts.items()
        if not verdict.scores
    )
    lines = [f"{count:,} without a verdict of {reason}" for reason, count in missing.most_common(MOST_REASONS)]
    costs = "; ".join(f"{name}: {budget}" for name, budget in audit.costs.items())
    signatures = [f"signature: {signature}" for signature in audit.signatures]
    return "\n".join([*lines, f"Rule: {audit.rule}. Cost: {costs}.", *signatures])


def _table_text(name: str, table: "pandas.DataFrame") -> str:
    rows = [[_cell(value) for value in row] for row in table.astype(object).to_numpy()[:MOST_ROWS]]
    more = f" (the first {MOST_ROWS} of {len(table)} rows)" if len(table) > MOST_ROWS else ""
    return terminal_table(list(table), rows, "lr", f"{name}{more}:")


def _cell(value: Any) -> str:
    if value is None or isinstance(value, float):
        return printed_or_na(value, 4)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _decisions(rows: Sequence[ManifestRow]) -> "pandas.DataFrame":
    """Decisions by benchmark, as Table 2a of QIMMA's paper has them."""
    import pandas

    known = [(row, _task_of(row.source, row.subset)) for row in rows]
    frame = pandas.DataFrame(
        {
            "benchmark": task.benchmark if task else row.source,
            "task type": task.kind.task_type if task else "",
            "domain": task.domain if task else "",
            "decision": row.decision,
        }
        for row, task in known
    )
    by = ["benchmark", "task type", "domain"]
    counts = frame.groupby([*by, "decision"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=list(DECISIONS), fill_value=0).rename(columns=DECISIONS)
    counts["items"] = counts.sum(axis=1)
    counts["discarded, %"] = [f"{share:.1f}" for share in 100 * counts["discarded"] / counts["items"]]
    return counts.reset_index()


@cache
def _task_of(source: str, subset: str) -> Task | None:
    tasks = [task for task in all_tasks().values() if any(one.repo == source for one in task.sources)]
    return next((task for task in tasks if task.subset == subset), None)


def _judges_tables(audit: "Audit") -> "dict[str, pandas.DataFrame]":
    """How often each judge scores a criterion 0, and how far judges agree on it."""
    import pandas

    scores = pandas.DataFrame(
        [
            (place, judge, criterion, int(score))
            for place, item in enumerate(audit.items)
            for judge, verdict in item.verdicts.items()
            for criterion, score in verdict.scores.items()
        ],
        columns=["item", "judge", "criterion", "score"],
    )
    if scores.empty:
        return {}
    failed = scores["score"].eq(0).groupby([scores["criterion"], scores["judge"]], sort=False).sum()
    tables = {"criteria": failed.unstack(fill_value=0).reset_index()}
    agreement = list(_agreement(scores))
    return tables | ({"agreement": pandas.DataFrame(agreement)} if agreement else {})


def _agreement(scores: "pandas.DataFrame") -> Iterator[dict[str, Any]]:
    """Agreement on each criterion, of items that two judges or more have a verdict on."""
    for criterion, some in scores.groupby("criterion", sort=False):
        flags = some.pivot(index="item", columns="judge", values="score").dropna(thresh=2)
        if len(flags):
            votes, same = flags.to_numpy().tolist(), int(flags.nunique(axis=1).eq(1).sum())
            about = {"criterion": criterion, "same score": same, "items": len(flags)}
            alpha = krippendorff_alpha(votes, [0, 1])
            yield about | {"Gwet's AC1": gwet_ac1(votes, [0, 1]), "Krippendorff's alpha": alpha}


def reviewed_text(reviewed: "Reviewed") -> str:
    """Who gave how many verdicts, what they decide, and how far people agree."""
    people, counts = reviewed.annotators, reviewed.counts
    names = ", ".join(f"{name} {count:,}" for name, count in sorted(people.items()))
    text = (
        f"{counted(sum(people.values()), 'verdict')} of {counted(len(people), 'annotator')} ({names}).\n"
        f"{counted(counts['kept'], 'item')} kept, {counts['discarded']:,} discarded, {counts['tied']:,} tied, which "
        f"stay open, {counts['waiting']:,} still without enough votes."
    )
    if not reviewed.pairs:
        return text
    ac1, alpha = printed_or_na(reviewed.ac1), printed_or_na(reviewed.alpha)
    agreed = f"Agreement on {counted(reviewed.pairs, 'item')} with two votes or more: AC1 {ac1}, alpha {alpha}."
    return f"{text}\n{agreed}"


def prompts_file(folder: Path, dataset: str) -> Path:
    """Where the prompts of a data set (`humaneval`) are, in the form that the task arg `refined_prompts` reads."""
    return folder / f"{dataset}.jsonl"


def review_file(folder: Path, dataset: str) -> Path:
    """Where the table for people is of the prompts of a data set."""
    return folder / f"{dataset}_review.csv"


def write_refined(refined: "Sequence[Refined]", folder: Path, dataset: str, for_people: bool) -> None:
    """Writes the prompts of all problems and, for people, a table of those that they should look at."""
    write_json_lines(prompts_file(folder, dataset), map(asdict, refined))
    if not for_people:
        return
    rows = [asdict(one) for one in refined if one.outcome == "review"]
    review = [{name: row.get(name) for name in REFINED_COLUMNS} for row in rows]
    write_csv(review_file(folder, dataset), review, REFINED_COLUMNS, "utf-8-sig")


def refined_text(refined: "Mapping[str, Sequence[Refined]]", canonical: Mapping[str, tuple[int, int]]) -> str:
    """Modified and unchanged prompts as the paper counts them, what is to be reviewed and why.

    Args:
        refined: Title of a data set -> its prompts.
        canonical: Title -> (canonical solutions that pass with the refined prompts, all).
    """
    rows, lines = [], []
    for title, some in refined.items():
        counts = Counter(prompt.outcome for prompt in some)
        modified, unchanged = PUBLISHED[title]
        paper = f"{modified} / {unchanged} ({modified / (modified + unchanged):.0%})"
        numbers = [f"{counts[name]:,}" for name in ("modified", "unchanged", "review")]
        share = f"{counts['modified'] / len(some):.0%}"
        rows.append([title, f"{len(some):,}", *numbers, share, paper, "{} of {}".format(*canonical[title])])
        waiting = Counter(prompt.reason for prompt in some if prompt.outcome == "review")
        reasons = "; ".join(f"{count:,} {REASONS.get(name, name)}" for name, count in waiting.most_common())
        lines += [f"{title}: {counted(waiting.total(), 'prompt')} to review: {reasons}."] if reasons else []
    header = ["", "prompts", "modified", "unchanged", "to review", "modified", "[paper]", "canonical solutions pass"]
    return "\n".join([terminal_table(header, rows, "lr"), *lines])
