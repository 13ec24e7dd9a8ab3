"""QIMMA's metrics (paper, section 5.1), each set's headline first; those of choices are in `declared`."""

from cultureval.metrics.declared import declare

BERTSCORE = declare("BERTScore-F", "BERTScore-P", "BERTScore-R")
FANNORFLOP = declare(*BERTSCORE, "parse_rate", counts=["parse_rate"])
CODE = declare("plus_pass@1", "base_pass@1", "not_judged", counts=["not_judged"], lower=["not_judged"])
