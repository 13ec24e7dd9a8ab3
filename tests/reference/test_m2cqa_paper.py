"""The formulas of M2CQA's metrics against every number that the paper prints (arXiv 2602.05437, Tables 2, 7 and 10).

Rounding: a printed number stands for anything within half a unit of its last digit.
"""

import itertools

import pytest

from cultureval.metrics.m2cqa.counterfactual import harmonic_mean

HALF = 0.005 + 1e-9
PROMPTS = ("A", "B", "C")

# Table 2, row by row: Q+, Q-, F1, CFHR under A (True or False), B (Answer then Reason), C (Reasoning First).
TABLE_2 = """
EN      Qwen3-VL-32B 0.93 0.94 0.93 0.10  0.91 0.95 0.93 0.08  0.93 0.93 0.93 0.12
EN      Gemma-3-27B  0.94 0.88 0.91 0.19  0.92 0.89 0.90 0.18  0.92 0.90 0.91 0.16
EN      FanarOryx-v1 0.94 0.93 0.93 0.12  0.94 0.93 0.93 0.12  0.91 0.92 0.92 0.13
EN      AIN          0.93 0.91 0.92 0.14  0.88 0.93 0.90 0.11  0.85 0.84 0.85 0.25
MSA     Qwen3-VL-32B 0.88 0.91 0.90 0.14  0.85 0.93 0.89 0.11  0.86 0.91 0.89 0.15
MSA     Gemma-3-27B  0.93 0.81 0.86 0.30  0.92 0.83 0.87 0.27  0.90 0.86 0.88 0.23
MSA     FanarOryx-v1 0.74 0.92 0.82 0.14  0.64 0.95 0.76 0.11  0.77 0.78 0.78 0.34
MSA     AIN          0.95 0.60 0.74 0.55  0.92 0.77 0.84 0.35  0.71 0.54 0.61 0.66
Dialect Qwen3-VL-32B 0.88 0.90 0.88 0.17  0.85 0.92 0.88 0.14  0.87 0.90 0.88 0.17
Dialect Gemma-3-27B  0.93 0.79 0.86 0.32  0.93 0.81 0.86 0.31  0.91 0.85 0.88 0.24
Dialect FanarOryx-v1 0.71 0.92 0.80 0.15  0.59 0.95 0.73 0.11  0.76 0.74 0.75 0.39
Dialect AIN          0.97 0.38 0.56 0.79  0.91 0.72 0.80 0.43  0.65 0.58 0.61 0.63
"""
# Table 10, row by row: Q+, Q-, F1, CFHR under A and under B; CFHR under C; CFHR(C) - CFHR(B).
TABLE_10 = """
AJP Qwen3-VL-32B 0.89 0.89 0.89 0.17  0.86 0.92 0.89 0.13  0.16 +0.03
AJP Gemma-3-27B  0.94 0.79 0.86 0.32  0.93 0.80 0.86 0.30  0.23 -0.07
AJP FanarOryx-v1 0.73 0.92 0.82 0.15  0.62 0.95 0.75 0.11  0.37 +0.26
AJP AIN          0.96 0.41 0.58 0.76  0.89 0.75 0.81 0.39  0.63 +0.24
ARZ Qwen3-VL-32B 0.87 0.90 0.88 0.17  0.83 0.92 0.87 0.14  0.17 +0.03
ARZ Gemma-3-27B  0.93 0.79 0.86 0.32  0.92 0.81 0.86 0.31  0.24 -0.07
ARZ FanarOryx-v1 0.68 0.92 0.79 0.15  0.56 0.95 0.70 0.11  0.40 +0.29
ARZ AIN          0.97 0.36 0.53 0.81  0.92 0.69 0.79 0.47  0.62 +0.15
"""
# Table 7: |difference of CFHR| and the interval of the signed difference, for A-B, B-C and A-C.
TABLE_7 = """
EN  Qwen3-VL-32B 0.018  0.016  0.022  0.042 -0.047 -0.037  0.023 -0.028 -0.019
EN  Gemma-3-27B  0.010  0.006  0.014  0.017  0.011  0.022  0.027  0.021  0.033
EN  FanarOryx-v1 0.002 -0.004  0.001  0.009 -0.015 -0.003  0.011 -0.017 -0.005
EN  AIN          0.031  0.027  0.035  0.146 -0.155 -0.137  0.115 -0.124 -0.105
MSA Qwen3-VL-32B 0.023  0.019  0.026  0.031 -0.037 -0.026  0.009 -0.014 -0.003
MSA Gemma-3-27B  0.028  0.023  0.032  0.048  0.041  0.055  0.076  0.069  0.083
MSA FanarOryx-v1 0.497  0.487  0.509  0.228 -0.239 -0.217  0.269  0.255  0.283
MSA AIN          0.199  0.189  0.208  0.310 -0.323 -0.297  0.111 -0.125 -0.097
"""


