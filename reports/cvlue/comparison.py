"""`cultureval compare --suite cvlue`: CVLUE's numbers of some runs beside the paper's Table 10.

The paper's test split was not released, so no difference to its numbers is computed.
"""

from collections.abc import Sequence
from pathlib import Path

from cultureval.reports.comparison.differences import load_sides
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.table import TableOfRun, published, tables_of
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.rounding import printed

SUITE = "cvlue"
OTHER_SPLIT = "the paper's numbers are of a test split that was not released, so no differences are computed"


def beside_the_paper(paths: Sequence[Path], *_: object) -> tuple[str, list[Path]]:
    """Tables for Chinese and English with a column for each run and for each of the paper's models; no files.

    Raises:
        CulturevalError: There is no run of CVLUE.
    """
    runs = load_sides(paths, least=1)[0]
    tables_by_run = {run.name: {table.name: table for table in tables_of(run) if table.suite == SUITE} for run in runs}
    names = dict.fromkeys(name for tables in tables_by_run.values() for name in tables)
    if not names:
        raise CulturevalError(f"{', '.join(map(str, paths))}: no run of CVLUE. Run `cultureval eval MODEL cvlue`.")
    papers = {f"paper: {model}": {table.name: table for table in found} for model, found in published(SUITE).items()}
    texts = []
    for name in names:
        columns = {label: tables[name] for label, tables in {**tables_by_run, **papers}.items() if name in tables}
        places = dict.fromkeys(place for table in columns.values() for place in table.cells)
        rows = [[*place, *(_cell(table, place) for table in columns.values())] for place in places]
        title = f"{name}, {next(iter(columns.values())).unit}; {OTHER_SPLIT}"
        texts.append(terminal_table(("", "", *map(escaped, columns)), rows, "ll" + "r" * len(columns), title))
    return "\n\n".join(texts), []


def _cell(table: TableOfRun, place: tuple[str, str]) -> str:
    cell = table.cells.get(place)
    if cell is None or cell.value is None:
        return cell.words if cell and cell.words else "-"
    return printed(cell.value, cell.digits) + (f" ±{cell.shown_error}" if cell.shown_error else "")
