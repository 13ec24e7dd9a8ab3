"""`cultureval compare --leaderboards`: how differently two leaderboards order the models that both have."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from cultureval.runs.frame import Parts
from cultureval.runs.loading import Run, load
from cultureval.runs.pairs import ranks
from cultureval.runs.protocol import protocol
from cultureval.runs.table import tables_of
from cultureval.runtime.csv_files import read_csv
from cultureval.runtime.errors import CulturevalError, escaped, shown_names

MOST_PAIRS = 10
LARGEST = 10_000_000  # bytes of a CSV file
Board = Mapping[str, float]  # model -> its score, higher is better


def compare_boards(paths: Sequence[Path]) -> str:
    """The Kendall distances of two leaderboards, as text.

    Args:
        paths: Two, each a folder of results or a CSV file. A folder has a leaderboard for the main number of each of
            its tables, of the models that were asked the same; what a model left out counts as the worst, as in ranks.
            A CSV file's first two columns are model and score, higher is better; each of the other's is compared to it.

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
    """The leaderboards of a folder: of each table the models that most share the protocol of."""
    results = load(path)
    numbers: dict[str, dict[str, tuple[Run, Parts, bool]]] = {}
    for run in results.runs:
        for table in tables_of(run):
            cell = table.cells.get(table.main) if table.main else None
            if cell and table.main and cell.parts and not cell.words:
                title = f"{table.suite}, {table.name}: {' '.join(table.main)}"
                numbers.setdefault(title, {})[run.name] = (run, cell.parts, table.main[1] in table.lower)
    boards: dict[str, Board] = {}
    told: list[str] = []
    for title, of_runs in numbers.items():
        asked = {name: _asked(run, parts) for name, (run, parts, _) in of_runs.items()}
        most = max(asked.values(), key=list(asked.values()).count)
        _, parts, lower = next(of_runs[name] for name in asked if asked[name] == most)
        frame = results.items
        found = ranks(frame[frame["run"].isin([name for name in asked if asked[name] == most]).to_numpy()], parts)
        boards[title] = {one.run: -one.score.value if lower else one.score.value for one in found}
        if left := [name for name in of_runs if name not in boards[title]]:
            told.append(f"{path}: {title}: without {shown_names(left)}: asked otherwise, or not to be ranked.")
    return boards, told


def _asked(run: Run, parts: Parts) -> tuple[object, ...]:
    """What a number depends on besides the model."""
    return tuple((*place, weight, *sorted(protocol(run, *place).items())) for place, weight in sorted(parts.items()))
