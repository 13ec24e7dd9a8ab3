"""The QIMMA paper's Tables 3 and 4 (arXiv 2604.03395; reports/qimma/published.csv), through the code of our summary.

Table 3's fourteen benchmark scores of each of fourteen models give its averages and all of Table 4.
"""

import csv

import pytest

from cultureval.reports.qimma.table import AVERAGE, PUBLISHED, average, benchmark_scores, domain_scores
from cultureval.runs.means import Estimate
from cultureval.runtime.rounding import printed
from cultureval.tasks.qimma.averages import benchmark_tasks


def published_rows():
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# Percent.") and "arXiv 2604.03395" in lines[0]
    return list(csv.DictReader(lines[1:]))


def test_table_3_gives_its_averages_and_table_4():
    rows, checked = published_rows(), {"averages": 0, "domains": 0}
    assert len(rows) == 14
    for row in rows:
        benchmarks = {name: Estimate(float(row[name])) for name in benchmark_tasks()}
        assert average(benchmarks).value == pytest.approx(float(row[AVERAGE]), abs=0.0051), row["model"]
        checked["averages"] += 1
        for domain, mean in domain_scores(benchmarks).items():
            assert mean.value == pytest.approx(float(row[domain]), abs=0.0051), (row["model"], domain)
            checked["domains"] += 1
        # A benchmark of equal subsets has their score.
        subsets = {task.task: benchmarks[name] for name, tasks in benchmark_tasks().items() for task in tasks}
        again = {name: score.value for name, score in benchmark_scores(subsets).items()}
        assert again == pytest.approx({name: score.value for name, score in benchmarks.items()})
    assert checked == {"averages": 14, "domains": 98}


def test_all_but_three_are_printed_as_the_paper_prints_them():
    """Those three lie in the middle between two numbers; the paper rounds what its benchmark scores no longer tell."""
    others = []
    for row in published_rows():
        benchmarks = {name: Estimate(float(row[name])) for name in benchmark_tasks()}
        means = domain_scores(benchmarks) | {AVERAGE: average(benchmarks)}
        others += [(mean.value, row[name]) for name, mean in means.items() if printed(mean.value, 2) != row[name]]
    assert sorted(others) == [(pytest.approx(25.965), "25.96"), (pytest.approx(59.705), "59.70"), (67.115, "67.11")]


def test_the_average_is_of_fourteen_benchmarks_and_not_of_seven_domains():
    (jais,) = (row for row in published_rows() if row["model"] == "inceptionai/Jais-2-70B-Chat")
    benchmarks = {name: Estimate(float(jais[name])) for name in benchmark_tasks()}
    domains = domain_scores(benchmarks)
    assert len(benchmarks) == 14 and len(domains) == 7
    assert sum(domain.value for domain in domains.values()) / 7 == pytest.approx(65.15, abs=0.01)
    assert average(benchmarks).value == pytest.approx(65.81, abs=0.0051)
