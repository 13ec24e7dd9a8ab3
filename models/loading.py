"""Load a model from its settings: its class, device and the identity that its journal keys contain."""

import inspect
import logging
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from jinja2.exceptions import TemplateSyntaxError
from safetensors import SafetensorError
from transformers import AutoConfig, AutoProcessor, AutoTokenizer, GenerationConfig, PreTrainedConfig
from transformers.utils import is_torchvision_available

from cultureval.models.adapters import put_on, read_adapter
from cultureval.models.memory import memory_limit
from cultureval.models.settings import HFModelSettings, is_local
from cultureval.models.template_errors import TEMPLATE_ERRORS
from cultureval.runtime.data.hub import cached_commit, is_offline
from cultureval.runtime.devices import choose_device
from cultureval.runtime.errors import CulturevalError, described, did_you_mean
from cultureval.runtime.extras import require_extra
from cultureval.runtime.interruption import TimeLimitReached, time_limit
from cultureval.runtime.model_settings import refuse_unknown
from cultureval.runtime.patches.bitsandbytes import quiet_products
from cultureval.runtime.patches.transformers import VIDEOS, class_names, processor_class, without_videos
from cultureval.runtime.smollm2 import SHORT
from cultureval.runtime.weight_files import fingerprint, missing_weights, surplus_layers

if TYPE_CHECKING:
    from transformers import BitsAndBytesConfig, PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin

logger = logging.getLogger(__name__)
Loaded = TypeVar("Loaded")
TEMPLATE_SECONDS = 10
TEMPLATE_BYTES = 2**29  # for one question, besides what the process holds
TEMPLATE_LETTERS = 2**20
TRIED = ("Which one?", "How often?")
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
        """All end-of-text tokens: the tokenizer's and those of the model's generation config."""
        configured = self.model.generation_config.eos_token_id if self.model.generation_config else None
        several = configured if isinstance(configured, list) else [configured]
        return sorted({token for token in [*several, self.tokenizer.eos_token_id] if token is not None})

    def start_ids(self) -> list[int]:
        """The prompt tokens used for an empty prompt: BOS, else an end-of-text token.

        Raises:
            CulturevalError: There is neither.
        """
        bos = self.tokenizer.bos_token_id
        found = self.end_ids()[:1] if bos is None else [bos]
        if not found:
            raise CulturevalError(
                f"{self.identity['name']} has neither a BOS nor an end-of-text token, which an empty prompt needs: "
                "set one in its tokenizer_config.json, or set another tokenizer in the settings."
            )
        return found


def load(settings: HFModelSettings) -> LoadedModel:
    """Load the model named in the settings.

    Raises:
        CulturevalError: It cannot be found, read or built; the message says what to do.
    """
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

    config = read_config(settings)
    vision = is_vision(config)
    reader = read_tokenizer(settings, config)
    tokenizer = reader.tokenizer if vision else reader
    tokenizer.padding_side = tokenizer.truncation_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model_class = AutoModelForImageTextToText if vision else AutoModelForCausalLM
    arguments = _model_arguments(settings, config)
    quiet_products()
    # cuDNN makes a new plan for every length of the keys: 2 ms a layer and token in bfloat16 (docs/speed.md).
    torch.backends.cuda.enable_cudnn_sdp(False)
    common = {"revision": settings.revision, "trust_remote_code": settings.trust_remote_code}
    source = _expanded(settings.model_name)
    read_weights = partial(model_class.from_pretrained, source, **common, **arguments, output_loading_info=True)
    model, report = _loaded(read_weights, settings.model_name)
    if missing := missing_weights(model, report):
        raise CulturevalError(f"{settings.model_name} {missing}. Give a complete checkpoint.")
    if surplus := surplus_layers(model, report):
        raise CulturevalError(f"{settings.model_name} {surplus}. Give the config.json that belongs to these weights.")
    if settings.adapter:
        model = put_on(model, read_adapter(settings.adapter), settings.merge_adapter)
    stops = own_stop_strings(model.generation_config)
    if stops:
        model.generation_config.stop_strings = None  # answers are cut at them here
    return LoadedModel(
        model=model.eval(),
        tokenizer=tokenizer,
        processor=reader if vision else None,
        identity=model_identity(settings),
        max_length=settings.max_length or longest_sequence(config),
        stops=stops,
    )


