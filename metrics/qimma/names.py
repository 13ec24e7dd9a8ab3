"""QIMMA's metrics (paper, section 5.1), each set's headline first; those of choices are of any suite."""

from cultureval.metrics.declared import declare

MULTIPLE_CHOICE = declare("acc_norm", "acc")
MULTI_SELECT = declare("gold_probability_mass", "gold_set_match")
# Of generated replies, which no other metric's names share, so that no average holds both forms.
CHOICE_REPLIES = declare(
    *("acc_strict", "acc_lenient", "invalid_strict", "invalid_lenient"),
    counts=["invalid_strict", "invalid_lenient"],
    lower=["invalid_strict", "invalid_lenient"],
)
BERTSCORE = declare("BERTScore-F", "BERTScore-P", "BERTScore-R")
FANNORFLOP = declare(*BERTSCORE, "parse_rate", counts=["parse_rate"])
CODE = declare("plus_pass@1", "base_pass@1", "not_judged", counts=["not_judged"], lower=["not_judged"])
