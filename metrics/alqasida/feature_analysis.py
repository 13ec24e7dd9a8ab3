"""Which features explain a score: rank correlations, analysis of variance, regression trees (AL-QASIDA, section 5)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas

NAN = float("nan")


Row = dict[str, Any]


def spearman(left: Sequence[float], right: Sequence[float]) -> Row:
    """Spearman's rank correlation of two columns of one length; pairs with a nan are excluded.

    Returns:
        rho, its two-sided p and the count of pairs; nan if a side is constant or there are fewer than three pairs.
    """
    import pandas
    from scipy.stats import spearmanr

    pairs = pandas.DataFrame({"left": np.asarray(left, float), "right": np.asarray(right, float)}).dropna()
    if len(pairs) < 3 or min(pairs.nunique()) < 2:
        return {"rho": NAN, "p": NAN, "count": len(pairs)}
    found = spearmanr(pairs["left"], pairs["right"])
    return {"rho": float(found.statistic), "p": float(found.pvalue), "count": len(pairs)}


def one_way(values: Sequence[float], labels: Sequence[object]) -> Row:
    """One-way analysis of variance of a score over the groups of a feature; scores that are nan are excluded.

    Returns:
        f, its p, eta_squared (the share of the variance between the groups) and the numbers of groups and scores; the
        first three are nan if there are fewer than two groups or all scores are equal.
    """
    import pandas
    from scipy.stats import f_oneway

    table = pandas.DataFrame({"value": np.asarray(values, float), "label": list(labels)}).dropna(subset="value")
    score = table["value"]
    groups = [group.to_numpy() for _, group in score.groupby(table["label"])]
    counts = {"groups": len(groups), "count": len(score)}
    if len(groups) < 2 or len(score) <= len(groups) or score.nunique() < 2:
        return dict.fromkeys(("f", "p", "eta_squared"), NAN) | counts
    between = sum(len(group) * (group.mean() - score.mean()) ** 2 for group in groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = f_oneway(*groups)
    eta_squared = float(between / ((score - score.mean()) ** 2).sum())
    return {"f": float(found.statistic), "p": float(found.pvalue), "eta_squared": eta_squared} | counts


def regression_tree(features: "pandas.DataFrame", values: Sequence[float], depth: int = 3) -> list[Row]:
    """A regression tree of a score over features (scikit-learn).

    Args:
        features: A row a sample. Columns of texts become a column for each category but the first.
        values: The score; samples with a nan in it or in a numeric feature are excluded.
        depth: Maximal depth.

    Returns:
        The nodes, a parent before its children: number, depth, rule (of the branch, "" at the root), parent, count of
        samples, value (their mean score) and is_leaf; [] if no sample is left.
    """
    import pandas
    from sklearn.tree import DecisionTreeRegressor

    table = pandas.get_dummies(features, prefix_sep=" = ", drop_first=True, dtype=float)
    scores = np.asarray(values, float)
    complete = ~np.isnan(scores) & table.notna().all(axis=1).to_numpy()
    if not complete.any() or table.empty:
        return []
    fitted = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(table[complete].to_numpy(), scores[complete])
    return [*_nodes(fitted.tree_, list(table.columns))]


def _nodes(
    tree: Any, names: Sequence[str], number: int = 0, depth: int = 0, rule: str = "", parent: int | None = None
) -> Iterator[Row]:
    """The node `number` of scikit-learn's tree and all nodes below it."""
    value, count = float(tree.value[number].ravel()[0]), int(tree.n_node_samples[number])
    low, high = int(tree.children_left[number]), int(tree.children_right[number])
    node = {"number": number, "depth": depth, "rule": rule, "parent": parent, "count": count, "value": value}
    yield node | {"is_leaf": low == high}
    if low != high:
        name, limit = names[tree.feature[number]], float(tree.threshold[number])
        rules = (f"not {name}", name) if " = " in name else (f"{name} <= {limit:g}", f"{name} > {limit:g}")
        yield from _nodes(tree, names, low, depth + 1, rules[0], number)
        yield from _nodes(tree, names, high, depth + 1, rules[1], number)
