"""Docs whose images a model's processor or its server refuses: named, and skipped where the settings say so."""

from collections.abc import Sequence

from lighteval.tasks.requests import Doc

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import image_of, name_of
from cultureval.runtime.settings import current_settings


class ImagesRefused(CulturevalError):
    """A processor or server refuses the images of some docs, or they take more tokens than the model reads.

    Args:
        docs: The docs that were given to it together.
        reason: A clause ("the processor refuses it: ...").
    """

    kind = "image"

    def __init__(self, docs: Sequence[Doc], reason: str) -> None:
        self.reason = reason
        names = "; ".join(f"{name_of(doc)}: {image_of(doc)}" for doc in docs)
        super().__init__(
            f"{names}: {reason}. Mend or replace the image, or pass --bad-rows skip (CULTUREVAL_BAD_ROWS=skip) to "
            "leave such rows out and list them, or --on-refused unscored to count them as unscored."
        )


def skips_refused() -> bool:
    """Whether the settings say that such docs are skipped, as broken rows are, or left unscored."""
    return current_settings().bad_rows == "skip" or current_settings().on_refused == "unscored"
