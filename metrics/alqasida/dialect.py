"""Dialectal fidelity of Arabic text: NADI, ALDi, ADI2 (AL-QASIDA, arXiv 2412.04193, section 3, and its released files).

NADI is the probability that a text is in the dialect of the target country. ALDi is its distance from Standard Arabic,
0 to 1. ADI2 is their product. A macro score uses the probability of the country's region. Text that is not Arabic
scores 0.
"""

from collections.abc import Collection, Sequence

import numpy as np

from cultureval.metrics.alqasida.dialect_models import DialectModels, configured_models, one_line
from cultureval.metrics.alqasida.names import (
    ADI2,
    ADI2_MACRO,
    ALDI,
    ARABIC_RATE,
    COUNTRIES,
    NADI,
    NADI_MACRO,
    PROFILES,
    REGIONS,
    SCORES,
)

LEAST_WORDS = 5  # words of a line that `released` counts as usable, as in the public language-confusion benchmark
_PUNCTUATION = str.maketrans({"—": " ", "،": "", **dict.fromkeys("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "")})
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


def has_too_few_words(completion: str) -> bool:
    """Whether no line of a completion has five words; the `released` profile excludes such completions.

    Words are counted without ASCII punctuation and Arabic commas; text from a line that begins with `Q:` on does not
    count. The program is not public: this is the rule of the language-confusion benchmark, by the same authors, without
    its check of each line's language.
    """
    lines = completion.partition("\nQ:")[0].split("\n")
    return not any(len(line.translate(_PUNCTUATION).split()) >= LEAST_WORDS for line in lines)


def read_completion(profile: str, prompt: str, completion: str) -> str | None:
    """The text that a profile scores; None if it excludes the completion from its means.

    - `paper`, the headline (path C of the released files): one line, prompt copies removed; every completion counts.
    - `released` (path A): one line, unchanged; completions with too few words are excluded.

    Args:
        profile: One of `PROFILES`.
        prompt: What the model was asked, in its last block: with few-shot examples `Q: ...`, a line feed, `A:`.

    Raises:
        ValueError: There is no such profile.
    """
    if profile not in PROFILES:
        raise ValueError(f"there is no profile {profile!r}; the profiles are {', '.join(PROFILES)}")
    if profile == "paper":
        return remove_prompt_copies(prompt, completion)
    return None if has_too_few_words(completion) else one_line(completion)


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
        prompts: N prompts; copies of them are removed; "" for none.
        completions: N texts.
        country: The target country, as a three-letter code.
        profiles: The profiles, see `read_completion`; the paper's is always scored.
        models: The classifiers; None: those of the settings, loaded on first use.
        requests: The requests alone, if prompts have more; their copies are counted, too. None: the prompts.

    Returns:
        float64 arrays of shape (N,) in 0 to 1: `SCORES` of the profile `paper`; with `released`, `<name>_released` (nan
        for excluded completions) and `too_few_rate`; `empty_rate`, `prompt_copy_rate`, and `truncated_rate`
        (completions longer than the limit of NADI and ALDi).

    Raises:
        ValueError: No completion, lengths that differ, or an unknown country.
        CulturevalError: A classifier cannot be loaded or is not the expected kind of model.
    """
    bare, models = prompts if requests is None else requests, models or configured_models()
    if not len(prompts) == len(bare) == len(completions) or not len(prompts):
        counts = f"{len(prompts)} prompts, {len(bare)} requests and {len(completions)} completions"
        raise ValueError(f"there are {counts}; one each is needed")
    _position(country)
    asked = list(zip(prompts, completions, strict=True))
    chosen = [name for name in PROFILES if name == PROFILES[0] or name in profiles]
    texts = {name: [read_completion(name, *pair) for pair in asked] for name in chosen}
    measured = _measure(sorted({text for column in texts.values() for text in column if text}), country, models)
    measured |= {"": np.zeros(len(SCORES)), None: np.full(len(SCORES), np.nan)}
    values: dict[str, np.ndarray] = {}
    for profile, column in texts.items():
        table, suffix = np.array([measured[text] for text in column]), "" if profile == "paper" else f"_{profile}"
        values |= {name + suffix: table[:, number] for number, name in enumerate(SCORES)}
    cut = models.truncated([text for text in dict.fromkeys(texts["paper"]) if text])
    copies = [
        has_prompt_copy(pair, text) or has_prompt_copy(other, text)
        for pair, other, text in zip(prompts, bare, completions, strict=True)
    ]
    flags = {
        "empty_rate": [not text.strip() for text in completions],
        "prompt_copy_rate": copies,
        "truncated_rate": [text in cut for text in texts["paper"]],
    }
    if "released" in texts:
        flags["too_few_rate"] = [text is None for text in texts["released"]]
    return values | {name: np.array(flag, dtype=np.float64) for name, flag in flags.items()}


def _position(country: str) -> int:
    if country not in COUNTRIES:
        raise ValueError(f"{country!r} is not one of the country codes {', '.join(COUNTRIES)}")
    return COUNTRIES.index(country)


def _measure(texts: list[str], country: str, models: DialectModels) -> dict[str | None, np.ndarray]:
    """`SCORES` of each text; NADI and ALDi read only texts identified as Arabic."""
    found: dict[str | None, np.ndarray] = dict.fromkeys(texts, np.zeros(len(SCORES)))
    arabic = [text for text, is_arabic in zip(texts, models.is_arabic(texts), strict=True) if is_arabic]
    if arabic:
        aldi = models.dialectness(arabic)
        scored = adi2(models.country_probabilities(arabic), aldi, country)
        table = scored | {ALDI: aldi, ARABIC_RATE: np.ones(len(arabic))}
        found |= dict(zip(arabic, np.column_stack([table[name] for name in SCORES]), strict=True))
    return found
