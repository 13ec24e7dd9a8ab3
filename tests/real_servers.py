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

from cultureval.samples.smollm2 import gguf_file

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
def served(command: list, url: str, log: Path, **variables: str):
    """A server process, from its first answer on."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | variables)
    try:
        wait_until(lambda: _answers(url) or process.poll() is not None, every=0.3)
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        yield url
    finally:
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


def llama_server(gguf: Path, log: Path, name: str):
    """llama.cpp's server, which calls the model by a name."""
    port = own_port()
    return served([sys.executable, "-c", LLAMA, gguf, str(port), name], f"http://127.0.0.1:{port}/v1", log)


def transformers_server(folder: Path, log: Path):
    """`transformers serve` with one model in fp32, and an empty cache of the hub."""
    port = own_port()
    program = "from transformers.cli.transformers import main; main()"
    options = ["--device", "cpu", "--dtype", "float32", "--host", "127.0.0.1", "--port", str(port)]
    command = [sys.executable, "-c", program, "serve", str(folder), *options]
    home = str(log.parent / "hub")
    return served(command, f"http://127.0.0.1:{port}/v1", log, HF_HOME=home, HF_HUB_OFFLINE="1")
