"""Everything that can be known of a model before its weights load: settings, files, device, server."""

import json
import struct
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.models.adapters import read_adapter, with_base_model
from cultureval.models.choice import model_file
from cultureval.models.weight_shapes import require_fitting_depth, require_fitting_shapes, safetensors_header
from cultureval.runtime.data.hub import cached_file, is_offline
from cultureval.runtime.errors import CulturevalError, ProblemList, all_of
from cultureval.runtime.model_settings import CheckedModel, read_model_settings
from cultureval.runtime.printing import print_note
from cultureval.runtime.servers.providers import providers

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

    from cultureval.models.settings import HFModelSettings

WEIGHTS = (".safetensors", ".bin")
STARTS = tuple(f"{name}{end}" for name in ("model.safetensors", "pytorch_model.bin") for end in ("", ".index.json"))
LFS_POINTER = b"version https://git-lfs"


def check_model(
    model: str, images: bool, likelihoods: bool, labels: tuple[tuple[str, ...], ...] = (), answers: int = 1
) -> CheckedModel:
    """Checks a model without loading its weights.

    Args:
        model: Hub id, folder, or YAML file with settings.
        images: Whether tasks show it images.
        likelihoods: Whether tasks need log-likelihoods.
        labels: Labels of options that these score, with which a server is asked what it can do.
        answers: How many answers to one question tasks need.

    Raises:
        CulturevalError: All problems that were found, each with what to do.
    """
    file = model_file(model)
    if file.name == "openai_api.py":
        from cultureval.models.server.settings import check_server

        return CheckedModel(file, no_likelihoods=check_server(model, likelihoods))
    _refuse_costs(model)
    _tell_of_hub(model)
    with_vllm = [] if file.name == "hf.py" else [partial(_check_vllm, model)]
    no_images, model_type = _check_transformers(model, images, with_vllm)
    return CheckedModel(file, no_images=no_images, model_type=model_type)


def _check_vllm(model: str) -> None:
    """Checks that vLLM is there and knows the settings."""
    from cultureval.models.server.vllm_options import require_vllm_settings
    from cultureval.models.settings import parse_settings
    from cultureval.runtime.servers.vllm_process import require_vllm

    all_of([require_vllm, lambda: require_vllm_settings(parse_settings(model))])


def _check_transformers(model: str, images: bool, more: Iterable[Callable[[], object]] = ()) -> tuple[str | None, str]:
    """Returns why tasks with images cannot be run, as a sentence, and the model's type.

    Args:
        images: Whether tasks show it images.
        more: Checks of another backend, if the settings can be read.
    """
    from cultureval.models import load_checks, loading
    from cultureval.models.settings import parse_settings, require_model

    problems, settings, config = ProblemList(), None, None
    with problems.collecting():
        settings = parse_settings(model)
    with problems.collecting():
        _require_files(model)
    if settings is not None:
        with problems.collecting():
            all_of([*more, partial(_refuse_settings_of_vllm, settings, bool(more))])
        checks: list[Callable[[], object]] = [partial(loading.require_dtype, settings.dtype)]
        here = model_file(model).name != "vllm.py"
        checks += [partial(load_checks.require_devices, settings)] if here else []
        if settings.adapter:
            checks.append(partial(read_adapter, settings.adapter))
        with problems.collecting():
            require_model(settings.model_name)  # said once, above; what follows would say it again in other words
            config = loading.read_config(settings)
            checks.append(partial(loading.quantisation_of, settings, config))
            checks.append(partial(loading.read_tokenizer, settings, config))
            checks += [partial(load_checks.require_attention, settings, config)] if here else []
            checks += _checks_of_files(settings, config)
        with problems.collecting():
            all_of(checks)
    problems.raise_if_any()
    assert config is not None and settings is not None  # or their problems have been raised
    if not images or loading.is_vision(config):
        return None, config.model_type
    return f"{settings.display_name()} takes text only: tasks with images need an image-text model.", config.model_type


def _checks_of_files(settings: "HFModelSettings", config: "PreTrainedConfig") -> list[Callable[[], object]]:
    """Of a model's files that are on this machine, against its configuration."""
    from cultureval.models.load_checks import require_generation_config

    name, folder = settings.model_name, weights_folder(settings.model_name, settings.revision)
    if folder is None:
        return []
    return [
        partial(require_generation_config, name, folder),
        partial(require_fitting_depth, name, folder, config),
        partial(require_fitting_shapes, name, folder, config),
    ]


def _refuse_settings_of_vllm(settings: "HFModelSettings", with_vllm: bool) -> None:
    """Refuses settings of vLLM where it has no part in the run."""
    if with_vllm:
        return
    given = [name for name in ("tensor_parallel", "data_parallel", "vllm_args") if name in settings.model_fields_set]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise CulturevalError(f"{flags}: these are settings of vLLM, which this run does not use; add --backend vllm.")


