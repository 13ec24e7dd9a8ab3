"""The summary of a run as text: what a reader must know, the tables of its suites, where the files are.

The tables come last, since the end of the output is what people read; in full (`--full`) every score stands above them.

Tables are never wider than the terminal: where one does not fit, first its counts and then its standard errors are
left out, and a line says so; `--json` has them at any width.
"""

import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from cultureval.metrics.judges.items import JUDGED
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import output_folder
from cultureval.runs.judged import judge_scores
from cultureval.runs.means import count_of
from cultureval.runs.record import Run
from cultureval.runs.table import (
    MOST_LINES,
    Cell,
    Column,
    Content,
    Coverage,
    SuiteTable,
    names_of_columns,
    suite_tables,
)
from cultureval.runs.warnings import run_notes, run_warnings
from cultureval.runtime.errors import counted, escaped
from cultureval.runtime.printing import folded
from cultureval.runtime.rounding import printed, printed_or_na
from cultureval.tasks.catalogue import OVERALL

STANDARD_ERRORS, COUNTS = "standard errors", "n"
DETAILS = ((STANDARD_ERRORS, COUNTS), (STANDARD_ERRORS,), (COUNTS,), ())  # shown beside the values, the most first
UNDEFINED = "n/a"
PLAIN_WIDTH = 120  # where standard output is no terminal


def shown_run(run: Run, width: int | None, full: bool = False, name: str = "", untold: Collection[str] = ()) -> str:
    """What people read of a run: the summary, which comes last, after all scores, notes and signatures where `full`."""
    summary = summary_text(run, width or PLAIN_WIDTH, full, name, untold)
    return escaped(f"{full_text(run, width)}\n\n{summary}" if full else summary, keep="\n")


def summary_text(run: Run, width: int, full: bool = False, name: str = "", untold: Collection[str] = ()) -> str:
    """The summary of a run.

    Args:
        width: Width of the terminal in cells.
        full: Whether all scores and notes stand above it.
        name: The model's, with what tells it from others of the name; "": as in the file.
        untold: Kinds of warnings that are left out.

    Returns:
        The lines, joined. The tables of each suite have at most `MOST_LINES`.
    """
    lines = _wrapped(f"{name or run.model}, {run.date}", width)
    lines += listed([warning for warning in run_warnings(run) if warning.kind not in untold], width)
    published, suites = False, suite_tables(run)
    if not suites:
        lines += _wrapped("None of its tasks is of a suite that is known here: --full has all scores.", width)
    for suite, tables in suites.items():
        lines += ["", *suite_lines(suite, tables, width)]
        published |= any(cell.published is not None for table in tables for cell in _cells(table))
    if published:
        lines += _wrapped("[ ] is the paper's number for a model of this name.", width)
    lines += _unbroken("Results:", shlex.quote(str(_shortest(run.file))), width)
    if not full:
        notes = run_notes(run)
        also = f", {counted(len(notes), 'note')} on the data" if notes else ""
        lines += _unbroken(f"All scores, signatures{also}:", f"cultureval show {_folder(run)} --full", width)
    return "\n".join(lines)


def suite_lines(suite: str, tables: Sequence[SuiteTable], width: int) -> list[str]:
    """The lines of a suite's tables, at most `MOST_LINES`; a line says how many are left out."""
    lines = [line for table in tables for line in table_lines(table, width)]
    if len(lines) <= MOST_LINES:
        return lines
    kept = lines[: MOST_LINES - 1]
    return [*kept, *_wrapped(f"({len(lines) - len(kept)} more lines of {suite}: --full)", width)]


def table_lines(table: SuiteTable, width: int) -> list[str]:
    """The lines of a table: title, header, rows and notes.

    Args:
        width: No line is wider, in cells.
    """
    from rich.cells import cell_len

    title, lines, shown = _wrapped(table.title, width), [], DETAILS[0]
    for shown in DETAILS:
        header, rows, align = _grid(table, shown)
        lines = terminal_table(header, rows, align, indent=2).splitlines()
        if max(map(cell_len, lines), default=0) <= width:
            break
    else:
        lines = terminal_table(header, rows, align, indent=2, width=width, cut_words=True).splitlines()
    left_out = [detail for detail in _details_of(table) if detail not in shown]
    notes = [*table.notes, *([f"Left out for lack of width: {', '.join(left_out)}."] if left_out else [])]
    return [*title, *lines, *(f"  {line}" for note in notes for line in _wrapped(note, width - 2))]


