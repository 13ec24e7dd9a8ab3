"""`cultureval reconcile`: the table of forms and what explains its spread, as text, Markdown, CSV and JSON."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cultureval.reports.leaderboard.exports import as_json, escaped_markdown
from cultureval.reports.reconcile.forms import FACTORS
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import counted, escaped
from cultureval.runtime.printing import wrapped
from cultureval.runtime.rounding import printed_or_na, without_nan

TRAITS = ("language", "context", "shots", "scoring", "normalisation", "template", "average")
NUMBERS = ("score", "n", "unread", "published", "difference")
Found = Mapping[str, Any]  # what `measures.reconcile` returns


def text_of(run: Run, found: Sequence[Found], most_items: int = 0) -> str:
    """The tables for a terminal, with at most so many rows on which forms differ."""
    parts = []
    for one in found:
        header, cells, alike = _table(one)
        align = "".join("r" if name in NUMBERS else "l" for name in header)
        parts += [terminal_table(header, cells, align, _title(run, one)), wrapped(alike), *map(wrapped, sentences(one))]
        parts += [f"Forms differ on {len(one['items'])} of {one['rows']} rows."] if most_items else []
        for row in one["items"][:most_items]:
            right = ", ".join(name for name, score in row.items() if score == 1)
            parts.append(f"  {row['item']}: right in {right or 'none'}")
    return escaped("\n".join(filter(None, parts)), keep="\n")


def _title(run: Run, found: Found) -> str:
    limit = "".join(sorted({f" (--limit {task.limit})" for task in run.record.tasks.values() if task.limit}))
    return f"{run.name}, {found['benchmark']}: percent, on the {counted(found['rows'], 'row')} of all forms{limit}"


def _table(found: Found) -> tuple[list[str], list[list[str]], str]:
    """The header and rows of the table without columns that are alike in all forms, and a sentence on those."""
    cells = [_cells(form) for form in found["forms"]]
    same = {name for name in cells[0] if len({row[name] for row in cells}) == 1}
    header = [name for name in cells[0] if name not in same]
    words = ", ".join(f"{name} {cells[0][name]}".strip() for name in cells[0] if name in same and cells[0][name])
    return header, [[row[name] for name in header] for row in cells], f"All forms: {words}." if words else ""


def _cells(form: Found) -> dict[str, str]:
    value, published = form["value"], form["published"]
    gap = None if value is None or published is None else value - published / 100
    return {
        "form": form["form"],
        "labels": f"{form['alphabet']} {form['labels']}".removeprefix("none "),
        **{name: form[name] for name in TRAITS},
        "score": f"{_percent(value)} ±{_percent(form['error'])}",
        "": f"{form['mark']} ({_percent(form['chance'])})" if form["mark"] else "",
        "n": str(form["n"] or 0),
        "unread": "" if form["unread"] is None else _percent(form["unread"]),
        "published": "" if published is None else printed_or_na(published),
        "difference": "" if gap is None else _percent(gap, True),
        "source": form["source"],
    }


def _percent(share: float | None, signed: bool = False) -> str:
    return printed_or_na(None if share is None else 100 * share, 2, signed)


def sentences(found: Found) -> Iterable[str]:
    """The spread of the forms, what explains it, what the average changes, and the forms that were not run."""
    is_sure = False
    for widest in found["differences"][:1]:
        pairs = counted(len(found["differences"]), "pair")
        yield f"Spread: {_above(widest)}, over the same rows (p {widest['p_holm']:.2g} by Holm for {pairs})."
        is_sure = widest["p_holm"] <= 0.05
        if not is_sure:
            yield "With all pairs tested together, no two forms differ by more than chance: ask more rows."
    for best in found["factors"][:1] if is_sure else ():
        names, share = " and ".join(best["factors"]), f"{best['share']:.0%} of the variance between forms"
        yield f"Most is explained by {names} ({share}): {_above(best)}."
    both = [(form["value"], form["other_average"]) for form in found["forms"]]
    moves = [abs(one - two) for one, two in both if one is not None and two is not None]
    if max(moves, default=0.0) >= 0.0001:
        yield f"The average alone, micro or macro, moves a form by up to {_percent(max(moves))} points."
    if is_sure and not found["factors"]:
        differing = [factor for factor in FACTORS if len({form[factor] for form in found["forms"]}) > 1]
        yield f"The forms differ in {', '.join(differing)}; they are too few to say which explains most."
    yield from (f"Not run: {form}: {reason}" for form, reason in found["not_run"].items())


def _above(gap: Found) -> str:
    """`Latin is 16.67 [2.10, 31.20] points above Arabic`."""
    number, low, high = (_percent(gap.get(name)) for name in ("difference", "low", "high"))
    return f"{gap['higher']} is {number} [{low}, {high}] points above {gap['lower']}"


def as_data(run: Run, found: Sequence[Found]) -> str:
    """The tables as JSON, without items."""
    parts = [{name: one[name] for name in one if name != "items"} | {"sentences": [*sentences(one)]} for one in found]
    return as_json(without_nan({"model": run.model, "date": run.date, "benchmarks": parts}))


def as_markdown(run: Run, found: Found) -> str:
    """The table and the sentences in Markdown, for a paper or a model card."""
    header, cells, alike = _table(found)
    lines = [header, ["---"] * len(header), *([escaped_markdown(cell) for cell in row] for row in cells)]
    title, *texts = (escaped_markdown(text) for text in (_title(run, found), alike, *sentences(found)) if text)
    return "\n\n".join([title, "\n".join(f"| {' | '.join(line)} |" for line in lines), *texts]) + "\n"


def write_files(run: Run, found: Sequence[Found]) -> Path:
    """Writes NAME.md, .csv, .json and -items.csv of each benchmark into a folder beside the results file."""
    folder = run.file.with_name(f"reconcile_{run.date}")
    for one in found:
        file = folder / one["benchmark"]
        write_atomically(file.with_suffix(".md"), as_markdown(run, one).encode())
        write_atomically(file.with_suffix(".json"), as_data(run, [one]).encode())
        write_csv(file.with_suffix(".csv"), without_nan(list(one["forms"])))
        write_csv(folder / f"{file.name}-items.csv", one["items"])
    return folder
