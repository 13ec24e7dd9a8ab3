"""The environment with vLLM that tests start servers from."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("make_vllm_environment.sh")


def python_with_vllm(script: Path = SCRIPT) -> str:
    """The Python of an environment with vLLM: the one that is named, or .venv-vllm here, which CI makes.

    Where there is none, the test that asks for it is skipped with the line that enables it; in CI it fails.
    """
    named = os.environ.get("CULTUREVAL_TEST_VLLM_PYTHON")
    if named:
        return named
    folder = script.parents[1] / ".venv-vllm"
    if os.environ.get("CULTUREVAL_TEST_VLLM") == "skip":
        pytest.skip("CULTUREVAL_TEST_VLLM=skip")
    if "CI" in os.environ:
        subprocess.run([script, folder], check=True, timeout=800, env={**os.environ, "PYTHON": sys.executable})
    elif not (folder / "finished").is_file():
        pytest.skip("no vLLM here: PIP_EXTRA_INDEX_URL=INDEX make vllm (INDEX: PyTorch's index of CPU builds)")
    return str(folder.resolve() / "bin" / "python")
