"""The check of the generation queue: on probes its logits must equal those of plain passes."""

from collections import defaultdict
from collections.abc import Sequence
from random import Random

import torch
from torch import Tensor

from cultureval.models.generation.queue import GenerationQueue
from cultureval.models.generation.rows import AnswerRow
from cultureval.models.loading import LoadedModel
from cultureval.models.memory import BatchSize
from cultureval.models.scoring.choice_scores import ScoringRequest
from cultureval.models.scoring.plain import PlainScorer, compared, root_mean_square
from cultureval.runtime.patches.transformers import keeps_states

LONGEST = 64  # tokens of a probe; two thirds of it exceed `rows.LEAST_SHARED`
KINDS = {"full_attention", "sliding_attention", "chunked_attention"}  # layers with only keys and values in the cache


class _Forced:
    """Chooses the first tokens of a probe's prompt, and records all log-probabilities."""

    def __init__(self) -> None:
        self.seen: defaultdict[int, list[Tensor]] = defaultdict(list)

    def choose(self, rows: Sequence[AnswerRow], logits: Tensor) -> list[int]:
        for row, row_logits in zip(rows, logits, strict=True):
            self.seen[row.number].append(row_logits.log_softmax(-1))
        return [row.prompt[len(row.tokens) % len(row.prompt)] for row in rows]


def why_not_queued(loaded: LoadedModel, prompts: Sequence[Sequence[int]]) -> str:
    """A clause on why the queue cannot answer for a model; "" if it can.

    Args:
        loaded: The model.
        prompts: At least one prompt, for probes.
    """
    name, config = type(loaded.model).__name__, loaded.model.config.get_text_config(decoder=True)
    unsupported = set(getattr(config, "layer_types", None) or []) - KINDS
    if keeps_states(loaded.model) or unsupported:
        kind = f" (layers of kind {', '.join(sorted(unsupported))})" if unsupported else ""
        return f"{name} keeps states{kind}, which rows of different lengths cannot share"
    return compared(loaded.model, "the queue", lambda: _difference(loaded, prompts))[1]


def _difference(loaded: LoadedModel, prompts: Sequence[Sequence[int]]) -> float:
    """The difference of logits between the queue and plain passes, with rows that share, join and leave."""
    size, forced = BatchSize(2, loaded.model, str(loaded.identity.get("name"))), _Forced()
    probes = zip(_probes(prompts, loaded.max_length), (2, 4, 3), strict=True)
    rows = [AnswerRow(None, prompt, limit, Random(0), number) for number, (prompt, limit) in enumerate(probes)]
    GenerationQueue(loaded, forced, size, ()).answer(iter([rows]), lambda _: None)
    queued = torch.cat([torch.stack(forced.seen[row.number]) for row in rows])
    return root_mean_square(queued, torch.cat([_plain(loaded, row) for row in rows]))


def _probes(prompts: Sequence[Sequence[int]], max_length: int) -> list[list[int]]:
    """Two prompts of different lengths with the same beginning, and another, from tokens of the prompts."""
    by_length = sorted(prompts, key=len)
    most = min(LONGEST, max_length - 4)
    long = (list(by_length[-1]) * LONGEST)[:most]
    return [long, [*long[: most * 2 // 3], *long[:5]], list(by_length[0][: most - 1])]


@torch.inference_mode()
def _plain(loaded: LoadedModel, row: AnswerRow) -> Tensor:
    """Log-probabilities [tokens, vocabulary] of an answer's tokens, by one pass without a cache."""
    (logits,) = PlainScorer(loaded.model).rows(ScoringRequest(row.prompt, [row.tokens]))
    return logits.float().log_softmax(-1)
