"""The choice of the next token of each row: the likeliest, or drawn with random numbers of the row."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation import GenerationMode

from cultureval.models.generation.generation import RefuseNaN, sampling_arguments
from cultureval.models.generation.rows import AnswerRow
from cultureval.models.loading import LoadedModel

# These depend only on the scores, so that one call serves all rows.
OF_SCORES_ALONE = (TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, MinPLogitsWarper)
MODES = (GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE)


class TokenChooser:
    """Chooses tokens as transformers' `generate` with the same settings and the model's generation config.

    Attributes:
        refused: A clause on why only `generate` can decode with these settings; "" if this class can.
    """

    def __init__(self, loaded: LoadedModel, settings: Mapping[str, Any]) -> None:
        """Prepares to choose with settings of `generate`; without a temperature (or with 0) decoding is greedy."""
        self.loaded, self._arguments = loaded, sampling_arguments(settings)
        self._shared, config = self._processors([(loaded.end_ids() or [0])[0]], 1)
        self._of_rows = not all(isinstance(processor, OF_SCORES_ALONE) for processor in self._shared)
        self._sampled = bool(config.do_sample)
        self._refuse_nan = RefuseNaN(loaded)
        self.refused, mode = "", config.get_generation_mode()
        if mode not in MODES:
            self.refused = f"its generation settings ask for {mode.value.replace('_', ' ')}"
        elif config.guidance_scale not in (None, 1):
            self.refused = "its generation settings ask for guidance, which reads every prompt twice"

    def _processors(self, prompt: Sequence[int], limit: int) -> tuple[LogitsProcessorList, GenerationConfig]:
        """The logits processors and the config of `generate` for a prompt and an answer of `limit` tokens."""
        found: list[Any] = []

        def captured(*_: Any, **arguments: Any) -> None:
            found.extend((arguments["logits_processor"], arguments["generation_config"]))

        ids = torch.tensor([list(prompt)], device=self.loaded.model.device)
        more = {"max_new_tokens": limit, "pad_token_id": self.loaded.tokenizer.pad_token_id}
        more["eos_token_id"] = self.loaded.end_ids() or None
        self.loaded.model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), custom_generate=captured, **self._arguments, **more
        )
        return found[0], found[1]

    def choose(self, rows: Sequence[AnswerRow], logits: Tensor) -> list[int]:
        """The next token of each row, from logits [rows, vocabulary] in fp32; a CulturevalError if one is NaN."""
        ids = torch.empty(len(rows), 0, dtype=torch.long, device=logits.device)
        self._refuse_nan(ids, logits)
        if self._of_rows:
            scores = torch.cat([self._of_row(row, part) for row, part in zip(rows, logits.split(1), strict=True)])
        else:
            scores = self._shared(ids, logits)
        return (_drawn(rows, scores) if self._sampled else scores.argmax(-1)).tolist()

    def _of_row(self, row: AnswerRow, scores: Tensor) -> Tensor:
        if row.processors is None:
            row.processors = self._processors(row.prompt, row.limit)[0]
        return row.processors(torch.tensor([row.last(len(row))], device=scores.device), scores)


def _drawn(rows: Sequence[AnswerRow], scores: Tensor) -> Tensor:
    """Tokens drawn with one random number each, by the cumulative probabilities."""
    sums = scores.double().softmax(-1).cumsum(-1)
    numbers = torch.tensor([[row.numbers.random()] for row in rows], dtype=torch.double, device=scores.device)
    found = torch.searchsorted(sums, numbers * sums[:, -1:], right=True)
    return found[:, 0].clamp(max=scores.shape[-1] - 1)
