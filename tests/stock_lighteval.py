"""Stock LightEval's own command line, where there is no internet."""

import subprocess
from pathlib import Path

from forked_commands import own_variables, run_forked

# Stock LightEval downloads one file when it starts; it gets "not found" immediately, which it accepts.
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
    own = own_variables(folder) | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(start), "CULTUREVAL_DATA": "samples"}
    run = run_forked("lighteval", list(map(str, args)), folder, own | environment, network=True, loaded="stock")
    assert run.returncode == 0, run.stderr[-3000:]
    return run
