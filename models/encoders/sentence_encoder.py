"""Sentence embeddings as by sentence-transformers, without that library.

Its checkpoints are transformers models. `1_Pooling/config.json` has the pooling (default: the mean of tokens), and
`sentence_bert_config.json` the longest text.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer
from transformers.utils import cached_file

from cultureval.models.encoders.dual_encoder import EncoderSettings, load_encoder
from cultureval.runtime.errors import CulturevalError


class SentenceEncoder:
    """An encoder of sentences; texts over `longest` tokens are cut."""

    def __init__(self, settings: EncoderSettings) -> None:
        """Load a model, such as sentence-transformers/all-MiniLM-L6-v2.

        Raises:
            CulturevalError: It cannot be loaded, or its pooling is neither the mean of tokens nor the first token.
        """
        self.model, self.tokenizer = load_encoder(settings, AutoTokenizer, ("pooler",))
        modes = _config(settings, "1_Pooling/config.json").items()
        chosen = [name for name, value in modes if name.startswith("pooling_mode_") and value is True]
        self.first = chosen == ["pooling_mode_cls_token"]
        if chosen not in ([], ["pooling_mode_mean_tokens"]) and not self.first:
            raise CulturevalError(
                f"{settings.model} has {' and '.join(chosen)}: give one with pooling_mode_mean_tokens."
            )
        longest = _config(settings, "sentence_bert_config.json").get("max_seq_length")
        most = min(self.tokenizer.model_max_length, getattr(self.model.config, "max_position_embeddings", 512))
        self.batch_size, self.longest = settings.batch_size, min(longest or most, most)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings: float32 [texts, dimensions], of length 1."""
        found, options = [], {"padding": True, "truncation": True, "max_length": self.longest, "return_tensors": "pt"}
        for start in range(0, len(texts), self.batch_size):
            batch = self.tokenizer(list(texts[start : start + self.batch_size]), **options).to(self.model.device)
            states, shown = self.model(**batch).last_hidden_state, batch["attention_mask"].unsqueeze(-1)
            vectors = states[:, 0] if self.first else (states * shown).sum(dim=1) / shown.sum(dim=1)
            found.append(torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy())
        return np.concatenate(found)


def _config(settings: EncoderSettings, name: str) -> dict[str, Any]:
    """A JSON file of a checkpoint; {} where it has none."""
    source, revision = settings.source(), settings.revision
    path = cached_file(source, name, revision=revision, _raise_exceptions_for_missing_entries=False)
    return json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
