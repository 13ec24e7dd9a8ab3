"""Settings and files that only loading uses, checked before: devices, attention, the configuration of generation."""

import copy
import json
from functools import partial
from pathlib import Path

import torch
import transformers

from cultureval.models.loading import is_vision
from cultureval.models.settings import HFModelSettings
from cultureval.runtime.devices import choose_device
from cultureval.runtime.errors import CulturevalError, described

SPREADS = ("auto", "balanced", "balanced_low_0", "sequential")  # accelerate's ways to spread a model over devices
GENERATION_CONFIG = "generation_config.json"
TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id")


def require_devices(settings: HFModelSettings) -> None:
    """Checks the devices of `device_map`, else `device`.

    Raises:
        CulturevalError: One is neither on this machine nor a way to spread a model.
    """
    given = settings.device_map
    if not given:
        choose_device(settings.device)
    known, devices = (("disk",), given.values()) if isinstance(given, dict) else (SPREADS, [given])
    for device in devices:
        if device is None or device in known:
            continue
        try:
            choose_device(f"cuda:{device}" if isinstance(device, int) else device)
        except CulturevalError as error:
            more = f" Or spread the model: {', '.join(SPREADS)}." if known == SPREADS else ""
            raise CulturevalError(f"device_map: {error}{more}") from error


def require_attention(settings: HFModelSettings, config: transformers.PreTrainedConfig) -> None:
    """Checks that the model can run with `attn_implementation`, by building it without weights.

    Raises:
        CulturevalError: It cannot, or there is no such attention.
    """
    name = settings.attn_implementation
    if name is None or "/" in name:  # a kernel of the hub is fetched when the model loads
        return
    kind = transformers.AutoModelForImageTextToText if is_vision(config) else transformers.AutoModelForCausalLM
    build = partial(kind.from_config, trust_remote_code=settings.trust_remote_code)
    try:
        with torch.device("meta"):
            build(copy.deepcopy(config), attn_implementation=name)
    except Exception as error:  # of many kinds: for names, missing packages, what the architecture has not
        reason = " ".join(str(error).split()).rstrip(".")
        raise CulturevalError(
            f"{settings.model_name} cannot run with attn_implementation {name!r}: {reason}."
        ) from error


def require_generation_config(name: str, folder: Path) -> None:
    """Checks the configuration of generation, which transformers leaves out without a word where it is no JSON.

    Args:
        folder: Its folder; such a file need not be in it.

    Raises:
        CulturevalError: It is not an object of JSON, or has values that generation cannot take.
    """
    file = folder / GENERATION_CONFIG
    if not file.is_file():
        return
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("expected an object")
        for token in TOKENS:
            given = content.get(token)
            if not all(type(one) is int for one in (given if isinstance(given, list) else [given]) if one is not None):
                raise ValueError(f"{token} is {given!r}, which is no number of a token")
        transformers.GenerationConfig.from_dict(content)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OSError) as error:
        raise CulturevalError(
            f"{name}: {GENERATION_CONFIG} cannot be read ({described(error)}). Mend it, or take it out of the folder."
        ) from error
