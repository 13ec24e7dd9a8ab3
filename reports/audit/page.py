"""The page of an audit: what was kept and discarded, why, examples, judges' agreement, scores before and after."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cultureval.reports.audit.verdicts import MANIFEST, VERDICTS, agreement_of, failed_criteria
from cultureval.reports.leaderboard.assets import shown, write_assets
from cultureval.reports.leaderboard.pages import rendered
from cultureval.runs.files import details_of_run
from cultureval.runs.load_runs import load
from cultureval.runs.record import Run
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.manifest import Manifest, ManifestRow, merged, read_manifest
from cultureval.tasks.suite import Task

TEMPLATES = Path(__file__).parent / "templates"
EXAMPLES = 3  # of each reason
SAME = 1e-6  # a score that is not the mean of its rows' values is not computed again
DECISIONS = ("keep", "discard", "review")


@dataclass(frozen=True)
class AuditFiles:
    """The decisions of all manifests, verdicts with the items' texts, and runs of models on the audited benchmarks."""

    manifest: Manifest
    verdicts: Sequence[Mapping[str, Any]] = ()
    runs: Sequence[Run] = ()


def read_audit(paths: Sequence[Path], results: Sequence[Path] = ()) -> AuditFiles:
    """What audits wrote: manifests and output folders of `audit run`, and results.

    Raises:
        CulturevalError: A file is missing or cannot be read.
    """
    manifests, verdicts = [], []
    for path in paths:
        manifests.append(read_manifest(path / MANIFEST if path.is_dir() else path))
        if path.is_dir() and (path / VERDICTS).is_file():
            verdicts += _verdicts(path / VERDICTS)
    runs = {run.file.resolve(): run for path in results for run in load(path)}
    return AuditFiles(merged(manifests), verdicts, list(runs.values()))


def _verdicts(file: Path) -> list[dict[str, Any]]:
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        if all(isinstance(row, dict) and isinstance(row["opinions"], list) for row in rows):
            return rows
    except (ValueError, KeyError, RecursionError):
        pass
    raise CulturevalError(f"{file} is no file of verdicts: write it again with `cultureval audit run`.")


def write_page(files: AuditFiles, folder: Path, title: str, examples: bool = True) -> Path:
    """Writes the page with its scripts and styles; nothing of it is loaded from a network.

    Args:
        examples: Whether items' texts are shown; not for pages that are published where the data may not be.
    """
    (folder / "assets").mkdir(parents=True, exist_ok=True)
    write_assets(folder / "assets", charts=False)
    totals = {name: files.manifest.count(name) for name in DECISIONS}
    panels = [panel for panel in _panels(files, examples) if panel["tables"] or panel["examples"]]
    text = rendered(
        "audit.html",
        TEMPLATES,
        root="",
        title=shown(title),
        panels=panels,
        totals=totals,
        items=len(files.manifest.rows),
        hash=files.manifest.hash,
    )
    write_atomically(folder / "index.html", text.encode("utf-8", "backslashreplace"))
    return folder / "index.html"


def _panels(files: AuditFiles, examples: bool) -> Iterator[dict[str, Any]]:
    yield _panel("benchmarks", "Benchmarks", _inventory(files.manifest))
    yield _panel("reasons", "Reasons", [*_reasons(files.manifest), *_criteria(files.verdicts)])
    yield _panel("judges", "Agreement", _agreement(files.verdicts))
    yield _panel("scores", "Scores", _scores(files))
    yield _panel("examples", "Examples", [], _examples(files.verdicts) if examples else [])


def _panel(name: str, title: str, tables: Sequence[Any], examples: Sequence[Any] = ()) -> dict[str, Any]:
    return {"id": name, "name": title, "tables": [one for one in tables if one["rows"]], "examples": examples}


def _table(
    name: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = ""
) -> dict[str, Any]:
    return {
        "id": name,
        "title": title,
        "columns": columns,
        "rows": [list(map(_cell, row)) for row in rows],
        "note": note,
    }


def _cell(value: Any) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {"text": shown(str(value), 200), "order": shown(str(value), 200)}
    if isinstance(value, float):
        return {"text": "n/a" if math.isnan(value) else f"{value:.4f}", "order": -1e9 if math.isnan(value) else value}
    return {"text": f"{value:,}", "order": value}


@cache
def _task_of(source: str, subset: str) -> Task | None:
    tasks = [task for task in all_tasks().values() if any(one.repo == source for one in task.sources)]
    return next((task for task in tasks if task.subset == subset), None)


def _inventory(manifest: Manifest) -> list[dict[str, Any]]:
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
        own += [(f"{name}: {subset}", *_decided(of_subset)) for subset, of_subset in subsets.items()]
    counted = ("Kept", "Discarded", "To review", "Discarded, %")
    return [
        _table("inventory", "Kept and discarded", ("Benchmark", "Task type", "Subsets", "Domain", *counted), rows),
        _table("subsets", "By subset", ("Subset", *counted), own),
    ]


