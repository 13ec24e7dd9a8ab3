"""Kendall's distance between two leaderboards: how much two orders of the same models disagree."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from cultureval.reports.leaderboard.board import ranks_of
from cultureval.reports.leaderboard.entries import Division, Entry, Group, divisions
from cultureval.reports.leaderboard.tables import tables_of
from cultureval.reports.ranks import Ranking, kendall_distance
from cultureval.reports.run_ranks import average_weights, rank_items
from cultureval.runs.load_runs import load_all
from cultureval.runs.table import higher_is_better, of_shots
from cultureval.runtime.csv_files import read_csv
from cultureval.runtime.errors import CulturevalError, counted, escaped, shown_names

LARGEST = 1_000_000  # bytes of a CSV file of a leaderboard
MOST_PAIRS = 10
RANK = "rank"  # the second column of the page's own tables (`leaderboard.exports`)
Board = Mapping[str, float]  # model -> score, the larger the better
Ranked = tuple[str, bool, Ranking | None, Mapping[str, str]]  # title, whether lower is better, ranks, who has none: why


def compare_boards(paths: Sequence[Path], metrics: Sequence[str]) -> str:
    """Kendall's distance of two leaderboards on the models that both have, and the pairs that they order differently.

    Args:
        paths: Two. A folder of results: each table of the leaderboard's page whose models have ranks is one, by the
            scores of these ranks; models that the page would not rank there are left out with a sentence. Of suites
            without such a table, each headline is one, averaged over the benchmarks that all models have. A CSV file:
            its first two columns are model and score, higher is better; it is compared with each of the folder's.
        metrics: Of results, each a leaderboard in place of these; [] for these.

    Raises:
        CulturevalError: There are not two, one cannot be read, or none of both share two models.
    """
    if len(paths) != 2:
        raise CulturevalError(f"--leaderboards compares two leaderboards, and {len(paths)} were named.")
    read = [({"": _of_csv(path)}, []) if path.suffix == ".csv" else _of_results(path, metrics) for path in paths]
    (firsts, seconds), left_out = [boards for boards, _ in read], [line for _, told in read for line in told]
    pairs = [(one or other, firsts[one], seconds[other]) for one in firsts for other in seconds if _alike(one, other)]
    found = [(title, first, second) for title, first, second in pairs if len(first.keys() & second.keys()) > 1]
    if not found:
        names = [
            shown_names(list(dict.fromkeys(name for board in boards.values() for name in board)), 3)
            for boards, _ in read
        ]
        most = max((len(first.keys() & second.keys()) for _, first, second in pairs), default=0)
        there = " and ".join(name or "no model" for name in names)
        few = f"the leaderboards share {counted(most, 'model')}, and a distance needs two: {there}."
        raise CulturevalError("\n".join([few, *left_out]))
    for path, boards, others in ((paths[0], firsts, seconds), (paths[1], seconds, firsts)):
        if alone := [title for title in boards if not any(_alike(title, other) for other in others)]:
            left_out.append(f"{path} alone has {shown_names(alone, 3)}.")
    lines = [
        line
        for title, first, second in found
        for line in _distance(f"{title}: " if len(found) > 1 else "", first, second, paths)
    ]
    return "\n".join(map(escaped, [*lines, *left_out]))


def _alike(one: str, other: str) -> bool:
    """Whether two leaderboards of these titles are compared: they are of one table, or one is a file of any."""
    return one == other or not one or not other


def _distance(title: str, board: Board, other: Board, paths: Sequence[Path]) -> Iterator[str]:
    """The distance of two leaderboards, the pairs that they order differently, and the models of one alone."""
    models = [model for model in board if model in other]
    first, second = ([one[model] for model in models] for one in (board, other))
    distance, tau = kendall_distance(first, second)
    yield (
        f"{title}Kendall distance {distance:.3f} of {len(models)} models: the share of pairs that {paths[0]} and "
        f"{paths[1]} order differently (a pair tied in one alone counts half). Kendall's tau-b {tau:.3f}."
    )
    if left := [model for one in (board, other) for model in one if model not in models]:
        yield f"Only one of them has {shown_names(left)}."
    turned = [
        (models[a], models[b])
        for a, b in combinations(range(len(models)), 2)
        if (first[a] - first[b]) * (second[a] - second[b]) < 0
    ]
    yield from (f"  ordered differently: {one} / {another}" for one, another in turned[:MOST_PAIRS])
    if len(turned) > MOST_PAIRS:
        yield f"  and {len(turned) - MOST_PAIRS} more pairs"


def _of_csv(path: Path) -> dict[str, float]:
    if not path.is_file():
        raise CulturevalError(f"{path} does not exist.")
    if path.stat().st_size > LARGEST:
        raise CulturevalError(f"{path} is larger than {LARGEST:,} bytes, and is no leaderboard.")
    try:
        lines = [row for _, row in read_csv(path)]
        rows = [list(row.values()) for row in lines]
        if lines and list(lines[0])[1:2] == [RANK]:
            raise CulturevalError(
                f"{path}: its second column is `{RANK}`, as in the page's own tables, and a rank is no score: keep the "
                "columns of models and of their score, or name the folder of results that the page was made of."
            )
        scores = {row[0]: float(row[1]) for row in rows if row[1].strip()}
    except (ValueError, IndexError) as error:
        raise CulturevalError(
            f"{path}: a header, then a model and its score in each row, are needed ({error})."
        ) from error
    if not all(map(math.isfinite, scores.values())):
        raise CulturevalError(f"{path}: a score is not finite.")
    return scores


def _of_results(path: Path, metrics: Sequence[str]) -> tuple[dict[str, Board], list[str]]:
    """The leaderboards of a folder by their titles, and who is left out and why.

    Models stand in one order where the leaderboard's page has them in one group: the first of each suite.
    """
    boards: dict[str, Board] = {}
    left: dict[str, list[str]] = {}
    for division in divisions(load_all([path])):
        first, *others = division.groups
        for group in others:
            why = "; ".join(group.differences)
            if models := [entry.model for entry in group.entries if entry not in first.entries]:
                left.setdefault(f"{division.suite}: {why}", []).extend(models)
        entries = []
        for entry in first.entries:
            if entry.unranked:
                left.setdefault(f"{division.suite}: {entry.unranked}", []).append(entry.model)
            else:
                entries.append(entry)
        names = [entry.model for entry in entries]
        name_of = {one.label: one.model if names.count(one.model) == 1 else one.label for one in entries}
        ranked = [] if metrics else _of_tables(division, entries)
        for title, lower, ranking, without in ranked or _of_metrics(division, entries, metrics):
            for label, why in without.items():
                left.setdefault(f"{title}: {why}", []).append(name_of[label])
            if ranking:
                boards[title] = {name_of[row.model]: -row.score if lower else row.score for row in ranking.rows}
    return boards, [f"{path}: without {shown_names(models)}: {why.rstrip('.')}." for why, models in left.items()]


def _of_tables(division: Division, entries: Sequence[Entry]) -> list[Ranked]:
    """The ranks of a suite's tables, as on the leaderboard's page."""
    tables = [(table, ranks_of(table, division)) for table in tables_of(division, Group(entries))] if entries else []
    return [
        (
            f"{table.title}, {table.columns[table.main].whole}",
            table.columns[table.main].lower,
            ranks.ranking,
            ranks.without,
        )
        for table, ranks in tables
        if ranks and ranks.ranking and table.main is not None
    ]


def _of_metrics(division: Division, entries: Sequence[Entry], metrics: Sequence[str]) -> Iterator[Ranked]:
    """The ranks by each metric (() each headline), averaged over the benchmarks of the tasks that all models have."""
    records = {task: one for entry in entries for task, one in entry.run.record.tasks.items()}
    for metric in metrics or dict.fromkeys(name for record in records.values() for name in record.metrics[:1]):
        tasks = [record for record in records.values() if metrics or record.metrics[:1] == (metric,)]
        tasks = [one for one in tasks if all(entry.run.value(one.task, metric) is not None for entry in entries)]
        if tasks:
            parts = {(task, metric): weight for task, weight in average_weights(tasks).items()}
            lower = not higher_is_better(entries[0].run, tasks[0].task, metric)
            found = rank_items([(one.label, one.sources) for one in entries], parts, higher_is_better=not lower)
            yield f"{division.suite}, {metric}{of_shots(division.shots)}", lower, found.ranking, found.without
