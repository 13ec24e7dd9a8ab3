"""`cultureval reconcile`: one model in the forms of all boards, on the same rows."""

from functools import partial
from typing import Annotated

import typer

from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import CulturevalError, ProblemList
from cultureval.runtime.printing import print_note, print_result
from cultureval.runtime.progress import working
from cultureval.runtime.saving import Saving
from cultureval.runtime.settings import use_settings
from cultureval.scripts.evaluate import ModelArgs
from cultureval.scripts.options import Data, OutputDir
from cultureval.tasks.options import evaluation_settings


def reconcile(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="As of `cultureval eval`.")],
    benchmarks: Annotated[
        list[str] | None, typer.Argument(metavar="[BENCHMARK...]", help="ArabicMMLU, ...; default: all with data.")
    ] = None,
    data: Data = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most N rows of each task.")] = None,
    generated: Annotated[bool, typer.Option("--generated", help="Run forms that generate replies, too.")] = False,
    items: Annotated[int, typer.Option(min=0, help="Show at most this many rows on which forms differ.")] = 0,
    model_args: ModelArgs = None,
    output_dir: OutputDir = "results",
    as_json: Annotated[bool, typer.Option("--json", help="The tables as one JSON document.")] = False,
) -> None:
    """Scores a model as each board does, on the same rows. Example: cultureval reconcile Qwen/Qwen3-8B ArabicMMLU"""
    wrong = ProblemList()
    settings = evaluation_settings(wrong, model_args, None, data_root=data, form="original")
    wrong.raise_if_any()
    if problem := go_offline_if_unreachable():
        print_note(f"the hub does not answer ({problem}); models and data come from folders and the cache.")
    from cultureval.models.choice import check_model
    from cultureval.reports.evaluation import evaluate_tasks
    from cultureval.reports.reconcile.forms import plans_of
    from cultureval.reports.reconcile.measures import reconcile as reconciled
    from cultureval.reports.reconcile.report import as_data, text_of, write_files

    with use_settings(settings):
        with working("Finding the forms and their rows"):
            plans = plans_of(benchmarks or [], generated)
        names = [name for plan in plans for form in plan.tasks for name in plan.forms[form]["tasks"].split()]
        saved = evaluate_tasks(model, partial(check_model, model), names, limit, output_dir, Saving(), True)
        found = [reconciled(saved.run, plan) for plan in plans]
        folder = write_files(saved.run, found)
    print_result(as_data(saved.run, found).rstrip() if as_json else text_of(saved.run, found, items), folder)
    if saved.problems:
        raise CulturevalError(f"Results and details are saved, but {'; '.join(saved.problems)}.")
