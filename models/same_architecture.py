"""The next checkpoint of a sweep: its weights are read into the model of the run before, if nothing else differs."""

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedConfig
from transformers.conversion_mapping import get_checkpoint_conversion_mapping
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file
from transformers.utils.hub import get_checkpoint_shard_files

from cultureval.models.adapters import CONFIG as ADAPTER
from cultureval.models.scoring.prefix_cache import longest_reusable
from cultureval.models.settings import HFModelSettings
from cultureval.runtime import sweeps

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel

NAMES = {"_name_or_path", "transformers_version", "_from_model_config"}  # entries of a config that change nothing


def facts_of(settings: HFModelSettings, config: PreTrainedConfig, generation: "GenerationConfig | None") -> Any:
    """All that a model without its weights depends on; two equal ones can have the same modules."""
    configs = [part and {k: v for k, v in part.to_dict().items() if k not in NAMES} for part in (config, generation)]
    chosen = ("dtype", "device", "device_map", "adapter", "attn_implementation", "trust_remote_code")
    return [*configs, {name: getattr(settings, name) for name in chosen}]


def keep(model: "PreTrainedModel", facts: Any) -> None:
    """Keeps a plain model for the next run: text alone, unquantised, on one device, no adapter, no code of its own."""
    config, _, chosen = facts
    ours = not (chosen["adapter"] or chosen["device_map"] or chosen["trust_remote_code"] or "vision_config" in config)
    whole = not getattr(model, "is_quantized", False) and not getattr(model, "_hf_peft_config_loaded", False)
    # Some rotary embeddings remember the longest prompt; some checkpoints name or shape weights in another way.
    stateless = longest_reusable(model) is None and get_checkpoint_conversion_mapping(model.config.model_type) is None
    if ours and whole and stateless:
        sweeps.keep("model", facts, model)


@torch.no_grad()
def with_weights(model: "PreTrainedModel | None", name: str, settings: HFModelSettings) -> "PreTrainedModel | None":
    """The model with the weights of a checkpoint in safetensors; None unless it has exactly the model's tensors.

    After None the model is half-read and must not be used.
    """
    if model is None:
        return None
    saved = model.state_dict(keep_vars=True)
    first = {id(tensor): key for key, tensor in reversed(saved.items())}  # of tied weights the first name
    own = {key: saved[key] for key in first.values()}
    try:
        for file in _files(name, settings.revision):
            with safe_open(file, "pt", device=str(model.device)) as part:
                for key in part.keys():
                    tensor, target = part.get_tensor(key), own.pop(key)
                    if tensor.shape != target.shape or settings.dtype == "auto" and tensor.dtype != target.dtype:
                        return None
                    target.copy_(tensor)
    except (KeyError, OSError, ValueError, SafetensorError):  # a name that is not the model's; no file, or a broken one
        return None
    return None if own else model


def _files(name: str, revision: str) -> list[str]:
    """The files of a checkpoint in safetensors, one or shards; an OSError without, or with an adapter beside them."""
    find = partial(cached_file, name, revision=revision, _raise_exceptions_for_missing_entries=False)
    if find(ADAPTER):
        raise OSError(ADAPTER)
    if found := find(SAFE_WEIGHTS_NAME):
        return [found]
    index = cached_file(name, SAFE_WEIGHTS_INDEX_NAME, revision=revision)
    return get_checkpoint_shard_files(name, index, revision=revision)[0]
