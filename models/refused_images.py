"""Docs whose images a model's processor or its server refuses: named, and skipped where the settings say so."""

from collections.abc import Sequence

from lighteval.tasks.requests import Doc

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import image_of, name_of
from cultureval.runtime.settings import current_settings

SMALL = 64  # pixels of a side; processors' patches have at most 32
LONG = 3  # times the other side; processors of transformers 5.19 refuse from 4 times on, most from 200


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


def could_be_refused(size: tuple[int, int]) -> bool:
    """Whether an image's width and height are such that some processor refuses it: small, or long and narrow."""
    return min(size) < SMALL or max(size) > LONG * min(size)


def skips_refused() -> bool:
    """Whether the settings say that such docs are skipped, as broken rows are, or left unscored."""
    return current_settings().bad_rows == "skip" or current_settings().on_refused == "unscored"


def reason_to_skip(error: ImagesRefused) -> str:
    """Why a doc is skipped, where the settings say so; raises the error where they do not."""
    if not skips_refused():
        raise error
    return error.reason
