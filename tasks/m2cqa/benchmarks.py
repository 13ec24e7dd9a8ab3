"""M2CQA: true and false statements on images, three prompts in four varieties, scored by what a model accepts.

Paper: "Once Correct, Still Wrong: Counterfactual Hallucination in Multilingual Vision-Language Models", arXiv
2602.05437; prompts from Table 8, metrics from section 3, varieties from section 2.
Verified: prompts, metrics, size, that statements are judged one by one. Inferred: that the full set is evaluated.
Ours: the names of columns and configurations in QCRI/M2CQA, greedy decoding of at most 32, 256 and 1,024 tokens, the
image before the text.
"""

from collections.abc import Sequence
from functools import partial

from cultureval.metrics.m2cqa.names import STATEMENTS as METRICS
from cultureval.prompts.m2cqa.rows import statement_rows
from cultureval.prompts.preparation import PreparedRow
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.row_order import rows_before_shuffle
from cultureval.tasks.suite import Benchmark, MetricSet, Source, Subset

PROMPTS = {"tf": "True or False", "answer_reason": "Answer then Reason", "reason_first": "Reasoning First"}
DIALECTS = ("ajp", "arz")
STATEMENTS = 3 * 9990  # three an item

# Variety, the name of its configuration -> register.
VARIETIES = {"en": "standard", "msa": "MSA", "ajp": "dialectal", "arz": "dialectal"}
CAVEAT = (
    "CFHR counts only items whose Q+ is answered rightly: read it beside the accuracy on Q+ (q_plus_acc). "
    "The rows Dialect (_dialect) are the means of both dialects, as in the paper."
)


def check_items(rows: Sequence[PreparedRow]) -> None:
    """Refuses an item that is duplicated: CFHR counts items, and statements would be paired at random."""
    seen: dict[tuple[str, str], str] = {}
    for row in rows:
        key = row["item_id"], row["role"]
        if key in seen:
            raise CulturevalError(
                f"M2CQA, {row['language']}: the item {row['item_id']!r} is duplicated, in {seen[key]} and "
                f"{row['source_row']}. Ids must be unique; remove one of the rows."
            )
        seen[key] = row["source_row"]


def _source(variety: str) -> Source:
    return Source(
        "QCRI/M2CQA",
        "original",
        partial(statement_rows, language=variety),
        few_shot_splits=(),
        columns=("id", "image", "q_plus", "q_minus", "country", "category", "subcategory"),
        check=check_items,
        reorder=rows_before_shuffle,
        caveat=CAVEAT,
        licence="CC BY-NC-SA 4.0 (paper, appendix B; the hub's first commit says Apache-2.0)",
        gated=True,
    )


def _benchmark(prompt: str, variety: str) -> Benchmark:
    script = "en" if variety == "en" else "ar"
    mean = f"m2cqa:_dialect_{prompt}" if variety in DIALECTS else None  # the paper's Dialect rows (Table 2)
    return Benchmark(
        name="M2CQA",
        domain=PROMPTS[prompt],
        group="m2cqa",
        sources=(_source(variety),),
        subsets=(Subset(variety, f"{prompt}_{variety}", STATEMENTS, register=VARIETIES[variety], mean=mean),),
        metric_set=MetricSet(f"m2cqa_{prompt}", "true/false statements", METRICS),
        template=f"m2cqa/templates/{script}/{prompt}",
        language=script,
        images=True,
        shared_items="m2cqa",
    )


BENCHMARKS = tuple(_benchmark(prompt, variety) for prompt in PROMPTS for variety in VARIETIES)