def _decided(rows: Sequence[ManifestRow]) -> tuple[Any, ...]:
    counts = Counter(row.decision for row in rows)
    return *(counts[name] for name in DECISIONS), f"{100 * counts['discard'] / len(rows):.1f}"


def _reasons(manifest: Manifest) -> list[dict[str, Any]]:
    counts: dict[str, Counter[str]] = {}
    for row in manifest.rows:
        for reason in row.reasons:
            counts.setdefault(reason, Counter())[row.decision] += 1
    ordered = sorted(counts.items(), key=lambda item: -item[1].total())
    rows = [(reason, count.total(), *(count[name] for name in DECISIONS)) for reason, count in ordered]
    return [_table("why", "Reasons of decisions", ("Reason", "Items", "kept", "discarded", "to review"), rows)]


def _criteria(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    judges, rows = failed_criteria((one["judge"], one["scores"]) for row in verdicts for one in row["opinions"])
    return [_table("criteria", "Criteria scored 0", ("Criterion", *judges), rows)]


def _agreement(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Agreement on each criterion, of items that every judge has a verdict on."""
    scored = [[one["scores"] for one in row["opinions"]] for row in verdicts]
    scored = [scores for scores in scored if len(scores) > 1 and all(scores)]
    rows = []
    for name in scored[0][0] if scored else ():
        flags = [[int(one[name]) for one in scores] for scores in scored]
        values = agreement_of(flags)
        same = sum(len(set(row)) == 1 for row in flags)
        rows.append((name, same, len(flags), values["ac1"], values["alpha"]))
    columns = ("Criterion", "Same score", "Items", "Gwet's AC1", "Krippendorff's alpha")
    note = "Alpha is n/a, or low, where nearly all items have one score; AC1 is not."
    return [_table("agreement", "Agreement of judges", columns, rows, note)]


def _scores(files: AuditFiles) -> list[dict[str, Any]]:
    """The headline score of each run and task over all rows, and without the discarded ones."""
    discarded: dict[tuple[str, str], set[str]] = {}
    for row in files.manifest.rows:
        if row.decision == "discard":
            discarded.setdefault((row.source, row.subset), set()).add(Path(row.row).name)
    rows = []
    for run in files.runs:
        for name, record in run.record.tasks.items():
            gone = discarded.get((record.source, record.subset))
            if gone and record.metrics:
                rows.append((run.model, name, record.headline, *before_and_after(run, name, record.headline, gone)))
    columns = ("Model", "Task", "Metric", "All rows", "Without discarded", "Difference", "Rows", "Discarded")
    note = "n/a: no mean of rows' values, or no details are there; `cultureval eval --manifest` scores it."
    return [_table("before_after", "Scores before and after", columns, rows, note)]


def before_and_after(run: Run, task: str, metric: str, gone: set[str]) -> tuple[float, float, float, int, int]:
    """A score over all rows and without some of them; nan where it is undefined, or no mean of the rows' values.

    Args:
        run: A results file; its details are read.
        task: Its name with `|k`.
        gone: Rows that are left out, FILE:NUMBER.

    Returns:
        The score, the score without them, their difference; how many rows have a value, and how many of these are gone.
    """
    value = run.value(task, metric)
    before = math.nan if value is None else value
    try:
        details = details_of_run(run, task)
    except CulturevalError:
        details = []
    known = [(specific_of(row["doc"]).get("source_row", ""), row["metric"].get(metric)) for row in details]
    scored = [(place, float(one)) for place, one in known if isinstance(one, int | float) and not math.isnan(one)]
    left = [one for place, one in scored if place not in gone]
    mean = math.fsum(one for _, one in scored) / len(scored) if scored else math.nan
    after = math.fsum(left) / len(left) if left and abs(mean - before) < SAME else math.nan
    return before, after, after - before, len(scored), len(scored) - len(left)


def _examples(verdicts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The first items of each criterion that judges scored 0, discarded ones first."""
    found: dict[str, list[dict[str, Any]]] = {}
    ordered = sorted(verdicts, key=lambda row: ("discard", "review", "keep").index(row["decision"]))
    for row in ordered:
        issues: dict[str, list[dict[str, str]]] = {}
        for one in row["opinions"]:
            for name, text in one["issues"].items():
                issues.setdefault(name, []).append({"judge": shown(one["judge"], 60), "text": shown(text, 600)})
        for name, said in issues.items():
            if len(found.setdefault(name, [])) < EXAMPLES:
                found[name].append(_example(row, name, said))
    return [example for some in found.values() for example in some]


def _example(row: Mapping[str, Any], reason: str, said: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    gold = set(row.get("gold") or ())
    options = [{"text": shown(str(text), 300), "gold": place in gold} for place, text in enumerate(row["options"])]
    return {
        "reason": reason,
        "place": shown(f"{row['source']} {row['row']}", 200),
        "decision": row["decision"],
        "context": shown(row.get("context") or "", 600),
        "question": shown(row["question"], 600),
        "options": options,
        "said": said,
    }
