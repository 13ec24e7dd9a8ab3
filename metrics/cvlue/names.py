"""The metrics of CVLUE and its English counterparts, each set's headline first."""

import math

from cultureval.metrics.declared import NOT_NEGATIVE, Declared, Metrics, declare

KS = (1, 5, 10)
VQA_MODES = ("loose", "strict", "exact")
# Suffixes of candidate scores; the headline, the mean log-probability per token, has none.
CANDIDATE_SCORES = ("", "_sum", "_mean_end", "_sum_end")

VQA = declare(*(f"accuracy_{mode}" for mode in VQA_MODES))
VQA_V2 = declare("vqa_accuracy")
GROUNDING = declare(
    "iou",
    "iou_continuous",
    "acc@0.5",
    "acc@0.5_continuous",
    "unparsable",
    counts=["unparsable"],
    lower=["unparsable"],
)


def _ranking(*names: str) -> Metrics:
    every = [f"{name}{score}" for score in CANDIDATE_SCORES for name in names]
    ties = [name for name in every if name.startswith("gold_ties")]
    ranks = [name for name in every if name.startswith("mean_rank")]
    ranges = dict.fromkeys(ties, NOT_NEGATIVE) | dict.fromkeys(ranks, (1.0, math.inf))
    sums = dict.fromkeys(ties, "cultureval.metrics.cvlue.ranking:number")
    return declare(*every, counts=ties, lower=[*ties, *ranks], ranges=ranges, sums=sums)


RANKING = (*(f"R@{k}" for k in KS), "MRR", "mean_rank", "gold_ties")
DIALOGUE = _ranking(*RANKING)
DENSE_DIALOGUE = DIALOGUE | dict.fromkeys((f"NDCG{score}" for score in CANDIDATE_SCORES), Declared())
OF_IMAGES, OF_CAPTIONS = "TR", "IR"  # queries of retrieval
RECALLS = tuple(f"{direction}@{k}" for direction in (OF_IMAGES, OF_CAPTIONS) for k in KS)
GALLERY_SIZES = ("gallery_images", "gallery_captions")
GALLERIES = declare(*RECALLS, *GALLERY_SIZES, counts=GALLERY_SIZES, ranges=dict.fromkeys(GALLERY_SIZES, NOT_NEGATIVE))

# The macro-average of the contest: eleven numbers by task, for the released scorers and the contest's.
MACRO = {"itr": RECALLS, "vqa": ("accuracy_loose",), "vg": ("iou",), "vd": RANKING[: len(KS)]}
CONTEST = MACRO | {"vqa": ("accuracy_exact",), "vg": ("iou_continuous",)}
# The metrics shown by category: the first of each task; for retrieval, the first of each direction.
HEADLINES = {"itr": ("TR@1", "IR@1")} | {name: metrics[:1] for name, metrics in MACRO.items() if name != "itr"}
