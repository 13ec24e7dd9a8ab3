"""The classifiers of dialectal fidelity: NADI and ALDi (BERT), and fastText's language identification.

Each is loaded on first use, from the hub id or folder in the settings.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cultureval.metrics.alqasida.names import COUNTRIES, COUNTRY_NAMES
from cultureval.runtime.data.scorers import local_copy, versioned_name
from cultureval.runtime.devices import scoring_device
from cultureval.runtime.errors import CulturevalError, all_of
from cultureval.runtime.progress import Progress
from cultureval.runtime.settings import current_settings, variable_of
from cultureval.runtime.weight_files import load_sound

NADI, ALDI, LID = "NADI", "ALDi", "LID"
SETTINGS = {NADI: "nadi_model", ALDI: "aldi_model", LID: "lid_model"}
DEFAULTS = {
    NADI: "AMR-KELEG/NADI2024-baseline",
    ALDI: "AMR-KELEG/Sentence-ALDi",
    LID: "facebook/fasttext-language-identification",
}
NAMES_WRITTEN_OUT = {"uae": "unitedarabemirates"}
OUTPUTS = {NADI: len(COUNTRIES), ALDI: 1}
# Labels of the language identification model that count as Arabic, in any script (the paper's program).
ARABIC = frozenset("ara arb arq arz acm ayp apc ajp afb ayl ary acw ars apd aeb ayn acq".split())
MAX_TOKENS = 512
# Tokens of a batch with padding; larger batches do not fit into a CPU's caches and are slower than single texts.
CPU_TOKENS, ACCELERATOR_TOKENS = 512, 16_384


@dataclass(frozen=True)
class Classifier:
    """A loaded BERT sequence classifier with its tokenizer; texts are truncated to its `model_max_length`."""

    tokenizer: Any
    model: Any

    def logits(self, texts: Sequence[str]) -> np.ndarray:
        """Raw outputs, float64 of shape (N, labels); texts of the same tokens are read once."""
        encoded = [tuple(tokens) for tokens in self._encode(texts, cut=True)]
        distinct = sorted(set(encoded), key=lambda tokens: (-len(tokens), tokens))
        limit = CPU_TOKENS if self.model.device.type == "cpu" else ACCELERATOR_TOKENS
        found: dict[tuple[int, ...], np.ndarray] = {}
        with Progress(len(distinct), "Classifying", "text", silent=len(distinct) < 2) as progress:
            while len(found) < len(distinct):
                batch = distinct[len(found) :]
                batch = batch[: max(1, limit // len(batch[0]))]
                found |= dict(zip(batch, self._outputs(batch), strict=True))
                progress.update(len(batch))
        return np.array([found[tokens] for tokens in encoded]).reshape(len(encoded), self.model.config.num_labels)

    def _outputs(self, batch: Sequence[Sequence[int]]) -> np.ndarray:
        """Raw outputs of one batch, padded on the right: BERT has absolute positions."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        from cultureval.runtime.onednn_products import onednn_products

        rows = [torch.tensor(tokens, device=self.model.device) for tokens in batch]
        ids = pad_sequence(rows, batch_first=True, padding_value=self.tokenizer.pad_token_id or 0)
        mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        with torch.inference_mode(), onednn_products(str(self.model.device)):
            return self.model(input_ids=ids, attention_mask=mask).logits.double().cpu().numpy()

    def cut(self, texts: Sequence[str]) -> set[str]:
        """The texts that are truncated."""
        limit = self.tokenizer.model_max_length
        long = [text for text in texts if len(text) > limit - 3]  # a token has at least one character
        return {text for text, tokens in zip(long, self._encode(long), strict=True) if len(tokens) > limit}

    def _encode(self, texts: Sequence[str], cut: bool = False) -> list[list[int]]:
        cleaned = [_plain(text) for text in texts]
        return self.tokenizer(cleaned, truncation=cut)["input_ids"] if texts else []


class DialectModels:
    """The three classifiers of dialectal fidelity, each loaded on first use.

    Args:
        nadi: Hub id or folder of the country classifier with 18 labels in the order of `COUNTRIES`.
        aldi: Hub id or folder of the regressor of dialectness.
        lid: Hub id, folder or file of the fastText model.
        device: torch device of the first two; None: `scoring_device()`.
    """

    def __init__(
        self,
        nadi: str = DEFAULTS[NADI],
        aldi: str = DEFAULTS[ALDI],
        lid: str = DEFAULTS[LID],
        device: str | None = None,
    ) -> None:
        self.names = {NADI: nadi, ALDI: aldi, LID: lid}
        self.device = device

    def country_probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Softmax over the 18 countries, shape (N, 18), in the order of `COUNTRIES`."""
        if not texts:
            return np.zeros((0, len(COUNTRIES)))
        logits = self._classifier(NADI).logits(texts)
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        return exponents / exponents.sum(axis=1, keepdims=True)

    def dialectness(self, texts: Sequence[str]) -> np.ndarray:
        """ALDi's single output, clamped to 0 to 1, shape (N,)."""
        return self._classifier(ALDI).logits(texts)[:, 0].clip(0.0, 1.0) if texts else np.zeros(0)

    def is_arabic(self, texts: Sequence[str]) -> np.ndarray:
        """Whether the most likely language of each text is a variety of Arabic, in any script; False for ""."""
        model = load_language_model(local_copy(self.names[LID]))
        labels = [model.predict(_plain(one_line(text)))[0] if text else () for text in texts]
        return np.array([_language(found[0]) in ARABIC if found else False for found in labels], dtype=bool)

    def truncated(self, texts: Sequence[str]) -> set[str]:
        """The texts that are truncated for the country classifier."""
        return self._classifier(NADI).cut(texts) if texts else set()

    def _classifier(self, kind: str) -> Classifier:
        return load_classifier(kind, local_copy(self.names[kind]), self.device or scoring_device())


