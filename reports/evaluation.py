"""A complete evaluation: selects and runs tasks, writes files, and writes the summary of the saved run."""

import time
from pathlib import Path
from typing import NamedTuple

from cultureval.reports.summary_text import shown_run
from cultureval.runs.loading import Run, load
from cultureval.runs.recording import record_of
from cultureval.runs.writing import complete_results
from cultureval.runtime import sweeps
from cultureval.runtime.errors import ProblemList, described
from cultureval.runtime.model_settings import ModelCheck
from cultureval.runtime.patches.lighteval.without_inspect import without_inspect
from cultureval.runtime.printing import print_note
from cultureval.runtime.progress import working
from cultureval.runtime.saving import Saving
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.tasks.catalogue import all_suites
from cultureval.tasks.preflight import preflight
from cultureval.tasks.reading import forget_files
from cultureval.tasks.running import quiet_libraries, run_tasks


class SavedRun(NamedTuple):
    """A saved run: `path` is its summary (or results file), `problems` are failures after its results were saved."""

    run: Run
    path: Path
    problems: list[str]


@without_inspect()
def evaluate_tasks(
    model: str,
    check_model: ModelCheck,
    names: list[str],
    limit: int | None,
    output_dir: str,
    saving: Saving | None = None,
    skip_unscorable: bool = False,
    wrong: ProblemList | None = None,
) -> SavedRun:
    """Runs tasks under the current settings, and writes LightEval's results and details and the summary.

    Args:
        check_model: Checks the model before it loads (`cultureval.models.choice.check_model`).
        saving: What is saved and uploaded; None: results and details in the output folder.
        skip_unscorable: Whether tasks that cannot be scored are left out instead of stopping the run.
        wrong: Problems of the command line, reported together with those of the checks.

    Raises:
        CulturevalError: All problems that stop the run from starting (`tasks.preflight`), or an error of the run.
    """
    started, saving = time.time(), saving or Saving()
    data = current_settings().with_(model_settings={})
    if not sweeps.take("rows", data):
        forget_files()  # those of an earlier run of this process
    sweeps.keep("rows", data, True)
    with working("Checking the model, the tasks and their data"):
        plan = preflight(names, check_model, output_dir, skip_unscorable, [saving.check], wrong)
        quiet_libraries()
    with use_settings(current_settings().with_(suite=plan.options, judges=plan.judges)):
        finished = run_tasks(model, plan.model.file, plan.tasks, limit, output_dir, saving)
        tracker = finished.tracker
        complete_results(finished, record_of(finished, plan.missing, started, plan.unscorable, plan.unjudged))
        tracker.save()
        run = load(tracker.results_file).runs[0]
        problems = [*tracker.failed_uploads, *write_files_of_suites(run)]
    try:
        return SavedRun(run, tracker.save_summary(shown_run(run, None, full=True)), problems)
    except OSError as error:
        problem = f"the summary cannot be written ({error.strerror or error})"
        return SavedRun(run, tracker.results_file, [*problems, problem])


def write_files_of_suites(run: Run) -> list[str]:
    """Writes the suites' further files (`Suite.run_files`) and prints their paths; returns the failures."""
    problems = []
    for name in dict.fromkeys(task.suite for task in run.record.tasks.values()):
        suite = all_suites().get(name)
        try:
            for sentence in suite.part("run_files")(run) if suite and suite.run_files else ():
                print_note(sentence)
        except Exception as error:  # of another package's function; the run's results are saved
            problems.append(f"the further files of {name} cannot be written ({described(error)})")
    return problems
