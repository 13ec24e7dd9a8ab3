"""`cultureval compare cvlue`: CVLUE's numbers of some runs beside the paper's Table 10, and paired differences.

The paper's test split was not released, so its numbers stand apart and no difference to them is computed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cultureval.metrics.cvlue.names import KS, MACRO
from cultureval.reports.comparison.differences import load_sides
from cultureval.reports.comparison.report import Compared, compare_all
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.pairs import DRAWS
from cultureval.runs.table import TableOfRun, published, tables_of
from cultureval.runtime.errors import CulturevalError, escaped
from cultureval.runtime.rounding import printed

SUITE = "cvlue"
METRICS = tuple(
    dict.fromkeys([*(name for names in MACRO.values() for name in names), "vqa_accuracy", *(f"R@{k}" for k in KS)])
)
OTHER_SPLIT = "the paper's test split was not released, so that no difference to its numbers is computed"


def compare_cvlue(
    paths: Sequence[Path],
    output_dir: Path | None = None,
    allowed: Sequence[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
) -> Compared:
    """`compare_all` of CVLUE's tasks, after a table of the runs beside the paper's models; one run is enough for that.

    Raises:
        CulturevalError: There is no run of CVLUE; or as of `compare_all`.
    """
    runs = load_sides(paths, least=1)[0]
    own = {run.name: [table for table in tables_of(run) if table.suite == SUITE] for run in runs}
    if not any(own.values()):
        raise CulturevalError(f"{', '.join(map(str, paths))}: no run of CVLUE. Run `cultureval eval MODEL cvlue`.")
    papers = published(SUITE)
    text = "\n\n".join(
        _beside(name, {run: table for run, tables in own.items() for table in tables if table.name == name}, papers)
        for name in dict.fromkeys(table.name for tables in own.values() for table in tables)
    )
    if sum(map(bool, own.values())) < 2:
        return Compared(text, {}, [])
    there = {metric for run in runs for metric in run.items["metric"].unique()}
    metrics = [metric for metric in METRICS if metric in there]
    found = compare_all(paths, output_dir, metrics, allowed, draws, seed, most_items=0, suite=SUITE)
    return found._replace(text=f"{text}\n\n{found.text}")


def _beside(name: str, tables: Mapping[str, TableOfRun], papers: Mapping[str, Sequence[TableOfRun]]) -> str:
    """A table's numbers, a column a run, then a column for each of the paper's models."""
    alike = {f"paper: {model}": table for model, of_model in papers.items() for table in of_model if table.name == name}
    columns = {**tables, **alike}
    places = list(dict.fromkeys(place for table in columns.values() for place in table.cells))
    rows = [[*place, *(_cell(table, place) for table in columns.values())] for place in places]
    unit = next(iter(tables.values())).unit
    align = "ll" + "r" * len(columns)
    title = f"{name}, {unit}; {OTHER_SPLIT}"
    return terminal_table(("", "", *map(escaped, columns)), rows, align, title)


def _cell(table: TableOfRun, place: tuple[str, str]) -> str:
    cell = table.cells.get(place)
    if cell is None or cell.value is None:
        return cell.words if cell and cell.words else "-"
    error = "" if cell.error is None else f" ±{printed(cell.error, cell.digits)}"
    return printed(cell.value, cell.digits) + error
