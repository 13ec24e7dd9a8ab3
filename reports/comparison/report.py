"""`cultureval compare RUN_A RUN_B [...]`: tables for people, and files with everything."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from cultureval.metrics.paired_tests import DRAWS
from cultureval.reports.charts import Chart, Point, chart_files, intervals
from cultureval.reports.comparison.compared_models import Side, named_twice, read_sides
from cultureval.reports.comparison.flips import shown_flips, write_flips
from cultureval.reports.comparison.paired_runs import (
    SUBSET,
    Pairs,
    TestedDifference,
    family_of,
    metrics_of,
    pair_sides,
    shared_tasks,
    tested_differences,
)
from cultureval.reports.settings_diff import setting_names_that_differ
from cultureval.reports.terminal_tables import narrowest, terminal_table, wrapped
from cultureval.runs.comparable import protocol_of, record_of, settings_that_differ
from cultureval.runs.record import ModelRecord, Run
from cultureval.runs.warnings import run_warnings
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError, counted, did_you_mean, escaped, shown_names
from cultureval.runtime.printing import terminal_width
from cultureval.runtime.rounding import printed_or_na, without_nan

MOST_SENTENCES = 5  # on items left out, below a table
COULD_TURN = "items left out could turn it"
HEADER = ("", "metric", "items", "first", "second", "difference", "95% interval", "p", "p (Holm)", "can show")
# Columns that are left out where a terminal is narrow, then where it is narrower.
NARROWER = ((), ("metric",), ("metric", "first", "second"), ("metric", "first", "second", "can show"))
LEAD = (
    "Scores are on the scale of their metric, as in the results' files: shares from 0 to 1, also where `show` prints "
    "percent. First minus second on the same items, paired; clusters (items that share an image, a poem, a "
    "passage) are drawn and swapped whole. `can show`: the difference that this many items find 4 times in 5."
)


class ComparedRuns(NamedTuple):
    """A comparison.

    Attributes:
        text: For the terminal.
        document: The same and more, for JSON.
        notes: Sentences on what is not in it.
    """

    text: str
    document: dict[str, Any]
    notes: list[str]


def compare_all(
    results: Sequence[Path],
    output_dir: Path,
    metrics: Sequence[str] = (),
    allowed: Sequence[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
    most_items: int = 2,
    subsets: bool = False,
    isolate: bool = False,
    charts: Sequence[str] = (),
    sides: Sequence[Side] | None = None,
) -> ComparedRuns:
    """Compares runs pair by pair, and writes differences.csv, items.jsonl, comparison.json and forest plots.

    Args:
        results: Output folders or results files.
        metrics: Those to compare; () each task's headline.
        allowed: What may differ between the runs: "items" (those of both are compared), "prompts", "scorers".
        most_items: At most so many items that differ are shown each way.
        subsets: Whether subsets are in the text, too.
        isolate: Whether right-to-left lines stand between isolates, as on a terminal.
        charts: Formats of the forest plots, of `reports.charts.FORMATS`.
        sides: What a suite's own comparison chose of the results, which need not have anything in common; None: all.

    Raises:
        CulturevalError: Something differs that may not, a name is unknown, or nothing can be compared.
    """
    own = sides is None
    sides = read_sides(results) if sides is None else sides
    if own:
        _require_metrics(metrics, sides)
    pairs = pair_sides(sides, metrics, allowed, needed=own)
    rows = tested_differences(pairs, draws, seed)
    output_dir.mkdir(parents=True, exist_ok=True)
    write_csv(output_dir / "differences.csv", [row_record(row) for row in rows])
    shown_rows = [row for row in rows if subsets or row.level != SUBSET]
    for number, one in enumerate(pairs if charts else (), start=1):
        for chart in forest_plots(number, one.first, one.second, shown_rows):
            chart_files(chart, output_dir, charts)
    flips = write_flips(pairs, output_dir / "items.jsonl")
    notes = comparison_notes(pairs, sides, rows, subsets)
    document = {"seed": seed, "draws": draws, "allowed": list(allowed), "notes": notes}
    document["differences"] = [row_record(row) for row in rows]
    content = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    (output_dir / "comparison.json").write_text(content + "\n", encoding="utf-8")
    parts = [wrapped(LEAD + f" {draws} resamples, seed {seed}.")]
    for one in pairs:
        ours = [row for row in shown_rows if (row.first, row.second) == (one.first, one.second)]
        parts += [_table(one, ours)] if ours else []
        if ours and most_items:
            parts.append(shown_flips(flips, one.first, one.second, most_items, isolate))
    return ComparedRuns(escaped("\n\n".join(parts), keep="\n\t\u2068\u2069"), document, notes)


def forest_plots(number: int, first: str, second: str, rows: Sequence[TestedDifference]) -> list[Chart]:
    """The differences of a pair with known intervals; shares between 0 and 1 and other scores are two plots.

    Args:
        number: Of the pair, in the plots' names.
    """
    shares: list[Point] = []
    others: list[Point] = []
    for row in rows:
        found = row.result
        if (row.first, row.second) != (first, second) or found.low is None or found.high is None:
            continue
        share = max(abs(found.first), abs(found.second)) <= 1
        scale, label = 100 if share else 1, escaped(f"{row.name} {row.metric}")
        if row.could_turn:
            label = f"{label} ({COULD_TURN})"
        point = Point(label, scale * found.difference, low=scale * found.low, high=scale * found.high)
        (shares if share else others).append(point)
    title, note = escaped(f"{first} minus {second}"), "95 % intervals, each for itself."
    found_plots = [(f"differences_{number}", "percentage points", shares), (f"differences_{number}_points", "", others)]
    return [
        intervals(name, title, unit or "on the scale of each metric", points, bars=False, note=note)
        for name, unit, points in found_plots
        if points
    ]


def _require_metrics(metrics: Sequence[str], sides: Sequence[Side]) -> None:
    known = dict.fromkeys(
        name
        for side in sides
        for task in side.tasks.values()
        for name in (*metrics_of(task, ()), *(task.run.scores.get(task.saved.task, {}) if task.run else ()))
        if not name.endswith("_stderr")
    )
    for metric in metrics:
        if not any(metrics_of(task, [metric]) for side in sides for task in side.tasks.values()):
            raise CulturevalError(f"--metric {metric}: no run has it.{did_you_mean(metric, known)}")


def _table(pairs: Pairs, rows: Sequence[TestedDifference]) -> str:
    width = terminal_width() or sys.maxsize
    for left_out in NARROWER:
        cells = [_without(left_out, row) for row in (HEADER, *map(_cells, rows))]
        if narrowest(cells) <= width:
            break
    table = terminal_table(cells[0], cells[1:], "lr" if left_out else "llr", f"{pairs.first} minus {pairs.second}")
    gone = ", ".join(left_out[1:])
    lines = [table, *([f"({gone}: no room here; differences.csv has them)"] if gone else [])]
    return "\n".join([*lines, *map(wrapped, left_out_sentences(rows))])


def left_out_sentences(rows: Sequence[TestedDifference]) -> list[str]:
    """What the items that one of two has no score for could change, of the first rows that have such items."""
    lacking = sorted((row for row in rows if any(row.left_out) or row.unknown), key=lambda row: not row.could_turn)
    found = [_left_out(row) for row in lacking[:MOST_SENTENCES]]
    if len(lacking) > MOST_SENTENCES:
        found.append(f"and {counted(len(lacking) - MOST_SENTENCES, 'more row')} with items left out: differences.csv.")
    return found


def _left_out(row: TestedDifference) -> str:
    """What the items that one of the two has no score for could change."""
    first, second = (counted(count, "item") for count in row.left_out)
    name = f"{escaped(row.name)} {escaped(row.metric)}"
    if row.unknown:
        return f"{name} is without {shown_names(row.unknown, 3)}, which cannot be compared. The row decides nothing."
    lead = f"{name}: {row.first} has no score for {first}, {row.second} for {second}, which are left out; "
    if row.lowest is None or row.highest is None:
        return f"{lead}nothing bounds their scores, and the row decides nothing."
    span = f"from {printed_or_na(row.lowest, 4, True)} to {printed_or_na(row.highest, 4, True)}"
    if row.could_turn:
        return f"{lead}{COULD_TURN}: {span}. The row decides nothing."
    return f"{lead}with them the difference is {span}."


def _without(names: Sequence[str], cells: Sequence[str]) -> list[str]:
    """A row without some columns; a metric that has none stands behind the name."""
    found = dict(zip(HEADER, cells, strict=True))
    lead, *others = [text for name, text in found.items() if name not in names]
    return [f"{lead} {found['metric']}".strip() if "metric" in names else lead, *others]


def _cells(row: TestedDifference) -> list[str]:
    found = row.result
    large = max(abs(found.first), abs(found.second)) > 1.5

    def number(value: float | None, signed: bool = False) -> str:
        return printed_or_na(value, 2 if large else 4, signed)

    cells = [
        escaped(row.name),
        escaped(row.metric),
        items_cell(row),
        number(found.first),
        number(found.second),
        number(found.difference, True),
    ]
    bounds = (
        "n/a" if found.low is None or found.high is None else f"[{number(found.low, True)}, {number(found.high, True)}]"
    )
    if found.identical:
        bounds = "identical on every item" if found.low == found.high else f"identical on every item; {bounds}"
        return [*cells, bounds, p_text(found.p_value), p_text(row.p_holm), ""]
    return [*cells, bounds, p_text(found.p_value), p_text(row.p_holm), number(row.can_show)]


def items_cell(row: TestedDifference) -> str:
    """Of how many items a row is, how many either lacks, and whether these could turn it: `9, 4 and 3 left out`."""
    found = row.result
    items = f"{found.items}" if found.clusters == found.items else f"{found.items} in {found.clusters}"
    if row.counted and row.counted != (found.items, found.items):
        items = f"{' and '.join(map(str, dict.fromkeys(row.counted)))} of {items}"
    if any(row.left_out):
        items += f", {' and '.join(str(count) for count in row.left_out if count)} left out"
    return f"{items}, decides nothing" if row.could_turn else items


def p_text(p_value: float | None) -> str:
    """A p-value in a cell."""
    return "n/a" if p_value is None else "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def row_record(row: TestedDifference) -> dict[str, Any]:
    """A row of differences.csv; undefined numbers are None."""
    found = asdict(row.result)
    first, second = row.left_out
    bounds = {"lowest": row.lowest, "highest": row.highest, "p_left_out": row.p_left_out}
    flips = found.pop("flips") or (None, None)
    scores = {"first_score": found.pop("first"), "second_score": found.pop("second")}
    head = {"level": row.level, "name": row.name, "metric": row.metric, "first": row.first, "second": row.second}
    record = head | {"subsets": row.subsets} | scores | found | {"p_holm": row.p_holm}
    record |= {"left_out_first": first, "left_out_second": second} | bounds
    record |= dict(zip(("first_counted", "second_counted"), row.counted or (None, None), strict=True))
    record |= {"only_first_right": flips[0], "only_second_right": flips[1]}
    return without_nan(record)


def _warnings(sides: Sequence[Side]) -> list[str]:
    """What a reader of the sides' scores must know of their runs, as every view says it."""
    told_of: dict[str, dict[str, None]] = {}  # a sentence -> the sides that it is of
    for side in sides:
        for one in run_warnings(side.run) if side.run else ():
            told_of.setdefault(one, {})[side.name] = None
    unread = [sentence for side in sides for sentence in side.unread]
    return unread + [f"{', '.join(names)}: {one}" for one, names in told_of.items()]


