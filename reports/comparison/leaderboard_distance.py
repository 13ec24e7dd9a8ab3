"""`cultureval compare --leaderboards`: how differently two leaderboards order the models that both have."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from cultureval.reports.leaderboard.board import read_board
from cultureval.runtime.csv_files import read_csv
from cultureval.runtime.errors import CulturevalError, escaped, shown_names

MOST_PAIRS = 10
LARGEST = 10_000_000  # bytes of a CSV file
Board = Mapping[str, float]  # model -> its score, higher is better


def compare_boards(paths: Sequence[Path]) -> str:
    """The Kendall distances of two leaderboards, as text.

    Args:
        paths: Two, each a folder of results or a CSV file. A folder has the tables of its leaderboard, with the models
            and the scores that are ranked there. A CSV file's first two columns are model and score, higher is better;
            it is compared with each of the folder's.

    Raises:
        CulturevalError: There are not two, one cannot be read, or no two leaderboards share two models.
    """
    if len(paths) != 2:
        raise CulturevalError(f"--leaderboards compares two leaderboards, and {len(paths)} were named.")
    (firsts, told), (seconds, also_told) = (_read(path) for path in paths)
    alike = [
        (one or other, firsts[one], seconds[other])
        for one in firsts
        for other in seconds
        if one == other or not (one and other)
    ]
    found = [(title, one, other) for title, one, other in alike if len(one.keys() & other.keys()) > 1]
    if not found:
        few = f"{paths[0]} and {paths[1]} have no table with two models in common: name folders of results, or CSV."
        raise CulturevalError("\n".join([few, *told, *also_told]))
    lines = [line for title, one, other in found for line in _distance(title, one, other, paths)]
    return "\n".join(map(escaped, [*lines, *told, *also_told]))


def kendall_distance(first: Sequence[float], second: Sequence[float]) -> float:
    """The share of pairs in other order, 0 to 1; a pair tied in one alone counts half (Fagin and others, 2006).

    Args:
        first: Scores of M models, at least two.
        second: Other scores of the same models.
    """
    one, other = (np.sign(np.subtract.outer(scores, scores)) for scores in map(np.asarray, (first, second)))
    return float(np.abs(one - other).sum() / 2 / (len(one) * (len(one) - 1)))


def _distance(title: str, board: Board, other: Board, paths: Sequence[Path]) -> Iterator[str]:
    """The distance of two leaderboards, the pairs that they order differently, and the models of one alone."""
    from scipy.stats import kendalltau

    models = [model for model in board if model in other]
    first, second = ([one[model] for model in models] for one in (board, other))
    tau = float(kendalltau(first, second).statistic)
    yield (
        f"{title or 'scores'}: Kendall distance {kendall_distance(first, second):.3f} of {len(models)} models, the "
        f"share of pairs that {paths[0]} and {paths[1]} order differently (tied in one alone: half); tau-b {tau:.3f}."
    )
    if left := [model for one in (board, other) for model in one if model not in models]:
        yield f"  only one of them has {shown_names(left)}."
    places = combinations(range(len(models)), 2)
    turned = [(models[a], models[b]) for a, b in places if (first[a] - first[b]) * (second[a] - second[b]) < 0]
    yield from (f"  ordered differently: {one} / {another}" for one, another in turned[:MOST_PAIRS])
    if len(turned) > MOST_PAIRS:
        yield f"  and {len(turned) - MOST_PAIRS} more pairs"


def _read(path: Path) -> tuple[dict[str, Board], list[str]]:
    """The leaderboards of a path by their titles ("" of a CSV file), and sentences on models left out."""
    return ({"": _of_csv(path)}, []) if path.suffix == ".csv" else _of_results(path)


def _of_csv(path: Path) -> Board:
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise CulturevalError(
            f"{path} is no file of at most {LARGEST:,} bytes: name a CSV file with models and scores."
        )
    try:
        lines = [row for _, row in read_csv(path)]
        if lines and list(lines[0])[1].lower() == "rank":
            raise CulturevalError(f"{path}: its second column is a rank, which is no score: keep model and score.")
        rows = [list(row.values()) for row in lines]
        scores = {row[0]: float(row[1]) for row in rows if row[1].strip()}
    except (ValueError, IndexError) as error:
        need = "a header, then a model and its score in each row, are needed"
        raise CulturevalError(f"{path}: {need} ({error}).") from error
    if not all(map(math.isfinite, scores.values())):
        raise CulturevalError(f"{path}: a score is not finite.")
    return scores


def _of_results(path: Path) -> tuple[dict[str, Board], list[str]]:
    """The ranked rows of each table of a folder's leaderboard, as on its page."""
    boards: dict[str, Board] = {}
    told: list[str] = []
    for table in (table for section in read_board([path]).sections for table in section.tables):
        if table.main is None:
            continue
        title = f"{table.name}: {' '.join(table.main)}"
        sign = -1 if table.main in table.lower else 1
        boards[title] = {row.name: sign * row.rank.score.value for row in table.rows if row.rank}
        if left := [row.name for row in table.rows if not row.rank]:
            told.append(f"{path}: {title}: without {shown_names(left)}, which have no rank.")
    return boards, told
