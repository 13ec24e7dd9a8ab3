"""What is known of a model before its weights load."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CheckedModel:
    """A model that can be loaded.

    Attributes:
        file: The file with its class, as `lighteval custom` takes it.
        no_images: Why tasks with images cannot be run, as a sentence; None where they can.
        no_likelihoods: The same of tasks with log-likelihoods.
        model_type: That of its configuration, such as `qwen3_vl`; "" where unknown, as behind a server.
    """

    file: Path
    no_images: str | None = None
    no_likelihoods: str | None = None
    model_type: str = ""


# (whether tasks show images, whether tasks need log-likelihoods) -> the model; raises CulturevalError
ModelCheck = Callable[[bool, bool], CheckedModel]