def _settings_note(first: Side, second: Side) -> str:
    """In which settings the runs of the tasks that two sides share differ; "" where in none."""
    runs = {
        (one.run.file, other.run.file): (one.run, other.run)
        for one, other in shared_tasks(first, second)
        if one.run and other.run
    }
    found = {files: setting_names_that_differ(*pair) for files, pair in runs.items()}
    for one, other in shared_tasks(first, second):
        if one.run and other.run:
            some = found[one.run.file, other.run.file]
            some += [name for name in _signed_names(one.run, other.run, one.saved.task) if name not in some]
    names = list(dict.fromkeys(name for some in found.values() for name in some))
    if not names:
        return ""
    widest = max(found, key=lambda files: len(found[files]))
    told = "all" if len(found[widest]) == len(names) else f"{len(found[widest])} of {len(names)}, of two of the runs"
    command = shlex.join(["cultureval", "doctor", *map(str, widest)])
    return f"{first.name} and {second.name} also differ in {shown_names(names, 4)} ({command} shows {told})."


def _signed_names(first: Run, second: Run, task: str) -> list[str]:
    """In what signatures of a task differ that may: the number of solutions a problem; what records have is told so."""
    protocols = [protocol_of(run, record_of(run, task), "") for run in (first, second)]
    recorded = {*first.record.versions, *ModelRecord.model_fields, *first.record.model.settings}
    return [f"signatures.{name}" for name in settings_that_differ(protocols) if name not in recorded]


