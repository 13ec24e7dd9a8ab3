"""Processors of images and text without their part for videos, which alone of them needs torchvision."""

import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import transformers
from transformers import AutoProcessor, PreTrainedConfig, ProcessorMixin
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES

logger = logging.getLogger(__name__)

VIDEOS = "video_processor"


def load_processor(source: str, config: PreTrainedConfig, **options: Any) -> ProcessorMixin:
    """A model's own processor, less its videos where their part cannot be loaded.

    Args:
        source: Hub id or folder.
        config: Of the model.
        **options: Of `from_pretrained`.

    Raises:
        ImportError, OSError, ValueError: It cannot be loaded without videos either.
    """
    try:
        return AutoProcessor.from_pretrained(source, **options)
    except (ImportError, OSError, ValueError) as error:
        kind = getattr(transformers, PROCESSOR_MAPPING_NAMES.get(config.model_type) or "", None)
        if kind is None or VIDEOS not in kind.get_attributes():
            raise
        logger.info("%s: images are read, videos are not (%s)", source, str(error).strip().splitlines()[0])
        try:
            return images_only(kind).from_pretrained(source, **options)
        except (ImportError, OSError, ValueError):
            raise error from None


def images_only(kind: type[ProcessorMixin]) -> type[ProcessorMixin]:
    """A processor's class, less its part for videos; all else is as it was."""
    parts = kind.get_attributes()

    class ImagesOnly(kind):
        # SmolVLM's asks for these two even where there is no video.
        video_processor = SimpleNamespace(num_frames=None, fps=None)

        @classmethod
        def get_attributes(cls) -> list[str]:
            return [part for part in parts if part != VIDEOS]

        @classmethod
        def from_args_and_dict(cls, args: Sequence[Any], *settings: Any, **more: Any) -> ProcessorMixin:
            found = iter(args)
            complete = [None if part == VIDEOS else next(found) for part in parts]
            return super().from_args_and_dict(complete, *settings, **more)

    ImagesOnly.__name__ = kind.__name__  # it is written into the files that `save_pretrained` makes
    return ImagesOnly
