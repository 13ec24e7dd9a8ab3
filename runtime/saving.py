"""Where a run writes: its output folder, the hub, and trackers of experiments."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cultureval.runtime.data.hub import is_offline
from cultureval.runtime.errors import CulturevalError, ProblemList


@dataclass(frozen=True)
class Saving:
    """What is kept of a run, and where it is uploaded; by default nothing is uploaded."""

    log_samples: bool = True  # details of each row; `judge`, `show` and `compare` need them
    push_to_hub: str | None = None  # account or organisation on the hub: results and details, as private data sets
    wandb: bool = False  # log the scores to trackio, where it is installed, else to Weights & Biases

    def check(self) -> None:
        """Checks before the run what was asked for; raises a CulturevalError of all that cannot be done."""
        problems = ProblemList()
        for text in self._problems():
            problems.add(CulturevalError(text))
        problems.raise_if_any()

    def _problems(self) -> Iterator[str]:
        if self.push_to_hub is not None:
            yield from hub_problems("--push-to-hub", self.push_to_hub)
        if self.wandb and not any(map(find_spec, ("trackio", "wandb"))):
            yield "--wandb needs trackio or wandb: pip install trackio (or wandb)."
        if self.wandb and not os.environ.get("WANDB_PROJECT"):
            yield "--wandb needs the project's name in the environment variable WANDB_PROJECT."

    def tracker_options(self) -> dict[str, Any]:
        """The arguments of LightEval's EvaluationTracker."""
        return {
            "save_details": self.log_samples,
            "push_to_hub": self.push_to_hub is not None,
            "public": False,
            "hub_results_org": self.push_to_hub,
            "use_wandb": self.wandb,
        }


def summary_file(results: Path) -> Path:
    """Where the printed summary of a run is kept, beside its results file: summary_<date>.txt."""
    return results.with_name(results.stem.replace("results_", "summary_", 1) + ".txt")


def hub_problems(option: str, org: str | None) -> Iterator[str]:
    """A sentence for each thing that an upload lacks which an option asked for."""
    from huggingface_hub import get_token

    if not org:
        yield f"{option} needs the name of your account or organisation on the hub."
    if get_token() is None:
        yield f"{option} needs a login at the hub: run `hf auth login`, or set HF_TOKEN."
    if is_offline():
        yield f"{option} needs the hub, which is off (HF_HUB_OFFLINE) or does not answer."


def require_folder(folder: str | Path, option: str = "--output-dir") -> None:
    """Raises a CulturevalError where the folder of an option, or the one it will be made in, is not writable.

    An fsspec address (`s3://...`), which LightEval writes to, passes.
    """
    if "://" in str(folder):
        return
    path = Path(folder).absolute()
    try:
        tempfile.TemporaryFile(dir=next(place for place in (path, *path.parents) if place.exists())).close()
    except OSError as error:
        raise CulturevalError(
            f"Nothing can be written into {option} {folder} ({error.strerror}): name another folder."
        ) from error
