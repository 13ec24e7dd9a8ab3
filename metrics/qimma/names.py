"""The metrics of QIMMA (paper, section 5.1), each set's headline first."""

from cultureval.metrics.declared import declare

MULTIPLE_CHOICE = declare("acc_norm", "acc")
MULTI_SELECT = declare("gold_probability_mass", "gold_set_match")
BERTSCORE = declare("BERTScore-F", "BERTScore-P", "BERTScore-R")
FANNORFLOP = declare(*BERTSCORE, "parse_rate", counts=["parse_rate"])
CODE = declare("plus_pass@1", "base_pass@1", "not_judged", counts=["not_judged"], lower=["not_judged"])