def own_stop_strings(config: GenerationConfig | None) -> list[str]:
    """The stop strings of a model's generation config, of which there may be one or several."""
    found = (config and config.stop_strings) or []
    return [text for text in ([found] if isinstance(found, str) else found) if text]


def read_generation_config(settings: HFModelSettings) -> GenerationConfig | None:
    """Read the generation config of a model; None where it has none."""
    try:
        return GenerationConfig.from_pretrained(_expanded(settings.model_name), revision=settings.revision)
    except OSError:
        return None


def read_config(settings: HFModelSettings) -> PreTrainedConfig:
    """Read the configuration of a model.

    Raises:
        CulturevalError: It cannot be read, or belongs to a model that does not continue a prompt.
    """
    common = {"revision": settings.revision, "trust_remote_code": settings.trust_remote_code}
    source = _expanded(settings.model_name)
    name = settings.model_name
    near = "" if is_local(name) else did_you_mean(name, [SHORT], cutoff=0.75).strip()
    also = f" Without a hub, `{SHORT}` is a small real model to try." if is_offline() and not is_local(name) else ""
    config = _loaded(lambda: AutoConfig.from_pretrained(source, **common), name, near and f"{near} ", also)
    _refuse_other_kinds(config, settings.model_name)
    return config


def read_tokenizer(settings: HFModelSettings, config: PreTrainedConfig) -> Any:
    """Read the tokenizer of a text model, or the processor of an image-text model.

    Raises:
        CulturevalError: It cannot be read.
    """
    source = _text_source(settings)
    # The revision is the model's: a tokenizer of another repository is read from its main branch.
    common = {
        "revision": "main" if settings.tokenizer else settings.revision,
        "trust_remote_code": settings.trust_remote_code,
    }
    read = partial(load_processor, config=config) if is_vision(config) else AutoTokenizer.from_pretrained
    remedy = " Set `tokenizer` to a folder or hub id that has one."
    found = _loaded(lambda: read(source, **common), source, "The tokenizer of ", remedy)
    if settings.chat_template != "off":
        require_readable_template(found, source)
    return found


def require_readable_template(writer: Any, source: str) -> None:
    """Refuses a chat template that is none, does not end, or loses questions; `Renderer` tries what others support.

    Args:
        writer: A tokenizer or processor.
        source: Its folder or hub id.

    Raises:
        CulturevalError: What is wrong with its template.
    """
    if not getattr(writer, "chat_template", None):
        return
    try:
        with time_limit(TEMPLATE_SECONDS), memory_limit(TEMPLATE_BYTES):
            others = _other_dialogues(writer)
            written = [_both_questions(writer, str)]
            if len({*written[0]}) == 1:
                written.append(_both_questions(writer, _text_part))
    except TimeLimitReached as error:
        raise _refused_template(source, f"takes more than {TEMPLATE_SECONDS} seconds for one question") from error
    except MemoryError as error:
        raise _refused_template(source, f"takes more than {TEMPLATE_BYTES >> 20} MiB for one question") from error
    except TemplateSyntaxError as error:
        raise _refused_template(source, f"has an error in line {error.lineno}: {error.message}") from error
    except SyntaxError as error:  # of the Python that jinja2 makes of it, as by a `break` outside a loop
        raise _refused_template(source, f"cannot be compiled: {error.msg}") from error
    except TEMPLATE_ERRORS:
        return
    if (longest := max(len(text) for texts in [others, *written] for text in texts)) > TEMPLATE_LETTERS:
        raise _refused_template(source, f"writes {longest:,} letters for one question")
    if len({*written[-1]}) == 1:
        raise _refused_template(source, "leaves out what the user asks, so that all prompts would be one")


