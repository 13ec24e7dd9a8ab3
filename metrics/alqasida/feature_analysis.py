"""Which features explain a score: rank correlations, analysis of variance, regression trees (AL-QASIDA, section 5;
the same tests as in its program).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rho of `count` pairs and its two-sided p; nan if one side is constant or there are too few pairs."""

    rho: float
    p: float
    count: int


@dataclass(frozen=True)
class OneWay:
    """One-way analysis of variance: F, its p, and eta squared, the share of the variance between the groups."""

    f: float
    p: float
    eta_squared: float
    groups: int
    count: int


@dataclass(frozen=True)
class TreeNode:
    """A node of a regression tree; the root has number and depth 0.

    Attributes:
        rule: The condition of the branch from the parent; "" for the root.
        count: Number of samples.
        value: Their mean score.
    """

    number: int
    depth: int
    rule: str
    parent: int | None
    count: int
    value: float
    is_leaf: bool


def spearman(left: Sequence[float], right: Sequence[float]) -> RankCorrelation:
    """Spearman's rank correlation of two columns; pairs with a nan are excluded.

    Raises:
        ValueError: The columns are empty or differ in length.
    """
    from scipy.stats import spearmanr

    first, second = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise ValueError(f"the columns are of shapes {first.shape} and {second.shape}")
    complete = ~(np.isnan(first) | np.isnan(second))
    first, second = first[complete], second[complete]
    if first.size < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return RankCorrelation(float("nan"), float("nan"), int(first.size))
    found = spearmanr(first, second)
    return RankCorrelation(float(found.statistic), float(found.pvalue), int(first.size))


def one_way(values: Sequence[float], labels: Sequence[object]) -> OneWay:
    """One-way analysis of variance of a score over the groups of a feature.

    Eta squared = SS between the groups / SS in all. Samples whose score is nan are excluded.

    Returns:
        All nan if there are fewer than two groups or all scores are equal.

    Raises:
        ValueError: The columns are empty or differ in length.
    """
    from scipy.stats import f_oneway

    if len(values) != len(labels) or not len(values):
        raise ValueError(f"there are {len(values)} values and {len(labels)} labels; one each is needed")
    groups: dict[object, list[float]] = {}
    for value, label in zip(values, labels, strict=True):
        if not np.isnan(value):
            groups.setdefault(label, []).append(float(value))
    scores = np.array([value for group in groups.values() for value in group])
    if len(groups) < 2 or len(scores) <= len(groups) or np.ptp(scores) == 0:
        return OneWay(float("nan"), float("nan"), float("nan"), len(groups), len(scores))
    mean = scores.mean()
    between = sum(len(group) * (np.mean(group) - mean) ** 2 for group in groups.values())
    with np.errstate(divide="ignore", invalid="ignore"):
        found = f_oneway(*groups.values())
    eta = float(between / ((scores - mean) ** 2).sum())
    return OneWay(float(found.statistic), float(found.pvalue), eta, len(groups), len(scores))


def regression_tree(
    numeric: Mapping[str, Sequence[float]],
    categorical: Mapping[str, Sequence[str]],
    values: Sequence[float],
    depth: int = 3,
) -> list[TreeNode]:
    """A regression tree of a score over features (scikit-learn; categories are one-hot columns, the first dropped).

    Args:
        numeric: Numeric columns.
        categorical: Categorical columns.
        values: The score; samples with nan in it or in a numeric column are excluded.
        depth: Maximal depth.

    Returns:
        The nodes, a parent before its children; [] if no sample is left.

    Raises:
        ValueError: There is no sample.
    """
    from sklearn.tree import DecisionTreeRegressor

    if not len(values):
        raise ValueError("there is no sample")
    columns: dict[str, np.ndarray] = {name: np.asarray(column, dtype=float) for name, column in numeric.items()}
    columns |= _one_hot(categorical)
    scores = np.asarray(values, dtype=float)
    table = np.column_stack(list(columns.values())) if columns else np.zeros((len(scores), 0))
    kept = ~(np.isnan(scores) | np.isnan(table).any(axis=1))
    if not kept.any() or not columns:
        return []
    tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(table[kept], scores[kept]).tree_
    return _nodes(tree, list(columns))


def _one_hot(categorical: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """A column `feature = category` for each category but a feature's first one in alphabetical order."""
    return {
        f"{name} = {category}": np.array([float(cell == category) for cell in column])
        for name, column in categorical.items()
        for category in sorted(set(column))[1:]
    }


def _nodes(tree: Any, names: Sequence[str]) -> list[TreeNode]:
    """The nodes of scikit-learn's tree over columns of these names, a parent before its children."""
    nodes: list[TreeNode] = []
    waiting: list[tuple[int, int, str, int | None]] = [(0, 0, "", None)]
    while waiting:
        number, level, rule, parent = waiting.pop()
        leaf = tree.children_left[number] == tree.children_right[number]
        value = float(tree.value[number].ravel()[0])
        nodes.append(TreeNode(number, level, rule, parent, int(tree.n_node_samples[number]), value, bool(leaf)))
        if not leaf:
            name, threshold = names[tree.feature[number]], float(tree.threshold[number])
            is_category = " = " in name
            low = f"not {name}" if is_category else f"{name} <= {threshold:g}"
            high = name if is_category else f"{name} > {threshold:g}"
            waiting.append((int(tree.children_right[number]), level + 1, high, number))
            waiting.append((int(tree.children_left[number]), level + 1, low, number))
    return nodes
