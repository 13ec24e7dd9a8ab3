"""Judges' scores in tables of suites: what stands for the score of a judge that stopped before its end."""

from collections.abc import Sequence

from cultureval.runs.judged import JudgeScores, bounds
from cultureval.runtime.printed_numbers import printed, printed_or_na

BOUNDS_NOTE = "No scores to compare: in [ ] the bounds of the mean, with the lowest or highest for all other items."


def incomplete(scores: Sequence[JudgeScores]) -> str:
    """Words for the title of a judge's table, where the judge stopped before it was asked about all items; else ""."""
    missing, items = sum(one.not_asked for one in scores), sum(one.items for one in scores)
    return f", INCOMPLETE: {missing} of {items} verdicts were not asked for" if missing else ""


def bounded_mean(scores: Sequence[JudgeScores], criterion: str) -> str | None:
    """The mean of a criterion over some tasks with its bounds: `3.10 [2.00, 4.50]`; None without any.

    The bounds are the means with the lowest and the highest score for each item without a score: the mean of all items
    is between them, whatever the judge would say.
    """
    found = bounds([one.criteria[criterion] for one in scores if criterion in one.criteria])
    return found and f"{printed_or_na(found[0])} [{printed(found[1], 2)}, {printed(found[2], 2)}]"
