"""Correlations of metrics and judges with people's scores: tables from files of human ratings."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from cultureval.judge_prompts.templates import judge_template
from cultureval.metrics.agreement import Correlation, tau_c_with_interval
from cultureval.metrics.rater_agreement import Coefficient, rater_agreement
from cultureval.reports.human_ratings import (
    MEAN,
    HumanRatings,
    RatedText,
    Rating,
    join_ratings,
    judge_metrics,
    saved_texts,
)
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import find_saved_tasks
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_suites

ALL = "all"
COLUMNS = ("metric", "criterion", "dialect", "tau_c", "low", "high", "pairs", "items")
CellKey = tuple[str, str, str]  # metric, criterion, dialect
NAMES = {"raw": "raw", "AC1": "AC1", "AC2": "AC2", "alpha": "alpha", "kappa": "kappa", "tau_c": "tau-c"}
MOST_ANNOTATORS = 4  # who have rows of their own in the printed table; the file has all
MEAN_OF_PEOPLE = "rounded mean of people"
Ratings = list[tuple[str, list[float | None]]]  # for each text its item and its ratings; None: not rated


@dataclass(frozen=True)
class Compared:
    """The agreement of some raters on one criterion.

    Attributes:
        criterion: The criterion.
        raters: Who they are.
        values: Coefficient -> its value with an interval; kappa and tau-c are of two raters only.
        texts: Number of texts with two ratings or more on the scale.
        excluded: Number of texts that have a rating off the scale (such as 3.5).
        shown: Whether the row is in the printed table.
    """

    criterion: str
    raters: str
    values: Mapping[str, Coefficient]
    texts: int
    excluded: int
    shown: bool


def agreement_report(
    suite: str, human: Path, results: Sequence[Path], renamed: Mapping[str, str], draws: int, output: Path | None
) -> str:
    """Correlations of metrics with human ratings and the agreement of raters, as text; optionally also as a file.

    Args:
        suite: A suite that has `ratings`.
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


def compared_raters(
    ratings: Sequence[Rating], texts: Sequence[RatedText], rated: HumanRatings, draws: int
) -> list[Compared]:
    """All comparisons of raters, criterion by criterion: people, judges with people, judges with judges.

    Args:
        rated: What the suite says of its ratings.
        draws: Resamples of items for each interval.
    """
    found = []
    for criterion, highest in rated.criteria.items():
        of_judges = highest_of_judges(rated, criterion)
        tables = [(names, table, highest, shown) for names, table, shown in annotator_tables(ratings, criterion)]
        if of_judges == highest:
            tables += [(names, table, highest, shown) for names, table, shown in judge_tables(texts, criterion, rated)]
        if of_judges is not None:
            pairs = judge_pairs(texts, criterion, rated)
            tables += [(names, table, of_judges, True) for names, table in pairs]
        found += [_compared(criterion, *table, draws) for table in tables]
    return [one for one in found if one.texts]


def rater_table(compared: Sequence[Compared]) -> str:
    """The printed table: each coefficient with its 95% interval."""
    shown = [one for one in compared if one.shown]
    if not shown:
        return "No agreement of raters: no text has two ratings on the categories of the scale."
    rows = [
        [one.criterion, one.raters, *(_cell(one.values.get(name)) for name in NAMES), str(one.texts), str(one.excluded)]
        for one in shown
    ]
    title = (
        "Agreement of raters [95% interval over items]: raw, Gwet's AC1, AC2 (ordinal weights), Krippendorff's alpha "
        "(ordinal), kappa (quadratic weights), tau-c. Texts with a rating off the scale are excluded:"
    )
    header = ["criterion", "raters", *NAMES.values(), "texts", "excluded"]
    more = len(compared) - len(shown)
    note = f"\n{more} more rows, of single annotators, are in the file of --output." if more else ""
    return terminal_table(header, rows, "llr", title) + note


def write_raters(file: Path, compared: Sequence[Compared]) -> None:
    """Every coefficient as a row of a CSV file; undefined numbers are empty cells."""
    columns = ("criterion", "raters", "coefficient", "value", "low", "high", "texts", "excluded")
    rows = [
        dict(zip(columns, (one.criterion, one.raters, name, value.value, value.low, value.high), strict=False))
        | {"texts": one.texts, "excluded": one.excluded}
        for one in compared
        for name, value in one.values.items()
    ]
    write_csv(file, rows, columns)


