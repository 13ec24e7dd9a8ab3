"""Which features explain a score: rank correlations, analysis of variance, regression trees (AL-QASIDA, section 5)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas

NAN = float("nan")


class RankCorrelation(NamedTuple):
    """Spearman's rho of `count` pairs and its two-sided p; nan if a side is constant or there are fewer than three."""

    rho: float
    p: float
    count: int


class OneWay(NamedTuple):
    """One-way analysis of variance: F, its p, and eta squared, the share of the variance between the groups."""

    f: float
    p: float
    eta_squared: float
    groups: int
    count: int


class TreeNode(NamedTuple):
    """A node of a regression tree: the branch's rule ("" at the root), how many samples it has and their mean score."""

    number: int
    depth: int
    rule: str
    parent: int | None
    count: int
    value: float
    is_leaf: bool


def spearman(left: Sequence[float], right: Sequence[float]) -> RankCorrelation:
    """Spearman's rank correlation of two columns of one length; pairs with a nan are excluded."""
    import pandas
    from scipy.stats import spearmanr

    pairs = pandas.DataFrame({"left": np.asarray(left, float), "right": np.asarray(right, float)}).dropna()
    if len(pairs) < 3 or min(pairs.nunique()) < 2:
        return RankCorrelation(NAN, NAN, len(pairs))
    found = spearmanr(pairs["left"], pairs["right"])
    return RankCorrelation(float(found.statistic), float(found.pvalue), len(pairs))


def one_way(values: Sequence[float], labels: Sequence[object]) -> OneWay:
    """One-way analysis of variance of a score over the groups of a feature; scores that are nan are excluded.

    Returns:
        All nan if there are fewer than two groups or all scores are equal.
    """
    import pandas
    from scipy.stats import f_oneway

    table = pandas.DataFrame({"value": np.asarray(values, float), "label": list(labels)}).dropna(subset="value")
    score = table["value"]
    groups = [group.to_numpy() for _, group in score.groupby(table["label"])]
    if len(groups) < 2 or len(score) <= len(groups) or score.nunique() < 2:
        return OneWay(NAN, NAN, NAN, len(groups), len(score))
    between = sum(len(group) * (group.mean() - score.mean()) ** 2 for group in groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = f_oneway(*groups)
    eta_squared = float(between / ((score - score.mean()) ** 2).sum())
    return OneWay(float(found.statistic), float(found.pvalue), eta_squared, len(groups), len(score))


def regression_tree(features: "pandas.DataFrame", values: Sequence[float], depth: int = 3) -> list[TreeNode]:
    """A regression tree of a score over features (scikit-learn).

    Args:
        features: A row a sample. Columns of texts become a column for each category but the first.
        values: The score; samples with a nan in it or in a numeric feature are excluded.
        depth: Maximal depth.

    Returns:
        The nodes, a parent before its children; [] if no sample is left.
    """
    import pandas
    from sklearn.tree import DecisionTreeRegressor

    table = pandas.get_dummies(features, prefix_sep=" = ", drop_first=True, dtype=float)
    scores = np.asarray(values, float)
    kept = ~np.isnan(scores) & table.notna().all(axis=1).to_numpy()
    if not kept.any() or table.empty:
        return []
    fitted = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(table[kept].to_numpy(), scores[kept])
    return _nodes(fitted.tree_, list(table.columns))


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
            low, high = (
                (f"not {name}", name) if is_category else (f"{name} <= {threshold:g}", f"{name} > {threshold:g}")
            )
            waiting.append((int(tree.children_right[number]), level + 1, high, number))
            waiting.append((int(tree.children_left[number]), level + 1, low, number))
    return nodes
