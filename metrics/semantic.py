"""BERTScore (Zhang et al., ICLR 2020) by the authors' package bert-score: no idf weights, no rescaling.

QIMMA paper (arXiv 2604.03395) section 5.1: BERTScore F1 with AraBERT v02, its last layer, scores generated answers.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from cultureval.runtime.data.scorers import local_copy
from cultureval.runtime.devices import scoring_device
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.progress import Progress
from cultureval.runtime.settings import current_settings, variable_of
from cultureval.runtime.weight_files import load_sound

DEFAULT_MODEL = "aubmindlab/bert-base-arabertv02"
# JEEM section 5.1.1: CAMeLBERT, trained on MSA and dialects, hence the variant `mix`; the paper names no
# layer. We chose 9 of 12: the package bert-score uses it for bert-base-uncased and multilingual BERT.
CAPTION_MODEL, CAPTION_LAYER = "CAMeL-Lab/bert-base-arabic-camelbert-mix", 9
NO_MODEL = "none"  # the setting that leaves out the captions' BERTScore
MAX_TOKENS = 512
PAIRS_AT_ONCE = 500  # the package keeps the token vectors of all texts, about 1.5 MB each


def bertscore_model() -> str:
    """The model of QIMMA's BERTScore: that of CULTUREVAL_BERTSCORE_MODEL, or AraBERT v02."""
    return current_settings().bertscore_model or DEFAULT_MODEL


def caption_bertscore_model() -> tuple[str, int]:
    """The model and the layer of JEEM's BERTScore: those of the settings, or CAMeLBERT-mix and 9."""
    settings = current_settings()
    return settings.caption_bertscore_model or CAPTION_MODEL, settings.caption_bertscore_layer or CAPTION_LAYER


def check_caption_bertscore() -> None:
    """Load JEEM's BERTScore model and layer, before a long run starts; the error names the variable to set."""
    try:
        try_bertscore(*caption_bertscore_model())
    except ValueError as error:
        raise CulturevalError(f"{variable_of('caption_bertscore_layer')}: {error}.") from error


def try_bertscore(model: str, num_layers: int | None = None) -> None:
    """Load a model before a long run starts; errors are those of `load_encoder`."""
    load_encoder(local_copy(model), num_layers, scoring_device())


def bertscore(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    model: str,
    num_layers: int | None = None,
    device: str = "cpu",
    batch_size: int = 32,
) -> dict[str, np.ndarray]:
    """BERTScore of each prediction against its reference.

    Args:
        predictions: N texts.
        references: N references, each one text or several; the best of several is used, separately for precision,
            recall and F1, as in the package.
        model: Hub id or folder of an encoder with its tokenizer.
        num_layers: The layer of the compared token vectors, from 1; None: the last.
        device: torch device.
        batch_size: Texts per batch.

    Returns:
        `precision`, `recall` and `f1`, float64 arrays of shape (N,) in -1 to 1, in practice 0 to 1. All three are 0
        if the prediction or the reference is empty or whitespace. Texts are truncated to 512 tokens.

    Raises:
        ValueError: No text, lengths differ, an item has no reference, or the model has no such layer.
        CulturevalError: The model cannot be loaded.
    """
    groups = [[texts] if isinstance(texts, str) else list(texts) for texts in references]
    if len(groups) != len(predictions):
        raise ValueError(f"there are {len(predictions)} predictions but {len(groups)} references")
    if not groups:
        raise ValueError("there is no text to score")
    if not all(groups):
        raise ValueError(f"item {[bool(group) for group in groups].index(False)} has no reference")
    groups_of_pairs = [
        [(_clean(text), _clean(reference)) for reference in group]
        for text, group in zip(predictions, groups, strict=True)
    ]
    pairs = sorted({pair for group in groups_of_pairs for pair in group if all(pair)}, key=lambda pair: -len(pair[0]))
    scores: dict[tuple[str, str], tuple[float, ...]] = {}
    with Progress(len(pairs), "BERTScore", "pair") as progress:
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            part = pairs[start : start + PAIRS_AT_ONCE]
            found = _score_pairs(part, load_encoder(local_copy(model), num_layers, device), batch_size)
            scores |= dict(zip(part, map(tuple, found.tolist()), strict=True))
            progress.update(len(part))
    best = [np.max([scores.get(pair, (0.0, 0.0, 0.0)) for pair in group], axis=0) for group in groups_of_pairs]
    columns = np.asarray(best, dtype=np.float64).reshape(-1, 3).T
    return dict(zip(("precision", "recall", "f1"), columns, strict=True))


def _score_pairs(pairs: Sequence[tuple[str, str]], encoder: tuple[Any, Any], batch_size: int) -> np.ndarray:
    """[N, 3] precision, recall and F1; 0 if a text has only special tokens, which have no weight."""
    from bert_score.utils import bert_cos_score_idf

    tokenizer, network = encoder
    weights = defaultdict(lambda: 1.0, {tokenizer.cls_token_id: 0.0, tokenizer.sep_token_id: 0.0})
    predicted, golds = (list(side) for side in zip(*pairs, strict=True))
    device = str(network.device)
    found = bert_cos_score_idf(
        network, golds, predicted, tokenizer, weights, batch_size=batch_size, device=device
    ).numpy()
    return np.where(np.isnan(found).any(axis=1, keepdims=True), 0, found)


def _clean(text: str) -> str:
    """Strip whitespace; replace lone surrogates, which tokenizers reject, by question marks."""
    return text.strip().encode("utf-8", "replace").decode()


@lru_cache(maxsize=4)
def load_encoder(model: str, num_layers: int | None, device: str) -> tuple[Any, Any]:
    """Load a tokenizer and its model once per process, without the layers above `num_layers`, in float32.

    Raises:
        ValueError: The model has no such layer.
        CulturevalError: The model cannot be loaded; the message says how to set a local folder.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    try:
        most = AutoConfig.from_pretrained(model).num_hidden_layers
        layers = most if num_layers is None else num_layers
        settings = {"num_hidden_layers": min(max(1, layers), most), "dtype": torch.float32}
        tokenizer, network = load_sound(AutoModel, model, MAX_TOKENS, ["pooler"], **settings)
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0]
        variables = f"{variable_of('bertscore_model')} (captions: {variable_of('caption_bertscore_model')})"
        raise CulturevalError(
            f"The BERTScore model {model!r} cannot be loaded ({first_line}). Set {variables} to "
            "a local folder with its configuration, weights and tokenizer, or pass --data DIR of `cultureval fetch`."
        ) from error
    if not 1 <= layers <= most:
        raise ValueError(f"num_layers={layers} is outside the {most} layers of {model}")
    return tokenizer, network.to(device)
