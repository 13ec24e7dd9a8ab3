"""QIMMA: its table of benchmarks, readers of its code problems, and how its tasks are asked and scored."""

from cultureval.tasks.suite import Suite

SUITE = Suite(
    name="qimma",
    title="QIMMA: 109 subsets of 14 Arabic benchmarks, knowledge, reasoning, culture, poetry and code",
    benchmarks="cultureval.tasks.qimma.benchmarks:BENCHMARKS",
    kinds="cultureval.tasks.qimma.kinds:KINDS",
    options="cultureval.tasks.qimma.options:OPTIONS",
    headline="cultureval.reports.qimma.headline:headline",
    standings="cultureval.reports.qimma.standings:standings",
    published_standings="cultureval.reports.qimma.standings:published_standings",
    charts="cultureval.reports.qimma.charts:charts",
    page="docs/qimma.md",
    order=10,
)
