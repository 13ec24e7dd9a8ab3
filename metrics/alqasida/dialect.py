"""Dialectal fidelity of Arabic text: NADI, ALDi, ADI2 (AL-QASIDA, arXiv 2412.04193, section 3, and its released files).

NADI is the probability that a text is in the dialect of the target country; ALDi, between 0 and 1, how far it is from
Standard Arabic; ADI2 is their product. A macro score uses the probability of the country's region. Text that is not
Arabic scores 0.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from cultureval.metrics.alqasida.countries import COUNTRIES, REGIONS
from cultureval.metrics.alqasida.dialect_models import DialectModels, configured_models, one_line
from cultureval.metrics.alqasida.names import ADI2, ADI2_MACRO, ALDI, ARABIC_RATE, NADI, NADI_MACRO, PROFILES, SCORES

LEAST_WORDS = 5  # words of a line that `released` counts as usable, as in the public language-confusion benchmark
_PUNCTUATION = str.maketrans({"—": " ", "،": "", **dict.fromkeys("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "")})
_URL = re.compile(r"(?:https?://|www\.)\S+")
_LATIN = re.compile(r"[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")
_SUM_TOLERANCE = 1e-3


def macro_region(country: str) -> tuple[str, ...]:
    """The codes of a country's region, including its own; three letters."""
    _position(country)
    return next(members for members in REGIONS.values() if country in members)


def adi2(country_probs: np.ndarray, aldi: np.ndarray, country: str) -> dict[str, np.ndarray]:
    """ADI2 = NADI x ALDi, and its macro form (AL-QASIDA section 3; the program's `score` and `macro_score`).

    Args:
        country_probs: Probabilities of the 18 countries, shape (N, 18), in the order of `COUNTRIES`. A row of zeros:
            the text is not Arabic.
        aldi: Levels of dialectness, shape (N,), in 0 to 1: ALDi's logit, clamped.
        country: The target country, as a three-letter code.

    Returns:
        `nadi`, `nadi_macro` (sum over the country's region), `adi2` and `adi2_macro`: float64 arrays of shape (N,) in
        0 to 1.

    Raises:
        ValueError: No text, another shape, an unknown country, values outside 0 to 1, or probabilities that sum to
            neither 1 nor 0.
    """
    probabilities = np.asarray(country_probs, dtype=np.float64)
    levels = np.asarray(aldi, dtype=np.float64)
    if probabilities.ndim != 2 or probabilities.shape[1] != len(COUNTRIES) or not len(probabilities):
        raise ValueError(f"country_probs must be of shape (N, {len(COUNTRIES)}), not {probabilities.shape}")
    if levels.shape != probabilities.shape[:1]:
        raise ValueError(f"aldi must be of shape ({len(probabilities)},), not {levels.shape}")
    for name, values in (("country_probs", probabilities), (ALDI, levels)):
        if not ((values >= 0) & (values <= 1)).all():  # false for nan as well
            raise ValueError(f"{name} has a value outside 0 to 1")
    totals = probabilities.sum(axis=1)
    if not ((abs(totals - 1) <= _SUM_TOLERANCE) | (totals == 0)).all():
        raise ValueError("a row of country_probs sums to neither 1 nor 0")
    region = [_position(code) for code in macro_region(country)]
    nadi, macro = probabilities[:, _position(country)], probabilities[:, region].sum(axis=1)
    return {NADI: nadi, NADI_MACRO: macro, ADI2: nadi * levels, ADI2_MACRO: macro * levels}


def remove_prompt_copies(prompt: str, completion: str) -> str:
    """A completion on one line without copies of its prompt, as AL-QASIDA re-scored completions.

    Line feeds become spaces in both, every exact occurrence of the prompt is removed, and two spaces become one in a
    single pass from left to right. Nothing else changes: no stripping, no partial matches.
    """
    return one_line(completion).replace(one_line(prompt), "").replace("  ", " ")


