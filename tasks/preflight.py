"""All checks before a model loads: settings, model, tasks, data, scorers and the output folder, in one list."""

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
from cultureval.tasks.reading import BrokenRows, prepare_subset, require_examples
from cultureval.tasks.selection import select_tasks
from cultureval.tasks.suite import Kind

Check = Callable[[], object]


@dataclass
class CheckedRun:
    """What a run will do, after its checks.

    Attributes:
        tasks: The tasks as LightEval spells them, with `|k`.
        missing: Requested tasks of which the data root has no data.
        unscorable: Requested tasks that are left out because they cannot be scored: why, by name.
        judges: The entries of CULTUREVAL_JUDGE that are used; None: all of them.
        unjudged: Judges whose scores are left out because they cannot be asked: why, by name.
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
    """Checks everything that a run needs, and tries its scorers, before a model loads.

    Args:
        check_model: Checks the model without loading it (`cultureval.models.choice.check_model`).
        skip_unscorable: Whether tasks that cannot be scored are left out instead of stopping the run.
        wrong: Problems of the command line; where there are any, no data are read.

    Raises:
        CulturevalError: All problems that were found, each with what to do.
    """
    problems, options = wrong or ProblemList(), None
    readable = not problems.found
    with problems.collecting():
        all_of([partial(require_folder, output_dir), *more, *_settings_checks()])
    with problems.collecting():
        options = read_data_options() if readable else None
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
        problems.add(CulturevalError(f"No task is left: none of them can be scored. {reasons}"))
    problems.raise_if_any()
    assert model is not None  # or its check has raised
    asked = [name for name in kinds if name not in unscorable]
    return _with_scorers(CheckedRun(model, asked, missing, unscorable, of_model), kinds, skip_unscorable)


def _settings_checks() -> list[Check]:
    settings = current_settings()
    folders = ((user_cache, variable_of("cache")), (lambda: settings.journal, variable_of("journal")))
    return [
        lambda: all_of([partial(option.read, settings) for option in all_options(settings)]),
        lambda: manifest_of(settings.manifest),
        *(lambda place=place, name=name: require_folder(place() or user_cache(), name) for place, name in folders),
    ]


def _selected(names: Sequence[str], problems: ProblemList) -> tuple[list[str], set[str], dict[str, Kind]]:
    """As `select_tasks`, and how each task is asked and scored; wrong names are collected, and the others selected."""
    selected: dict[str, None] = {}
    explicit: set[str] = set()
    for name in names:
        with problems.collecting():
            found, one_by_one = select_tasks([name])
            selected |= dict.fromkeys(found)
            explicit |= one_by_one
    return list(selected), explicit, {name: kind_of(name) for name in selected}


def _read_data(selected: list[str], explicit: set[str], options: DataOptions, problems: ProblemList) -> list[str]:
    """Prepares the rows of all tasks; returns the tasks without data, since a data root may hold a part of a group."""
    absent: dict[str, CulturevalError] = {}
    failed: dict[str, CulturevalError] = {}  # of a group the first, which stands for it
    for name in selected:
        bare, shots = name_and_shots(name)
        try:
            require_examples(bare, int(shots or 0), prepare_subset(all_tasks()[bare], options).report)
        except CulturevalError as error:
            if isinstance(error, SourceUnavailable) and options.root is not None and name not in explicit:
                absent[name] = error
            else:
                each = isinstance(error, MissingExtra | BrokenRows)
                failed.setdefault(name if each else all_tasks()[bare].group, error)
    if len(absent) == len(selected) and absent:
        failed, absent = dict(list(absent.items())[:1]), {}
    for problem in failed.values():
        problems.add(problem)
    if absent:
        print_note(f"{len(absent)} of {len(selected)} tasks have no data under {options.root} and are left out.")
    return list(absent)


def _failing(checks: Iterable[tuple[Check, list[str]]], problems: ProblemList, skip: bool) -> dict[str, str]:
    """The tasks that a failing check concerns, with the reasons; without `skip` a failure is a problem of the run."""
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
    by_check: dict[Check, list[str]] = {}
    for name, kind in kinds.items():
        if kind.instrument:
            by_check.setdefault(kind.instrument.check, []).append(name)
        if kind.judge_templates and not skip_judges:  # these tasks have other metrics
            by_check.setdefault(check_judges, []).append(name)
    return list(by_check.items())


def _checked(check_model: ModelCheck, kinds: Mapping[str, Kind], problems: ProblemList) -> CheckedModel | None:
    """The model; None where it has problems, which are collected. Where there are others, no library is loaded."""
    sound, scored = not problems.found, any(kind.generation_size < 0 for kind in kinds.values())
    with problems.collecting():
        return check_model(any(map(_shows_images, kinds)), scored, sound)
    return None


def _refusals(kinds: Mapping[str, Kind], model: CheckedModel) -> list[tuple[Check, list[str]]]:
    """Checks that fail with what the model cannot do, and the tasks that need it."""
    seen = [name for name in kinds if _shows_images(name)]
    choices = [name for name, kind in kinds.items() if kind.generation_size < 0]
    reasons = ((model.no_images, seen), (model.no_likelihoods, choices))
    return [(partial(_refuse, reason, names), names) for reason, names in reasons if reason and names]


def _refuse(reason: str, names: list[str]) -> None:
    raise CulturevalError(f"{reason} Asked for: {shown_names(names, 1)}.")


def _shows_images(name: str) -> bool:
    return all_tasks()[name_and_shots(name)[0]].images


def _with_scorers(run: CheckedRun, kinds: Mapping[str, Kind], skip_unscorable: bool) -> CheckedRun:
    """The run with the judges that can be asked; those that cannot are told."""
    if skip_unscorable and any(kind.judge_templates for kind in kinds.values()):
        run.judges, run.unjudged = usable_judges()
    for name, reason in run.unjudged.items():
        print_note(f"The scores of the judge {name} are left out. {reason}")
    return run
