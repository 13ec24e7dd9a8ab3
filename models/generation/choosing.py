"""The choice of the next token of each row: the likeliest, or drawn with the row's own random numbers."""

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

# These look at nothing but the scores, so that one call serves all rows.
OF_SCORES_ALONE = (TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, MinPLogitsWarper)
MODES = (GenerationMode.GREEDY_SEARCH, GenerationMode.SAMPLE)


class TokenChooser:
    """Chooses tokens as transformers' `generate` does with the same settings and the model's own generation config.

    Attributes:
        refused: Why only `generate` itself can decode with these settings, as a clause; "" where this class can.
    """

    def __init__(self, loaded: LoadedModel, settings: Mapping[str, Any]) -> None:
        """Prepare to choose with settings of `generate`; without a temperature (or with 0) decoding is greedy."""
        self.loaded, self._arguments = loaded, sampling_arguments(settings)
        self._shared, config = self._processors([(loaded.end_ids() or [0])[0]], 1)
        self._of_rows = not all(isinstance(one, OF_SCORES_ALONE) for one in self._shared)
        self._sampled = bool(config.do_sample)
        self._refuse_nan = RefuseNaN(loaded)
        self.refused, mode = "", config.get_generation_mode()
        if mode not in MODES:
            self.refused = f"its generation settings ask for {mode.value.replace('_', ' ')}"
        elif config.guidance_scale not in (None, 1):
            self.refused = "its generation settings ask for guidance, which reads every prompt twice"

    def _processors(self, prompt: Sequence[int], limit: int) -> tuple[LogitsProcessorList, GenerationConfig]:
        """What `generate` would do to the scores after a prompt whose answer has so many tokens, and its settings."""
        found: list[Any] = []

        def kept(*_: Any, **given: Any) -> None:
            found.extend((given["logits_processor"], given["generation_config"]))

        ids = torch.tensor([list(prompt)], device=self.loaded.model.device)
        more = {"max_new_tokens": limit, "pad_token_id": self.loaded.tokenizer.pad_token_id}
        more["eos_token_id"] = self.loaded.end_ids() or None
        self.loaded.model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), custom_generate=kept, **self._arguments, **more
        )
        return found[0], found[1]

    def choose(self, rows: Sequence[AnswerRow], logits: Tensor) -> list[int]:
        """The next token of each row, from logits [rows, vocabulary] in fp32; a CulturevalError if one is NaN."""
        ids = torch.empty(len(rows), 0, dtype=torch.long, device=logits.device)
        self._refuse_nan(ids, logits)
        if self._of_rows:
            scores = torch.cat([self._of_row(row, one) for row, one in zip(rows, logits.split(1), strict=True)])
        else:
            scores = self._shared(ids, logits)
        return (_drawn(rows, scores) if self._sampled else scores.argmax(-1)).tolist()

    def _of_row(self, row: AnswerRow, scores: Tensor) -> Tensor:
        if row.processors is None:
            row.processors = self._processors(row.prompt, row.limit)[0]
        return row.processors(torch.tensor([row.last(len(row))], device=scores.device), scores)


def _drawn(rows: Sequence[AnswerRow], scores: Tensor) -> Tensor:
    """Tokens drawn by one random number each: the first whose probabilities add up to more than it."""
    sums = scores.double().softmax(-1).cumsum(-1)
    numbers = torch.tensor([[row.numbers.random()] for row in rows], dtype=torch.double, device=scores.device)
    found = torch.searchsorted(sums, numbers * sums[:, -1:], right=True)
    return found[:, 0].clamp(max=scores.shape[-1] - 1)
