"""AynVQA's own option: its split."""

from cultureval.runtime.settings import Option

# Items of each split with labels (overview of ImageEval 2026, Table 1).
ITEMS = {"test": 1000, "dev": 500, "train": 3000}
SPLIT = Option(
    "aynvqa_split",
    "CULTUREVAL_AYNVQA_SPLIT",
    "test",
    "split of AynVQA: `test` (default; drawn from M2CQA), `dev` or `train` (from OASIS)",
    values=tuple(ITEMS),
    signed=False,
)
OPTIONS = (SPLIT,)
