"""All checks before a model loads: settings, model, tasks, data, scorers and the output folder."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cultureval.metrics.judges.settings import check_judges, usable_judges
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, ProblemList, SourceUnavailable, all_of, shown_names
from cultureval.runtime.extras import MissingExtra
from cultureval.runtime.model_settings import CheckedModel, ModelCheck
from cultureval.runtime.printing import print_note
from cultureval.runtime.saving import require_folder
from cultureval.runtime.settings import current_settings, use_settings, variable_of
from cultureval.tasks.catalogue import all_tasks, kind_of, name_and_shots
from cultureval.tasks.manifest import manifest_of
from cultureval.tasks.options import all_options, options_of_model, read_data_options
from cultureval.tasks.reading import BrokenRows, report_of, require_examples
from cultureval.tasks.selection import select_tasks
from cultureval.tasks.suite import Kind

Check = Callable[[], object]


@dataclass
class CheckedRun:
    """The plan of a run after its checks.

    Attributes:
        tasks: The tasks as LightEval spells them, with `|k`.
        missing: Requested tasks without data in the data root.
        unscorable: Requested task that cannot be scored -> reason.
        judges: The entries of CULTUREVAL_JUDGE that are used; None: all of them.
        unjudged: Judge that cannot be used -> reason.
        options: Options of suites that follow from the model's type.
    """

    model: CheckedModel
    tasks: list[str]
    missing: list[str] = field(default_factory=list)
    unscorable: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    judges: tuple[str, ...] | None = None
    unjudged: dict[str, str] = field(default_factory=dict)


def preflight(
    names: list[str],
    check_model: ModelCheck,
    output_dir: str,
    skip_unscorable: bool = False,
    more: Iterable[Check] = (),
    wrong: ProblemList | None = None,
) -> CheckedRun:
    """Checks all parts of a run, and tries its scorers, before a model loads.

    Args:
        check_model: Checks the model without loading it (`cultureval.models.choice.check_model`).
        skip_unscorable: Whether tasks that cannot be scored are left out instead of stopping the run.
        more: Further checks.
        wrong: Problems of the command line; if there are any, no data are read.

    Raises:
        CulturevalError: All problems, each with what to do.
    """
    problems, options = wrong or ProblemList(), None
    read_data = not problems.found
    with problems.collecting():
        all_of([partial(require_folder, output_dir), *more, *_settings_checks()])
    with problems.collecting():
        options = read_data_options() if read_data else None
    selected, explicit, kinds = _selected(names, problems)
    missing = _read_data(selected, explicit, options, problems) if options else []
    kinds = {name: kind for name, kind in kinds.items() if name not in missing}
    unscorable = _failing(_scorer_checks(kinds, skip_unscorable), problems, skip_unscorable)
    model = _checked(check_model, kinds, problems)
    of_model = options_of_model(model.model_type) if model and options else {}
    if of_model:  # the prompts may depend on them
        with use_settings(current_settings().with_(suite=of_model)):
            _read_data(list(kinds), explicit, read_data_options(), problems)
    unscorable |= _failing(_refusals(kinds, model) if model else [], problems, skip_unscorable)
    if kinds and len(unscorable) == len(kinds):
        reasons = " ".join(dict.fromkeys(unscorable.values()))
        problems.add(CulturevalError(f"No task is left, since none can be scored. {reasons}"))
    problems.raise_if_any()
    assert model is not None  # or its check has raised
    tasks = [name for name in kinds if name not in unscorable]
    return _with_scorers(CheckedRun(model, tasks, missing, unscorable, of_model), kinds, skip_unscorable)


def _settings_checks() -> list[Check]:
    settings = current_settings()
    folders = ((user_cache, variable_of("cache")), (lambda: settings.journal, variable_of("journal")))
    return [
        lambda: all_of([partial(option.read, settings) for option in all_options(settings)]),
        lambda: manifest_of(settings.manifest),
        *(lambda place=place, name=name: require_folder(place() or user_cache(), name) for place, name in folders),
    ]


def _selected(names: Sequence[str], problems: ProblemList) -> tuple[list[str], set[str], dict[str, Kind]]:
    """As `select_tasks`, with each task's kind; errors of wrong names are added to `problems`."""
    selected: dict[str, None] = {}
    explicit: set[str] = set()
    for name in names:
        with problems.collecting():
            found, named = select_tasks([name])
            selected |= dict.fromkeys(found)
            explicit |= named
    return list(selected), explicit, {name: kind_of(name) for name in selected}