def highest_of_judges(rated: HumanRatings, criterion: str) -> int | None:
    """The highest score of the judges' scale of a criterion, which may differ from people's; None: not judged."""
    name = rated.of_judges(criterion)
    templates = map(judge_template, rated.judge_templates)
    return next((row.top(name) for row in templates if name in row.criteria), None)


def annotator_tables(ratings: Iterable[Rating], criterion: str) -> list[tuple[str, Ratings, bool]]:
    """The annotators' ratings of texts with several: of all annotators, and of each two where there are more than two.

    If the file names no annotators, the first ratings of the texts are of one column, and so on.
    """
    texts: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for rating in ratings:
        if criterion in rating.scores:
            scores = texts[rating.group, rating.item, rating.model]
            scores[rating.annotator or f"#{len(scores) + 1}"] = rating.scores[criterion]
    rated = [(item, scores) for (_, item, _), scores in texts.items() if len(scores) > 1]
    names = sorted({name for _, scores in rated for name in scores})
    if not names:
        return []
    tables = [("annotators", names, True)]
    if len(names) > 2:
        shown = len(names) <= MOST_ANNOTATORS
        tables += [(f"{first} and {second}", [first, second], shown) for first, second in combinations(names, 2)]
    return [
        (title, [(item, [scores.get(name) for name in chosen]) for item, scores in rated], shown)
        for title, chosen, shown in tables
    ]


def judge_tables(texts: Sequence[RatedText], criterion: str, rated: HumanRatings) -> list[tuple[str, Ratings, bool]]:
    """Each judge's ratings beside the rounded mean of people (halves up) and beside each annotator's, on all texts."""
    names = list(dict.fromkeys(name for text in texts for name in text.annotators))
    tables = []
    for judge, metric in judge_scores(texts, criterion, rated).items():
        scored = [text for text in texts if metric in text.metrics and criterion in text.human]
        means: Ratings = [
            (text.item, [float(math.floor(text.human[criterion] + 0.5)), text.metrics[metric]]) for text in scored
        ]
        tables.append((f"{MEAN_OF_PEOPLE} and {judge}", means, True))
        if any(len(text.annotators) > 1 for text in scored):
            shown = len(names) <= MOST_ANNOTATORS
            tables += [(f"{name} and {judge}", _beside(scored, name, criterion, metric), shown) for name in names]
    return tables


def _beside(texts: Sequence[RatedText], annotator: str, criterion: str, metric: str) -> Ratings:
    """An annotator's ratings beside a judge's."""
    return [
        (text.item, [text.annotators.get(annotator, {}).get(criterion), text.metrics.get(metric)]) for text in texts
    ]


def judge_pairs(texts: Sequence[RatedText], criterion: str, rated: HumanRatings) -> list[tuple[str, Ratings]]:
    """The ratings of each two judges (a judge under two templates counts as two), on all texts that both scored."""
    judges = judge_scores(texts, criterion, rated)
    return [
        (
            f"{first} and {second}",
            [(text.item, [text.metrics.get(judges[one]) for one in (first, second)]) for text in texts],
        )
        for first, second in combinations(judges, 2)
    ]


def judge_scores(texts: Sequence[RatedText], criterion: str, rated: HumanRatings) -> dict[str, str]:
    """Judge and template -> the metric that is its score of a criterion, for those that scored one of the texts."""
    return judge_metrics(dict.fromkeys(name for text in texts for name in text.metrics), criterion, rated)


def _compared(criterion: str, raters: str, table: Ratings, highest: int, shown: bool, draws: int) -> Compared:
    scale = [float(score) for score in range(1, highest + 1)]
    several = [(item, row) for item, row in table if sum(cell is not None for cell in row) > 1]
    kept = [(item, row) for item, row in several if all(cell is None or cell in scale for cell in row)]
    values: dict[str, Coefficient] = {}
    if kept:
        items, rows = [item for item, _ in kept], [row for _, row in kept]
        values = rater_agreement(rows, scale, items, draws)
        if len(rows[0]) == 2:
            tau = tau_c_with_interval(*zip(*rows, strict=True), items=items, draws=draws)
            values["tau_c"] = Coefficient(tau.value, tau.low, tau.high)
    return Compared(criterion, raters, values, len(kept), len(several) - len(kept), shown)


def _cell(found: Coefficient | None) -> str:
    if found is None or math.isnan(found.value):
        return "n/a"
    interval = "n/a" if math.isnan(found.low) else f"{found.low:.2f}, {found.high:.2f}"
    return f"{found.value:.3f} [{interval}]"
