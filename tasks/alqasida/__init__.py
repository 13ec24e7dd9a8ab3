"""AL-QASIDA: its tables of benchmarks, readers of its sources, and how its tasks are asked and scored."""

from dataclasses import replace

from cultureval.tasks.suite import Suite

TEST = Suite(
    name="alqasida",
    title="AL-QASIDA: fidelity, understanding and quality of Arabic in eight dialects",
    benchmarks="cultureval.tasks.alqasida.benchmarks:BENCHMARKS",
    kinds="cultureval.tasks.alqasida.kinds:KINDS",
    options="cultureval.metrics.alqasida.names:OPTIONS",
    analysis="cultureval.scripts.suite_commands:analyze_alqasida",
    ratings="cultureval.reports.alqasida.ratings:RATINGS",
    outputs="cultureval.reports.alqasida.scored_outputs:score_outputs",
    tables="cultureval.reports.alqasida.table:tables",
    page="docs/alqasida.md",
    order=50,
)
# The development sets are a suite of their own, so that no average mixes them with the test sets.
DEVELOPMENT = replace(
    TEST,
    name="alqasida_dev",
    title="AL-QASIDA's development sets",
    benchmarks="cultureval.tasks.alqasida.benchmarks:DEV_BENCHMARKS",
    analysis=None,
    tables="cultureval.reports.alqasida.table:development_tables",
    charts=None,
    ratings=None,
    outputs=None,
    order=51,
)
SUITE = (TEST, DEVELOPMENT)
