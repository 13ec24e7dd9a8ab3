"""JEEM: its table of benchmarks, and how its tasks are asked and scored."""

from cultureval.tasks.suite import Suite

SUITE = Suite(
    name="jeem",
    title="JEEM: captions of images in MSA and four Arabic dialects, and questions in the dialects",
    benchmarks="cultureval.tasks.jeem.benchmarks:BENCHMARKS",
    kinds="cultureval.tasks.jeem.kinds:KINDS",
    tables="cultureval.reports.jeem.table:tables",
    ratings="cultureval.reports.jeem.ratings:RATINGS",
    page="docs/jeem.md",
    order=20,
)
