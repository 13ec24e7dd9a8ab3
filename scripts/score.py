"""`cultureval score NAME`: scores submission files in a benchmark's official format."""

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


def score_with(name: str, scorer: "Callable[[Path, Sequence[Path], Path], ScoredSubmissions]") -> Callable[..., None]:
    """The command that saves and prints what a scorer of submission files returns."""

    def score(
        gold: Annotated[Path, typer.Option(help="The gold file, or a folder with the released layout.")],
        pred: Annotated[list[Path], typer.Option(help="A submission file, or a folder. Repeatable.")],
        output_dir: Annotated[
            Path, typer.Option(help="Output folder of results, tables (JSON, CSV) and plots.")
        ] = Path("results/score"),
        model_name: Annotated[
            str | None, typer.Option(help="Name in the results; default: that of the submission's file or folder.")
        ] = None,
    ) -> None:
        from cultureval.reports.submissions import ScoredSubmissions, save_submissions

        started = time.time()
        require_output_folder(output_dir)
        output_dir.mkdir(parents=True, exist_ok=True)
        scored = scorer(gold, pred, output_dir)
        if not isinstance(scored, ScoredSubmissions):
            raise CulturevalError(f"The scorer of {name} returned {shorten(scored)}, not ScoredSubmissions.")
        files = save_submissions(scored, gold, output_dir, started, model_name)
        results = "\n".join(f"Results: {file.resolve()}" for file in files)
        text = f"{scored.text}\nTables and plots: {output_dir.resolve()}\n{results}"
        path = output_dir / f"{name}.txt"
        path.write_text(f"{text}\n", encoding="utf-8")
        print_result(text, path)
        if scored.problems:
            raise CulturevalError("\n".join(["Not scored:", *(f"  {problem}" for problem in scored.problems)]))

    return score