def configured_models() -> DialectModels:
    """The classifiers of the settings (`SETTINGS`), else the paper's."""
    settings = current_settings()
    nadi, aldi, lid = (getattr(settings, SETTINGS[kind]) or DEFAULTS[kind] for kind in (NADI, ALDI, LID))
    return DialectModels(nadi, aldi, lid)


def model_names() -> tuple[str, ...]:
    """Hub ids, folders or files of the classifiers of the settings."""
    return tuple(configured_models().names.values())


def models_signature() -> str:
    """The classifiers' identities for score signatures: names, commits or content hashes, precision unless float32."""
    parts = [f"{kind}={_identity(kind, name)}" for kind, name in configured_models().names.items()]
    dtype = classifier_dtype(scoring_device())
    return f"ADI2({','.join([*parts, *([] if dtype == 'float32' else [f'dtype={dtype}'])])})"


def check_models() -> None:
    """Loads the three classifiers before a long run; the error says how to set a local model."""
    all_of([partial(check_model, kind) for kind in (LID, NADI, ALDI)])


def check_model(kind: str) -> None:
    """As `check_models`, for one classifier."""
    models = configured_models()
    if kind == LID:
        load_language_model(local_copy(models.names[LID]))
    else:
        models._classifier(kind)


def one_line(text: str) -> str:
    """The text with spaces for line feeds: the only cleaning of the paper's program."""
    return text.replace("\n", " ")


def classifier_dtype(device: str) -> str:
    """The precision of NADI and ALDi: float16 on accelerators, which halves the time; float32 on a CPU."""
    return "float32" if device.partition(":")[0] == "cpu" else "float16"


@lru_cache(maxsize=4)
def load_classifier(kind: str, name: str, device: str) -> Classifier:
    """Load a BERT classifier once per process, in the precision of `classifier_dtype`.

    Args:
        kind: `NADI` or `ALDI`.
        name: Hub id or folder.
        device: torch device.

    Raises:
        CulturevalError: It cannot be loaded, weights are missing, its number of outputs is wrong, or its labels are not
            in the order of `COUNTRIES`.
    """
    import torch
    from transformers import AutoModelForSequenceClassification

    try:
        dtype = getattr(torch, classifier_dtype(device))
        tokenizer, model = load_sound(AutoModelForSequenceClassification, name, MAX_TOKENS, dtype=dtype)
        if model.config.num_labels != OUTPUTS[kind]:
            raise ValueError(f"it has {model.config.num_labels} outputs, not {OUTPUTS[kind]}")
        if kind == NADI:
            _check_labels(model.config.id2label)
    except Exception as error:
        raise _not_usable(kind, name, str(error)) from error
    return Classifier(tokenizer, model.to(device))


@lru_cache(maxsize=2)
def load_language_model(name: str) -> Any:
    """Load a fastText model once per process: its file, a folder with `model.bin`, or a hub id."""
    import fasttext

    try:
        model = fasttext.load_model(str(_language_model_file(name)))
        # fasttext-predict has no other name for all labels.
        labels = {_language(label) for label in model.predict("a", k=-1)[0]}
        if not labels & ARABIC or "eng" not in labels:
            raise ValueError(f"its labels are not ISO 639-3 codes, as arb_Arab: {', '.join(sorted(labels)[:5])}")
    except Exception as error:  # fastText raises ValueError and RuntimeError, the hub client its own types
        raise _not_usable(LID, name, str(error)) from error
    return model


def _language(label: str) -> str:
    """The code in a label of fastText's: `__label__arb_Arab` -> arb."""
    return label.removeprefix("__label__").partition("_")[0]


def _language_model_file(name: str) -> Path:
    place = Path(name).expanduser()
    if place.is_file():
        return place
    if place.is_dir():
        return place / "model.bin"
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(name, "model.bin"))


def _check_labels(labels: dict[int, str]) -> None:
    """Check the label order; a config without label names (LABEL_0, ...) is accepted."""
    for number, label in labels.items():
        plain = re.sub(r"[\W_]", "", label.lower())
        name = re.sub("_", "", COUNTRY_NAMES[number].lower())
        if plain not in (f"label{number}", name, COUNTRIES[number], NAMES_WRITTEN_OUT.get(name)):
            raise ValueError(f"label {number} of its config is {label!r}, and NADI's is {COUNTRY_NAMES[number]!r}")


def _identity(kind: str, name: str) -> str:
    if kind != LID:
        return versioned_name(name)
    files = [_language_model_file(name)] if Path(name).expanduser().exists() else []
    return versioned_name(name, files, hub_file="model.bin")


def _plain(text: str) -> str:
    """Replace lone surrogates, which tokenizers and fastText reject, by question marks."""
    return text.encode("utf-8", "replace").decode()


def _not_usable(kind: str, name: str, reason: str) -> CulturevalError:
    first_line = reason.strip().partition("\n")[0]
    files = "its model.bin" if kind == LID else "its configuration, weights and tokenizer"
    return CulturevalError(
        f"The {kind} model {name!r} cannot be used ({first_line}). Set {variable_of(SETTINGS[kind])} to a local "
        f"folder with {files}, or fetch {DEFAULTS[kind]} on a machine with access to the hub (`cultureval fetch "
        "alqasida`)."
    )