def _refused_template(source: str, reason: str) -> CulturevalError:
    return CulturevalError(f"The chat template of {source} {reason}. Mend it, or set chat_template: off.")


def _both_questions(writer: Any, form: Callable[[str], Any]) -> list[str]:
    """Two questions as a chat template writes them, in whatever letters."""
    messages = [[{"role": "user", "content": form(question)}] for question in TRIED]
    return [str(writer.apply_chat_template(each, tokenize=False, add_generation_prompt=True)) for each in messages]


def _other_dialogues(writer: Any) -> list[str]:
    """A system prompt, few-shot examples and an image without reasoning, as far as a chat template takes them."""
    first, second = ({"role": "user", "content": text} for text in TRIED)
    answer = {"role": "assistant", "content": "This."}
    image = {"role": "user", "content": [{"type": "image"}, *_text_part(TRIED[0])]}
    options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True}
    if "enable_thinking" in str(writer.chat_template):
        options["enable_thinking"] = False
    written = []
    for messages in ([{"role": "system", "content": "Be brief."}, first], [first, answer, second], [image]):
        try:
            written.append(str(writer.apply_chat_template(messages, **options)))
        except MemoryError:
            raise
        except TEMPLATE_ERRORS:
            continue  # `Renderer` and the prompts say so, where it matters
    return written


def _text_part(text: str) -> list[dict[str, str]]:
    """A text as templates of vision models read it, some of them alone."""
    return [{"type": "text", "text": text}]


def _text_source(settings: HFModelSettings) -> str:
    return _expanded(settings.tokenizer or settings.model_name)


def is_vision(config: PreTrainedConfig) -> bool:
    """Whether a configuration belongs to an image-text-to-text model."""
    vision, text = class_names("IMAGE_TEXT_TO_TEXT"), class_names("CAUSAL_LM")
    for architecture in config.architectures or []:
        if architecture in vision.values():
            return True
        if architecture in text.values():
            return False
    return config.model_type in vision


def _refuse_other_kinds(config: PreTrainedConfig, name: str) -> None:
    """Refuse models that AutoModelForCausalLM loads, at least in part, though they do not continue a prompt."""
    causal = set(class_names("CAUSAL_LM").values())
    masked = set(class_names("MASKED_LM").values()) - causal
    if config.is_encoder_decoder or config.get_text_config(decoder=True).is_encoder_decoder:
        kind = "an encoder-decoder"
    elif masked.intersection(config.architectures or []):
        kind = "a masked language model"
    else:
        return
    raise CulturevalError(
        f"{name} is {kind} ({config.model_type}): only models that continue a prompt can be evaluated, "
        "that is causal language models and image-text-to-text models with a causal decoder."
    )


def longest_sequence(config: PreTrainedConfig) -> int:
    """The longest sequence of a model in tokens, 2048 where its configuration does not say (as in LightEval)."""
    text = config.get_text_config(decoder=True)
    names = ("n_positions", "max_position_embeddings", "n_ctx")
    return next((value for name in names if (value := getattr(text, name, None))), 2048)


def model_identity(settings: HFModelSettings) -> dict[str, Any]:
    """Name, commit or hash of the folder (also noted in the settings), tokenizer, and versions of the libraries."""
    text_source = _text_source(settings)
    if is_local(settings.model_name):
        settings.fingerprint = fingerprint(Path(_expanded(settings.model_name)))
    else:
        settings.resolved_revision = cached_commit(settings.model_name, "config.json", settings.revision)
    return {
        "name": settings.display_name(),
        **({"adapter": settings.adapter_identity()} if settings.adapter else {}),
        "revision": settings.resolved_revision,
        "fingerprint": settings.fingerprint,
        "tokenizer": fingerprint(Path(text_source))
        if settings.tokenizer and is_local(text_source)
        else text_source
        if settings.tokenizer
        else None,
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        # Images are resized by torchvision where it is installed, else by Pillow, with slightly different results.
        "torchvision": is_torchvision_available(),
    }