def comparison_notes(
    pairs: Sequence[Pairs], sides: Sequence[Side], rows: Sequence[TestedDifference], subsets: bool = True
) -> list[str]:
    """Sentences on a comparison: what was left out, what differs besides the model, which intervals are meant.

    Args:
        rows: As of `tested_differences`.
        subsets: Whether rows of subsets are shown.
    """
    notes = [*named_twice(sides), *_warnings(sides)]
    notes += [f"compared all the same, {one.kind}: {one.text}" for pair in pairs for one in pair.incompatible]
    notes += [note for pair in pairs if pair.shared for note in pair.notes]
    if apart := [f"{pair.first} / {pair.second}" for pair in pairs if not pair.shared]:
        notes.append(f"not compared, since they share no task: {shown_names(apart, 3)}.")
    named = Counter(row.result.interval for row in rows if row.result.interval)
    if named:
        kinds = ", ".join(f"{name} ({counted(count, 'row')})" for name, count in named.items())
        notes.append(f"95% intervals: {kinds}; `interval` in differences.csv names each row's.")
    notes += [note for pair in combinations(sides, 2) if (note := _settings_note(*pair))]
    hidden = sum(row.level == SUBSET for row in rows)
    if hidden and not subsets:
        notes.append(
            f"{counted(hidden, 'difference')} of subsets, with p-values by Holm of their own: --subsets, or "
            "differences.csv."
        )
    lowest = 1 / (rows[0].result.draws + 1) if rows else 0
    for count in Counter(family_of(row) for row in rows if row.result.test == "permutation").values():
        if count * lowest > 0.05:
            tests = counted(count, "permutation test")
            notes.append(f"with {tests} none can be below 0.05 by Holm: --resamples {20 * count} or more.")
    return list(dict.fromkeys(notes))