def has_prompt_copy(prompt: str, completion: str) -> bool:
    """Whether a completion contains a copy of its prompt, which `remove_prompt_copies` removes."""
    return bool(prompt) and one_line(prompt) in one_line(completion)


def without_urls_and_latin(text: str) -> str:
    """A text without URLs and Latin letters, as ALDi's authors advise (AMR-KELEG/ALDi)."""
    return " ".join(_LATIN.sub(" ", _URL.sub(" ", text)).split())


def has_too_few_words(completion: str) -> bool:
    """Whether no line of a completion has five words, so that the `released` profile excludes it from the means.

    A line's words are counted without ASCII punctuation and Arabic commas; text after a line that begins with `Q:` does
    not count. The program is not public: this is the rule of the language-confusion benchmark, by the same authors,
    without its check of each line's language.
    """
    lines = completion.partition("\nQ:")[0].split("\n")
    return not any(len(line.translate(_PUNCTUATION).split()) >= LEAST_WORDS for line in lines)


@dataclass(frozen=True)
class DialectReading:
    """The texts that a profile scores for one completion, and their weights.

    Attributes:
        texts: Pairs: the text for language identification and NADI, and the text for ALDi.
        weights: Weights of the texts in the completion's scores; they sum to 1.
    """

    texts: tuple[tuple[str, str], ...]
    weights: tuple[float, ...]


def read_completion(profile: str, prompt: str, completion: str, request: str = "") -> DialectReading | None:
    """The texts that a profile scores; None if it excludes the completion from its means.

    - `paper`, the headline (path C of the released files): one line, prompt copies removed; every completion counts.
    - `released` (path A): one line, unchanged; completions with too few words are excluded.
    - `clean` (our own): copies of the prompt and of the bare request removed; each line is scored separately, weighted
      by its words; ALDi reads it without URLs and Latin letters. Every completion counts.

    Args:
        profile: One of `PROFILES`.
        prompt: What the model was asked, in its last block: with few-shot examples `Q: ...`, a line feed, `A:`.
        request: The bare request in such a prompt. Upstream looks for whole prompts alone, and so does `paper`.

    Raises:
        ValueError: There is no such profile.
    """
    if profile == "paper":
        return _single_text(remove_prompt_copies(prompt, completion))
    if profile == "released":
        return None if has_too_few_words(completion) else _single_text(one_line(completion))
    if profile != "clean":
        raise ValueError(f"there is no profile {profile!r}; the profiles are {', '.join(PROFILES)}")
    rest = completion.replace(prompt, "") if prompt else completion
    rest = rest.replace(request, "") if request else rest
    lines = [line.strip() for line in rest.split("\n") if line.strip()]
    words = [len(line.split()) for line in lines]
    weights = tuple(count / sum(words) for count in words)
    return DialectReading(tuple((line, without_urls_and_latin(line)) for line in lines), weights)


