"""`cultureval audit report`: decisions, reasons, agreement, scores before and after, as text and CSV."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cultureval.reports.audit.verdicts import MANIFEST, VERDICTS, agreement_of, failed_criteria
from cultureval.reports.item_fields import fields_of_items
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run, load
from cultureval.runs.scores import Score, task_scores
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.rounding import printed_or_na
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.manifest import Manifest, ManifestRow, merged, read_manifest
from cultureval.tasks.suite import Task

DECISIONS: tuple[Literal["keep", "discard", "review"], ...] = ("keep", "discard", "review")
COUNTED = ("kept", "discarded", "to review", "discarded, %")
SUMMARY = "report.txt"
Verdicts = Sequence[Mapping[str, Any]]


class Table(NamedTuple):
    """A table: the name of its CSV file, its title, columns and rows."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def write_report(audits: Sequence[Path], results: Sequence[Path], folder: Path) -> str:
    """Writes the tables of audits as CSV files and as text, which it returns.

    Args:
        audits: Manifests and output folders of `audit run`.
        results: Results of models on the audited benchmarks.

    Raises:
        CulturevalError: A file is missing or cannot be read.
    """
    manifests, verdicts = [], []
    for path in audits:
        manifests.append(read_manifest(path / MANIFEST if path.is_dir() else path))
        if path.is_dir() and (path / VERDICTS).is_file():
            verdicts += _verdicts(path / VERDICTS)
    manifest, runs = merged(manifests), load(*results).runs if results else []
    tables = [*_inventory(manifest), _reasons(manifest), _criteria(verdicts), _agreement(verdicts)]
    texts = []
    for table in [*tables, _scores(manifest, runs)]:
        if table.rows:
            write_csv(folder / f"{table.name}.csv", [dict(zip(table.columns, row, strict=True)) for row in table.rows])
            cells = [[_shown(value) for value in row] for row in table.rows]
            texts.append(terminal_table(table.columns, cells, "lr", f"{table.title}:"))
    counts = ", ".join(f"{manifest.count(name):,} {told}" for name, told in zip(DECISIONS, COUNTED, strict=False))
    text = "\n\n".join([*texts, f"{len(manifest.rows):,} items: {counts}. Manifest {manifest.hash}."])
    write_atomically(folder / SUMMARY, f"{text}\n".encode("utf-8", "backslashreplace"))
    return text


def _verdicts(file: Path) -> list[dict[str, Any]]:
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        if all(isinstance(row, dict) and isinstance(row["opinions"], list) for row in rows):
            return rows
    except (ValueError, KeyError, RecursionError):
        pass
    raise CulturevalError(f"{file} is no file of verdicts: write it again with `cultureval audit run`.")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, float):
        return printed_or_na(value, 4)
    return f"{value:,}" if isinstance(value, int) else str(value)


@cache
def _task_of(source: str, subset: str) -> Task | None:
    tasks = [task for task in all_tasks().values() if any(one.repo == source for one in task.sources)]
    return next((task for task in tasks if task.subset == subset), None)


def _inventory(manifest: Manifest) -> Iterator[Table]:
    """Table 2a of the paper (benchmark, type, subsets, domain, kept, discarded), and the same of each subset."""
    benchmarks: dict[str, list[ManifestRow]] = {}
    for row in manifest.rows:
        task = _task_of(row.source, row.subset)
        benchmarks.setdefault(task.benchmark if task else row.source, []).append(row)
    rows, own = [], []
    for name, some in benchmarks.items():
        subsets: dict[str, list[ManifestRow]] = {}
        for row in some:
            subsets.setdefault(row.subset, []).append(row)
        tasks = [task for one in some if (task := _task_of(one.source, one.subset))]
        types, domains = (", ".join(sorted({getattr(one, of) for one in tasks})) for of in ("task_type", "domain"))
        rows.append((name, types, len(subsets), domains, *_decided(some)))
        own += [(name, subset, *_decided(of_subset)) for subset, of_subset in subsets.items()]
    yield Table("inventory", "Kept and discarded", ("benchmark", "task type", "subsets", "domain", *COUNTED), rows)
    yield Table("subsets", "By subset", ("benchmark", "subset", *COUNTED), own)


