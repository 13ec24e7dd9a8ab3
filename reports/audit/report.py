"""What `cultureval audit run` writes, and the tables of audits as text and CSV, which `audit report` joins."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha
from cultureval.reports.item_fields import fields_of_items
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run, load
from cultureval.runs.scores import Score, task_scores
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.user_cache import write_atomically, write_json_lines
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.rounding import printed_or_na
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.manifest import Manifest, ManifestRow, merged, read_manifest, write_manifest
from cultureval.tasks.suite import Task

if TYPE_CHECKING:
    import pandas

    from cultureval.audit.judging import Audit, JudgedItem

VERDICTS, MANIFEST, SUMMARY, REPORT = "verdicts.jsonl", "manifest.jsonl", "summary.txt", "report.txt"
DECISIONS = {"keep": "kept", "discard": "discarded", "review": "to review"}
ITEM = ("source", "revision", "benchmark", "subset", "task", "row", "hash", "form", "question", "context", "gold")
OPINION = ("judge", "outcome", "problem", "total", "reply", "scores", "issues")
MOST_REASONS, MOST_ROWS = 5, 40  # kinds of missing verdicts, and rows of a table, that are shown
Tables = Mapping[str, "pandas.DataFrame"]


def write_audit(audit: "Audit", folder: Path) -> str:
    """Writes verdicts (with the items' texts), the manifest (without) and the summary, which it returns."""
    records = list(map(_record, audit.items))
    rows = [one.manifest_row() for one in audit.items]
    write_json_lines(folder / VERDICTS, records)
    write_manifest(folder / MANIFEST, rows)
    text = f"{_text(_tables(rows, records))}\n\n{judging_text(audit)}"
    write_atomically(folder / SUMMARY, f"{text}\n".encode())
    return text


def _record(one: "JudgedItem") -> dict[str, Any]:
    return {name: getattr(one.item, name) for name in ITEM} | {
        "options": one.item.options or one.item.answers,
        "decision": one.decision,
        "reasons": one.reasons,
        "opinions": [{name: getattr(opinion, name) for name in OPINION} for opinion in one.opinions],
    }


def judging_text(audit: "Audit") -> str:
    """Missing verdicts with their reasons, the rule, cost and signatures of an audit."""
    opinions = [opinion for one in audit.items for opinion in one.opinions]
    silent = Counter(
        f"{one.judge}: {one.outcome}, {one.problem.partition(': ')[0][:100]}" for one in opinions if not one.scores
    )
    lines = [f"{count:,} without a verdict of {why}" for why, count in silent.most_common(MOST_REASONS)]
    costs = "; ".join(f"{name}: {budget}" for name, budget in audit.costs.items())
    return "\n".join(
        [*lines, f"Rule: {audit.rule}. Cost: {costs}.", *(f"signature: {one}" for one in audit.signatures)]
    )


def write_report(audits: Sequence[Path], results: Sequence[Path], folder: Path) -> str:
    """Writes the tables of audits as CSV files and as text, which it returns.

    Args:
        audits: Manifests and output folders of `audit run`.
        results: Results of models on the audited benchmarks.

    Raises:
        CulturevalError: A file is missing or cannot be read.
    """
    manifest = merged([read_manifest(path / MANIFEST if path.is_dir() else path) for path in audits])
    files = [path / VERDICTS for path in audits if (path / VERDICTS).is_file()]
    tables = _tables(manifest.rows, [row for file in files for row in _verdicts(file)])
    scores = _scores(manifest, load(*results).runs if results else [])
    tables |= {"Scores before and after": scores} if len(scores) else {}
    for title, table in tables.items():
        write_csv(folder / f"{title.lower().replace(' ', '_')}.csv", table.to_dict("records"))
    text = f"{_text(tables)}\n\n{len(manifest.rows):,} items. Manifest {manifest.hash}.".lstrip()
    write_atomically(folder / REPORT, f"{text}\n".encode("utf-8", "backslashreplace"))
    return text


def _verdicts(file: Path) -> list[dict[str, Any]]:
    try:
        return [
            {"opinions": json.loads(line)["opinions"]} for line in file.read_text(encoding="utf-8").splitlines() if line
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CulturevalError(f"{file} is no file of verdicts: write it again with `cultureval audit run`.") from error


def _text(tables: Tables) -> str:
    parts = []
    for title, table in tables.items():
        rows = [[_cell(value) for value in row] for row in table.astype(object).to_numpy()[:MOST_ROWS]]
        more = f" (the first {MOST_ROWS} of {len(table)} rows)" if len(table) > MOST_ROWS else ""
        parts.append(terminal_table(list(table), rows, "lr", f"{title}{more}:"))
    return "\n\n".join(parts)


def _cell(value: Any) -> str:
    if value is None or isinstance(value, float):
        return printed_or_na(value, 4)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _tables(rows: Sequence[ManifestRow], verdicts: Sequence[Mapping[str, Any]]) -> "dict[str, pandas.DataFrame]":
    """By title: decisions as Table 2a of QIMMA's paper has them, their reasons, and what judges say."""
    import pandas

    if not rows:
        return {}
    known = [(row, _task_of(row.source, row.subset)) for row in rows]
    frame = pandas.DataFrame(
        {
            "benchmark": task.benchmark if task else row.source,
            "task type": task.kind.task_type if task else "",
            "domain": task.domain if task else "",
            "subset": row.subset,
            "decision": row.decision,
            "reason": row.reasons,
        }
        for row, task in known
    )
    tables = {"Kept and discarded": _decided(frame, ["benchmark", "task type", "domain"])}
    tables["By subset"] = _decided(frame, ["benchmark", "subset"])
    if len(reasons := frame.explode("reason").dropna()):
        tables["Reasons of decisions"] = _decided(reasons, ["reason"])
    scores = pandas.DataFrame(
        [
            (item, opinion["judge"], criterion, score)
            for item, row in enumerate(verdicts)
            for opinion in row["opinions"]
            for criterion, score in opinion["scores"].items()
        ],
        columns=["item", "judge", "criterion", "score"],
    )
    if len(scores):
        failed = scores["score"].eq(0).groupby([scores["criterion"], scores["judge"]], sort=False).sum()
        tables["Criteria scored 0"] = failed.unstack(fill_value=0).reset_index()
    if agreement := list(_agreement(scores)):
        tables["Agreement of judges"] = pandas.DataFrame(agreement)
    return tables


@cache
def _task_of(source: str, subset: str) -> Task | None:
    tasks = [task for task in all_tasks().values() if any(one.repo == source for one in task.sources)]
    return next((task for task in tasks if task.subset == subset), None)


def _decided(frame: "pandas.DataFrame", by: list[str]) -> "pandas.DataFrame":
    """How many rows are kept, discarded and to be reviewed, by some columns."""
    counts = frame.groupby([*by, "decision"], sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=list(DECISIONS), fill_value=0).rename(columns=DECISIONS)
    counts["items"] = counts.sum(axis=1)
    counts["discarded, %"] = [f"{share:.1f}" for share in 100 * counts["discarded"] / counts["items"]]
    return counts.reset_index()


def _agreement(scores: "pandas.DataFrame") -> Iterator[dict[str, Any]]:
    """Agreement on each criterion, of items that two judges or more have a verdict on."""
    for criterion, some in scores.groupby("criterion", sort=False):
        flags = some.pivot(index="item", columns="judge", values="score").dropna(thresh=2)
        if len(flags):
            votes, same = flags.to_numpy().tolist(), int(flags.nunique(axis=1).eq(1).sum())
            about = {"criterion": criterion, "same score": same, "items": len(flags)}
            alpha = krippendorff_alpha(votes, [0, 1])
            yield about | {"Gwet's AC1": gwet_ac1(votes, [0, 1]), "Krippendorff's alpha": alpha}


def _scores(manifest: Manifest, runs: Sequence[Run]) -> "pandas.DataFrame":
    """The headline score of each run and task over all rows, and without the discarded ones."""
    import pandas

    discarded: dict[tuple[str, str], set[str]] = {}
    for row in manifest.rows:
        if row.decision == "discard":
            discarded.setdefault((row.source, row.subset), set()).add(Path(row.row).name)
    rows = []
    for run in runs:
        for name, record in run.record.tasks.items():
            gone = discarded.get((record.source, record.subset))
            if gone and name in run.details and name not in run.unverified:
                about = {"model": run.name, "task": name, "metric": record.headline}
                rows.append(about | before_and_after(run, name, record.headline, gone))
    return pandas.DataFrame(rows)


def before_and_after(run: Run, task: str, metric: str, gone: set[str]) -> dict[str, float]:
    """A score over all rows and without some of them; nan where there is none.

    Args:
        task: With `|k`.
        gone: Rows that are left out, FILE:NUMBER.
    """
    items = run.items[((run.items["task"] == task) & (run.items["metric"] == metric)).to_numpy()]
    places = fields_of_items(run.details[task], ["source_row"])["source_row"]
    left = items[~items["item"].astype(str).map(places).isin(gone).to_numpy()]
    before, after = (next(iter(task_scores(some).values()), Score(float("nan"), None, 0, 0)) for some in (items, left))
    values = {"all rows": before.value, "without discarded": after.value, "difference": after.value - before.value}
    return values | {"rows": before.n, "discarded": before.n - after.n}
