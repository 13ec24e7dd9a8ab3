"""Intervals of proportions and Holm's adjustment, against published examples and statsmodels' numbers."""

import pytest

from cultureval.metrics.proportions import holm, newcombe_interval, wilson_error, wilson_interval


def test_wilsons_interval_is_that_of_newcombes_examples():
    """Statistics in Medicine 17 (1998), 857: 81 of 263, 15 of 148, 0 of 20 and 1 of 29, method 3."""
    examples = {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }
    for counts, expected in examples.items():
        assert wilson_interval(*counts) == pytest.approx(expected, abs=5e-5)
    assert wilson_interval(20, 20)[1] == 1 and wilson_error(20, 20) == pytest.approx(0.1611 / 3.92, abs=1e-4)


def test_the_difference_is_that_of_newcombes_examples():
    """Statistics in Medicine 17 (1998), 873, method 10: 56 of 70 and 48 of 80; 9 of 10 and 3 of 10; 10 of 10 and 0."""
    examples = {((56, 70), (48, 80)): (0.0524, 0.3339), ((9, 10), (3, 10)): (0.1705, 0.8090)}
    examples |= {((10, 10), (0, 20)): (0.6791, 1.0), ((0, 10), (0, 20)): (-0.1611, 0.2775)}
    for pair, expected in examples.items():
        assert newcombe_interval(*pair) == pytest.approx(expected, abs=5e-5)


def test_holm_is_statsmodels():
    """`multipletests(p, method="holm")` of statsmodels 0.15."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.001, 0.02, 0.02, 0.9]) == pytest.approx([1.0, 0.005, 0.08, 0.08, 1.0])
    assert holm([]) == [] and holm([0.04]) == [0.04]
