"""Scores of items with options ranked by the model's log-probabilities.

QIMMA paper (arXiv 2604.03395) section 5.1: accuracy of multiple choice is Eq. 1-2, the gold probability mass of
multi-select items Eq. 3-4. QIMMA's task code divides each log-probability by the number of code points of its option
first; the paper's Eq. 1 has no such division. The label of option five (heh and tatweel) has two code points, so the
division halves its log-probability and favours it: `argmax_accuracy` is reported next to the headline for that reason.
"""

import re
from collections.abc import Sequence

import numpy as np

from cultureval.metrics.statistics import Floats, finite_numbers

OF_CHOICE = "the log-probability of choice"
PER_CODE_POINT = ("acc_norm", "gold_probability_mass", "gold_set_match")
PER_TOKEN = re.compile(r"(R|TR|IR)@\d+|MRR|NDCG|mean_rank|gold_ties")  # CVLUE's ranks; with a suffix they are of sums


def char_normalized_accuracy(logprobs: Sequence[float], choices: Sequence[str], gold: int) -> float:
    """Whether the gold option is the most likely per code point; headline of QIMMA's multiple choice (section 5.1).

    Args:
        logprobs: K finite log-probabilities, one per option.
        choices: K non-empty option texts, as they were scored.
        gold: Index of the correct option, 0 to K - 1.

    Returns:
        1.0 or 0.0; of tied options the first counts as chosen.

    Raises:
        ValueError: No option, lengths differ, a log-probability is not finite, an option is empty, or a bad `gold`.
    """
    return _best_is_gold(_char_normalized(logprobs, choices), gold)


def argmax_accuracy(logprobs: Sequence[float], gold: int) -> float:
    """Whether the gold option is the most likely one (the paper's Eq. 1, without normalisation).

    Arguments, value and errors are those of `char_normalized_accuracy`.
    """
    return _best_is_gold(finite_numbers(logprobs, OF_CHOICE), gold)


def gold_probability_mass(
    logprobs: Sequence[float], choices: Sequence[str], gold: int | Sequence[int], normalize: bool = True
) -> float:
    """Share of probability on the gold options: softmax over all options, summed over gold (section 5.1, Eq. 3-4).

    The headline of MizanQA with its several correct options. Errors are those of `char_normalized_accuracy`.

    Args:
        logprobs: K finite log-probabilities, one per option.
        choices: K non-empty option texts, as they were scored.
        gold: One index or several distinct ones, 0 to K - 1.
        normalize: Divide each log-probability by the number of code points of its option, as QIMMA's task code does.
    """
    normalized = _char_normalized(logprobs, choices)
    scores = normalized if normalize else finite_numbers(logprobs, OF_CHOICE)
    weights = np.exp(scores - scores.max())
    return float(weights[_gold_positions(gold, scores.size)].sum() / weights.sum())


def gold_set_match(logprobs: Sequence[float], choices: Sequence[str], gold: int | Sequence[int]) -> float:
    """Whether the K most likely options per code point are exactly the K gold options.

    In QIMMA's task code for MizanQA, in addition to the probability mass; not in the paper. Arguments and errors are
    those of `gold_probability_mass`; of tied options the first ones count as chosen.
    """
    scores = _char_normalized(logprobs, choices)
    positions = _gold_positions(gold, scores.size)
    chosen = np.argsort(-scores, kind="stable")[: len(positions)]
    return float(set(chosen.tolist()) == set(positions))


def scores_of_options(
    metric: str, logprobs: Sequence[float], choices: Sequence[str], tokens: Sequence[int] | None = None
) -> list[float]:
    """A metric's scores of an item's options; the chosen option has the largest score.

    Args:
        metric: Its name; for other metrics the scores are the log-probabilities.
        logprobs: K finite log-probabilities, one per option.
        choices: K option texts, as they were scored.
        tokens: K numbers of tokens, for metrics of means per token (visual dialogue, small galleries); None: unknown.
    """
    if metric in PER_CODE_POINT:
        return _char_normalized(logprobs, choices).tolist()
    scores = finite_numbers(logprobs, OF_CHOICE)
    if len(choices) != scores.size:
        raise ValueError(f"there are {scores.size} log-probabilities but {len(choices)} choices")
    if PER_TOKEN.fullmatch(metric):
        if tokens is None or len(tokens) != scores.size:
            raise ValueError(f"{metric} is of means per token, and the numbers of tokens are not those of the choices")
        scores = scores / np.maximum(tokens, 1)
    return scores.tolist()


def _char_normalized(logprobs: Sequence[float], choices: Sequence[str]) -> Floats:
    scores = finite_numbers(logprobs, OF_CHOICE)
    if len(choices) != scores.size or "" in choices:
        raise ValueError(f"there must be {scores.size} choices that are not empty, not {list(choices)}")
    return scores / [len(choice) for choice in choices]


def _best_is_gold(scores: Floats, gold: int) -> float:
    positions = _gold_positions(gold, scores.size)
    if len(positions) > 1:
        raise ValueError(f"gold {gold} must be one choice")
    return float(np.argmax(scores) == positions[0])


def _gold_positions(gold: int | Sequence[int], count: int) -> list[int]:
    found = np.atleast_1d(np.asarray(gold)).tolist()
    valid = all(type(index) is int and 0 <= index < count for index in found)
    if not valid or not found or len(set(found)) < len(found):
        raise ValueError(f"gold must be one or several different integers of 0 to {count - 1}, not {gold!r}")
    return found
