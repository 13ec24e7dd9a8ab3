"""`cultureval compare RUN_A RUN_B [...]`: tables for people, and files with everything."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cultureval.reports.charts import Chart, Point, chart_files, intervals
from cultureval.reports.comparison.differences import (
    AVERAGE,
    SUBSET,
    Comparison,
    Place,
    Row,
    TwoRuns,
    compare,
    load_sides,
)
from cultureval.reports.comparison.flips import flips_of, shown_flips, with_texts
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run
from cultureval.runs.pairs import DRAWS
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.printing import wrapped
from cultureval.runtime.rounding import printed_or_na, without_nan

HEADER = ("", "metric", "items", "first", "second", "difference", "95% interval", "p", "p (Holm)")
LEAD = (
    "Scores are on the scale of their metric, as in results files: a share is 0 to 1 where `show` prints percent. "
    "Differences are first minus second on the same items; items that share an image, a poem or a passage vary "
    "together. A missing item counts as the worst score in the difference, its interval and p."
)
FILES = ("differences.csv", "items.jsonl", "comparison.json")
FAMILIES = "Holm's p-values are for all groups and averages of this command; those of subsets are for all subsets."


class Compared(NamedTuple):
    """A comparison: text for the terminal, the same and more as a document for JSON, and the files written."""

    text: str
    document: dict[str, Any]
    files: list[Path]


def compare_all(
    paths: Sequence[Path],
    output_dir: Path | None = None,
    metrics: Sequence[str] = (),
    allowed: Sequence[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
    *,
    most_items: int = 2,
    subsets: bool = False,
    isolate: bool = False,
    charts: Sequence[str] = (),
    suite: str = "",
) -> Compared:
    """Compares runs pair by pair; with an output folder it writes tables, items and forest plots.

    Args:
        paths: As of `load_sides`.
        output_dir: A new or empty folder, or one with an older comparison of the same runs; None: nothing is written.
        metrics: As of `compare`, like `allowed`, `draws` and `seed`.
        most_items: At most so many items that differ are shown each way.
        subsets: Whether subsets are in the text; the files have them.
        isolate: Whether right-to-left lines stand between isolates, as on a terminal.
        charts: Formats of the forest plots, of `reports.charts.FORMATS`.
        suite: The one whose tasks are compared; "": all.

    Raises:
        CulturevalError: As of `compare`; or the folder holds something else.
    """
    runs, left_out = load_sides(paths)
    about = {"runs": _files_of(runs), "metrics": list(metrics), "allowed": list(allowed), "draws": draws, "seed": seed}
    require_own_folder(output_dir, about)
    found = compare(runs, metrics, allowed, draws, seed, suite)
    found = found._replace(notes=[*left_out, *found.notes])
    document = about | {"warnings": found.warnings, "notes": found.notes}
    document |= {"differences": [row_record(row) for row in found.rows]}
    shown = [row for row in found.rows if subsets or row.level != SUBSET]
    files = write_files(found, document, output_dir, charts, shown) if output_dir else []
    return Compared(_text(found, shown, most_items, isolate), document, files)


def _text(found: Comparison, shown: Sequence[Row], most_items: int, isolate: bool) -> str:
    """The warnings, a table a pair with the items that differ most, and the notes."""
    parts = [*map(wrapped, found.warnings), wrapped(LEAD)]
    for two in found.pairs:
        if ours := _of_pair(two, shown):
            parts.append(_table(two, ours))
            if most_items:
                parts.append(shown_flips(two, flips_of(two, _places(two, found.rows)), most_items, isolate))
    parts += [wrapped(FAMILIES), *map(wrapped, found.notes)]
    return escaped("\n\n".join(parts), keep="\n\t\u2068\u2069")


def require_own_folder(folder: Path | None, about: Mapping[str, Any]) -> None:
    """Refuses a folder that holds anything but an older result of the same comparison.

    Args:
        folder: None: nothing is written.
        about: What the comparison's document says of its runs and options.

    Raises:
        CulturevalError: The folder has another comparison, or other files.
    """
    if folder is None or not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        before = json.loads((folder / FILES[-1]).read_text(encoding="utf-8"))
        same = {name: before[name] for name in about} == about
    except (OSError, ValueError, KeyError, TypeError):
        same = False
    if not same:
        raise CulturevalError(f"--output-dir {folder} has other files, which stay as they are: name a new folder.")


def write_files(
    found: Comparison, document: dict[str, Any], folder: Path, charts: Sequence[str], shown: Sequence[Row]
) -> list[Path]:
    """Writes differences.csv, items.jsonl (all items that differ), comparison.json, and a forest plot a pair."""
    folder.mkdir(parents=True, exist_ok=True)
    table, items, whole = files = [folder / name for name in FILES]
    write_csv(table, document["differences"])
    with items.open("w", encoding="utf-8") as stream:
        for two in found.pairs:
            for flip in with_texts(two, flips_of(two, _places(two, found.rows))):
                stream.write(json.dumps(flip, ensure_ascii=False) + "\n")
    for number, two in enumerate(found.pairs if charts else (), start=1):
        for chart in forest_plots(number, two.first.name, two.second.name, _of_pair(two, shown)):
            files += chart_files(chart, folder, charts)
    text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
    whole.write_text(text + "\n", encoding="utf-8")
    return files


def forest_plots(number: int, first: str, second: str, rows: Sequence[Row]) -> list[Chart]:
    """The differences of a pair with known intervals; shares between 0 and 1 and other scores are two plots.

    Args:
        number: Of the pair, in the plots' names.
    """
    shares: list[Point] = []
    others: list[Point] = []
    for row in rows:
        found = row.pair
        if found.low is None or found.high is None:
            continue
        share = all(score is None or abs(score.value) <= 1 for score in row.scores) and abs(found.difference) <= 1
        scale = 100 if share else 1
        label = escaped(f"{row.name} {row.metric}")
        point = Point(label, scale * found.difference, low=scale * found.low, high=scale * found.high)
        (shares if share else others).append(point)
    title, note = escaped(f"{first} minus {second}"), "95 % intervals, each for itself."
    plots = [(f"differences_{number}", "percentage points", shares)]
    plots += [(f"differences_{number}_points", "on the scale of each metric", others)]
    return [intervals(name, title, unit, points, bars=False, note=note) for name, unit, points in plots if points]


def row_record(row: Row) -> dict[str, Any]:
    """A row of differences.csv; what is unknown is None."""
    found: dict[str, Any] = {
        "level": row.level,
        "name": row.name,
        "metric": row.metric,
        "first": row.first,
        "second": row.second,
    }
    for side, score, missing in zip(("first", "second"), row.scores, row.pair.missing, strict=True):
        found |= {f"{side}_score": score and score.value, f"{side}_error": score and score.error}
        found |= {f"{side}_n": score.n if score else 0, f"{side}_missing": missing}
    tested = {name: value for name, value in row.pair._asdict().items() if name != "missing"}
    return without_nan(found | tested | {"p_holm": row.p_holm})


def p_text(p_value: float) -> str:
    """A p-value in a cell."""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def items_text(row: Row) -> str:
    """Of how many items a row is: `900 in 300 clusters, 9 and 0 missing`."""
    found = row.pair
    text = f"{found.items}" if found.clusters == found.items else f"{found.items} in {found.clusters}"
    return text + (f", {' and '.join(map(str, found.missing))} missing" if any(found.missing) else "")


def _table(two: TwoRuns, rows: Sequence[Row]) -> str:
    title = f"{two.first.name} minus {two.second.name}"
    return terminal_table(HEADER, [_cells(row) for row in rows], "llr", title)


def _cells(row: Row) -> list[str]:
    found = row.pair
    values = [score and score.value for score in row.scores]
    digits = 2 if any(value is not None and abs(value) > 1.5 for value in values) else 4
    low, high = (printed_or_na(end, digits, True) for end in (found.low, found.high))
    bounds = "identical" if found.test == "identical" else "n/a" if found.low is None else f"[{low}, {high}]"
    scores = [printed_or_na(value, digits) for value in values]
    change = printed_or_na(found.difference, digits, True)
    names = [escaped(row.name), escaped(row.metric), items_text(row)]
    return [*names, *scores, change, bounds, p_text(found.p), p_text(row.p_holm)]


def _of_pair(two: TwoRuns, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if (row.first, row.second) == (two.first.name, two.second.name)]


def _places(two: TwoRuns, rows: Iterable[Row]) -> list[Place]:
    """The scores of a pair's rows, without those that a suite's number alone is made of."""
    return list(dict.fromkeys(place for row in _of_pair(two, rows) if row.level != AVERAGE for place in row.parts))


def _files_of(runs: Sequence[Run]) -> dict[str, str]:
    """The name of each run and its newest results file, without folders of this machine."""
    return {run.name: "/".join(run.file.parts[-2:]) for run in runs}
