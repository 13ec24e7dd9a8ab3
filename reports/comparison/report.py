"""`cultureval compare RUN_A RUN_B [...]`: tables for people, and files with all differences."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cultureval.metrics.statistics import TINY
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
from cultureval.reports.item_view import shown_text
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import read_details
from cultureval.runs.loading import Run
from cultureval.runs.pairs import DRAWS
from cultureval.runs.rows import answer_of, gold_of
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError, counted, escaped
from cultureval.runtime.printing import wrapped
from cultureval.runtime.rounding import printed_or_na, without_nan

HEADER = ("", "metric", "items", "first", "second", "difference", "95% interval", "p", "p (Holm)")
LEAD = (
    "Scores are on the scale of their metric, as in results files: a share is 0 to 1, also where `show` "
    "prints percent. Differences are first minus "
    "second on the same items. Items that share an image, a poem or a passage are one cluster. A missing item counts "
    "as the worst score in the difference, its interval and p."
)
FAMILIES = "Holm's p-values are for all groups and averages of this command; those of subsets are for all subsets."
FIELDS = (
    *("doc.query", "doc.choices", "doc.gold_index"),
    *(f"model_response.{name}" for name in ("text", "text_post_processed", "logprobs", "output_tokens")),
)
BROADEST = 300  # letters of a text on the terminal
Flip = dict[str, Any]  # an item in which two runs differ


class Compared(NamedTuple):
    """A comparison: text for the terminal, data for JSON, and the files written."""

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
) -> Compared:
    """Compares runs pair by pair; with an output folder it writes differences.csv and items.jsonl.

    Args:
        paths: As of `load_sides`.
        output_dir: A new or empty folder; None: nothing is written.
        metrics: As of `compare`, like `allowed`, `draws` and `seed`.
        most_items: At most so many items are shown for each winner.
        subsets: Whether subsets are in the text; the files always have them.
        isolate: Whether right-to-left lines are isolated for a terminal.

    Raises:
        CulturevalError: As of `compare`; or the folder is not empty.
    """
    require_new_folder(output_dir)
    runs, sentences_left_out = load_sides(paths)
    found = compare(runs, metrics, allowed, draws, seed)
    found = found._replace(notes=[*sentences_left_out, *found.notes])
    files = {run.name: "/".join(run.file.parts[-2:]) for run in runs}  # without folders of this machine
    document = {"runs": files, "metrics": [*metrics], "allowed": [*allowed], "draws": draws, "seed": seed}
    document |= {"warnings": found.warnings, "notes": found.notes, "differences": [*map(row_record, found.rows)]}
    shown = [row for row in found.rows if subsets or row.level != SUBSET]
    written = write_files(found, output_dir) if output_dir else []
    return Compared(_text(found, shown, most_items, isolate), document, written)


def require_new_folder(folder: Path | None) -> None:
    """Refuses a folder that is not empty; None: nothing is written."""
    if folder and folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise CulturevalError(f"--output-dir {folder} is not empty, and nothing in it is replaced: name a new folder.")


def write_files(found: Comparison, folder: Path) -> list[Path]:
    """Writes differences.csv and items.jsonl (all items that differ); returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    table, items = folder / "differences.csv", folder / "items.jsonl"
    write_csv(table, [row_record(row) for row in found.rows])
    with items.open("w", encoding="utf-8") as stream:
        for two in found.pairs:
            for place in _places(two, found.rows):
                for flip in with_texts(two, place, flips_of(two, place)):
                    stream.write(json.dumps(flip, ensure_ascii=False) + "\n")
    return [table, items]


def row_record(row: Row) -> dict[str, Any]:
    """A row of differences.csv; unknown values are None."""
    found = {name: getattr(row, name) for name in ("level", "name", "metric", "first", "second")}
    for side, score, missing in zip(("first", "second"), row.scores, row.pair.missing, strict=True):
        found |= {f"{side}_score": score and score.value, f"{side}_error": score and score.error}
        found |= {f"{side}_n": score.n if score else 0, f"{side}_missing": missing}
    tested = {name: value for name, value in row.pair._asdict().items() if name != "missing"}
    return without_nan(found | tested | {"p_holm": row.p_holm})


def p_text(p_value: float) -> str:
    """A p-value in a cell."""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def items_text(row: Row) -> str:
    """The number of items of a row: `900 in 300, 9 and 0 missing` (300: clusters)."""
    found = row.pair
    text = f"{found.items}" if found.clusters == found.items else f"{found.items} in {found.clusters}"
    return text + (f", {' and '.join(map(str, found.missing))} missing" if any(found.missing) else "")


def tested_cells(row: Row, digits: int) -> list[str]:
    """The difference, its interval and both p-values, as cells."""
    found = row.pair
    low, high = (printed_or_na(end, digits, True) for end in (found.low, found.high))
    bounds = "identical" if found.test == "identical" else "n/a" if found.low is None else f"[{low}, {high}]"
    return [printed_or_na(found.difference, digits, True), bounds, p_text(found.p), p_text(row.p_holm)]