def rows(table):
    for line in table.split("\n"):
        if line.strip():
            language, model, *numbers = line.split()
            yield (language, model), [float(number) for number in numbers]


def cells():
    """{(table, language, model, prompt): (Q+, Q-, F1, CFHR)} of all 52 cells that print the four numbers."""
    found = {}
    for name, table in (("Table 2", TABLE_2), ("Table 10", TABLE_10)):
        for (language, model), numbers in rows(table):
            for prompt, *values in zip(
                PROMPTS, numbers[0::4], numbers[1::4], numbers[2::4], numbers[3::4], strict=False
            ):
                found[name, language, model, prompt] = tuple(values)
    return found


CELLS = cells()


def around(value):
    return value - HALF, value + HALF


def cfhr_bounds(p, m):
    """The smallest and largest possible CFHR with two false statements per item, given Q+ and Q- accuracy."""
    return max(0.0, 1 - m / p), min(1.0, 1 - max(0.0, p + 2 * m - 2) / p)


def overlap(first, second):
    return max(first[0], second[0]) <= min(first[1], second[1])


def test_there_are_52_cells():
    assert len(CELLS) == 52


def test_f1_is_the_harmonic_mean_in_51_cells_and_the_other_is_a_mean_of_dialects():
    """The harmonic mean grows with both accuracies, so its ends over the rounding are those of the corners."""
    misses = [
        cell
        for cell, (p, m, f1, _) in CELLS.items()
        if not overlap(around(f1), (harmonic_mean(p - HALF, m - HALF), harmonic_mean(p + HALF, m + HALF)))
    ]
    assert misses == [("Table 2", "Dialect", "AIN", "A")]
    # Averaged metrics, not metrics of averages: F1 of the two dialects, 0.58 and 0.53, have the mean 0.555.
    means = [CELLS["Table 10", language, "AIN", "A"][2] for language in ("AJP", "ARZ")]
    assert overlap(around(sum(means) / 2), around(CELLS[misses[0]][2]))


def test_cfhr_lies_within_its_bounds_in_all_cells():
    """The least bound over the rounding is at low Q+ and high Q-, the largest at the opposite corner."""
    for cell, (p, m, _, cfhr) in CELLS.items():
        corners = [cfhr_bounds(p + a, min(1.0, m + b)) for a, b in itertools.product((-HALF, HALF), repeat=2)]
        low, high = min(bound[0] for bound in corners), max(bound[1] for bound in corners)
        assert overlap(around(cfhr), (low, high)), cell


def test_accuracy_on_false_statements_is_not_per_item():
    """If Q- counted items with both rejected, CFHR could not exceed (1 - Q-) / Q+; in 50 of the cells it does."""
    violated = [cell for cell, (p, m, _, cfhr) in CELLS.items() if cfhr - HALF > (1 - m + HALF) / (p - HALF)]
    assert len(violated) == 50


def test_dialect_is_the_mean_of_the_two_dialects_metrics():
    table_10 = dict(rows(TABLE_10))
    checked = 0
    for (language, model), numbers in rows(TABLE_2):
        if language == "Dialect":
            printed = [*numbers[:8], numbers[11]]
            for column, value in enumerate(printed):
                mean = (table_10["AJP", model][column] + table_10["ARZ", model][column]) / 2
                assert overlap(around(mean), around(value)), (model, column)
                checked += 1
    assert checked == 36


def test_table_10_differences():
    for key, numbers in rows(TABLE_10):
        assert numbers[9] == pytest.approx(numbers[8] - numbers[7]), key


def test_table_7_is_signed_first_minus_second_and_adds_up():
    """The printed differences are absolute; their signs are those of the intervals (A-B, B-C, A-C)."""
    table_2 = dict(rows(TABLE_2))
    contradicted = []
    for (language, model), numbers in rows(TABLE_7):
        signed = [
            abs(d) * (1 if low + high > 0 else -1)
            for d, low, high in zip(*(numbers[i::3] for i in range(3)), strict=True)
        ]
        assert signed[0] + signed[1] == pytest.approx(signed[2], abs=0.0015 + 1e-9), (language, model)
        cfhr = [table_2[language, model][4 * number + 3] for number in range(3)]
        differences = cfhr[0] - cfhr[1], cfhr[1] - cfhr[2], cfhr[0] - cfhr[2]
        for pair, table_7, of_table_2 in zip(("A-B", "B-C", "A-C"), signed, differences, strict=True):
            if abs(table_7 - of_table_2) > 2 * HALF + 0.0005:
                contradicted.append((language, model, pair))
    # The paper's own contradiction: its Table 7 implies a CFHR of 0.607 in a cell for which Table 2 prints 0.14.
    assert contradicted == [("MSA", "FanarOryx-v1", "A-B"), ("MSA", "FanarOryx-v1", "A-C")]
    assert cfhr_bounds(*table_2["MSA", "FanarOryx-v1"][:2])[1] < 0.607