def _require_files(model: str) -> None:
    """Checks the configuration and the weights, also where other settings are wrong."""
    from cultureval.models.settings import require_model

    given = with_base_model(read_model_settings(model))
    name, revision = str(given.get("model_name") or given.get("model") or ""), str(given.get("revision") or "main")
    if name:
        all_of([partial(require_model, name), partial(require_weights, name, revision)])


def require_weights(name: str, revision: str = "main") -> None:
    """Checks that a model's files of weights are there and whole; of a hub's model that is not in the cache, the list.

    Raises:
        CulturevalError: There are none, some are missing, or some end early.
    """
    from cultureval.models.settings import is_local, looks_like_path

    if not is_local(name) and not looks_like_path(name) and not is_offline():
        return _require_listed(name, revision)
    folder = weights_folder(name, revision)
    if folder is None:
        return  # `require_model`, or reading the configuration, has said so
    files = [path for path in sorted(folder.iterdir()) if path.name.endswith(WEIGHTS) and path.is_file()]
    if not files:
        raise CulturevalError(
            f"{name} has no weights (*.safetensors or *.bin) in the folder {str(folder)!r}. Give a complete checkpoint."
        )
    if not any((folder / start).is_file() for start in STARTS) and not _names_its_weights(folder):
        raise CulturevalError(
            f"{name} has weights ({files[0].name}) without one of the files that transformers begins with: "
            f"{', '.join(STARTS)}. Give a complete checkpoint."
        )
    missing = sorted(_indexed(folder) - {path.name for path in files})
    broken = [f"{path.name} {reason}" for path in files if (reason := _broken(path))]
    if missing or broken:
        reasons = [f"these files of weights are missing: {', '.join(missing)}"] if missing else []
        raise CulturevalError(f"{name}: {'; '.join([*reasons, *broken])}. Copy or download them again.")


def _names_its_weights(folder: Path) -> bool:
    try:
        return '"transformers_weights"' in (folder / "config.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return True  # reading the configuration says what is wrong


def weights_folder(name: str, revision: str = "main") -> Path | None:
    """The folder of a model, or that of the hub's cache; None where it is not on this machine."""
    from cultureval.models.settings import is_local, looks_like_path

    if is_local(name):
        return Path(name).expanduser()
    config = None if looks_like_path(name) else cached_file(name, "config.json", revision)
    return config.parent if config else None


def _require_listed(name: str, revision: str) -> None:
    import httpx
    from huggingface_hub import HfApi

    try:
        files = HfApi().model_info(name, revision=revision).siblings or []
    except (httpx.HTTPError, OSError):  # reading the configuration has said so
        return
    if not any(file.rfilename.endswith(WEIGHTS) for file in files):
        raise CulturevalError(f"{name} has no weights (*.safetensors or *.bin) on the hub. Name another model.")


def _indexed(folder: Path) -> set[str]:
    """The files that the folder's index of weights names."""
    for index in (folder / "model.safetensors.index.json", folder / "pytorch_model.bin.index.json"):
        if index.is_file():
            try:
                return set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise CulturevalError(f"{index} is not an index of weights ({error}). Download it again.") from error
    return set()


def _broken(path: Path) -> str | None:
    """What is wrong with a file of weights, as a clause, read from its head alone."""
    with path.open("rb") as file:
        head = file.read(len(LFS_POINTER))
        if head == LFS_POINTER:
            return "is a Git LFS pointer instead of the weights (git lfs pull)"
        if path.suffix == ".bin":
            return (
                None if zipfile.is_zipfile(path) or head[:1] == b"\x80" else "is not a file of torch, or is cut short"
            )
        size = path.stat().st_size
        try:
            (length,) = struct.unpack("<Q", head[:8])
            whole = 8 + length + max(entry["data_offsets"][1] for entry in safetensors_header(path).values())
        except (struct.error, ValueError):
            return "is not a safetensors file, or is cut short"
    return None if size >= whole else f"is cut short ({size} of {whole} bytes)"


def _refuse_costs(model: str) -> None:
    """Refuses options of paid servers for a model that runs here."""
    given = [name for name in ("budget", "dry_run") if name in read_model_settings(model)]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise CulturevalError(
            f"{flags}: for models on servers, whose answers are paid by the token; {model} runs here."
        )


def _tell_of_hub(model: str) -> None:
    """Says that a name that begins as a provider's is the hub's, before it is downloaded."""
    from cultureval.models.settings import is_local

    prefix, _, name = model.partition("/")
    if name and prefix in providers() and not is_local(model) and not cached_file(model, "config.json"):
        print_note(f"{model} is the hub's model; {prefix}:{name} would be asked of {providers()[prefix].title}.")
