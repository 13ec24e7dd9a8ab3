"""Holm's adjustment, against statsmodels' numbers."""

import pytest

from cultureval.metrics.proportions import holm


def test_holm_is_statsmodels():
    """`multipletests(p, method="holm")` of statsmodels 0.15."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.001, 0.02, 0.02, 0.9]) == pytest.approx([1.0, 0.005, 0.08, 0.08, 1.0])
    assert holm([]) == [] and holm([0.04]) == [0.04]
