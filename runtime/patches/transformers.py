"""What we change in transformers, and what we use of it that is not public."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from cultureval.runtime.patches.table import expect, patched, source_of

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel, ProcessorMixin

VIDEOS = "video_processor"
Head = Literal["CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MASKED_LM"]


def class_names(head: Head) -> Mapping[str, str]:
    """Model type -> name of its class with this head, for all types of transformers."""
    from transformers.models.auto import modeling_auto

    return getattr(modeling_auto, f"MODEL_FOR_{head}_MAPPING_NAMES")


def processor_class(model_type: str) -> "type[ProcessorMixin] | None":
    """The class of a model type's processor; None where transformers knows none."""
    import transformers
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

    return getattr(transformers, PROCESSOR_MAPPING_NAMES.get(model_type) or "", None)


def without_videos(kind: "type[ProcessorMixin]") -> "type[ProcessorMixin]":
    """A processor class without its video processor, the only part that needs torchvision; nothing else changes."""
    parts = kind.get_attributes()

    class WithoutVideos(kind):  # type: ignore[misc, valid-type]
        # SmolVLM's processor reads these two even without videos.
        video_processor = SimpleNamespace(num_frames=None, fps=None)

        @classmethod
        def get_attributes(cls) -> list[str]:
            return [part for part in parts if part != VIDEOS]

        @classmethod
        def from_args_and_dict(cls, args: Sequence[Any], *settings: Any, **more: Any) -> "ProcessorMixin":
            found = iter(args)
            complete = [None if part == VIDEOS else next(found) for part in parts]
            return super().from_args_and_dict(complete, *settings, **more)

    WithoutVideos.__name__ = kind.__name__  # `save_pretrained` writes it into its files
    return WithoutVideos


def attention_of(model: "PreTrainedModel") -> str:
    """The attention that a model's decoder runs with, such as sdpa, as transformers resolved it."""
    return model.config.get_text_config(decoder=True)._attn_implementation or ""


def loaded_facts(model: "PreTrainedModel") -> dict[str, Any]:
    """What a model of transformers was resolved to: fields of the record of a model (docs/results.md)."""
    quantised = getattr(model.config, "quantization_config", None)
    return {
        "model_class": type(model).__name__,
        "parameters": model.num_parameters(),
        "dtype": str(model.dtype).removeprefix("torch."),
        "quantisation": str(getattr(quantised, "quant_method", quantised or "")),
        "devices": sorted({str(parameter.device) for parameter in model.parameters()}),
        "attention": attention_of(model),
    }


def keeps_states(model: "PreTrainedModel") -> bool:
    """Whether a model carries states from token to token beside keys and values, as Mamba does."""
    return model._is_stateful


def rope_offset(model: "PreTrainedModel") -> int:
    """How far M-RoPE positions after the images lag behind the token count, once a prompt has been fed."""
    # Qwen-VL models keep the offset in `rope_deltas`; for others it is 0.
    deltas = getattr(getattr(model, "model", model), "rope_deltas", None)
    return 0 if deltas is None else int(deltas.flatten()[0])


def keep_columns(cache: "DynamicCache", columns: Sequence[int]) -> None:
    """Keeps the keys and values of some tokens (indices from 0, in order) in every layer of a prompt's cache."""
    import torch

    places = torch.tensor(list(columns), dtype=torch.long)
    for layer in cache.layers:
        if layer.is_initialized and len(places) < layer.keys.shape[-2]:
            index = places.to(layer.keys.device)
            layer.keys, layer.values = layer.keys[..., index, :], layer.values[..., index, :]


@contextmanager
def keys_not_repeated() -> Iterator[None]:
    """A context in which attention on a CPU gets the keys and values that several query heads share once.

    Under a mask, transformers copies them for every head of every token, since PyTorch's kernels for CUDA read no
    shared ones there; those for CPUs do.
    """
    from transformers.integrations import sdpa_attention

    stock = sdpa_attention.use_gqa_in_sdpa
    sdpa_attention.use_gqa_in_sdpa = lambda mask, key, value: stock(
        None if key.device.type == "cpu" else mask, key, value
    )
    try:
        yield
    finally:
        sdpa_attention.use_gqa_in_sdpa = stock


