"""QIMMA: its tables of benchmarks, readers of its code problems, and how its tasks are asked and scored."""

from cultureval.tasks.suite import Suite

QIMMA = Suite(
    name="qimma",
    title="QIMMA: 109 subsets of 14 Arabic benchmarks, knowledge, reasoning, culture, poetry and code",
    benchmarks="cultureval.tasks.qimma.benchmarks:BENCHMARKS",
    kinds="cultureval.tasks.qimma.kinds:KINDS",
    options="cultureval.tasks.qimma.options:OPTIONS",
    tables="cultureval.reports.qimma.table:tables",
    charts="cultureval.reports.qimma.charts:charts",
    averages="cultureval.tasks.qimma.averages:averages",
    page="docs/qimma.md",
    order=10,
)
# A suite of its own: other prompts and metrics, whose numbers are never averaged with those of log-probabilities.
QIMMA_GEN = Suite(
    name="qimma_gen",
    title="QIMMA, generated answers: its choices, for models without log-probabilities",
    benchmarks="cultureval.tasks.qimma.benchmarks:GENERATIVE_BENCHMARKS",
    kinds="cultureval.tasks.qimma.kinds:GENERATIVE_KINDS",
    options="cultureval.tasks.qimma.options:PROMPT_OPTIONS",
    tables="cultureval.reports.qimma.table:generative_tables",
    page="docs/without_log_probabilities.md",
    order=11,
)
SUITE = (QIMMA, QIMMA_GEN)