def summary_data(run: Run, name: str = "") -> dict[str, Any]:
    """The summary as data for JSON: model (`name`, where it has others of its name), date, path of the results file,
    warnings, numbers that the file states otherwise, notes, each suite's tables.
    """
    return {
        "model": name or run.model,
        "date": run.date,
        "results": str(run.file.resolve()),
        "warnings": run_warnings(run),
        "claims": [one.sentence for one in run.claims],
        "notes": run_notes(run),
        "suites": {suite: [_table_data(table) for table in tables] for suite, tables in suite_tables(run).items()},
    }


def summaries_json(runs: Iterable[tuple[str, Run]]) -> str:
    """The `summary_data` of runs with their models' names as one JSON document: {"runs": [...]}."""
    data = {"runs": [summary_data(run, name) for name, run in runs]}
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)


def _table_data(table: SuiteTable) -> dict[str, Any]:
    def data(cell: Content) -> Any:
        if not isinstance(cell, Cell):
            return str(cell) if isinstance(cell, Coverage) else cell
        return {"value": cell.value, "stderr": cell.stderr, "n": cell.n, "published": cell.published}

    rows = [[row.label, *map(data, row.cells)] for row in table.rows]
    columns = [column.whole if isinstance(column, Column) else column for column in table.columns]
    return {"title": table.title, "columns": columns, "rows": rows, "notes": list(table.notes)}


def _cells(table: SuiteTable) -> Iterable[Cell]:
    return (cell for row in table.rows for cell in row.cells if isinstance(cell, Cell))


def _details_of(table: SuiteTable) -> list[str]:
    """What the table has beside its values."""
    cells = list(_cells(table))
    found = {
        STANDARD_ERRORS: any(cell.stderr is not None for cell in cells),
        COUNTS: any(cell.n is not None for cell in cells),
    }
    return [detail for detail, present in found.items() if present]


def _grid(table: SuiteTable, details: Sequence[str]) -> tuple[list[str], list[list[str]], str]:
    """Header, rows and alignment of a table as texts; counts are a last column of their own."""
    columns = [[row.label for row in table.rows]]
    columns += [_column([row.cells[place] for row in table.rows], details) for place in range(len(table.columns) - 1)]
    header, align = names_of_columns(table), "l" * len(columns)
    if COUNTS in details and COUNTS in _details_of(table):
        own = [[cell for cell in row.cells if isinstance(cell, Cell) and not cell.spans] for row in table.rows]
        columns.append([_counts([cell.n for cell in cells]) for cells in own])
        header, align = [*header, "n"], align + "r"
    return header, [list(row) for row in zip(*columns, strict=True)], align


def _column(cells: Sequence[Content], details: Sequence[str]) -> list[str]:
    """The texts of a column: values, standard errors and published values below each other."""
    cells = [cell.words if _is_words(cell) else cell for cell in cells]
    parts = [_parts(cell, details) if isinstance(cell, Cell) else None for cell in cells]
    widths = [max((len(part[place]) for part in parts if part), default=0) for place in range(3)]
    texts = []
    for cell, part in zip(cells, parts, strict=True):
        if part is None:
            texts.append(f"{cell.words}{cell}" if isinstance(cell, Coverage) else cell if isinstance(cell, str) else "")
        else:
            value, *beside = (text.ljust(size) for text, size in zip(part, widths, strict=True) if size)
            texts.append(" ".join([value.strip().rjust(widths[0]), *beside]).rstrip())
    return texts


def _is_words(cell: Content) -> TypeGuard[Cell]:
    """Whether words stand in place of a number, with nothing beside them."""
    return isinstance(cell, Cell) and cell.value is None and cell.words != UNDEFINED and cell.published is None


def _parts(cell: Cell, details: Sequence[str]) -> tuple[str, str, str]:
    value = UNDEFINED if cell.value is None else printed(cell.value, cell.digits)
    error = STANDARD_ERRORS in details and cell.stderr is not None
    digits = cell.digits if cell.published_digits is None else cell.published_digits
    published = "" if cell.published is None else f"[{printed(cell.published, digits)}]"
    return value, f"±{printed(cell.stderr, cell.digits)}" if error else "", published


def _counts(counts: Sequence[int | None]) -> str:
    """The number of items of a row's cells, or its range."""
    known = sorted({count for count in counts if count is not None})
    return "-".join(f"{count:,}" for count in (known if len(known) < 2 else (known[0], known[-1])))


