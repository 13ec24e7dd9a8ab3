"""Choose our model file for the MODEL of a command line."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.models.adapters import with_base_model
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.model_settings import read_model_settings
from cultureval.runtime.servers.vllm_process import find_vllm

if TYPE_CHECKING:
    from lighteval.models.abstract_model import LightevalModel


CLASSES = {"hf": "HFModel", "openai_api": "OpenAIModel", "vllm": "VLLMModel", "two_backends": "TwoBackendsModel"}
FILES = {"transformers": "hf.py", "vllm": "vllm.py"}
ACCELERATORS = ("cuda", "xpu")  # of torch (ROCm is cuda), for which vLLM is built
# What transformers does and vLLM does not, or not so; a model that sets one is left to transformers unless asked.
OF_TRANSFORMERS = (
    "adapter",
    "device_map",
    "quantisation",
    "attn_implementation",
    "image_max_pixels",
    "image_min_pixels",
)


def model_file(model: str) -> Path:
    """The model file for `lighteval custom`: openai_api.py for a YAML file with `base_url`, else that of the backend.

    Raises:
        CulturevalError: Both a server and a backend are named.
    """
    settings = with_base_model(read_model_settings(model))
    backend = settings.get("backend") or "auto"
    if "base_url" in settings:
        if backend != "auto":
            raise CulturevalError(f"{model} names a server (base_url), which is a backend itself: leave --backend out.")
        return Path(__file__).with_name("openai_api.py")
    usual = "two_backends.py" if vllm_may_generate(settings) else "hf.py"
    return Path(__file__).with_name(FILES.get(str(backend), usual))


def vllm_may_generate(settings: Mapping[str, Any]) -> bool:
    """Whether vLLM generates where no backend is named: it is found, and one process has an accelerator for it."""
    if find_vllm() is None or any(settings.get(name) for name in OF_TRANSFORMERS):
        return False
    import torch

    from cultureval.runtime.processes import process_count

    device = str(settings.get("device") or "auto").partition(":")[0]
    here = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    kind = (here.type if here else "cpu") if device == "auto" else device
    return kind in ACCELERATORS and settings.get("dtype") not in ("4bit", "8bit") and process_count() == 1


def load_model(model: str) -> "LightevalModel":
    """Load the model that `cultureval eval` uses; call after LightEval's start-up is prepared."""
    from lighteval.models.custom.custom_model import CustomModelConfig

    file = model_file(model)
    model_class = getattr(import_module(f"cultureval.models.{file.stem}"), CLASSES[file.stem])
    loaded: LightevalModel = model_class(CustomModelConfig(model_name=model, model_definition_file_path=str(file)))
    return loaded
