"""Kendall's tau-c on the JEEM paper's Table 3 (arXiv 2503.21910), whose 24 rows of dialects and models it prints.

The paper's own correlations (its last row, 13.2 to 39.1) are of single captions, which are not public. These are of the
table's rows, computed from the printed numbers with the definition, pair by pair.
"""

import pytest

from cultureval.metrics.agreement import kendall_tau_c, tau_c_with_interval
from cultureval.reports.jeem.table import CAPTIONS
from cultureval.runs.table import published_rows

WITH_CONSISTENCY = {
    "bleu": 36.1,
    "cider": 31.7,
    "rouge": 29.0,
    "bertscore": 25.0,
    "image_reference_consistency": 40.3,
    "reference_consistency": 40.0,
}


def rated_rows():
    return [row for row in published_rows(CAPTIONS) if row["variety"] != "MSA" and row["model"] != "Human"]


@pytest.mark.parametrize(("metric", "expected"), WITH_CONSISTENCY.items())
def test_tau_c_of_the_papers_rows(metric, expected):
    rows = rated_rows()
    assert len(rows) == 24
    scores, people = ([float(row[name]) for row in rows] for name in (metric, "human_consistency"))
    assert 100 * kendall_tau_c(scores, people) == pytest.approx(expected, abs=0.05)
    concordant = sum((scores[i] - scores[j]) * (people[i] - people[j]) > 0 for i in range(len(rows)) for j in range(i))
    discordant = sum((scores[i] - scores[j]) * (people[i] - people[j]) < 0 for i in range(len(rows)) for j in range(i))
    smaller = min(len(set(scores)), len(set(people)))
    by_hand = 2 * (concordant - discordant) / (24**2 * (smaller - 1) / smaller)
    assert kendall_tau_c(scores, people) == pytest.approx(by_hand)
    # Dialects as items: four of them say little, which the interval shows.
    found = tau_c_with_interval(scores, people, [row["variety"] for row in rows])
    assert found.items == 4 and found.low <= found.value <= found.high
