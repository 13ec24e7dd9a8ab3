"""Where a run writes: its output folder, and what LightEval's options (with its names) keep and upload besides."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cultureval.runtime.data.hub import is_offline
from cultureval.runtime.errors import CulturevalError, ProblemList, described

PLACES = ("output_dir", "org", "model")


@dataclass(frozen=True)
class Saving:
    """Options of LightEval's EvaluationTracker; nothing is uploaded unless one of them asks for it."""

    results_path_template: str | None = None  # of the results file's folder; None: LightEval's
    save_details: bool = True  # of each row; `judge`, `show` and `compare` need them
    push_to_hub: bool = False  # results and details, to a data set of `results_org`
    public_run: bool = False  # whether uploaded data sets are public
    results_org: str | None = None  # account or organisation on the hub
    wandb: bool = False  # log the scores to trackio, where it is installed, else to Weights & Biases

    def check(self) -> None:
        """Checks before the run what was asked for; raises a CulturevalError of all that cannot be done."""
        problems = ProblemList()
        for text in self._problems():
            problems.add(CulturevalError(text))
        problems.raise_if_any()

    def _problems(self) -> Iterator[str]:
        try:
            (self.results_path_template or "").format(**dict.fromkeys(PLACES, ""))
        except (LookupError, ValueError) as error:
            yield f"--results-path-template may have {{output_dir}}, {{org}} and {{model}} ({described(error)})."
        if self.push_to_hub:
            yield from hub_problems("--push-to-hub", self.results_org)
        if self.wandb and not any(map(find_spec, ("trackio", "wandb"))):
            yield "--wandb needs trackio or wandb: pip install trackio (or wandb)."
        if self.wandb and not os.environ.get("WANDB_PROJECT"):
            yield "--wandb needs the project's name in the environment variable WANDB_PROJECT."

    def tracker_options(self) -> dict[str, Any]:
        """The arguments of LightEval's EvaluationTracker."""
        return {
            "results_path_template": self.results_path_template,
            "save_details": self.save_details,
            "push_to_hub": self.push_to_hub,
            "public": self.public_run,
            "hub_results_org": self.results_org,
            "use_wandb": self.wandb,
        }


def summary_file(results: Path) -> Path:
    """Where the printed summary of a run is kept, beside its results file: summary_<date>.txt."""
    return results.with_name(results.stem.replace("results_", "summary_", 1) + ".txt")


def hub_problems(option: str, results_org: str | None) -> Iterator[str]:
    """A sentence for each thing that an upload lacks which an option asked for."""
    from huggingface_hub import get_token

    if not results_org:
        yield f"{option} needs --results-org, your account or organisation on the hub."
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