@patched(
    "transformers",
    "transformers.models.auto.modeling_auto.MODEL_FOR_*_MAPPING_NAMES, processing_auto.PROCESSOR_MAPPING_NAMES",
    "The Auto classes also load models of other kinds, with random heads: the names tell them apart.",
)
def _names_are_listed() -> None:
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

    found = (
        class_names("CAUSAL_LM").get("llama"),
        class_names("IMAGE_TEXT_TO_TEXT").get("llava"),
        class_names("MASKED_LM").get("bert"),
        PROCESSOR_MAPPING_NAMES.get("llava"),
    )
    expected = ("LlamaForCausalLM", "LlavaForConditionalGeneration", "BertForMaskedLM", "LlavaProcessor")
    expect(found == expected, f"transformers lists its classes in another way: it has {found}")


@patched(
    "transformers",
    "transformers.ProcessorMixin.get_attributes, from_args_and_dict",
    "Processors of images that also read videos cannot be loaded without torchvision.",
)
def _videos_need_torchvision() -> None:
    import transformers
    from transformers.utils import is_torchvision_available

    kind = transformers.Qwen2VLProcessor
    expect(VIDEOS in kind.get_attributes(), "transformers' processors no longer name their video processor")
    expect(VIDEOS not in without_videos(kind).get_attributes(), "a processor's parts can no longer be left out")
    source = source_of("transformers.processing_utils")
    expect("cls.from_args_and_dict(args, " in source, "transformers builds processors from their parts in another way")
    if is_torchvision_available():
        return
    try:
        transformers.Qwen2VLVideoProcessor()
    except ImportError:
        return
    expect(False, "transformers' processors of videos no longer need torchvision: load processors as they are")


@patched(
    "transformers",
    "transformers.Qwen2VLModel.rope_deltas (and of later Qwen-VL models)",
    "Positions after images are not the number of tokens; scoring goes on from a cached prompt.",
)
def _m_rope_leaves_its_offset() -> None:
    source = source_of("transformers.models.qwen2_vl.modeling_qwen2_vl")
    expect("self.rope_deltas = rope_deltas" in source, "Qwen2-VL keeps the offset of its positions elsewhere")


@patched(
    "transformers",
    "transformers.PreTrainedConfig._attn_implementation",
    "The record of a run names the attention that was used, which transformers chooses where nobody did.",
)
def _attention_is_resolved() -> None:
    from transformers import AutoModelForCausalLM, LlamaConfig

    small = {"vocab_size": 8, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = AutoModelForCausalLM.from_config(LlamaConfig(**small, intermediate_size=8), attn_implementation="eager")
    expect(attention_of(model) == "eager", "transformers keeps the attention that it resolved elsewhere")


@patched(
    "transformers",
    "transformers.PreTrainedModel._is_stateful",
    "Choices that are packed after one prompt would share the states of models like Mamba.",
)
def _states_are_told() -> None:
    from transformers import LlamaForCausalLM, MambaForCausalLM

    expect(
        (LlamaForCausalLM._is_stateful, MambaForCausalLM._is_stateful) == (False, True),
        "transformers tells models with recurrent states in another way",
    )


@patched(
    "transformers",
    "transformers.integrations.sdpa_attention.use_gqa_in_sdpa",
    "On a CPU, copies of keys and values for every query head take most of the time of generated answers.",
)
def _keys_are_repeated_under_masks() -> None:
    import torch
    from transformers.integrations import sdpa_attention

    states, mask = torch.zeros(1, 1, 1, 8), torch.zeros(1, 1, 1, 1)
    repeats = "if not use_gqa_in_sdpa(attention_mask, key, value):"
    expect(
        repeats in source_of("transformers.integrations.sdpa_attention"), "transformers repeats keys by another rule"
    )
    expect(not sdpa_attention.use_gqa_in_sdpa(mask, states, states), "transformers no longer repeats keys under a mask")
    with keys_not_repeated():
        expect(sdpa_attention.use_gqa_in_sdpa(mask, states, states), "transformers shares keys in another way")


@patched(
    "transformers",
    "transformers.DynamicCache.layers",
    "A cache can only be cropped at its end, and a tree of tokens leaves gaps in it.",
)
def _columns_can_be_kept() -> None:
    import torch
    from transformers import DynamicCache

    cache = DynamicCache()
    keys = torch.arange(8.0).reshape(1, 1, 4, 2)
    cache.update(keys, keys + 8, 0)
    keep_columns(cache, [0, 2])
    grown, _ = cache.update(keys[..., :1, :], keys[..., :1, :], 0)
    expected = keys[..., [0, 2, 0], :]
    expect(torch.equal(grown, expected), "a DynamicCache keeps its keys elsewhere, or no longer goes on from them")
