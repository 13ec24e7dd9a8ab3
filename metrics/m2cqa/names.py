"""The metrics of M2CQA and AynVQA; metrics of other profiles than the headline's have the profile as suffix.

M2CQA's headline is `cfhr` under the paper's strict profile. AynVQA's is `contrastive_instability`, under the
organisers' profile for their own prompt, and under the strict profile for M2CQA's prompts.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from cultureval.metrics.declared import NOT_NEGATIVE, Metrics, declare

Profile = Literal["strict", "lenient", "organisers"]  # how `parse_verdict` reads outputs

CFHR, Q_PLUS_ACC, Q_MINUS_ACC, F1, COMBINED_ACC = "cfhr", "q_plus_acc", "q_minus_acc", "f1", "combined_acc"
CONTRASTIVE_INSTABILITY = "contrastive_instability"
INVALID_RATE, CFHR_VALID_ONLY = "invalid_rate", "cfhr_valid_only"
N_ITEMS, N_Q_PLUS = "n_items", "n_q_plus"
JOINT_ACC, JOINT_INVALID_RATE = "joint_acc", "joint_invalid_rate"

# Groups of AynVQA: the organisers' prompt, and the joint form; those of M2CQA's prompts end in the prompt's name.
AYNVQA, AYNVQA_JOINT = "m2cqa_aynvqa", "m2cqa_aynvqa_joint"
STRICT_VERDICT, ORGANISERS_VERDICT = "verdict", "verdict_organisers"  # keys of verdicts in the details

LOWER = (CFHR, INVALID_RATE, CONTRASTIVE_INSTABILITY)  # better if lower, under every profile
COUNTS = (N_ITEMS, N_Q_PLUS)
PROFILE_NAMES = get_args(Profile)
_OF_PAPER = (CFHR, Q_PLUS_ACC, Q_MINUS_ACC, F1, COMBINED_ACC, INVALID_RATE, CFHR_VALID_ONLY)
_OF_ORGANISERS = (CONTRASTIVE_INSTABILITY, COMBINED_ACC, CFHR, Q_PLUS_ACC, Q_MINUS_ACC, INVALID_RATE)
_LAX = (CFHR, Q_PLUS_ACC, Q_MINUS_ACC, INVALID_RATE)


def metrics_by_profile(full: Sequence[str], short: Sequence[str], headline: str) -> dict[str, dict[str, str]]:
    """Profile -> the names of its metrics -> their keys in `counterfactual_report`.

    Args:
        full: Metrics of the headline's profile, besides the counts.
        short: Metrics of each other profile; its name is the suffix.
        headline: The headline's profile.
    """
    further = [name for name in PROFILE_NAMES if name != headline]
    found = {headline: {name: name for name in (*full, *COUNTS)}}
    return found | {profile: {f"{name}_{profile}": name for name in short} for profile in further}


def _declared(parts: dict[str, dict[str, str]]) -> Metrics:
    names = [name for of_profile in parts.values() for name in of_profile]
    lower = [name for name in names if name.startswith(LOWER)]
    sums = {name: F1_OF_SUMS for name in names if name == F1}
    return declare(*names, counts=COUNTS, lower=lower, ranges=dict.fromkeys(COUNTS, NOT_NEGATIVE), sums=sums)


F1_OF_SUMS = "cultureval.metrics.m2cqa.counterfactual:f1_of_sums"
STATEMENT_PARTS = metrics_by_profile(_OF_PAPER, _LAX, "strict")
LABELLED_PARTS = metrics_by_profile(_OF_ORGANISERS, (CONTRASTIVE_INSTABILITY, *_LAX), "strict")
ORGANISERS_PARTS = metrics_by_profile(_OF_ORGANISERS, (CONTRASTIVE_INSTABILITY, *_LAX), "organisers")
STATEMENTS, LABELLED, ORGANISERS = map(_declared, (STATEMENT_PARTS, LABELLED_PARTS, ORGANISERS_PARTS))
JOINT = declare(JOINT_ACC, JOINT_INVALID_RATE, counts=[JOINT_INVALID_RATE], lower=[JOINT_INVALID_RATE])


def headline_verdict(task: str) -> str:
    """The key of the headline's verdict in a row of details."""
    return ORGANISERS_VERDICT if task.partition(":")[0] == AYNVQA else STRICT_VERDICT
