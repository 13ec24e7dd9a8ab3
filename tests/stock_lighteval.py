"""Stock LightEval's own command line, where there is no internet."""

import subprocess
from pathlib import Path

from forked_commands import own_variables, run_forked

from benchmarks.start_up import ANSWER_NOT_FOUND as ANSWER_404


def stock_lighteval(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs `lighteval ARGS` in a folder; asserts that it succeeds."""
    start = folder / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(ANSWER_404, encoding="utf-8")
    own = own_variables(folder) | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(start), "CULTUREVAL_DATA": "samples"}
    run = run_forked("lighteval", list(map(str, args)), folder, own | environment, network=True, loaded="stock")
    assert run.returncode == 0, run.stderr[-3000:]
    return run
