"""Dual encoders of transformers for image-text retrieval: Chinese-CLIP, SigLIP and SigLIP 2, CLIP, AltCLIP.

Embeddings are the model's features (`get_image_features`, `get_text_features`), normalised to length 1, so that their
dot product is the cosine similarity.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from pydantic import TypeAdapter, ValidationError
from transformers import AutoConfig, AutoModel, AutoProcessor

from cultureval.models.settings import is_local
from cultureval.runtime.data.hub import cached_commit
from cultureval.runtime.data.image_store import upright
from cultureval.runtime.devices import choose_device
from cultureval.runtime.errors import CulturevalError, described, wrong_settings
from cultureval.runtime.model_settings import refuse_unknown
from cultureval.runtime.onednn_products import onednn_products
from cultureval.runtime.progress import progressing
from cultureval.runtime.weight_files import fingerprint, missing_weights

# Model type -> padding of texts: SigLIP was trained on texts padded to 64 tokens.
PADDING: dict[str, bool | str] = {
    **dict.fromkeys(("chinese_clip", "clip", "altclip"), True),
    **dict.fromkeys(("siglip", "siglip2"), "max_length"),
}


class EncoderSettings(NamedTuple):
    """Settings of an encoder.

    Attributes:
        model: Hub id or folder.
        revision: Branch, tag or commit on the hub.
        device: "auto" takes the first accelerator, else the CPU.
        dtype: A torch dtype by name.
        batch_size: Items per batch.
    """

    model: str
    revision: str = "main"
    device: str = "auto"
    dtype: str = "float32"
    batch_size: int = 32

    def source(self) -> str:
        """The model as an argument of transformers: an expanded path, or the hub id."""
        return str(Path(self.model).expanduser()) if is_local(self.model) else self.model


def encoder_settings(model: str, given: Mapping[str, Any]) -> EncoderSettings:
    """The settings of `--model-args`; a CulturevalError for an unknown one or a wrong value."""
    refuse_unknown(given, EncoderSettings._fields[1:], f"The dual encoder {model!r}")
    try:
        return TypeAdapter(EncoderSettings).validate_python({"model": model, **given})
    except ValidationError as error:
        raise CulturevalError(f"The dual encoder {model!r} has wrong settings: {wrong_settings(error)}.") from error


def load_encoder(settings: EncoderSettings, reader: Any, not_needed: Collection[str] = ()) -> tuple[Any, Any]:
    """An encoder on its device, and its tokenizer or processor by `reader` (a class of transformers).

    Raises:
        CulturevalError: It cannot be loaded, or weights are missing, except the `not_needed` ones.
    """
    source, options = settings.source(), {"revision": settings.revision}
    try:
        texts = reader.from_pretrained(source, **options)
        model, report = AutoModel.from_pretrained(source, dtype=settings.dtype, output_loading_info=True, **options)
    except (OSError, ValueError, ImportError) as error:
        raise CulturevalError(f"{settings.model} cannot be loaded: {described(error)}") from error
    if missing := missing_weights(model, report, not_needed):
        raise CulturevalError(f"{settings.model} {missing}. Give a complete checkpoint.")
    return model.eval().to(choose_device(settings.device)), texts


def is_dual_encoder(model: str) -> bool:
    """Whether a folder or hub id is a dual encoder of a known family; False if it cannot be read."""
    try:
        return AutoConfig.from_pretrained(EncoderSettings(model).source()).model_type in PADDING
    except (OSError, ValueError):
        return False


class DualEncoder:
    """An image encoder and a text encoder with a common embedding space.

    Attributes:
        identity: Name, commit or hash of the files, dtype, versions.
        truncated: Number of texts so far that were truncated to the text encoder's limit.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        """Load a model.

        Raises:
            CulturevalError: It cannot be loaded, or is of another model family.
        """
        source, local = settings.source(), is_local(settings.model)
        self.model, self.processor = load_encoder(settings, AutoProcessor)
        config = self.model.config
        if config.model_type not in PADDING:
            raise CulturevalError(
                f"{settings.model} is of type {config.model_type!r}, not a dual encoder of images and texts "
                f"({', '.join(PADDING)}). For generative models use `cultureval eval MODEL cvlue_itr`."
            )
        positions = config.text_config.max_position_embeddings
        # RoBERTa's positions begin after the padding token's index.
        usable = positions - 2 if config.model_type == "altclip" else positions
        longest = min(self.processor.tokenizer.model_max_length, usable)
        self.padding = {"padding": PADDING[config.model_type], "truncation": True, "max_length": longest}
        self.batch_size, self.truncated = settings.batch_size, 0
        self.identity = {
            "name": Path(source).resolve().name if local else source,
            "version": fingerprint(Path(source)) if local else cached_commit(source, "config.json", settings.revision),
            "dtype": settings.dtype,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
        }

    def encode_images(self, paths: Sequence[str]) -> np.ndarray:
        """Embeddings of image files: float32 [images, dimensions], of length 1."""
        return self._encode(paths, self._image_batch, "Encoding images")

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of texts: float32 [texts, dimensions], of length 1; long texts are truncated and counted."""
        encoded = self.processor.tokenizer(list(texts), padding=False, truncation=False, verbose=False)["input_ids"]
        self.truncated += sum(len(tokens) > self.padding["max_length"] for tokens in encoded)
        return self._encode(texts, self._text_batch, "Encoding texts")

    def _encode(self, items: Sequence[str], encode: Callable[[Sequence[str]], np.ndarray], title: str) -> np.ndarray:
        order = sorted(range(len(items)), key=lambda place: len(items[place]))  # so that texts need little padding
        starts, found = range(0, len(items), self.batch_size), list[np.ndarray]()
        for start in progressing(starts, len(starts), title, "batch"):
            found.append(encode([items[place] for place in order[start : start + self.batch_size]]))
            if not np.isfinite(found[-1]).all():
                raise CulturevalError(f"{self.identity['name']} returns an embedding that is not finite: use float32.")
        return np.concatenate(found)[np.argsort(order)]

    @torch.inference_mode()
    def _image_batch(self, paths: Sequence[str]) -> np.ndarray:
        images = [upright(path).convert("RGB") for path in paths]
        inputs = self.processor(images=images, return_tensors="pt").to(self.model.device, self.model.dtype)
        with onednn_products(self.model.device):
            return _normalised(self.model.get_image_features(**inputs))

    @torch.inference_mode()
    def _text_batch(self, texts: Sequence[str]) -> np.ndarray:
        inputs = self.processor(text=list(texts), return_tensors="pt", **self.padding).to(self.model.device)
        with onednn_products(self.model.device):
            return _normalised(self.model.get_text_features(**inputs))


def _normalised(features: Any) -> np.ndarray:
    """Features of length 1, whether the model returns a tensor or an output with `pooler_output`."""
    vectors = features if isinstance(features, torch.Tensor) else features.pooler_output
    return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()
