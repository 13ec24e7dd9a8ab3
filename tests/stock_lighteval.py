"""Stock LightEval's own command line, where there is no internet."""

import os
import subprocess
import sys
from pathlib import Path

# Stock LightEval downloads a file when it starts, and accepts a 404.
ANSWER_404 = """
import requests
stock_get = requests.get
def get(url, *args, **kwargs):
    answer = requests.Response()
    answer.status_code = 404
    return answer if url.endswith("tinyBenchmarks.pkl") else stock_get(url, *args, **kwargs)
requests.get = get
"""


def stock_lighteval(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs `lighteval ARGS` in a folder; asserts that it succeeds."""
    start = folder / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(ANSWER_404, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "CULTUREVAL_"))}
    own = {"HF_HOME": str(folder / "hf"), "CULTUREVAL_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    own |= {"PYTHONPATH": str(start), "CULTUREVAL_DATA": "samples"} | environment
    command = [sys.executable, "-m", "lighteval", *args]
    run = subprocess.run(command, cwd=folder, env=kept | own, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-3000:]
    return run
