"""Correlations of metrics and judges with people's scores: tables from files of human ratings."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from cultureval.metrics.agreement import Correlation, tau_c_with_interval
from cultureval.reports.human_ratings import MEAN, HumanRatings
from cultureval.reports.rated_texts import RatedText, join_ratings, saved_texts
from cultureval.reports.rater_tables import compared_raters, rater_table, write_raters
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import find_saved_tasks
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_suites

ALL = "all"
COLUMNS = ("metric", "criterion", "dialect", "tau_c", "low", "high", "pairs", "items")

CellKey = tuple[str, str, str]  # metric, criterion, dialect


def agreement_report(
    suite: str, human: Path, results: Sequence[Path], renamed: Mapping[str, str], draws: int, output: Path | None
) -> str:
    """Correlations of metrics with human ratings and the agreement of raters, as text; optionally also as a file.

    Args:
        suite: A suite that has `ratings`.
        human: The file of human ratings.
        results: Output folders or results files of the models; [] for the metrics of the human file only.
        renamed: Model name in the ratings -> in the results, if different.
        draws: Resamples of items for each interval.
        output: A CSV file for every correlation.

    Raises:
        CulturevalError: A file cannot be read, the suite describes no ratings, or the ratings and the results have no
            text in common.
    """
    rated = human_ratings(suite)
    ratings, references = rated.read(human)
    saved = saved_texts(find_saved_tasks(results), suite, rated) if results else {}
    texts, lines = join_ratings(ratings, saved, renamed, saved_only=bool(results))
    if references:
        lines.append(f"{references} ratings of human references excluded.")
    cells = correlations(texts, rated.headline, draws)
    raters = compared_raters(ratings, texts, rated, draws)
    lines += [*correlation_tables(cells, rated.headline), "", rater_table(raters)]
    if output:
        write_correlations(output, cells)
        beside = output.with_name(f"{output.stem}_raters{output.suffix}")
        write_raters(beside, raters)
        lines.append(f"All {len(cells)} correlations: {output}; agreement of raters: {beside}")
    return "\n".join(lines)


def human_ratings(suite: str) -> HumanRatings:
    """What a suite says of its human ratings.

    Raises:
        CulturevalError: There is no such suite, or what it says cannot be loaded or is something else.
    """
    rated = all_suites()[suite].part("ratings") if suite in all_suites() else None
    if not isinstance(rated, HumanRatings):
        raise CulturevalError(f"The suite {suite!r} has no `ratings` of the type reports.human_ratings.HumanRatings.")
    return rated


def correlations(texts: Sequence[RatedText], headline: str, draws: int) -> dict[CellKey, Correlation]:
    """Tau-c of every metric with every criterion, in each dialect and over all.

    With the headline `MEAN`, also with the mean of the criteria, for texts that have all scores. Items (an image or a
    prompt with all models' texts) are resampled.
    """
    criteria = list(dict.fromkeys(name for text in texts for name in text.human))
    if headline == MEAN:
        for text in texts:
            if len(text.human) == len(criteria):
                text.human[MEAN] = sum(text.human.values()) / len(criteria)
        criteria.insert(0, MEAN)
    dialects = list(dict.fromkeys(text.group for text in texts))
    cells = {}
    for metric in dict.fromkeys(name for text in texts for name in text.metrics):
        for criterion in criteria:
            for dialect in (ALL, *(dialects if len(dialects) > 1 else ())):
                pairs = [
                    (text.metrics[metric], text.human[criterion], text.item)
                    for text in texts
                    if dialect in (ALL, text.group) and metric in text.metrics and criterion in text.human
                ]
                if pairs:
                    cells[metric, criterion, dialect] = tau_c_with_interval(*zip(*pairs, strict=True), draws=draws)
    return cells


def correlation_tables(cells: Mapping[CellKey, Correlation], headline: str) -> list[str]:
    """Two tables: the headline's human score by dialect, and the criteria over all dialects."""
    if not cells:
        return ["", "No metric to compare with: give the RESULTS of the rated models."]
    by_dialect = {
        (metric, dialect): cell for (metric, criterion, dialect), cell in cells.items() if criterion == headline
    }
    by_criterion = {(metric, criterion): cell for (metric, criterion, dialect), cell in cells.items() if dialect == ALL}
    score = "the mean human score" if headline == MEAN else f"the human score of {headline}"
    title = f"Kendall's tau-c x 100 with {score}, by dialect [95% interval over items]:"
    return ["", _table(by_dialect, title), "", _table(by_criterion, "The same by criterion, all dialects:")]


def _table(cells: Mapping[tuple[str, str], Correlation], title: str) -> str:
    columns = list(dict.fromkeys(column for _, column in cells))
    rows = []
    for metric in dict.fromkeys(metric for metric, _ in cells):
        found = [cells.get((metric, column)) for column in columns]
        most = max(cell.pairs for cell in found if cell)
        rows.append([metric, *(_shown(cell) for cell in found), str(most)])
    return terminal_table(["metric", *columns, "n"], rows, "lr", title)


def _shown(cell: Correlation | None) -> str:
    if cell is None or math.isnan(cell.value):
        return "n/a"
    interval = "n/a" if math.isnan(cell.low) else f"{100 * cell.low:.1f}, {100 * cell.high:.1f}"
    return f"{100 * cell.value:.1f} [{interval}]"


def write_correlations(file: Path, cells: Mapping[CellKey, Correlation]) -> None:
    """Every correlation as a row of a CSV file; undefined numbers are empty cells."""
    rows = [
        dict(zip(COLUMNS, (*names, cell.value, cell.low, cell.high, cell.pairs, cell.items), strict=True))
        for names, cell in cells.items()
    ]
    write_csv(file, rows, COLUMNS)