def _model_arguments(settings: HFModelSettings, config: PreTrainedConfig) -> dict[str, Any]:
    """Arguments of `from_pretrained` beyond the source."""
    arguments: dict[str, Any] = {"device_map": settings.device_map or choose_device(settings.device)}
    if settings.attn_implementation:
        arguments["attn_implementation"] = settings.attn_implementation
    if quantisation := quantisation_of(settings, config):
        arguments["quantization_config"] = quantisation
    if settings.dtype not in BITS:
        arguments["dtype"] = require_dtype(settings.dtype)
    return arguments


def quantisation_of(settings: HFModelSettings, config: PreTrainedConfig) -> "BitsAndBytesConfig | None":
    """The bitsandbytes quantisation; None without one, or if the checkpoint has its own configuration.

    Raises:
        CulturevalError: Unknown settings, bad values, or no bitsandbytes.
    """
    values = settings.quantisation or BITS.get(settings.dtype)
    if not values or hasattr(config, "quantization_config"):
        return None
    from transformers import BitsAndBytesConfig

    known = set(inspect.signature(BitsAndBytesConfig.__init__).parameters) - {"self", "kwargs"}
    refuse_unknown(values, known, "quantisation (transformers' BitsAndBytesConfig)")
    require_extra("quantised")
    try:
        return BitsAndBytesConfig(**values)
    except (TypeError, ValueError) as error:
        raise CulturevalError(f"quantisation of {settings.model_name} cannot be set: {error}") from error


def require_dtype(name: str) -> torch.dtype | str:
    """The torch dtype of a name; "auto" and quantisations stay names.

    Raises:
        CulturevalError: There is none.
    """
    if name in ("auto", *BITS):
        return name
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point or dtype.itemsize == 1:
        raise CulturevalError(
            f"No model can be loaded with the dtype {name!r}: use float32, bfloat16, float16, auto, 4bit or 8bit."
        )
    return dtype


def _loaded(read: Callable[[], Loaded], name: str, part: str = "", remedy: str = "") -> Loaded:
    try:
        return read()
    except ImportError as error:
        reason = str(error).strip().splitlines()[0]
        raise CulturevalError(f"{name} needs a package that is not installed: {reason}") from error
    except torch.OutOfMemoryError as error:
        raise CulturevalError(f"{name} does not fit on its device: set device_map: auto, or dtype: 8bit.") from error
    # RuntimeError, AssertionError: a missing or unsupported device.
    except (OSError, ValueError, RuntimeError, AssertionError, SafetensorError, StrictDataclassError) as error:
        what = name if is_local(name) else f"{name}, which is no folder here,"
        reason = " ".join(str(error).split()).rstrip(".")
        raise CulturevalError(f"{part}{what} cannot be loaded: {reason}.{remedy}") from error
    except (pickle.UnpicklingError, EOFError) as error:
        raise CulturevalError(
            f"{part}{name} cannot be loaded: its weights are a pickle that holds more than tensors, or is cut short. "
            "Such files can run code, so they are not read: give weights in safetensors."
        ) from error
    # How transformers meets unknown names in config.json: of activations, of rotary embeddings, of dtypes.
    except (KeyError, AttributeError, TypeError) as error:
        raise CulturevalError(
            f"{part}{name} cannot be loaded ({described(error)}). Correct its config.json."
        ) from error


def _expanded(name: str) -> str:
    return str(Path(name).expanduser()) if is_local(name) else name


def load_processor(source: str, config: PreTrainedConfig, **options: Any) -> "ProcessorMixin":
    """A model's own processor, without its video processor if that cannot be loaded.

    Args:
        source: Hub id or folder.
        **options: For `from_pretrained`.

    Raises:
        ImportError, OSError, ValueError: It cannot be loaded without videos either.
    """
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
