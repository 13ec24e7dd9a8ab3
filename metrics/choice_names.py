"""The metrics of multiple-choice and multi-select questions, each set's headline first."""

from cultureval.metrics.declared import declare

MULTIPLE_CHOICE = declare("acc_norm", "acc")
MULTI_SELECT = declare("gold_probability_mass", "gold_set_match")
