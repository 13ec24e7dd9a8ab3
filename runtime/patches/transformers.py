"""transformers 5.19: our changes, and private parts that we use."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

VIDEOS = "video_processor"


def processor_class(model_type: str) -> "type[ProcessorMixin] | None":
    """The class of a model type's processor; None where transformers knows none."""
    import transformers
    from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

    return getattr(transformers, PROCESSOR_MAPPING_NAMES.get(model_type) or "", None)


def without_videos(kind: "type[ProcessorMixin]") -> "type[ProcessorMixin]":
    """A processor class without its video processor: processors that also read videos load only with torchvision."""
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


def loaded_facts(model: "PreTrainedModel") -> dict[str, Any]:
    """A loaded model as fields of `ModelRecord` (docs/results.md)."""
    quantised = getattr(model.config, "quantization_config", None)
    return {
        "model_class": type(model).__name__,
        "parameters": model.num_parameters(),
        "dtype": str(model.dtype).removeprefix("torch."),
        "quantisation": str(getattr(quantised, "quant_method", quantised or "")),
        "devices": sorted({str(parameter.device) for parameter in model.parameters()}),
        "attention": model.config.get_text_config(decoder=True)._attn_implementation or "",
    }


def keeps_states(model: "PreTrainedModel") -> bool:
    """Whether a model has recurrent states beside keys and values, as Mamba does."""
    return model._is_stateful


def rope_offset(model: "PreTrainedModel") -> int:
    """How far M-RoPE positions after the images lag behind the token count, once a prompt has been fed."""
    # Qwen-VL models keep the offset in `rope_deltas`; for others it is 0.
    deltas = getattr(getattr(model, "model", model), "rope_deltas", None)
    return 0 if deltas is None else int(deltas.flatten()[0])


@contextmanager
def keys_not_repeated() -> Iterator[None]:
    """A context in which attention on a CPU does not copy keys and values that query heads share.

    Under a mask, transformers copies them for every head, since PyTorch's CUDA kernels need that. CPU kernels do not,
    and the copies take most of the time of generated answers.
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
