import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cultureval.metrics.likelihood import (
    argmax_accuracy,
    char_normalized_accuracy,
    gold_probability_mass,
    gold_set_match,
)

LABELS = ["أ", "ب", "ج", "د", "هـ"]


def test_the_two_code_points_of_option_five_favour_it():
    logprobs = [-3.5, -4.0, -5.0, -5.0, -6.0]
    assert char_normalized_accuracy(logprobs, LABELS, 4) == 1.0
    assert char_normalized_accuracy(logprobs, LABELS, 0) == 0.0
    assert argmax_accuracy(logprobs, 0) == 1.0
    assert gold_probability_mass(logprobs, LABELS, 4) > gold_probability_mass(logprobs, LABELS, 0)
    assert gold_probability_mass(logprobs, LABELS, 4, normalize=False) < 0.05


def test_a_tie_goes_to_the_first():
    assert char_normalized_accuracy([-1, -1], ["أ", "ب"], 0) == 1.0
    assert char_normalized_accuracy([-1, -1], ["أ", "ب"], 1) == 0.0
    assert argmax_accuracy([-2, -1, -1], 1) == 1.0
    assert gold_set_match([-2, -1, -1, -1], LABELS[:4], [1, 2]) == 1.0
    assert gold_set_match([-2, -1, -1, -1], LABELS[:4], [2, 3]) == 0.0


def test_gold_set_match_needs_the_whole_set():
    logprobs = [math.log(p) for p in (0.4, 0.3, 0.2, 0.1)]
    assert gold_set_match(logprobs, LABELS[:4], [1, 0]) == 1.0
    assert gold_set_match(logprobs, LABELS[:4], [0, 2]) == 0.0
    assert gold_set_match(logprobs, LABELS[:4], 0) == 1.0
    assert gold_probability_mass(logprobs, LABELS[:4], [0, 2]) == pytest.approx(0.6)


def test_probability_mass_survives_log_probabilities_that_underflow():
    assert gold_probability_mass([-2000.0, -2000.0 + math.log(3)], ["أ", "ب"], 1) == pytest.approx(0.75)


@given(st.lists(st.floats(-1e6, 0), min_size=1, max_size=5), st.booleans())
def test_probability_masses_of_all_options_sum_to_one(logprobs, normalize):
    choices = LABELS[: len(logprobs)]
    parts = [gold_probability_mass(logprobs, choices, gold, normalize) for gold in range(len(choices))]
    assert sum(parts) == pytest.approx(1.0)
    everything = list(range(len(choices)))
    assert gold_probability_mass(logprobs, choices, everything, normalize) == pytest.approx(1.0)
    assert gold_set_match(logprobs, choices, everything) == 1.0


BAD_OPTIONS = [
    ([], [], "non-empty list"),
    ([[-1.0, -2.0]], ["أ", "ب"], "non-empty list"),
    ([-1.0, -2.0], ["أ"], "2 choices that are not empty"),
    ([-1.0, float("nan")], ["أ", "ب"], "choice 1 is nan"),
    ([float("-inf"), -1.0], ["أ", "ب"], "choice 0 is -inf"),
    ([-1.0, float("inf")], ["أ", "ب"], "choice 1 is inf"),
    ([-1.0, -2.0], ["أ", ""], "2 choices that are not empty"),
]


@pytest.mark.parametrize("metric", [char_normalized_accuracy, gold_probability_mass, gold_set_match])
@pytest.mark.parametrize(("logprobs", "choices", "reason"), BAD_OPTIONS)
def test_bad_options_are_refused_with_the_reason(metric, logprobs, choices, reason):
    with pytest.raises(ValueError, match=reason):
        metric(logprobs, choices, 0)


@pytest.mark.parametrize("gold", [2, -1, True, 0.0, "0", None, [], [0, 0], [0, 2]])
def test_a_bad_gold_is_refused(gold):
    logprobs, choices = [-1.0, -2.0], ["أ", "ب"]
    for metric in (char_normalized_accuracy, gold_probability_mass, gold_set_match):
        with pytest.raises(ValueError, match="gold"):
            metric(logprobs, choices, gold)
    with pytest.raises(ValueError, match="gold"):
        argmax_accuracy(logprobs, gold)


def test_single_answer_accuracy_refuses_several_golds():
    with pytest.raises(ValueError, match="one choice"):
        char_normalized_accuracy([-1.0, -2.0], ["أ", "ب"], [0, 1])
