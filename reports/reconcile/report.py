"""`cultureval reconcile`: the table of forms and what explains its spread, as text, Markdown, CSV and JSON."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cultureval.reports.leaderboard.exports import escaped_markdown
from cultureval.reports.reconcile.forms import FACTORS
from cultureval.reports.reconcile.measures import Measured, Reconciled
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run
from cultureval.runs.pairs import Pair
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import counted, escaped
from cultureval.runtime.printing import wrapped
from cultureval.runtime.rounding import printed_or_na, without_nan

LEVEL = 0.05
NUMBERS = ("score", "n", "unread", "published", "difference")


def text_of(run: Run, found: Sequence[Reconciled], most_items: int = 0) -> str:
    """The tables for a terminal, with at most so many rows on which forms differ."""
    parts = []
    for one in found:
        header, cells, alike = table_of(one)
        align = "".join("r" if name in NUMBERS else "l" for name in header)
        parts += [
            terminal_table(header, cells, align, title_of(run, one)),
            wrapped(alike),
            *map(wrapped, sentences(one)),
        ]
        parts += list(_item_lines(one, most_items)) if most_items else []
    return escaped("\n".join(filter(None, parts)), keep="\n")


def title_of(run: Run, found: Reconciled) -> str:
    """The model, the benchmark and the rows."""
    limits = sorted({task.limit for task in run.record.tasks.values() if task.limit is not None})
    limit = f" (--limit {limits[0]})" if limits else ""
    return (
        f"{run.name}, {found.benchmark}: percent, on the {counted(len(found.items), 'row')} that all forms share{limit}"
    )


def table_of(found: Reconciled) -> tuple[list[str], list[list[str]], str]:
    """The header and rows of the table without columns that are alike in all forms, and a sentence on those."""
    cells = [_cells(form) for form in found.forms]
    same = {name for name in cells[0] if len({row[name] for row in cells}) == 1}
    header = [name for name in cells[0] if name not in same]
    words = "; ".join(f"{name} {cells[0][name]}" for name in cells[0] if name in same and cells[0][name])
    return header, [[row[name] for name in header] for row in cells], f"All forms: {words}." if words else ""


def _cells(measured: Measured) -> dict[str, str]:
    form, score, published = measured.form, measured.score, measured.published
    alphabet = "" if form["alphabet"] == "none" else f"{form['alphabet']} "
    traits = {name: form[name] for name in ("language", "context", "shots", "scoring", "normalisation", "template")}
    return {
        "form": form["form"],
        "labels": alphabet + form["labels"],
        **traits,
        "average": form["average"],
        "score": f"{_percent(score and score.value)} ±{_percent(score and score.error)}",
        "": measured.mark,
        "n": str(score.n if score else 0),
        "unread": "" if measured.unread is None else _percent(measured.unread),
        "published": printed_or_na(published[0]) if published else "",
        "difference": _percent(score.value - published[0] / 100, True) if published and score else "",
        "source": published[1] if published else "",
    }


def _percent(share: float | None, signed: bool = False) -> str:
    return printed_or_na(None if share is None else 100 * share, 2, signed)


def _interval(difference: Pair) -> str:
    """`16.67 [2.10, 31.20]`."""
    return f"{_percent(difference.difference)} [{_percent(difference.low)}, {_percent(difference.high)}] points"


def sentences(found: Reconciled) -> Iterable[str]:
    """The spread of the forms, what explains it, what the average changes, and the forms that were not run."""
    for gap in found.gaps[:1]:
        yield (
            f"Spread: {gap.higher} is {_interval(gap.pair)} above {gap.lower}, over the same rows "
            f"(p {gap.p_holm:.2g} by Holm for {counted(len(found.gaps), 'pair')})."
        )
        if gap.p_holm is None or gap.p_holm > LEVEL:
            yield "No two forms differ by more than chance, so there is nothing to explain."
        elif not found.factors:
            yield "Every factor differs between all forms, so that none can be singled out."
    for best in found.factors[:1] if found.gaps and (found.gaps[0].p_holm or 0.0) <= LEVEL else ():
        names = " and ".join(FACTORS[name] for name in best.factors)
        yield (
            f"Most is explained by {names} ({best.share or 0:.0%} of the variance between forms): {best.higher} is "
            f"{_interval(best.pair)} above {best.lower}."
        )
    moves = [abs(form.score.value - form.other.value) for form in found.forms if form.score and form.other]
    if max(moves, default=0.0) >= 0.0001:
        yield f"The average alone, micro or macro, moves a form by up to {_percent(max(moves))} points."
    yield from (f"Not run: {form}: {reason}" for form, reason in found.not_run.items())


def differing(found: Reconciled) -> list[dict[str, Any]]:
    """The rows on which forms differ, those first on which they differ most: `item`, and the score of each form."""
    names, spread = [measured.form["form"] for measured in found.forms], np.nanstd(found.right, axis=1)
    order = [row for row in np.argsort(-spread, kind="stable") if spread[row] > 0]
    return [{"item": found.items[row], **dict(zip(names, found.right[row].tolist(), strict=True))} for row in order]


def _item_lines(found: Reconciled, most: int) -> Iterable[str]:
    rows = differing(found)
    yield f"Forms differ on {len(rows)} of {len(found.items)} rows:"
    for row in rows[:most]:
        yield f"  {row['item']}: right in {', '.join(name for name, score in row.items() if score == 1) or 'none'}"


def document(run: Run, found: Sequence[Reconciled]) -> dict[str, Any]:
    """The tables as data for JSON; scores are shares."""
    benchmarks = [
        {
            "benchmark": one.benchmark,
            "rows": len(one.items),
            "forms": [_record(measured) for measured in one.forms],
            "differences": [gap._asdict() | {"pair": gap.pair._asdict()} for gap in (*one.gaps, *one.factors)],
            "not_run": one.not_run,
            "sentences": list(sentences(one)),
        }
        for one in found
    ]
    return without_nan({"model": run.model, "date": run.date, "benchmarks": benchmarks})


def _record(measured: Measured) -> dict[str, Any]:
    """A form with all that is known of it."""
    score, other, (published, source) = measured.score, measured.other, measured.published or (None, None)
    found = {name: score and getattr(score, name) for name in ("value", "error", "low", "high", "n", "asked")}
    found |= {"other_average": other and other.value, "chance": measured.chance, "at_chance": measured.mark}
    return {**measured.form, **found, "unread": measured.unread, "published_percent": published, "source": source}


def as_markdown(run: Run, found: Reconciled) -> str:
    """The table and the sentences in Markdown, for a paper or a model card."""
    header, cells, alike = table_of(found)
    lines = [header, ["---"] * len(header), *([escaped_markdown(cell) for cell in row] for row in cells)]
    texts = [escaped_markdown(text) for text in (title_of(run, found), alike, *sentences(found))]
    return (
        "\n\n".join([texts[0], "\n".join(f"| {' | '.join(line)} |" for line in lines), *filter(None, texts[1:])]) + "\n"
    )


def write_files(run: Run, found: Sequence[Reconciled]) -> Path:
    """Writes NAME.md, .csv, .json and -items.csv of each benchmark into a folder beside the results file."""
    folder = run.file.with_name(f"reconcile_{run.date}")
    for one in found:
        write_atomically(folder / f"{one.benchmark}.md", as_markdown(run, one).encode())
        text = json.dumps(document(run, [one]), ensure_ascii=False, indent=1)
        write_atomically(folder / f"{one.benchmark}.json", f"{text}\n".encode())
        write_csv(folder / f"{one.benchmark}.csv", [without_nan(_record(measured)) for measured in one.forms])
        write_csv(folder / f"{one.benchmark}-items.csv", differing(one))
    return folder
