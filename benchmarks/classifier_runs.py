"""The dialect classifiers measured on single replies, on batches, and by all profiles, in one process, interleaved.

It stands beside its command since it needs what no other room may import together: the metrics and the random models of
the samples.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from cultureval.metrics.alqasida.dialect_models import DialectModels

Pairs = Sequence[tuple[str, str]]  # prompts and replies
# Settings of BERT; the published classifiers are of the size base.
SIZES: dict[str, dict[str, float]] = {
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    | {"initializer_range": 0.02},
    "tiny": {},
}
# Of published replies of chat models: half have 45 words or fewer, a tenth more than 97, none more than 122; of 40
# cross-lingual ones 26 have several lines.
MEDIAN_WORDS, SPREAD, MOST_WORDS, WORDS_OF_A_LINE = 45, 0.6, 120, 20
PUBLISHED_SHARE = 0.65
SINGLE, BATCHED, EVERY = "paper's profile, one reply at a time", "paper's profile, batches", "all profiles, batches"


def time_classifiers(pairs: Pairs, models: "DialectModels", repeats: int) -> tuple[dict[str, list[float]], float]:
    """Times the classifiers in turns: the paper's profile one reply at a time and in batches, and all profiles.

    Args:
        pairs: Prompts and replies.
        models: The classifiers.
        repeats: Number of turns.

    Returns:
        Seconds of each turn by `SINGLE`, `BATCHED` and `EVERY`, of the processor on a CPU, else of the clock; and the
        largest difference of ADI2 between single replies and batches.
    """
    import numpy as np

    from cultureval.metrics.alqasida.dialect import PROFILES, score_completions
    from cultureval.metrics.alqasida.names import ADI2

    prompts, replies = zip(*pairs, strict=True)
    clock = time.process_time if models.device == "cpu" else time.perf_counter
    ways = {
        SINGLE: lambda: np.array([score_completions([p], [r], "egy", models=models)[ADI2][0] for p, r in pairs]),
        BATCHED: lambda: score_completions(prompts, replies, "egy", models=models)[ADI2],
        EVERY: lambda: score_completions(prompts, replies, "egy", PROFILES, models)[ADI2],
    }
    score_completions(prompts[:1], replies[:1], "egy", PROFILES, models)  # loads the models
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    scores: dict[str, np.ndarray] = {}
    for _ in range(repeats):
        for name, way in ways.items():
            start = clock()
            scores[name] = way()
            seconds[name].append(clock() - start)
    return seconds, max(abs(scores[BATCHED] - scores[SINGLE]))


def random_replies(count: int, several_lines: float) -> list[tuple[str, str]]:
    """Replies of random words without a prompt, in the lengths of the published ones; this share of several lines."""
    import numpy as np

    from cultureval.samples.tiny_models.classifiers import SENTENCES

    numbers = np.random.default_rng(1)
    vocabulary = " ".join(SENTENCES[:5]).split()
    pairs = []
    for number in range(count):
        length = int(np.clip(np.exp(numbers.normal(np.log(MEDIAN_WORDS), SPREAD)), 1, MOST_WORDS))
        words = [str(word) for word in numbers.choice(vocabulary, length)]
        # Every so many replies, so that a few have the share that is asked for.
        lines = int((number + 1) * several_lines) > int(number * several_lines)
        size = min(WORDS_OF_A_LINE, -(-length // 2)) if lines else length
        parts = [" ".join(words[start : start + size]) for start in range(0, length, size)]
        pairs.append(("", "\n\n".join(parts)))
    return pairs


def read_replies(file: Path) -> list[tuple[str, str]]:
    """Prompts and replies of a file of rows (.csv, .jsonl, ...).

    Raises:
        CulturevalError: The file cannot be read, or a row has no text under `completion`.
    """
    from cultureval.runtime.data.row_files import read_rows

    rows = read_rows(file)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row.get("completion"), str):
            raise CulturevalError(f"{file}, row {number}: expected a text under `completion`.")
    if not rows:
        raise CulturevalError(f"{file} holds no rows.")
    return [(str(row.get("prompt") or ""), row["completion"]) for row in rows]


def build_models(folder: Path, size: str, device: str, texts: Sequence[str]) -> "DialectModels":
    """Classifiers of random weights, written below a folder, whose tokenizer knows the words of these texts."""
    from cultureval.metrics.alqasida.dialect_models import DialectModels
    from cultureval.samples.tiny_models import classifiers as tiny
    from cultureval.samples.tiny_models.classifiers import wordpiece_of

    tokenizer = wordpiece_of(texts, most=30_000)
    settings = {**SIZES[size], "vocab_size": len(tokenizer)}
    nadi = tiny.build_tiny_nadi(folder / "nadi", **settings)
    aldi = tiny.build_tiny_aldi(folder / "aldi", **settings)
    for place in (nadi, aldi):
        tokenizer.save_pretrained(place)
    return DialectModels(str(nadi), str(aldi), str(tiny.build_tiny_language_model(folder / "lid")), device)


def median_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    """The median of the turns' ratios of seconds."""
    return median(a / b for a, b in zip(first, second, strict=True))
