"""CVLUE: its table of benchmarks, readers of its sources, and how its tasks are asked and scored."""

from cultureval.tasks.suite import Suite

SUITE = Suite(
    name="cvlue",
    title="CVLUE: Chinese image-text retrieval, visual question answering, grounding and dialogue",
    benchmarks="cultureval.tasks.cvlue.benchmarks:BENCHMARKS",
    kinds="cultureval.tasks.cvlue.kinds:KINDS",
    options="cultureval.tasks.cvlue.options:OPTIONS",
    tables="cultureval.reports.cvlue.table:tables",
    of_model="cultureval.tasks.cvlue.options:options_of_model",
    comparison="cultureval.scripts.compare:compare_cvlue",
    run_files="cultureval.reports.cvlue.run_files:write_run_files",
    before_run="cultureval.tasks.cvlue.options:assumed_box_format",
    submissions="cultureval.reports.cvlue.official_scores:SUBMISSIONS",
    picture="cultureval.reports.cvlue.boxes:draw_sample",
    page="docs/cvlue.md",
    order=40,
)
