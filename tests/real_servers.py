"""Servers that nobody here wrote, with a real model: SmolLM2-135M-Instruct."""

import importlib.util
import os
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from waiting import PATIENCE, own_port, wait_until

from cultureval.runtime.smollm2 import gguf_file

# The model's file; None where that, or the server for it, is not installed.
GGUF = gguf_file() if importlib.util.find_spec("xllamacpp") else None
LLAMA = """
import sys, time
import xllamacpp
given = xllamacpp.CommonParams()
given.model.path, given.port, given.model_alias = sys.argv[1], int(sys.argv[2]), {sys.argv[3]}
given.n_ctx, given.n_parallel, given.warmup, given.use_jinja = 4096, 2, False, True
given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1  # more wait for each other on a busy machine
server = xllamacpp.Server(given)
time.sleep(10**6)
"""


@contextmanager
def served(commands: dict[str, list], logs: Path):
    """Server processes, from the first answers of all on; they start at the same time.

    Args:
        commands: Address, up to `/v1` -> command.
        logs: Folder of their logs, and of the hub's cache, which is empty.
    """
    variables = os.environ | {"HF_HOME": str(logs / "hub"), "HF_HUB_OFFLINE": "1"}
    started = {}
    try:
        for number, (url, command) in enumerate(commands.items()):
            with (logs / f"{number}.log").open("wb") as output:
                started[url] = subprocess.Popen(command, stdout=output, stderr=output, env=variables)
        for number, (url, process) in enumerate(started.items()):
            wait_until(lambda url=url, process=process: _answers(url) or process.poll() is not None, every=0.3)
            assert process.poll() is None, (logs / f"{number}.log").read_text(errors="replace")[-2000:]
        yield
    finally:
        for process in started.values():
            process.terminate()
            process.wait(PATIENCE)


def _answers(url: str) -> bool:
    """Whether a server is ready: llama.cpp's has its list of models before its model, and no health until then."""
    return all(_status(place) not in (None, 503) for place in (f"{url}/models", f"{url.removesuffix('/v1')}/health"))


def _status(place: str) -> int | None:
    try:
        with urllib.request.urlopen(place, timeout=5) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code  # transformers' answers 500 where the hub's cache is empty
    except OSError:
        return None


def servers_of(gguf: Path, folder: Path) -> dict[str, list]:
    """Addresses and commands of `transformers serve` in fp32, and of llama.cpp's server, which uses the same name."""
    places = {port: f"http://127.0.0.1:{port}/v1" for port in (own_port(), own_port())}
    one, two = places
    program = "from transformers.cli.transformers import main; main()"
    options = ["--device", "cpu", "--dtype", "float32", "--host", "127.0.0.1", "--port", str(one)]
    transformers = [sys.executable, "-c", program, "serve", str(folder), *options]
    return {places[one]: transformers, places[two]: [sys.executable, "-c", LLAMA, gguf, str(two), str(folder)]}
