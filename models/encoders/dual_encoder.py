"""Dual encoders of transformers for image-text retrieval: Chinese-CLIP, SigLIP and SigLIP 2, CLIP, AltCLIP.

Embeddings are the model's own features (`get_image_features`, `get_text_features`), normalised to length 1, so that
their dot product is the model's cosine similarity. Each batch is saved to disk under keys of the model's files and
the items, so that interrupted runs resume and other tasks reuse it.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoProcessor

from cultureval.models.settings import is_local
from cultureval.runtime.data.hub import cached_commit
from cultureval.runtime.data.image_store import IMAGES, upright
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.devices import choose_device
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.journal import Journal, answer_key
from cultureval.runtime.onednn_products import onednn_products
from cultureval.runtime.progress import progressing
from cultureval.runtime.weight_files import fingerprint, missing_weights

# By model type, how texts are padded: SigLIP was trained on texts padded to 64 tokens and reads padding as text.
PADDING: dict[str, dict[str, Any]] = {
    "chinese_clip": {"padding": True},
    "clip": {"padding": True},
    "altclip": {"padding": True},
    "siglip": {"padding": "max_length"},
    "siglip2": {"padding": "max_length"},
}


class EncoderSettings(NamedTuple):
    """How a dual encoder is loaded and run.

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


class DualEncoder:
    """An image encoder and a text encoder with a common embedding space.

    Attributes:
        identity: Part of every embedding's key: name, commit or hash of the files, dtype, versions.
        truncated: Number of texts so far that were truncated to the text encoder's limit.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        """Load a model.

        Raises:
            CulturevalError: It cannot be loaded, or is of another model family.
        """
        source = str(Path(settings.model).expanduser()) if is_local(settings.model) else settings.model
        try:
            config = AutoConfig.from_pretrained(source, revision=settings.revision)
            if config.model_type not in PADDING:
                raise CulturevalError(
                    f"{settings.model} is of type {config.model_type!r}, not a dual encoder of images and texts "
                    f"({', '.join(PADDING)}). For generative models use `cultureval eval MODEL cvlue_itr`."
                )
            dtype = getattr(torch, settings.dtype, None)
            if not isinstance(dtype, torch.dtype):
                raise CulturevalError(f"Unknown dtype {settings.dtype!r}: use float32, bfloat16 or float16.")
            model, report = AutoModel.from_pretrained(
                source, revision=settings.revision, dtype=dtype, output_loading_info=True
            )
            self.processor = AutoProcessor.from_pretrained(source, revision=settings.revision)
        except (OSError, ValueError, ImportError) as error:
            raise CulturevalError(f"{settings.model} cannot be loaded: {str(error).splitlines()[0]}") from error
        if missing := missing_weights(model, report):
            raise CulturevalError(f"{settings.model} {missing}. Give a complete checkpoint.")
        self.device = choose_device(settings.device)
        self.model = model.eval().to(self.device)
        self.padding = PADDING[config.model_type] | {"truncation": True, "max_length": self._longest_text(config)}
        self.batch_size = settings.batch_size
        self.truncated = 0
        self.identity = {
            "name": Path(source).resolve().name if is_local(source) else source,
            "version": fingerprint(Path(source))
            if is_local(source)
            else cached_commit(source, "config.json", settings.revision),
            "dtype": settings.dtype,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
        }
        self._store = Journal(user_cache() / "embeddings")

    def encode_images(self, paths: Sequence[str]) -> np.ndarray:
        """Embeddings of image files: float32 [images, dimensions], of length 1."""
        keys = [self._key("image", _content_hash(Path(path))) for path in paths]
        return self._encode(keys, paths, self._image_batch, "Encoding images")

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of texts: float32 [texts, dimensions], of length 1; long texts are truncated and counted."""
        keys = [self._key("text", text) for text in texts]
        self.truncated += self._count_too_long(texts)
        return self._encode(keys, texts, self._text_batch, "Encoding texts")

    def _key(self, kind: str, content: str) -> str:
        return answer_key(kind=f"{kind} embedding", model=self.identity, content=content)

    def _encode(
        self, keys: Sequence[str], items: Sequence[str], encode: Callable[[Sequence[str]], np.ndarray], title: str
    ) -> np.ndarray:
        missing = [place for place, key in enumerate(keys) if key not in self._store]
        # Sorted by length, so that texts need little padding.
        missing.sort(key=lambda place: len(items[place]))
        starts = range(0, len(missing), self.batch_size)
        for start in progressing(starts, len(starts), title, "batch", silent=not missing):
            batch = missing[start : start + self.batch_size]
            vectors = encode([items[place] for place in batch])
            if not np.isfinite(vectors).all():
                raise CulturevalError(f"{self.identity['name']} returns an embedding that is not finite: use float32.")
            records = {keys[place]: _packed(vector) for place, vector in zip(batch, vectors, strict=True)}
            self._store.append(records)
        return np.stack([_unpacked(self._store.get(key)) for key in keys])

    @torch.inference_mode()
    def _image_batch(self, paths: Sequence[str]) -> np.ndarray:
        images = [upright(path).convert("RGB") for path in paths]
        inputs = self.processor(images=images, return_tensors="pt").to(self.device, self.model.dtype)
        with onednn_products(self.device):
            return _normalised(self.model.get_image_features(**inputs))

    @torch.inference_mode()
    def _text_batch(self, texts: Sequence[str]) -> np.ndarray:
        inputs = self.processor(text=list(texts), return_tensors="pt", **self.padding).to(self.device)
        with onednn_products(self.device):
            return _normalised(self.model.get_text_features(**inputs))

    def _longest_text(self, config: Any) -> int:
        """The tokenizer's limit where it states one, else the text encoder's positions."""
        positions = config.text_config.max_position_embeddings
        # RoBERTa's positions begin after the padding token's index.
        usable = positions - 2 if config.model_type == "altclip" else positions
        return min(self.processor.tokenizer.model_max_length, usable)

    def _count_too_long(self, texts: Sequence[str]) -> int:
        encoded = self.processor.tokenizer(list(texts), padding=False, truncation=False, verbose=False)["input_ids"]
        return sum(len(tokens) > self.padding["max_length"] for tokens in encoded)


def _normalised(features: Any) -> np.ndarray:
    """Features of length 1, whether the model returns a tensor or an output with `pooler_output`."""
    vectors = features if isinstance(features, torch.Tensor) else features.pooler_output
    return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()


def _content_hash(path: Path) -> str:
    """The SHA-256 of a file, which is the name of a stored image."""
    if path.is_relative_to(user_cache() / IMAGES.folder):
        return path.stem
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _packed(vector: np.ndarray) -> dict[str, str]:
    return {"float32": base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")}


def _unpacked(record: dict[str, str] | None) -> np.ndarray:
    if record is None:
        raise CulturevalError("An embedding was deleted from the cache during this run; run the command again.")
    return np.frombuffer(base64.b64decode(record["float32"]), dtype="<f4")
