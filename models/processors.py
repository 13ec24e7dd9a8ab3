"""Processors of images and text without their video processor, the only part that needs torchvision."""

import logging
from typing import Any

from transformers import AutoProcessor, PreTrainedConfig, ProcessorMixin

from cultureval.runtime.patches.transformers import VIDEOS, processor_class, without_videos

logger = logging.getLogger(__name__)


def load_processor(source: str, config: PreTrainedConfig, **options: Any) -> ProcessorMixin:
    """A model's own processor, without its video processor if that cannot be loaded.

    Args:
        source: Hub id or folder.
        config: The model's configuration.
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
