"""`accelerate launch` with two processes: the work is shared, and the answers are those of one process."""

import json
import os
from pathlib import Path

import pytest
from asked_commands import PYTHON, forking_server
from forked_commands import own_variables, run_forked
from result_files import details_of
from tiny_models import folder_of

SHORT = {"CULTUREVAL_MODEL_SETTINGS": json.dumps({"generation_parameters": {"max_new_tokens": 5}})}


def run_together(module, arguments, folder):
    """Run a module in two processes, as `accelerate launch` starts them on one machine."""
    here, python = Path(__file__).parents[1], folder / "python"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    launcher = ["--multi_gpu", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    launcher += ["--main_process_port", "0", "--num_processes", "2", "--no_python", str(python), "-m", module]
    variables = (
        own_variables(folder) | {"CULTUREVAL_CACHE": str(folder / "shared-cache"), "OMP_NUM_THREADS": "1"} | SHORT
    )
    variables["PYTHONPATH"] = f"{here}{os.pathsep}{here.parent}"
    with forking_server(network=True) as commands:
        variables["COMMANDS"] = commands
        arguments = [*launcher, *map(str, arguments)]
        return run_forked("accelerate.commands.launch", arguments, folder, variables, network=True, timeout=300)


def test_two_processes_share_the_work_and_only_the_first_goes_on(cultureval, tmp_path):
    arguments = ["eval", folder_of("llama"), "qimma_aratrust", "qimma_gen_aratrust"]
    arguments += ["--data", "samples", "--model-args", "device=cpu", "--output-dir"]
    run = run_together("cultureval.scripts.main", [*arguments, "out"], tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("QIMMA: percent") == run.stdout.count("Results: ") == 1
    assert len(list((tmp_path / "out").glob("results/**/*.json"))) == 1
    alone = cultureval(*arguments, "alone", **SHORT)
    assert alone.returncode == 0, alone.stderr
    together, expected = details_of(tmp_path / "out"), details_of(tmp_path / "alone")
    for task, rows in expected.items():
        for own, other in zip(together[task], rows, strict=True):
            own, other = own["model_response"], other["model_response"]
            assert (own["input"], own["text"]) == (other["input"], other["text"])
            assert own["logprobs"] == pytest.approx(other["logprobs"], abs=1e-4)
    files = (tmp_path / "shared-cache" / "journal").rglob("*.jsonl")
    lines = [len(file.read_bytes().splitlines()) for file in files]
    assert len(lines) == 2 and min(lines) >= 6 and sum(lines) == sum(map(len, expected.values()))  # none twice
