"""M2CQA and AynVQA: their tables of benchmarks, and how their statements are asked and scored."""

from cultureval.tasks.suite import Suite

M2CQA = Suite(
    name="m2cqa",
    title="M2CQA: counterfactual hallucination on images, three prompts in four language varieties",
    benchmarks="cultureval.tasks.m2cqa.benchmarks:BENCHMARKS",
    kinds="cultureval.tasks.m2cqa.kinds:KINDS",
    tables="cultureval.reports.m2cqa.table:tables",
    comparison="cultureval.scripts.compare:compare_m2cqa",
    page="docs/m2cqa.md",
    order=30,
)
# A suite of its own: other data, other numbers first.
AYNVQA = Suite(
    name="aynvqa",
    title="AynVQA (ImageEval 2026, Task 1b): the part of M2CQA that is not gated, in English and MSA",
    benchmarks="cultureval.tasks.m2cqa.aynvqa:BENCHMARKS",
    kinds="cultureval.tasks.m2cqa.kinds:KINDS",
    options="cultureval.tasks.m2cqa.aynvqa:OPTIONS",
    tables="cultureval.reports.m2cqa.table:aynvqa_tables",
    submissions="cultureval.reports.m2cqa.submissions:SUBMISSIONS",
    page="docs/m2cqa.md",
    order=31,
)
SUITE = (M2CQA, AYNVQA)