def _decided(rows: Sequence[ManifestRow]) -> tuple[Any, ...]:
    counts = Counter(row.decision for row in rows)
    return *(counts[name] for name in DECISIONS), f"{100 * counts['discard'] / len(rows):.1f}"


def _reasons(manifest: Manifest) -> Table:
    counts: dict[str, Counter[str]] = {}
    for row in manifest.rows:
        for reason in row.reasons:
            counts.setdefault(reason, Counter())[row.decision] += 1
    ordered = sorted(counts.items(), key=lambda item: -item[1].total())
    rows = [(reason, count.total(), *(count[name] for name in DECISIONS)) for reason, count in ordered]
    return Table("reasons", "Reasons of decisions", ("reason", "items", *COUNTED[:3]), rows)


def _criteria(verdicts: Verdicts) -> Table:
    judges, rows = failed_criteria((one["judge"], one["scores"]) for row in verdicts for one in row["opinions"])
    return Table("criteria", "Criteria scored 0", ("criterion", *judges), rows)


def _agreement(verdicts: Verdicts) -> Table:
    """Agreement on each criterion, of items that every judge has a verdict on."""
    scored = [[one["scores"] for one in row["opinions"]] for row in verdicts]
    scored = [scores for scores in scored if len(scores) > 1 and all(scores)]
    rows = []
    for name in scored[0][0] if scored else ():
        flags = [[int(one[name]) for one in scores] for scores in scored]
        values = agreement_of(flags)
        rows.append((name, sum(len(set(row)) == 1 for row in flags), len(flags), values["ac1"], values["alpha"]))
    columns = ("criterion", "same score", "items", "Gwet's AC1", "Krippendorff's alpha")
    return Table("agreement", "Agreement of judges", columns, rows)


def _scores(manifest: Manifest, runs: Sequence[Run]) -> Table:
    """The headline score of each run and task over all rows, and without the discarded ones."""
    discarded: dict[tuple[str, str], set[str]] = {}
    for row in manifest.rows:
        if row.decision == "discard":
            discarded.setdefault((row.source, row.subset), set()).add(Path(row.row).name)
    rows = []
    for run in runs:
        for name, record in run.record.tasks.items():
            gone = discarded.get((record.source, record.subset))
            if gone and name in run.details and name not in run.unverified:
                rows.append((run.name, name, record.headline, *before_and_after(run, name, record.headline, gone)))
    columns = ("model", "task", "metric", "all rows", "without discarded", "difference", "rows", "discarded")
    return Table("before_after", "Scores before and after", columns, rows)


def before_and_after(
    run: Run, task: str, metric: str, gone: set[str]
) -> tuple[float | None, float | None, float | None, int, int]:
    """A score over all rows and without some of them; None where there is none.

    Args:
        task: With `|k`.
        gone: Rows that are left out, FILE:NUMBER.

    Returns:
        The score, the score without them, their difference; how many rows have a value, and how many of these are gone.
    """
    items = run.items[((run.items["task"] == task) & (run.items["metric"] == metric)).to_numpy()]
    places = fields_of_items(run.details[task], ["source_row"])["source_row"]
    left = items[~items["item"].astype(str).map(places).isin(gone).to_numpy()]
    before, after = (_only(task_scores(some)) for some in (items, left))
    if before is None or after is None:
        return (before and before.value), None, None, before.n if before else 0, before.n if before else 0
    return before.value, after.value, after.value - before.value, before.n, before.n - after.n


def _only(scores: Mapping[Any, Score]) -> Score | None:
    return next(iter(scores.values()), None)