def _wrapped(text: str, width: int) -> list[str]:
    """A sentence, or what a file names, in lines of the width; a line break in it starts no line of its own."""
    return folded(escaped(text), max(width, 1)).splitlines()


def _unbroken(words: str, rest: str, width: int) -> list[str]:
    """Words and a path or command, which has a line of its own rather than parts on two."""
    from rich.cells import cell_len

    line = escaped(f"{words} {rest}")
    return [line] if cell_len(line) <= width else [*_wrapped(words, width), escaped(rest)]


def listed(sentences: Iterable[str], width: int) -> list[str]:
    """The lines of a list of sentences, each indented where it goes on."""
    lines = []
    for sentence in sentences:
        first, *others = _wrapped(sentence, max(width - 2, 1)) or [""]
        lines += [f"- {first}", *(f"  {line}" for line in others)]
    return lines


def _folder(run: Run) -> str:
    """The output folder of a run, quoted for a shell; the file itself where it is in none."""
    return shlex.quote(_shortest(output_folder(run.file.resolve()) or run.file))


def _shortest(file: Path) -> str:
    """The path as one would type it: relative below the current folder."""
    path = file.resolve()
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def full_text(run: Run, width: int | None) -> str:
    """The long table of a run and everything below it.

    Args:
        width: Of the terminal in cells; None: no limit.
    """
    cut = width is not None
    header = ("Task", "metric", "value", "±", "n")
    title = "Scores as in the results file, on the scale of each metric (shares from 0 to 1):"
    lines = [terminal_table(header, _score_rows(run), "llrrr", title, width=width, cut_words=cut)]
    lines += [*left_out_of_means(run), *judges_means(run), *run_notes(run)]
    told = {"Numbers that the file states otherwise:": [one.sentence for one in run.claims]}
    told |= {"Not checked against items:": [f"{task}: {why}" for task, why in run.unchecked.items()]}
    told |= {"Scores that no metric gives:": [f"{task}: {why}" for task, why in run.impossible.items()]}
    lines += [line for title, some in told.items() if some[1:] for line in (title, *(f"  {one}" for one in some))]
    if run.record.signatures:
        lines += ["Signatures:", *(f"  {signature.text}" for signature in run.record.signatures)]
    return "\n".join(filter(None, lines))


def left_out_of_means(run: Run) -> list[str]:
    """For each task, how many rows some metrics exclude from their means, because they have no value there.

    Judges' metrics have separate counts (`judges_means`).
    """
    lines = []
    for task in run.record.tasks.values():
        metrics_of: dict[int, list[str]] = {}
        for metric, count in task.scored.items():
            if count < task.rows and not metric.startswith(JUDGED):
                metrics_of.setdefault(task.rows - count, []).append(metric)
        for count, metrics in metrics_of.items():
            who = metrics[0] if len(metrics) == 1 else f"{metrics[0]} and {len(metrics) - 1} more"
            lines.append(f"{task.task}: {who} exclude {count} of {task.rows} answered rows.")
    return lines


def judges_means(run: Run) -> list[str]:
    """Judges' scores of a run: a line for each judge and task with the mean of each criterion."""
    lines = []
    for one in sorted(judge_scores(run), key=lambda one: one.task):
        cells = [f"{name} {printed_or_na(found.mean and found.mean.value)}" for name, found in one.criteria.items()]
        if not cells:
            continue
        name = f"judge_{one.judge}_{one.template}"
        lines.append("  ".join([f"  {one.task}  {name}", *cells, f"scored {one.scored}/{one.items}"]))
        if one.flagged:
            cells = [f"{name} {printed_or_na(found.unflagged)}" for name, found in one.criteria.items()]
            lines.append("  ".join(["    without flagged texts:", *cells, f"{one.scored_unflagged} scored"]))
    return ["Judges' means, from 1 to 5 (the table above has their bounds and errors):", *lines] if lines else []


def _score_rows(run: Run) -> Iterator[tuple[str, str, str, str, str]]:
    for task in sorted(run.scores):
        values, shown = run.scores[task], task
        for metric, value in values.items():
            if task == OVERALL or metric.endswith("_stderr"):
                continue
            error, (n, _) = run.stderr(task, metric), count_of(run, task, metric)
            told = "" if error is None else printed(error, 4), "" if n is None else f"{n:,}"
            yield shown, metric, printed_or_na(value, 4), *told
            shown = ""
        for metric in run.record.tasks[task].left_out if task in run.record.tasks else ():
            yield "", metric, "left out", "", ""
