"""Choose our model file for the MODEL of a command line."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.models.adapters import with_base_model
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.model_settings import read_model_settings

if TYPE_CHECKING:
    from lighteval.models.abstract_model import LightevalModel


CLASSES = {"hf": "HFModel", "openai_api": "OpenAIModel", "vllm": "VLLMModel"}


def model_file(model: str) -> Path:
    """The model file for `lighteval custom`: openai_api.py for a YAML file with `base_url`, else that of the backend.

    Raises:
        CulturevalError: Both a server and a backend are named.
    """
    settings = with_base_model(read_model_settings(model))
    backend = settings.get("backend")
    if "base_url" not in settings:
        return Path(__file__).with_name("vllm.py" if backend == "vllm" else "hf.py")
    if backend:
        raise CulturevalError(f"{model} names a server (base_url), which is a backend itself: leave --backend out.")
    return Path(__file__).with_name("openai_api.py")


def load_model(model: str) -> "LightevalModel":
    """Load the model that `cultureval eval` uses; call after LightEval's start-up is prepared."""
    from lighteval.models.custom.custom_model import CustomModelConfig

    file = model_file(model)
    model_class = getattr(import_module(f"cultureval.models.{file.stem}"), CLASSES[file.stem])
    loaded: LightevalModel = model_class(CustomModelConfig(model_name=model, model_definition_file_path=str(file)))
    return loaded
