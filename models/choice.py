"""Choose our model file for the MODEL of a command line."""

from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.runtime.model_settings import read_model_settings

if TYPE_CHECKING:
    from lighteval.models.abstract_model import LightevalModel


def model_file(model: str) -> Path:
    """The model file for `lighteval custom`: openai_api.py for a YAML file with `base_url`, else hf.py."""
    name = "openai_api.py" if "base_url" in read_model_settings(model) else "hf.py"
    return Path(__file__).with_name(name)


def load_model(model: str) -> "LightevalModel":
    """Load the model that `cultureval eval` uses; call after LightEval's start-up is prepared."""
    from lighteval.models.custom.custom_model import CustomModelConfig

    file = model_file(model)
    config = CustomModelConfig(model_name=model, model_definition_file_path=str(file))
    if file.name == "openai_api.py":
        from cultureval.models.openai_api import OpenAIModel

        return OpenAIModel(config)
    from cultureval.models.hf import HFModel

    return HFModel(config)
