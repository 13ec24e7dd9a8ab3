"""`cultureval bench start-up`: seconds until help, task list, a run's list of problems and its model file.

The last is compared with stock LightEval.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.settings import variable_of

OURS = [sys.executable, "-m", "cultureval"]
PROBLEMS = "cultureval eval (list of problems)"  # of all of QIMMA, whose output folder cannot be written
ENCODER = "tiny-encoder"
STOCK = [sys.executable, "-m", "lighteval"]
# Stock LightEval downloads one file when it starts; it gets "not found" immediately, which it accepts.
ANSWER_NOT_FOUND = """
import requests
stock_get = requests.get
def get(url, *args, **kwargs):
    answer = requests.Response()
    answer.status_code = 404
    return answer if url.endswith("tinyBenchmarks.pkl") else stock_get(url, *args, **kwargs)
requests.get = get
"""
# A model file that records when it is reached, and ends the run.
MODEL = """
import os, time
with open(os.environ["REACHED"], "w") as file:
    file.write(str(time.time()))
os._exit(0)
"""


def bench_start_up(
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each command; medians are printed.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Seconds until commands answer and a run reaches its model, interleaved. Example: cultureval bench start-up"""
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(Path(folder), repeats)
    ratio = seconds["lighteval custom (ours)"] / seconds["lighteval custom (stock)"]
    if as_json:
        print(json.dumps({"seconds": seconds, "ours_to_stock": ratio}, indent=2))
        return
    print(terminal_table((), [(name, f"{median:.2f} s") for name, median in seconds.items()], "lr"))
    print(f"to the model file, ours / stock: {ratio:.2f}")


def measure(folder: Path, repeats: int) -> dict[str, float]:
    """Median seconds by command; the commands are interleaved, so that a busy machine slows all of them.

    Raises:
        CulturevalError: A command failed.
    """
    (folder / "sitecustomize.py").write_text(ANSWER_NOT_FOUND, encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    run = ["custom", "none", "model.py", "qimma_aratrust", "--custom-tasks", "cultureval.tasks"]
    commands = {
        "cultureval --help": [*OURS, "--help"],
        "cultureval tasks": [*OURS, "tasks"],
        "cultureval lighteval --help": [*OURS, "lighteval", "--help"],
        "lighteval custom (ours)": [*OURS, "lighteval", *run],
        "lighteval custom (stock)": [*STOCK, *run],
    }
    commands[PROBLEMS] = [*OURS, "eval", str(_build_models(folder)), "qimma", "--output-dir", "model.py/out"]
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            seconds[name].append(_seconds(command, folder, status=2 if name == PROBLEMS else 0))
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def _build_models(folder: Path) -> Path:
    """A tiny language model, and beside it the encoder that scores with BERTScore."""
    from cultureval.samples.tiny_models.classifiers import build_tiny_encoder
    from cultureval.samples.tiny_models.language_models import build_tiny_causal_lm

    build_tiny_encoder(folder / ENCODER)
    return build_tiny_causal_lm(folder / "tiny-llama")


def _seconds(command: list[str], folder: Path, status: int) -> float:
    """Seconds until the model file is reached, else until the command ends, with that exit status."""
    reached = folder / "reached"
    reached.unlink(missing_ok=True)
    own = {
        "PYTHONPATH": str(folder),
        "REACHED": str(reached),
        variable_of("data_root"): "samples",
        variable_of("bertscore_model"): str(folder / ENCODER),
        "HF_HUB_OFFLINE": "1",
    }
    start = time.time()
    done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True)
    end = time.time()
    if done.returncode != status:
        raise CulturevalError(f"{' '.join(command[2:])} failed: {done.stderr.strip().splitlines()[-1:]}")
    return (float(reached.read_text()) if reached.exists() else end) - start