def score_completions(
    prompts: Sequence[str],
    completions: Sequence[str],
    country: str,
    profiles: Collection[str] = PROFILES[:1],
    models: DialectModels | None = None,
    requests: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """The scores of completions under the chosen profiles, with one pass of the classifiers over the distinct texts.

    Args:
        prompts: N prompts, whose copies are searched for; "" without one.
        completions: N texts.
        country: The target country, as a three-letter code.
        profiles: The profiles, see `read_completion`; the paper's is always scored.
        models: The classifiers; None: those of the settings, loaded on first use.
        requests: The bare requests of prompts that hold more, see `read_completion`; None: the prompts.

    Returns:
        float64 arrays of shape (N,) in 0 to 1: each of `SCORES` for the profile `paper`, under `<name>_released` and
        `<name>_clean` for the others (nan if `released` excludes the completion), and `empty_rate`,
        `prompt_copy_rate`, `truncated_rate` (the completion is longer than the limit of NADI or ALDi) and, with
        `released`, `too_few_rate`.

    Raises:
        ValueError: No completion, lengths that differ, or an unknown country.
        CulturevalError: A classifier cannot be loaded or is not the expected kind of model.
    """
    bare = prompts if requests is None else requests
    if not len(prompts) == len(bare) == len(completions) or not len(prompts):
        raise ValueError(
            f"there are {len(prompts)} prompts, {len(bare)} requests and {len(completions)} completions; one each is "
            "needed"
        )
    _position(country)
    asked = list(zip(prompts, completions, bare, strict=True))
    chosen = [name for name in PROFILES if name == PROFILES[0] or name in profiles]
    readings = {name: [read_completion(name, *one) for one in asked] for name in chosen}
    texts = {pair for column in readings.values() for reading in column if reading for pair in reading.texts}
    models = models or configured_models()
    measured = _measure(sorted(texts), country, models)
    values: dict[str, np.ndarray] = {}
    for profile, column in readings.items():
        table = np.array([_average(reading, measured) for reading in column]).reshape(-1, len(SCORES))
        suffix = "" if profile == "paper" else f"_{profile}"
        values |= {name + suffix: table[:, number] for number, name in enumerate(SCORES)}
    cut = models.truncated(list(dict.fromkeys(reading.texts[0][0] for reading in readings["paper"] if reading.texts)))
    flags = {
        "empty_rate": [not text.strip() for text in completions],
        "prompt_copy_rate": [has_prompt_copy(one, text) or has_prompt_copy(other, text) for one, text, other in asked],
        "truncated_rate": [bool(reading.texts) and reading.texts[0][0] in cut for reading in readings["paper"]],
    }
    if "released" in readings:
        flags["too_few_rate"] = [reading is None for reading in readings["released"]]
    return values | {name: np.array(flag, dtype=np.float64) for name, flag in flags.items()}


def _single_text(text: str) -> DialectReading:
    return DialectReading(((text, text),), (1.0,)) if text else DialectReading((), ())


def _position(country: str) -> int:
    if country not in COUNTRIES:
        raise ValueError(f"{country!r} is not one of the country codes {', '.join(COUNTRIES)}")
    return COUNTRIES.index(country)


def _measure(texts: list[tuple[str, str]], country: str, models: DialectModels) -> dict[tuple[str, str], np.ndarray]:
    """`SCORES` of each distinct pair of texts; NADI and ALDi read only texts identified as Arabic."""
    is_arabic = dict(zip(full := sorted({text for text, _ in texts}), models.is_arabic(full), strict=True))
    arabic = [pair for pair in texts if is_arabic[pair[0]]]
    zeros = np.zeros(len(SCORES))
    if not arabic:
        return dict.fromkeys(texts, zeros)
    nadi_texts = sorted({text for text, _ in arabic})
    aldi_texts = sorted({part for _, part in arabic if part})
    probabilities = dict(zip(nadi_texts, models.country_probabilities(nadi_texts), strict=True))
    levels = dict(zip(aldi_texts, models.dialectness(aldi_texts), strict=True))
    rows = np.array([probabilities[text] for text, _ in arabic]).reshape(-1, len(COUNTRIES))
    aldi = np.array([levels.get(part, 0.0) for _, part in arabic])
    scored = adi2(rows, aldi, country) | {ALDI: aldi, ARABIC_RATE: np.ones(len(arabic))}
    table = np.column_stack([scored[name] for name in SCORES])
    return dict.fromkeys(texts, zeros) | dict(zip(arabic, table, strict=True))


def _average(reading: DialectReading | None, measured: dict[tuple[str, str], np.ndarray]) -> np.ndarray:
    if reading is None:
        return np.full(len(SCORES), np.nan)
    total = np.zeros(len(SCORES))
    for text, weight in zip(reading.texts, reading.weights, strict=True):
        total += weight * measured[text]
    return total
