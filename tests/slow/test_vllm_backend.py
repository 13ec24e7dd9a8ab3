"""`--backend vllm` with a real vLLM on this machine's CPU, started once: it answers as transformers does."""

import json
from pathlib import Path

import pyarrow.parquet
import pytest
from forked_commands import own_variables, run_forked

from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

HEADS = {"head_dim": 64, "num_attention_heads": 2, "num_key_value_heads": 2}
TASKS = ("qimma_aratrust", "qimma_palmx", "qimma_medarabiq_qa")
# By its name, since "uni" is replaced on CPUs: the engine computes by itself, one process less to start.
UNIPROC = "--distributed-executor-backend vllm.v1.executor.uniproc_executor.UniProcExecutor"
ARGUMENTS = f"--enforce-eager --max-num-seqs 8 {UNIPROC}"
# As on a machine with a GPU: choices by transformers, texts by vLLM.
WITH_BOTH = "import cultureval.models.choice as c, cultureval.scripts.main as m; c.vllm_may_generate = lambda _: True"


@pytest.fixture(scope="module")
def runs(vllm_python, encoder_variables, tmp_path_factory):
    """Results and details of one model by three backends; the last finds all texts in the journal of the first."""
    folder = tmp_path_factory.mktemp("runs")
    model = build_tiny_causal_lm(folder / "tiny", chat_template=True, max_position_embeddings=2048, **HEADS)
    (folder / "with_both.py").write_text(f"{WITH_BOTH}\nm.main()", encoding="utf-8")
    own = (
        own_variables(folder)
        | encoder_variables
        | {"HF_HUB_OFFLINE": "1", "CULTUREVAL_VLLM": str(Path(vllm_python).with_name("vllm"))}
    )
    own |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    own |= {"VLLM_WORKER_MULTIPROC_METHOD": "fork"}  # the engine need not load vLLM again
    common = [str(model), *TASKS, "--data", "samples", "--limit", "3", "--dtype", "float32"]

    def run(name, module, *options):
        command = ["eval", *common, "--output-dir", str(folder / name), *options]
        done = run_forked(module, command, folder, own, network=True, loaded="ours")
        assert done.returncode == 0, done.stderr[-4000:]
        (results,) = (folder / name / "results").rglob("results_*.json")
        details = sorted((folder / name / "details").rglob("*.parquet"))
        rows = [row for path in details for row in pyarrow.parquet.read_table(path).to_pylist()]
        return json.loads(results.read_text()), rows, done.stderr

    plain, vllm = "cultureval.scripts.main", ("--vllm-args", ARGUMENTS)
    return {
        "vllm": run("vllm", plain, "--backend", "vllm", *vllm),
        "transformers": run("transformers", plain, "--backend", "transformers"),
        "both": run("both", "with_both", *vllm),
    }


def test_scores_and_answers_are_those_of_transformers(runs):
    (served, rows, said), (local, expected, _), (mixed, both, _) = (runs[n] for n in ("vllm", "transformers", "both"))
    assert "vLLM starts for tiny" in said and "vLLM answers after" in said
    assert len(rows) == len(expected) == len(both) >= 9
    for own, other, of_both in zip(rows, expected, both, strict=True):
        own, other, of_both = own["model_response"], other["model_response"], of_both["model_response"]
        assert own["input"] == other["input"] and own["text"] == other["text"] == of_both["text"]
        assert own["logprobs"] == pytest.approx(other["logprobs"], abs=1e-3)
        assert of_both["logprobs"] == pytest.approx(other["logprobs"], abs=1e-5)
    for table in (served, mixed):
        assert table["results"].keys() == local["results"].keys()
        for task, row in local["results"].items():
            assert table["results"][task] == pytest.approx(row, nan_ok=True, abs=1e-6)


def test_results_say_which_backend_answered_what(runs):
    served, mixed = (runs[name][0]["cultureval"] for name in ("vllm", "both"))
    assert served["model"]["backend"] == "vllm" and served["model"]["settings"]["vllm_version"] == "0.32.0"
    assert mixed["model"]["backend"] == "transformers for choices, vllm for texts"
    backends = {one["group"].partition("|")[0]: one["fields"]["backend"] for one in mixed["signatures"]}
    assert backends["qimma_aratrust"] == "transformers" and backends["qimma_medarabiq_qa"] == "vllm 0.32.0"
    texts = [task for name, task in mixed["tasks"].items() if name.startswith("qimma_medarabiq_qa")]
    assert all(task["reused"] == task["rows"] for task in texts)  # of the first run, without another start
    assert "vLLM starts" not in runs["both"][2]
