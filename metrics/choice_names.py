"""The metrics of multiple-choice and multi-select questions, each set's headline first."""

from cultureval.metrics.declared import declare

MULTIPLE_CHOICE = declare("acc_norm", "acc")
MULTI_SELECT = declare("gold_probability_mass", "gold_set_match")
# Of generated replies, which no other metric's names share, so that no average holds both forms.
CHOICE_REPLIES = declare(
    *("acc_strict", "acc_lenient", "invalid_strict", "invalid_lenient"),
    counts=["invalid_strict", "invalid_lenient"],
    lower=["invalid_strict", "invalid_lenient"],
)
