"""`backend=vllm` with a real vLLM on this machine's CPU, started once: it answers as transformers does."""

import pytest
from forked_commands import own_variables, run_forked
from result_files import details_of, results_of

from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

HEADS = {"head_dim": 64, "num_attention_heads": 2, "num_key_value_heads": 2}
TASKS = ("qimma_aratrust", "qimma_palmx", "qimma_medarabiq_qa")
# By its name, since "uni" is replaced on CPUs: the engine computes by itself, one process less to start.
UNIPROC = "--distributed-executor-backend vllm.v1.executor.uniproc_executor.UniProcExecutor"
ARGUMENTS = f"--enforce-eager --max-num-seqs 8 {UNIPROC}"


@pytest.mark.timeout(1200)
def test_scores_and_answers_are_those_of_transformers(vllm_python, encoder_variables, tmp_path):
    model = build_tiny_causal_lm(tmp_path / "tiny", chat_template=True, max_position_embeddings=2048, **HEADS)
    own = own_variables(tmp_path) | encoder_variables
    own |= {"HF_HUB_OFFLINE": "1", "CULTUREVAL_VLLM": vllm_python}
    own |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    own |= {"VLLM_WORKER_MULTIPROC_METHOD": "fork"}  # the engine need not load vLLM again
    common = [str(model), *TASKS, "--data", "samples", "--limit", "3", "--model-args"]

    def run(name, more=""):
        command = ["eval", *common, f"dtype=float32,backend={name}{more}", "--output-dir", name]
        done = run_forked("cultureval.scripts.main", command, tmp_path, own, network=True, loaded="ours")
        assert done.returncode == 0, done.stderr[-4000:]
        rows = [row for _, rows in sorted(details_of(tmp_path / name).items()) for row in rows]
        return results_of(tmp_path / name), rows, done.stderr

    served, rows, said = run("vllm", f",vllm_args='{ARGUMENTS}'")
    local, expected, _ = run("transformers")
    assert "vLLM starts for tiny" in said
    assert len(rows) == len(expected) >= 9
    for own_row, other in zip(rows, expected, strict=True):
        own_row, other = own_row["model_response"], other["model_response"]
        assert own_row["input"] == other["input"] and own_row["text"] == other["text"]
        assert own_row["logprobs"] == pytest.approx(other["logprobs"], abs=1e-3)
    assert served["results"].keys() == local["results"].keys()
    for task, row in local["results"].items():
        assert served["results"][task] == pytest.approx(row, nan_ok=True, abs=1e-6)
    recorded = served["cultureval"]["model"]
    assert recorded["backend"] == "vllm" and recorded["settings"]["vllm_version"] not in ("", "unknown")
