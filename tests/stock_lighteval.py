"""Stock LightEval's own command line, where there is no internet."""

import os
import subprocess
from pathlib import Path

from forked_commands import run_forked

from cultureval.scripts.bench.start_up import ANSWER_NOT_FOUND as ANSWER_404


def stock_lighteval(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs `lighteval ARGS` in a folder; asserts that it succeeds."""
    start = folder / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(ANSWER_404, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "CULTUREVAL_"))}
    own = {"HF_HOME": str(folder / "hf"), "CULTUREVAL_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    own |= {"PYTHONPATH": str(start), "CULTUREVAL_DATA": "samples"} | environment
    run = run_forked("lighteval", list(map(str, args)), folder, kept | own, network=True, loaded="stock")
    assert run.returncode == 0, run.stderr[-3000:]
    return run
