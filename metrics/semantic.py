"""BERTScore (Zhang et al., ICLR 2020), as QIMMA computes it: no idf weights, no rescaling, the model's last layer.

QIMMA paper (arXiv 2604.03395) section 5.1: BERTScore F1 with AraBERT v02 scores QIMMA's generated answers.
As in the authors' package bert-score, special tokens around a text ([CLS], [SEP]) have weight 0, but can be the best
match of a word of the other.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cultureval.runtime.data.scorers import local_copy
from cultureval.runtime.devices import scoring_device
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.progress import Progress
from cultureval.runtime.settings import current_settings, variable_of
from cultureval.runtime.weight_files import missing_vocabulary, missing_weights, unusable_weights

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_MODEL = "aubmindlab/bert-base-arabertv02"
# JEEM section 5.1.1: CAMeLBERT, trained on MSA and dialects, hence the variant `mix`; the paper names no
# layer. We chose 9 of 12: the package bert-score uses it for bert-base-uncased and multilingual BERT.
CAPTION_MODEL, CAPTION_LAYER = "CAMeL-Lab/bert-base-arabic-camelbert-mix", 9
NO_MODEL = "none"  # as the captions' model: their BERTScore is left out
MAX_TOKENS = 512
# Token vectors in memory: 200 MB of them for a model of 768 dimensions in float32.
HELD_TOKENS = 2**16

Pair = tuple[str, str]


class BertScoreModel(NamedTuple):
    """A loaded model with its tokenizer; texts are truncated to `max_tokens`."""

    tokenizer: Any
    model: Any
    max_tokens: int
    device: str


def bertscore_model() -> str:
    """The model of QIMMA's BERTScore: that of CULTUREVAL_BERTSCORE_MODEL, or AraBERT v02."""
    return current_settings().bertscore_model or DEFAULT_MODEL


def caption_bertscore_model() -> tuple[str, int]:
    """The model and the layer of JEEM's BERTScore: those of the settings, or CAMeLBERT-mix and 9."""
    settings = current_settings()
    return settings.caption_bertscore_model or CAPTION_MODEL, settings.caption_bertscore_layer or CAPTION_LAYER


def check_caption_bertscore() -> None:
    """Load and try JEEM's BERTScore model and layer, before a long run starts; the error names the variable to set."""
    try:
        try_bertscore(*caption_bertscore_model())
    except ValueError as error:
        raise CulturevalError(f"{variable_of('caption_bertscore_layer')}: {error}.") from error


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
        references: N references, each one text or several; of several the best value is used, separately for precision,
            recall and F1, as in the package.
        model: Hub id or folder of an encoder with its tokenizer.
        num_layers: The layer whose token vectors are compared, counted from 1; None: the last.
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
    texts = [_clean(prediction) for prediction in predictions]
    asked = [[(text, _clean(reference)) for reference in group] for text, group in zip(texts, groups, strict=True)]
    pairs = {pair for group in asked for pair in group if all(pair)}
    scores = _score_pairs(pairs, load_encoder(local_copy(model), num_layers, device), batch_size) if pairs else {}
    best = [np.max([scores.get(pair, (0.0, 0.0, 0.0)) for pair in group], axis=0) for group in asked]
    columns = np.asarray(best, dtype=np.float64).reshape(-1, 3).T
    return dict(zip(("precision", "recall", "f1"), columns, strict=True))


def _clean(text: str) -> str:
    """Strip whitespace; replace lone surrogates, which tokenizers reject, by question marks."""
    return text.strip().encode("utf-8", "replace").decode()


@lru_cache(maxsize=4)
def load_encoder(model: str, num_layers: int | None, device: str) -> BertScoreModel:
    """Load a model once per process, without the layers above `num_layers`, in float32.

    Raises:
        ValueError: The model has no such layer.
        CulturevalError: The model cannot be loaded.
    """
    import torch
    from transformers import AutoModel

    config, tokenizer = check_bertscore_model(model, num_layers)
    layers = config.num_hidden_layers if num_layers is None else num_layers
    try:
        network, report = AutoModel.from_pretrained(
            model, num_hidden_layers=layers, dtype=torch.float32, output_loading_info=True
        )
    except Exception as error:
        raise _not_loadable(model, str(error)) from error
    if wrong := missing_weights(network, report, not_needed=["pooler"]) or unusable_weights(network):
        raise _not_loadable(model, f"it {wrong}")
    limits = (MAX_TOKENS, tokenizer.model_max_length, getattr(config, "max_position_embeddings", 0))
    return BertScoreModel(tokenizer, network.eval().to(device), min(limit for limit in limits if limit > 0), device)


def try_bertscore(model: str, num_layers: int | None = None) -> None:
    """Load a model and score a sentence against itself, and another one, before a long run starts."""
    texts = ["ذهب الطالب إلى المدرسة", "عايز اروح السوق دلوقتي"]
    same, other = bertscore(texts, [texts[0]] * 2, model, num_layers, device=scoring_device())["f1"]
    if not (abs(same - 1) < 1e-3 and np.isfinite(other) and other < 1):
        raise _not_loadable(model, f"it scores a sentence against itself {same:.3f}, and another one {other:.3f}")


