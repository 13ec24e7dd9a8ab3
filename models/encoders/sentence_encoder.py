"""Sentence embeddings by a transformer encoder, as the sentence-transformers library computes them.

That library is not needed: a checkpoint of it is a transformers model, with the way of pooling in
`1_Pooling/config.json` (the mean of tokens where there is none) and the longest text in `sentence_bert_config.json`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import cached_file

from cultureval.models.encoders.dual_encoder import EncoderSettings
from cultureval.models.settings import is_local
from cultureval.runtime.devices import choose_device
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.weight_files import missing_weights


class SentenceEncoder:
    """An encoder of sentences.

    Attributes:
        pooling: "mean", "cls" or "max" over tokens.
        longest: Tokens of a text; longer ones are cut.
    """

    def __init__(self, settings: EncoderSettings) -> None:
        """Load a model, such as sentence-transformers/all-MiniLM-L6-v2.

        Raises:
            CulturevalError: It cannot be loaded, or pools in another way.
        """
        source = str(Path(settings.model).expanduser()) if is_local(settings.model) else settings.model
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(source, revision=settings.revision)
            model, report = AutoModel.from_pretrained(
                source, revision=settings.revision, dtype=torch.float32, output_loading_info=True
            )
        except (OSError, ValueError, ImportError) as error:
            raise CulturevalError(f"{settings.model} cannot be loaded: {str(error).splitlines()[0]}") from error
        if missing := missing_weights(model, report, ("pooler",)):
            raise CulturevalError(f"{settings.model} {missing}. Give a complete checkpoint.")
        self.device = choose_device(settings.device)
        self.model = model.eval().to(self.device)
        self.batch_size = settings.batch_size
        self.pooling = _pooling(_config(source, settings.revision, "1_Pooling/config.json"), settings.model)
        told = _config(source, settings.revision, "sentence_bert_config.json").get("max_seq_length")
        most = min(self.tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512))
        self.longest = min(told, most) if isinstance(told, int) else most

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings: float32 [texts, dimensions], of length 1."""
        found = []
        for start in range(0, len(texts), self.batch_size):
            batch = self.tokenizer(
                list(texts[start : start + self.batch_size]),
                padding=True,
                truncation=True,
                max_length=self.longest,
                return_tensors="pt",
            ).to(self.device)
            vectors = _pooled(self.model(**batch).last_hidden_state, batch["attention_mask"], self.pooling)
            found.append(torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy())
        return np.concatenate(found)


def _config(source: str, revision: str, name: str) -> dict[str, Any]:
    """A JSON file of a checkpoint; {} where it has none."""
    path = cached_file(source, name, revision=revision, _raise_exceptions_for_missing_entries=False)
    return json.loads(Path(path).read_text(encoding="utf-8")) if path else {}


def _pooling(config: dict[str, Any], model: str) -> str:
    chosen = [name for name in config if name.startswith("pooling_mode_") and config[name] is True]
    names = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max"}
    if chosen and (len(chosen) > 1 or chosen[0] not in names):
        raise CulturevalError(f"{model} pools tokens by {' and '.join(chosen)}; known are {', '.join(names)}.")
    return names[chosen[0]] if chosen else "mean"


def _pooled(states: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """From [texts, tokens, dimensions] to [texts, dimensions]; padding counts nowhere."""
    if pooling == "cls":
        return states[:, 0]
    shown = mask.unsqueeze(-1).to(states.dtype)
    if pooling == "max":
        return states.masked_fill(shown == 0, float("-inf")).amax(dim=1)
    return (states * shown).sum(dim=1) / shown.sum(dim=1)
