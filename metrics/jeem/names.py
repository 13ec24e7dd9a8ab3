"""JEEM's reference metrics (paper, section 5.1.1): on normalised words, and with suffix `_raw` on unchanged words."""

from cultureval.metrics.declared import NOT_NEGATIVE, PERCENT, declare

# Suffix of a metric's name -> whether its words are normalised.
WORDS = {"": True, "_raw": False}
OVERLAP = ("cider", "rouge_l", "bleu_1", "bleu_2", "bleu_3", "bleu_4")
# Name -> the part of BERTScore; its recall is the paper's.
BERTSCORE_PARTS = {"bertscore_recall": "recall", "bertscore_f1": "f1"}
_ALL = (*OVERLAP, *BERTSCORE_PARTS, *(f"{name}_raw" for name in OVERLAP))
_RANGES = {name: NOT_NEGATIVE if name.startswith("cider") else PERCENT for name in _ALL}
_SUMS = {
    name: f"cultureval.metrics.jeem.caption:{name.removesuffix('_raw')}" for name in _ALL if name.startswith("bleu")
}
REFERENCE = declare(*_ALL, ranges=_RANGES, sums=_SUMS)
