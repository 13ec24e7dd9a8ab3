"""`cultureval reconcile`: the table of forms and what explains its spread, as text, Markdown, CSV and JSON."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cultureval.reports.leaderboard.exports import escaped_markdown
from cultureval.reports.reconcile.forms import FACTORS, GENERATED
from cultureval.reports.reconcile.measures import Measured, Reconciled
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.loading import Run
from cultureval.runs.pairs import Pair
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import counted, escaped
from cultureval.runtime.printing import wrapped
from cultureval.runtime.rounding import printed, without_nan

PERCENT = 100.0
LEVEL = 0.05
TRAITS = ("labels", "instruction", "context", "shots", "scoring", "normalisation", "template", "average")


def text_of(run: Run, found: Sequence[Reconciled], most_items: int = 0) -> str:
    """The tables for a terminal, with at most so many rows on which forms differ."""
    parts = []
    for one in found:
        header, rows, same = table_of(one)
        align = "".join("r" if name in ("score", "n", "unread", "published", "difference") else "l" for name in header)
        parts += [terminal_table(header, rows, align, title_of(run, one)), *map(wrapped, [same, *sentences(one)])]
        parts += ["\n".join(item_lines(one, most_items))] if most_items else []
    return escaped("\n\n".join(filter(None, parts)), keep="\n")


def title_of(run: Run, found: Reconciled) -> str:
    """The model, the benchmark and the rows."""
    limits = sorted({task.limit for task in run.record.tasks.values() if task.limit is not None})
    limit = f", at most {limits[0]:,} of a task (--limit)" if limits else ""
    rows = counted(len(found.items), "row")
    return f"{run.name}, {found.benchmark}: percent ±1 standard error, on {rows} that all forms share{limit}"


def table_of(found: Reconciled) -> tuple[list[str], list[list[str]], str]:
    """The header and rows of the table without columns that are alike in all forms, and a sentence on those."""
    cells = [_cells(form, len(found.items)) for form in found.forms]
    alike = {name for name in cells[0] if name != "form" and len({row[name] for row in cells}) == 1}
    header = [name for name in cells[0] if name not in alike]
    same = "; ".join(f"{name}: {cells[0][name]}" for name in cells[0] if name in alike and cells[0][name])
    return header, [[row[name] for name in header] for row in cells], f"All forms: {same}." if same else ""


def _cells(measured: Measured, rows: int) -> dict[str, str]:
    form, score = measured.form, measured.score
    labels = f"{form.alphabet} {form.labels}" if form.alphabet != "none" else form.labels
    values = (labels, form.language, form.context, form.shots, form.scoring, form.normalisation, form.template)
    error = f" ±{_percent(score.error)}" if score and score.error is not None else ""
    source = measured.published
    return {
        "form": form.form,
        **dict(zip(TRAITS, (*values, form.average), strict=True)),
        "score": f"{_percent(score and score.value)}{error}",
        "chance": measured.mark,
        "n": str(score.n if score else 0),
        "unread": "" if measured.unread is None else _percent(measured.unread),
        "published": f"{printed(source[0], 2)} ({source[1]})" if source else "",
        "difference": printed(PERCENT * score.value - source[0], 2, True) if source and score else "",
    }


def _percent(share: float | None, signed: bool = False) -> str:
    return "n/a" if share is None or np.isnan(share) else printed(PERCENT * share, 2, signed)


def sentences(found: Reconciled) -> list[str]:
    """The spread of the forms, what explains it, what the average changes, and the forms that were not run."""
    lines = [*_spread(found), *_averages(found.forms)]
    return [*lines, *(f"Not run: {form.form}: {reason}" for form, reason in found.not_run.items())]


def _spread(found: Reconciled) -> Iterable[str]:
    if not found.gaps:
        return
    gap, rows = found.gaps[0], "over all rows, in pairs"
    yield (
        f"Spread: {gap.higher} is {_interval(gap.pair)} points above {gap.lower} ({rows}; p {gap.p_holm:.3g} by Holm "
        f"among {counted(len(found.gaps), 'pair')})."
    )
    if gap.p_holm > LEVEL:
        yield "The forms do not differ by more than chance, so there is nothing to explain."
    elif not found.effects:
        yield "The forms differ in everything at once, so that no factor can be told from another."
    else:
        best = found.effects[0]
        names = " and ".join(FACTORS[name] for name in best.factors)
        yield (
            f"{names[0].upper()}{names[1:]} explain{'s' if len(best.factors) == 1 else ''} most "
            f"({max(best.share, 0):.0%} of the variance between forms): forms with {best.high} are "
            f"{_interval(best.pair)} points above those with {best.low} on the same rows."
        )


def _interval(difference: Pair) -> str:
    """`16.67 [2.10, 31.20]`."""
    if difference.low is None:
        return _percent(difference.difference)
    return f"{_percent(difference.difference)} [{_percent(difference.low)}, {_percent(difference.high)}]"


def _averages(forms: Sequence[Measured]) -> Iterable[str]:
    moves = [abs(form.score.value - form.other.value) for form in forms if form.score and form.other]
    if max(moves, default=0.0) >= LEVEL / PERCENT:
        yield f"Averaging over rows (micro) instead of subsets (macro) moves a form by up to {_percent(max(moves))} points."


def differing_rows(found: Reconciled) -> list[dict[str, Any]]:
    """The rows on which forms differ, those first on which they differ most: `item`, and the score of each form."""
    names = [measured.form.form for measured in found.forms]
    spread = np.nanstd(found.right, axis=1)
    order = [row for row in np.argsort(-spread, kind="stable") if spread[row] > 0]
    return [{"item": found.items[row], **dict(zip(names, found.right[row].tolist(), strict=True))} for row in order]


def item_lines(found: Reconciled, most: int) -> list[str]:
    """The first rows on which forms differ, as lines."""
    rows = differing_rows(found)
    lines = [f"Rows on which forms differ: {len(rows)} of {len(found.items)}"]
    for row in rows[:most]:
        right = ", ".join(name for name, value in row.items() if name != "item" and value == 1)
        wrong = ", ".join(name for name, value in row.items() if name != "item" and value == 0)
        lines.append(f"  {row['item']}: right in {right}; wrong in {wrong}")
    return lines


def document(run: Run, found: Sequence[Reconciled]) -> dict[str, Any]:
    """The tables as data for JSON; scores are shares."""
    return without_nan({"model": run.model, "date": run.date, "benchmarks": [_data(one) for one in found]})


def _data(found: Reconciled) -> dict[str, Any]:
    return {
        "benchmark": found.benchmark,
        "rows": len(found.items),
        "forms": [record(measured) for measured in found.forms],
        "differences": [{**gap._asdict(), "pair": gap.pair._asdict()} for gap in found.gaps],
        "factors": [{**effect._asdict(), "pair": effect.pair._asdict()} for effect in found.effects],
        "not_run": {form.form: reason for form, reason in found.not_run.items()},
        "sentences": sentences(found),
    }


def record(measured: Measured) -> dict[str, Any]:
    """A form with all that is known of it, as a row of CSV."""
    score, other = measured.score, measured.other
    about = {name: value for name, value in vars(measured.form).items() if name not in ("subset", "unread")}
    scores = {name: score and getattr(score, name) for name in ("value", "error", "low", "high", "n", "asked")}
    published, source = measured.published or (None, None)
    more = {"other_average": other and other.value, "chance": measured.chance, "at_chance": measured.mark}
    return about | scores | more | {"unread": measured.unread, "published_percent": published, "source": source}


def as_markdown(run: Run, found: Reconciled) -> str:
    """The table and the sentences in Markdown, for a paper or a model card."""
    header, rows, same = table_of(found)
    lines = [header, ["---"] * len(header), *([escaped_markdown(cell) for cell in row] for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    texts = [same, *sentences(found)]
    return (
        "\n\n".join(filter(None, [escaped_markdown(title_of(run, found)), table, *map(escaped_markdown, texts)])) + "\n"
    )


def write_files(run: Run, found: Sequence[Reconciled]) -> Path:
    """Writes NAME.md, .csv, .json and -items.csv of each benchmark into a folder beside the results file."""
    folder = run.file.with_name(f"reconcile_{run.date}")
    for one in found:
        write_atomically(folder / f"{one.benchmark}.md", as_markdown(run, one).encode())
        write_csv(folder / f"{one.benchmark}.csv", [without_nan(record(measured)) for measured in one.forms])
        text = json.dumps(document(run, [one]), ensure_ascii=False, indent=1)
        write_atomically(folder / f"{one.benchmark}.json", f"{text}\n".encode())
        write_csv(folder / f"{one.benchmark}-items.csv", differing_rows(one))
    return folder