def _read_data(selected: list[str], explicit: set[str], options: DataOptions, problems: ProblemList) -> list[str]:
    """Prepares the rows of all tasks; returns the tasks without data, if the data root has data of others."""
    missing: dict[str, CulturevalError] = {}
    failed: dict[str, CulturevalError] = {}  # the first error of each group
    sources: set[str] = set()
    for name in selected:
        bare, shots = name_and_shots(name)
        try:
            report = report_of(all_tasks()[bare], int(shots or 0), options)
            sources.add(report["source"])
            require_examples(bare, int(shots or 0), report)
        except CulturevalError as error:
            if isinstance(error, SourceUnavailable) and options.root is not None and name not in explicit:
                missing[name] = error
            else:
                by_task = isinstance(error, MissingExtra | BrokenRows)
                failed.setdefault(name if by_task else all_tasks()[bare].group, error)
    if len(missing) == len(selected) and missing:
        failed, missing = dict(list(missing.items())[:1]), {}
    for problem in failed.values():
        problems.add(problem)
    if sources and not failed and (manifest := manifest_of(options.manifests)):
        with problems.collecting():
            manifest.require_source(sources)
    if missing:
        print_note(f"{len(missing)} of {len(selected)} tasks have no data under {options.root} and are left out.")
    return list(missing)


def _failing(checks: Iterable[tuple[Check, list[str]]], problems: ProblemList, skip: bool) -> dict[str, str]:
    """Task -> reasons of failed checks; without `skip` failures are added to `problems` instead."""
    reasons: dict[str, str] = {}
    for check, concerned in checks:
        failed = ProblemList()
        with failed.collecting():
            check()
        for text, error in failed.found.items():
            if not skip:
                problems.add(error)
                continue
            print_note(f"{len(concerned)} tasks cannot be scored and are left out: {shown_names(concerned)}. {text}")
            reasons |= {name: f"{reasons.get(name, '')} {text}".strip() for name in concerned}
    return reasons


def _scorer_checks(kinds: Mapping[str, Kind], skip_judges: bool = False) -> list[tuple[Check, list[str]]]:
    """The check of each instrument and of the judges, with the tasks that need it."""
    tasks_of: dict[Check, list[str]] = {}
    for name, kind in kinds.items():
        if kind.instrument:
            tasks_of.setdefault(kind.instrument.check, []).append(name)
        if kind.judge_templates and not skip_judges:  # these tasks have other metrics
            tasks_of.setdefault(check_judges, []).append(name)
    return list(tasks_of.items())


def _checked(check_model: ModelCheck, kinds: Mapping[str, Kind], problems: ProblemList) -> CheckedModel | None:
    """The checked model; None if it has problems. After other problems, no library is imported for the check."""
    sound, scored = not problems.found, any(kind.generation_size < 0 for kind in kinds.values())
    with problems.collecting():
        return check_model(any(map(_shows_images, kinds)), scored, sound)
    return None


def _refusals(kinds: Mapping[str, Kind], model: CheckedModel) -> list[tuple[Check, list[str]]]:
    """Failing checks for abilities that the model does not have, each with the tasks that need the ability."""
    with_images = [name for name in kinds if _shows_images(name)]
    choices = [name for name, kind in kinds.items() if kind.generation_size < 0]
    reasons = ((model.no_images, with_images), (model.no_likelihoods, choices))
    return [(partial(_refuse, reason, names), names) for reason, names in reasons if reason and names]


def _refuse(reason: str, names: list[str]) -> None:
    raise CulturevalError(f"{reason} Needed by: {shown_names(names, 1)}.")


def _shows_images(name: str) -> bool:
    return all_tasks()[name_and_shots(name)[0]].images


def _with_scorers(run: CheckedRun, kinds: Mapping[str, Kind], skip_unscorable: bool) -> CheckedRun:
    """The run with its usable judges; prints a note on each other judge."""
    if skip_unscorable and any(kind.judge_templates for kind in kinds.values()):
        run.judges, run.unjudged = usable_judges()
    for name, reason in run.unjudged.items():
        print_note(f"The scores of the judge {name} are left out. {reason}")
    return run
