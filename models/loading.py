"""Loads a model from its settings, on its device, with the identity for journal keys."""

import logging
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import transformers
from transformers import AutoConfig, AutoProcessor, AutoTokenizer, GenerationConfig, PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)
from transformers.utils import is_torchvision_available

from cultureval.models import same_architecture
from cultureval.models.adapters import adapter_identity, put_on
from cultureval.models.settings import HFModelSettings, is_local
from cultureval.runtime import sweeps
from cultureval.runtime.data.hub import cached_commit, is_offline
from cultureval.runtime.devices import choose_device
from cultureval.runtime.errors import CulturevalError, described
from cultureval.runtime.extras import require_extra
from cultureval.runtime.patches.transformers import VIDEOS, processor_class, without_videos
from cultureval.runtime.printing import print_note
from cultureval.runtime.smollm2 import SHORT
from cultureval.runtime.weight_files import fingerprint, missing_weights

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig, PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin

logger = logging.getLogger(__name__)
Loaded = TypeVar("Loaded")
BITS = {"4bit": {"load_in_4bit": True, "bnb_4bit_compute_dtype": "bfloat16"}, "8bit": {"load_in_8bit": True}}


@dataclass
class LoadedModel:
    """A loaded model.

    Attributes:
        model: In evaluation mode, on its device.
        tokenizer: Pads and truncates on the left.
        processor: Of an image-text-to-text model, else None.
        identity: Name, commit or hash of the folder, and versions of the libraries; part of every answer's key.
        max_length: Longest sequence in tokens.
        stops: Stop strings of the model's generation config.
    """

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    processor: "ProcessorMixin | None"
    identity: dict[str, Any]
    max_length: int
    stops: list[str] = field(default_factory=list)

    def end_ids(self) -> list[int]:
        """All end-of-text tokens, of the tokenizer and of the model's generation config."""
        configured = self.model.generation_config.eos_token_id if self.model.generation_config else None
        several = configured if isinstance(configured, list) else [configured]
        return sorted({token for token in [*several, self.tokenizer.eos_token_id] if token is not None})

    def not_numbers(self) -> CulturevalError:
        """The error where logits are NaN."""
        return CulturevalError(
            f"{self.identity['name']} gives logits that are not numbers: its weights contain such values, or the "
            f"range of {self.model.dtype} is too small; try dtype: bfloat16 or float32."
        )

    def start_ids(self) -> list[int]:
        """The tokens of an empty prompt: BOS, else an end-of-text token; a CulturevalError without both."""
        bos = self.tokenizer.bos_token_id
        found = self.end_ids()[:1] if bos is None else [bos]
        if not found:
            raise CulturevalError(
                f"{self.identity['name']} has neither a BOS nor an end-of-text token, which an empty prompt needs: "
                "set one in its tokenizer_config.json, or set another tokenizer in the settings."
            )
        return found


def load(settings: HFModelSettings) -> LoadedModel:
    """Loads the model of the settings; a CulturevalError with a remedy if that fails."""
    config = read_config(settings)
    vision, name = is_vision(config), settings.model_name
    reader = read_tokenizer(settings, config)
    tokenizer = reader.tokenizer if vision else reader
    tokenizer.padding_side = tokenizer.truncation_side = "left"
    if tokenizer.pad_token is None:  # any token: it is masked
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.bos_token or tokenizer.convert_ids_to_tokens(0)
    # cuDNN plans anew for every length of the keys, which costs 2 ms a layer and token in bfloat16.
    torch.backends.cuda.enable_cudnn_sdp(False)
    # bitsandbytes warns about a cast at every product in 8 bits.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    generation = read_generation_config(settings)
    facts = same_architecture.facts_of(settings, config, generation)
    model = same_architecture.with_weights(sweeps.take("model", facts), _expanded(name), settings)
    if model is not None:
        print_note(f"{name}: its weights were read into the model of the run before.")
    else:
        model = _loaded_anew(settings, config)
    same_architecture.keep(model, facts)
    stops = configured_stop_strings(generation or model.generation_config)
    if stops:
        model.generation_config.stop_strings = None  # our code cuts answers at them
    return LoadedModel(
        model=model.eval(),
        tokenizer=tokenizer,
        processor=reader if vision else None,
        identity=model_identity(settings),
        max_length=settings.max_length or longest_sequence(config),
        stops=stops,
    )


def _loaded_anew(settings: HFModelSettings, config: PreTrainedConfig) -> "PreTrainedModel":
    """The model by transformers, with its adapter."""
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    model_class, name = AutoModelForImageTextToText if is_vision(config) else AutoModelForCausalLM, settings.model_name
    arguments = _of_hub(settings) | _model_arguments(settings, config)
    read_weights = partial(model_class.from_pretrained, _expanded(name), **arguments, output_loading_info=True)
    model, report = _loaded(read_weights, name)
    if missing := missing_weights(model, report):
        raise CulturevalError(f"{name} {missing}. Give a complete checkpoint.")
    if settings.adapter:
        put_on(model, settings.adapter)
    return model


def configured_stop_strings(config: GenerationConfig | None) -> list[str]:
    """The stop strings of a model's generation config."""
    found = (config and config.stop_strings) or []
    return [text for text in ([found] if isinstance(found, str) else found) if text]


def read_generation_config(settings: HFModelSettings) -> GenerationConfig | None:
    """The generation config of a model; None where it has none."""
    try:
        return GenerationConfig.from_pretrained(_expanded(settings.model_name), revision=settings.revision)
    except OSError:
        return None