def _text(found: Comparison, shown: Sequence[Row], most_items: int, isolate: bool) -> str:
    """The warnings, a table for each pair with the items that differ most, and the notes."""
    parts = [*map(wrapped, found.warnings), wrapped(LEAD)]
    for two in found.pairs:
        if rows := _of_pair(two, shown):
            title = f"{two.first.name} minus {two.second.name}"
            parts.append(terminal_table(HEADER, [_cells(row) for row in rows], "llr", title))
            parts += _shown_flips(two, _places(two, found.rows), most_items, isolate) if most_items else []
    parts += [wrapped(FAMILIES), *map(wrapped, found.notes)]
    return escaped("\n\n".join(parts), keep="\n\t\u2068\u2069")


def _cells(row: Row) -> list[str]:
    values = [score and score.value for score in row.scores]
    digits = 2 if any(value is not None and abs(value) > 1.5 for value in values) else 4
    scores = [printed_or_na(value, digits) for value in values]
    return [escaped(row.name), escaped(row.metric), items_text(row), *scores, *tested_cells(row, digits)]


def _of_pair(two: TwoRuns, rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if (row.first, row.second) == (two.first.name, two.second.name)]


def _places(two: TwoRuns, rows: Iterable[Row]) -> list[Place]:
    """The scores of a pair's rows, without those of averages."""
    return list(dict.fromkeys(place for row in _of_pair(two, rows) if row.level != AVERAGE for place in row.parts))


def flips_of(two: TwoRuns, place: Place) -> list[Flip]:
    """The items that both runs scored differently: names and both scores."""
    frame, names = two.items[place], (two.first.name, two.second.name)
    counts = frame[(frame["den"] > 0).to_numpy()]
    scores = (counts["num"] / counts["den"]).groupby([counts["item"], counts["run"]], observed=True).first()
    table = scores.unstack().reindex(columns=list(names)).dropna()
    about = {"task": place[0], "metric": place[1], "first": names[0], "second": names[1]}
    return [
        {**about, "item": item, "first_score": float(first), "second_score": float(second)}
        for item, first, second in table.itertuples(name=None)
        if abs(first - second) > TINY
    ]


def with_texts(two: TwoRuns, place: Place, flips: Sequence[Flip]) -> list[Flip]:
    """Flips of a score with `prompt`, `gold`, `first_answer` and `second_answer`."""
    if not (items := [flip["item"] for flip in flips]):
        return []
    firsts, seconds = (_rows(run, place, items) for run in (two.first, two.second))
    return [
        flip
        | {"prompt": first_row["doc"]["query"], "gold": gold_of(first_row)}
        | {"first_answer": answer_of(first_row, place[1]), "second_answer": answer_of(second_row, place[1])}
        for flip, first_row, second_row in zip(flips, firsts, seconds, strict=True)
    ]


def _rows(run: Run, place: Place, items: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of some items in a run's details."""
    task, metric = place
    names = run.items["item"][((run.items["task"] == task) & (run.items["metric"] == metric)).to_numpy()]
    places = {name: at for at, name in enumerate(names)}
    return read_details(run.details[task], FIELDS).take([places[item] for item in items]).to_pylist()


def _shown_flips(two: TwoRuns, places: Sequence[Place], most: int, isolate: bool) -> Iterable[str]:
    """The items with the largest differences, at most `most` for each winner."""
    flips = [flip for place in places for flip in flips_of(two, place)]
    flips.sort(key=lambda flip: -abs(flip["first_score"] - flip["second_score"]))
    for better, worse, sign in ((two.first.name, two.second.name, 1), (two.second.name, two.first.name, -1)):
        found = [flip for flip in flips if sign * (flip["first_score"] - flip["second_score"]) > 0]
        title = f"Higher with {better} than with {worse}: {counted(len(found), 'item')}"
        texts = (with_texts(two, (flip["task"], flip["metric"]), [flip]) for flip in found[:most])
        yield "\n".join([title, *(_shown(flip, isolate) for (flip,) in texts)])


def _shown(flip: Mapping[str, Any], isolate: bool) -> str:
    def line(text: str) -> str:
        words = " ".join(text[: 4 * BROADEST].split())
        return shown_text(words if len(words) <= BROADEST else f"{words[: BROADEST - 1]}…", isolate)

    title = f"{line(flip['task'])}, {line(flip['item'])}: {flip['first_score']:.3g} / {flip['second_score']:.3g}"
    lines = [f"{name}: {line(flip[name])}" for name in ("prompt", "gold")]
    lines += [f"{line(flip[side])}: {line(flip[f'{side}_answer'])}" for side in ("first", "second")]
    return "\n  ".join([title, *lines])
