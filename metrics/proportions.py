"""The normal quantile of 95% intervals, and p-values of several tests together."""

from collections.abc import Sequence

NORMAL_95 = 1.959963984540054  # the standard normal's 97.5th percentile


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number, so that their family is tested at one level (Holm 1979).

    Args:
        p_values: Of all tests of the family.

    Returns:
        In the same order: for the k-th smallest of m, the largest of (m - j + 1) p_j over j up to k; at most 1.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, (len(p_values) - rank) * p_values[place])
        adjusted[place] = min(1.0, largest)
    return adjusted