def read_config(settings: HFModelSettings) -> PreTrainedConfig:
    """A model's configuration; a CulturevalError if it cannot be read, or the model is not causal."""
    name = settings.model_name
    hint = f" Without a hub, `{SHORT}` is a small real model to try." if is_offline() and not is_local(name) else ""
    config = _loaded(lambda: AutoConfig.from_pretrained(_expanded(name), **_of_hub(settings)), name, remedy=hint)
    # AutoModelForCausalLM would load these models too.
    masked = set(MODEL_FOR_MASKED_LM_MAPPING_NAMES.values()) - set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    encodes = config.is_encoder_decoder or config.get_text_config(decoder=True).is_encoder_decoder
    if encodes or masked.intersection(config.architectures or []):
        kind = "an encoder-decoder" if encodes else "a masked language model"
        raise CulturevalError(
            f"{name} is {kind} ({config.model_type}). Only models that continue a prompt are evaluated."
        )
    return config


def read_tokenizer(settings: HFModelSettings, config: PreTrainedConfig) -> Any:
    """The tokenizer of a text model, or the processor of an image-text model; a CulturevalError without one."""
    source = _text_source(settings)
    # `revision` is the model's: another repository's tokenizer is read from its main branch.
    common = _of_hub(settings) | ({"revision": "main"} if settings.tokenizer else {})
    read = partial(load_processor, config=config) if is_vision(config) else AutoTokenizer.from_pretrained
    remedy = " Set `tokenizer` to a folder or hub id that has one."
    return _loaded(lambda: read(source, **common), source, "The tokenizer of ", remedy)


def _of_hub(settings: HFModelSettings) -> dict[str, Any]:
    return {"revision": settings.revision, "trust_remote_code": settings.trust_remote_code}


def _text_source(settings: HFModelSettings) -> str:
    return _expanded(settings.tokenizer or settings.model_name)


def is_vision(config: PreTrainedConfig) -> bool:
    """Whether a configuration belongs to an image-text-to-text model."""
    for architecture in config.architectures or []:
        if architecture in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES.values():
            return True
        if architecture in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
            return False
    return config.model_type in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES


def longest_sequence(config: PreTrainedConfig) -> int:
    """The longest sequence of a model in tokens; 2048 if its configuration has none, as in LightEval."""
    text = config.get_text_config(decoder=True)
    names = ("n_positions", "max_position_embeddings", "n_ctx")
    return next((value for name in names if (value := getattr(text, name, None))), 2048)


def model_identity(settings: HFModelSettings) -> dict[str, Any]:
    """Name, commit or folder's hash (also set in the settings), tokenizer, and versions of libraries."""
    tokenizer = settings.tokenizer and _text_source(settings)
    if is_local(settings.model_name):
        settings.fingerprint = fingerprint(Path(_expanded(settings.model_name)))
    else:
        settings.resolved_revision = cached_commit(settings.model_name, "config.json", settings.revision)
    return {
        "name": settings.display_name(),
        **({"adapter": adapter_identity(settings.adapter)} if settings.adapter else {}),
        "revision": settings.resolved_revision,
        "fingerprint": settings.fingerprint,
        "tokenizer": fingerprint(Path(tokenizer)) if tokenizer and is_local(tokenizer) else tokenizer,
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        # Images are resized by torchvision if it is installed, else by Pillow, with slightly different results.
        "torchvision": is_torchvision_available(),
    }


def _model_arguments(settings: HFModelSettings, config: PreTrainedConfig) -> dict[str, Any]:
    """Further arguments of `from_pretrained`."""
    arguments = {
        "device_map": settings.device_map or choose_device(settings.device),
        "attn_implementation": settings.attn_implementation,
        "quantization_config": quantisation_of(settings, config),
        "dtype": None if settings.dtype in BITS else settings.dtype,
    }
    return {name: value for name, value in arguments.items() if value is not None}


def quantisation_of(settings: HFModelSettings, config: PreTrainedConfig) -> "BitsAndBytesConfig | None":
    """The quantisation in 4 or 8 bits (by bitsandbytes); None without, or if the checkpoint is quantised."""
    values = BITS.get(settings.dtype)
    if not values or hasattr(config, "quantization_config"):
        return None
    from transformers import BitsAndBytesConfig

    require_extra("quantised")
    return BitsAndBytesConfig(**values)


def _loaded(read: Callable[[], Loaded], name: str, part: str = "", remedy: str = "") -> Loaded:
    """The result of `read`; its errors become a CulturevalError."""
    try:
        return read()
    except torch.OutOfMemoryError as error:
        raise CulturevalError(f"{name} does not fit on its device: set device_map: auto, or dtype: 8bit.") from error
    except (pickle.UnpicklingError, EOFError) as error:
        raise CulturevalError(
            f"{part}{name} cannot be loaded: its weights are cut short, or a pickle that could run code. Give weights "
            "in safetensors."
        ) from error
    except Exception as error:  # transformers' errors about files, shapes, devices, names in config.json
        shown = name if is_local(name) else f"{name}, which is no folder here,"
        reason = described(error).rstrip(".")
        raise CulturevalError(f"{part}{shown} cannot be loaded: {reason}.{remedy}") from error


def _expanded(name: str) -> str:
    return str(Path(name).expanduser()) if is_local(name) else name


def load_processor(source: str, config: PreTrainedConfig, **options: Any) -> "ProcessorMixin":
    """A model's processor (by `from_pretrained` with options), without a video processor that cannot load."""
    try:
        return AutoProcessor.from_pretrained(source, **options)
    except (ImportError, OSError, ValueError) as error:
        kind = processor_class(config.model_type)
        if kind is None or VIDEOS not in kind.get_attributes():
            raise
        logger.info("%s: loaded for images only, without videos (%s)", source, str(error).strip().splitlines()[0])
        try:
            return without_videos(kind).from_pretrained(source, **options)
        except (ImportError, OSError, ValueError):
            raise error from None
