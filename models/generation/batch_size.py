"""How many answers are generated at once: as set, or as many as fit the memory."""

import logging
from typing import Literal

from transformers import PreTrainedModel

from cultureval.models.memory import available_bytes
from cultureval.runtime.errors import GOES_ON, CulturevalError

logger = logging.getLogger(__name__)

# More rows are hardly faster: by then the products, not the reading of the weights, take the time.
MOST_CPU, MOST_ACCELERATOR = 32, 256
SHARE = 0.5  # of the free memory; the rest is for passes over prompts, and for other processes
COPIES_OF_LOGITS = 6  # fp32 or wider, while a token is chosen


class BatchSize:
    """How many rows a batch may have.

    Attributes:
        most: At most so many; halved where memory does not suffice.
        auto: Whether no number was set.
    """

    def __init__(self, setting: int | Literal["auto"], model: PreTrainedModel, name: str) -> None:
        """Start with a number of rows, or "auto" for as many as fit; the model's name is for messages."""
        self.auto, self._device, self._name = setting == "auto", model.device, name
        on_cpu = model.device.type == "cpu"
        self.most = setting if setting != "auto" else MOST_CPU if on_cpu else MOST_ACCELERATOR
        self._logits = COPIES_OF_LOGITS * 4 * model.config.get_text_config(decoder=True).vocab_size
        self._said = False

    def fits(self, rows: int, columns: int, bytes_per_column: int) -> bool:
        """Whether rows of so many tokens, answers included, fit the memory that is free; a set number always does."""
        needed = rows * (columns * bytes_per_column + self._logits)
        return not self.auto or needed <= SHARE * available_bytes(self._device)

    def halve(self, rows: int, error: BaseException) -> None:
        """Allow half as many rows as did not fit; says so the first time.

        Raises:
            CulturevalError: It was one row.
        """
        if rows <= 1:
            raise CulturevalError(
                f"{self._name} has too little memory on {self._device} for one answer ({str(error)[:200]}). Lower "
                f"max_length or max_new_tokens, set dtype: bfloat16, 8bit or 4bit, or device_map: auto. {GOES_ON}"
            ) from None
        self.most = max(rows // 2, 1)
        if not self._said:
            logger.warning(
                "memory on %s did not suffice for %d answers at once: going on with %d, fewer if need be",
                *(self._device, rows, self.most),
            )
        self._said = True
