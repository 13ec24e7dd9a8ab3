"""`cultureval score NAME`: scores submission files in a benchmark's official format, or outputs made elsewhere."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.output_folder import require_output_folder
from cultureval.runtime.printing import print_result

if TYPE_CHECKING:
    from cultureval.reports.submissions import ScoredSubmissions

Gold = Annotated[Path, typer.Option(help="The gold file, or a folder with the released layout.")]
Pred = Annotated[list[Path], typer.Option(help="A submission file, or a folder. Repeatable.")]
OutputDir = Annotated[Path, typer.Option(help="Output folder of results, tables (JSON, CSV) and plots.")]
ModelName = Annotated[
    str | None, typer.Option(help="Name in the results; default: that of the submission's file or folder.")
]
FOLDER = Path("results/score")


def score_outputs_with(name: str, scorer: Callable[[Sequence[Path], Path], str]) -> Callable[..., None]:
    """The command that prints what a scorer of outputs returns, which writes the results files itself."""

    def score(pred: Pred, output_dir: OutputDir = FOLDER) -> None:
        require_output_folder(output_dir)
        _finish(name, scorer(pred, output_dir), output_dir)

    return score


def score_submissions_with(
    name: str, scorer: "Callable[[Path, Sequence[Path], Path], ScoredSubmissions]"
) -> Callable[..., None]:
    """The command that saves and prints what a scorer of submission files returns."""

    def score(gold: Gold, pred: Pred, output_dir: OutputDir = FOLDER, model_name: ModelName = None) -> None:
        from cultureval.reports.submissions import ScoredSubmissions, save_submissions

        started = time.time()
        require_output_folder(output_dir)
        output_dir.mkdir(parents=True, exist_ok=True)
        scored = scorer(gold, pred, output_dir)
        if not isinstance(scored, ScoredSubmissions):
            raise CulturevalError(f"The scorer of {name} returned {shorten(scored)}, not ScoredSubmissions.")
        files = save_submissions(scored, gold, output_dir, started, model_name)
        results = "\n".join(f"Results: {file.resolve()}" for file in files)
        _finish(name, f"{scored.text}\nTables and plots: {output_dir.resolve()}\n{results}", output_dir)
        if scored.problems:
            raise CulturevalError("\n".join(["Not scored:", *(f"  {problem}" for problem in scored.problems)]))

    return score


def _finish(name: str, text: str, output_dir: Path) -> None:
    path = output_dir / f"{name}.txt"
    path.write_text(f"{text}\n", encoding="utf-8")
    print_result(text, path)
