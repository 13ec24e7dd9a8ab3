"""The model of a command line: its model file, checks before its weights load, loading."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.models.adapters import base_model, with_base_model
from cultureval.runtime.errors import CulturevalError, ProblemList, all_of
from cultureval.runtime.model_settings import CheckedModel, load_model_file, read_model_settings

if TYPE_CHECKING:
    from lighteval.models.abstract_model import LightevalModel

    from cultureval.models.settings import HFModelSettings

WEIGHTS = ("*.safetensors", "*.bin")  # files of weights


def model_file(model: str) -> Path:
    """The model file for `lighteval custom`: openai_api.py for settings with `base_url`, else the backend's.

    Raises:
        CulturevalError: Both a server and a backend are named.
    """
    settings = with_base_model(read_model_settings(model))
    backend = settings.get("backend")
    if "base_url" not in settings:
        return Path(__file__).with_name("vllm.py" if backend == "vllm" else "hf.py")
    if backend:
        raise CulturevalError(f"{model} names a server (base_url), which is a backend itself: leave `backend` out.")
    return Path(__file__).with_name("openai_api.py")


def load_model(model: str) -> "LightevalModel":
    """Loads the model of `cultureval eval`; call it after LightEval's start-up is prepared."""
    loaded: LightevalModel = load_model_file(model, model_file(model))
    return loaded


def check_model(model: str, images: bool, likelihoods: bool, load: bool = True) -> CheckedModel:
    """Checks a model without loading its weights.

    Args:
        model: Hub id, folder, or YAML file with settings.
        images: Whether tasks show it images.
        likelihoods: Whether tasks need log-likelihoods.
        load: Whether to load configuration and tokenizer with transformers; else only settings and files are checked.

    Raises:
        CulturevalError: All problems, each with its remedy.
    """
    file = model_file(model)
    if file.name == "openai_api.py":
        from cultureval.models.server.settings import check_server

        return CheckedModel(file, no_likelihoods=check_server(model, likelihoods and load))
    _require_files(with_base_model(read_model_settings(model)))  # before transformers is imported
    from cultureval.models.settings import read_settings

    settings = read_settings(model)
    if not load:
        return CheckedModel(file)
    model_type, vision = _check_transformers(settings, with_vllm=file.name == "vllm.py")
    no_images = f"{settings.display_name()} takes text only: tasks with images need an image-text model."
    return CheckedModel(file, no_images=no_images if images and not vision else None, model_type=model_type)


def _require_files(settings: dict[str, Any]) -> None:
    """Checks that a model's folder has a configuration and weights, and an adapter's folder its configuration."""
    problems = ProblemList()
    with problems.collecting():
        if adapter := settings.get("adapter"):
            base_model(str(adapter))
    with problems.collecting():
        if name := str(settings.get("model_name") or settings.get("model") or ""):
            _require_model(name)
    problems.raise_if_any()


def _require_model(name: str) -> None:
    """Refuses a name that looks like a folder but has no model's configuration and weights."""
    path = Path(name).expanduser()
    if path.is_file():
        raise CulturevalError(
            f"{name!r} is a file. Give a model's folder, a hub id (org/name) or a YAML file; of a GGUF file, the "
            "address of llama.cpp's server (http://localhost:8080/v1#NAME)."
        )
    if not path.is_dir():
        if name.startswith((".", "/", "~")) or name.endswith("/") or name.count("/") > 1:
            raise CulturevalError(
                f"There is no model folder {name!r}. Give a folder, a hub id (org/name) or a YAML file."
            )
        return
    if not (path / "config.json").is_file():
        raise CulturevalError(f"The folder {name!r} has no config.json: it is not a transformers model.")
    if not any(found for kind in WEIGHTS for found in path.glob(kind)):
        raise CulturevalError(f"{name} has no weights (*.safetensors or *.bin). Give a complete checkpoint.")


def _check_transformers(settings: "HFModelSettings", with_vllm: bool) -> tuple[str, bool]:
    """Checks device or vLLM, configuration and tokenizer; returns the model's type and whether it reads images."""
    from cultureval.models import loading
    from cultureval.runtime.devices import choose_device

    problems = ProblemList()
    with problems.collecting():
        if with_vllm:
            from cultureval.models.vllm import require_vllm_settings
            from cultureval.runtime.servers.vllm_process import require_vllm

            all_of([require_vllm, partial(require_vllm_settings, settings)])
        else:
            choose_device(settings.device)
    with problems.collecting():
        config = loading.read_config(settings)
        all_of([partial(loading.quantisation_of, settings, config), partial(loading.read_tokenizer, settings, config)])
    problems.raise_if_any()
    return config.model_type, loading.is_vision(config)