def check_bertscore_model(model: str, num_layers: int | None = None) -> tuple[Any, Any]:
    """Check, before a long run starts, that a model's configuration and tokenizer load.

    Returns:
        The configuration and the tokenizer.

    Raises:
        ValueError: The model has no such layer.
        CulturevalError: One of them does not load; the message says how to set a local folder.
    """
    from transformers import AutoConfig, AutoTokenizer

    # Broken files raise many types: OSError, ValueError, KeyError, exceptions of the Rust tokenizers.
    try:
        place = local_copy(model)
        config, tokenizer = AutoConfig.from_pretrained(place), AutoTokenizer.from_pretrained(place)
    except Exception as error:
        raise _not_loadable(model, str(error)) from error
    if missing := missing_vocabulary(tokenizer):
        raise _not_loadable(model, f"it {missing}")
    if num_layers is not None and not 1 <= num_layers <= config.num_hidden_layers:
        raise ValueError(f"num_layers={num_layers} is outside the {config.num_hidden_layers} layers of {model}")
    return config, tokenizer


def _not_loadable(model: str, reason: str) -> CulturevalError:
    first_line = reason.strip().partition("\n")[0]
    variable, of_captions = variable_of("bertscore_model"), variable_of("caption_bertscore_model")
    return CulturevalError(
        f"The BERTScore model {model!r} cannot be loaded ({first_line}). Set {variable} (captions: {of_captions}) "
        "to a local folder with its configuration, weights and tokenizer, or pass --data DIR of `cultureval mirror`."
    )


def _score_pairs(pairs: set[Pair], encoder: BertScoreModel, batch_size: int) -> dict[Pair, tuple[float, float, float]]:
    """Precision, recall and F1 of distinct pairs of non-empty texts, in blocks that limit the vectors in memory."""
    texts = sorted({text for pair in pairs for text in pair})
    encoded = encoder.tokenizer(texts, truncation=True, max_length=encoder.max_tokens)["input_ids"]
    tokens = dict(zip(texts, encoded, strict=True))
    weighted = {text for text in texts if set(tokens[text]) - _unweighted(encoder)}
    pairs = {pair for pair in pairs if set(pair) <= weighted}  # of others nothing can be matched: they score 0
    if not pairs:
        return {}
    # The longest first, so that too large a batch fails early; equal predictions are adjacent.
    order = sorted(pairs, key=lambda pair: (-len(tokens[pair[0]]), pair))
    return _match_all(order, tokens, encoder, batch_size)


def _unweighted(encoder: BertScoreModel) -> set[int]:
    return {encoder.tokenizer.cls_token_id, encoder.tokenizer.sep_token_id}


def _match_all(
    order: Sequence[Pair], tokens: dict[str, list[int]], encoder: BertScoreModel, batch_size: int
) -> dict[Pair, tuple[float, float, float]]:
    """The scores of pairs in their order; `tokens` are those of their texts."""
    import torch

    from cultureval.runtime.onednn_products import onednn_products

    scores: dict[Pair, tuple[float, float, float]] = {}
    with Progress(len(order), "BERTScore", "pair") as progress, torch.inference_mode():
        for block in _blocks(order, tokens):
            texts = sorted({text for pair in block for text in pair}, key=lambda text: -len(tokens[text]))
            with onednn_products(encoder.device):
                vectors = _token_vectors(texts, tokens, encoder, batch_size)
            found = torch.stack([_match(*(vectors[text] for text in pair)) for pair in block])
            scores |= dict(zip(block, map(tuple, found.tolist()), strict=True))
            progress.update(len(block))
    return scores


def _token_vectors(
    texts: Sequence[str], tokens: dict[str, list[int]], encoder: BertScoreModel, batch_size: int
) -> "dict[str, tuple[Tensor, Tensor]]":
    """The last layer's vectors of each text's tokens, of length 1, and the tokens' weights, 0 or 1."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    found = {}
    unweighted = torch.tensor(sorted(_unweighted(encoder)), device=encoder.device)
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        ids = [torch.tensor(tokens[text], device=encoder.device) for text in batch]
        padded = pad_sequence(ids, batch_first=True, padding_value=encoder.tokenizer.pad_token_id)
        shown = pad_sequence([torch.ones_like(one) for one in ids], batch_first=True)
        states = torch.nn.functional.normalize(encoder.model(padded, attention_mask=shown)[0], dim=-1)
        for text, row, own in zip(batch, states, ids, strict=True):
            found[text] = row[: len(own)].clone(), (~torch.isin(own, unweighted)).to(row.dtype)
    return found


def _match(prediction: "tuple[Tensor, Tensor]", reference: "tuple[Tensor, Tensor]") -> "Tensor":
    """Precision, recall and F1 (section 3 of the paper): each token's best cosine among those of the other text."""
    import torch

    (ours, our_weights), (theirs, their_weights) = prediction, reference
    cosines = ours @ theirs.T
    precision = (cosines.amax(1) * our_weights).sum() / our_weights.sum()
    recall = (cosines.amax(0) * their_weights).sum() / their_weights.sum()
    both = precision + recall
    return torch.stack([precision, recall, torch.where(both == 0, both, 2 * precision * recall / both)])


def _blocks(pairs: Iterable[Pair], tokens: dict[str, list[int]]) -> Iterator[list[Pair]]:
    block, size = [], 0
    for pair in pairs:
        block.append(pair)
        size += sum(len(tokens[text]) for text in pair)
        if size >= HELD_TOKENS:
            yield block
            block, size = [], 0
    if block:
        yield block
