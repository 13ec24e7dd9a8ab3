"""All checks before a model loads: settings, model, tasks, data, scorers and the output folder, in one list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import Any

from cultureval.metrics.judges.optional_judges import check_judges, usable_judges
from cultureval.runtime.data.user_cache import user_cache
from cultureval.runtime.data_options import DataOptions
from cultureval.runtime.errors import CulturevalError, ProblemList, SourceUnavailable, all_of, counted, shown_names
from cultureval.runtime.extras import MissingExtra
from cultureval.runtime.model_settings import CheckedModel, ModelCheck
from cultureval.runtime.printing import print_note
from cultureval.runtime.saving import require_folder
from cultureval.runtime.settings import Settings, current_settings, use_settings, variable_of
from cultureval.tasks.catalogue import all_suites, all_tasks, kind_of, name_and_shots
from cultureval.tasks.manifest import manifest_of
from cultureval.tasks.options import all_options, options_of_model, read_data_options
from cultureval.tasks.reading import BrokenRows, PreparedSubset, prepare_subset, require_examples
from cultureval.tasks.registration import registered
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
        subsets: The prepared rows, by the name of the task without `|k`.
        options: Options of suites that follow from the model's type.
        without: Settings under which metrics are left out that lack what they need.
    """

    model: CheckedModel
    tasks: list[str]
    missing: list[str] = field(default_factory=list)
    unscorable: dict[str, str] = field(default_factory=dict)
    subsets: dict[str, PreparedSubset] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    judges: tuple[str, ...] | None = None
    unjudged: dict[str, str] = field(default_factory=dict)
    without: dict[str, Any] = field(default_factory=dict)


def preflight(
    names: list[str],
    check_model: ModelCheck,
    output_dir: str,
    skip_unscorable: bool = False,
    more: Iterable[Check] = (),
    wrong: ProblemList | None = None,
    limit: int | None = None,
    unpacked: bool = True,
) -> CheckedRun:
    """Checks everything that a run needs, and tries its scorers, before a model loads.

    Args:
        check_model: Checks the model without loading it (`cultureval.models.choice.check_model`).
        skip_unscorable: Whether tasks that cannot be scored are left out instead of stopping the run.
        wrong: Problems of the command line; where there are any, no data are read.
        limit: At most this many rows per task will be asked: others may be broken.
        unpacked: Whether the model can be looked at at once; else it is only if there is no other problem.

    Raises:
        CulturevalError: All problems that were found, each with what to do.
    """
    problems, options = wrong or ProblemList(), None
    readable = not problems.found
    with problems.collecting():
        all_of([partial(require_folder, output_dir), *more, *_settings_checks()])
    with problems.collecting():
        options = read_data_options() if readable else None
    with use_settings(_settings_with_tasks(problems)):
        selected, explicit = _select(names, problems)
        kinds = {name: kind_of(name) for name in selected}
        begun = _begin_waiting(kinds.values())
        subsets, missing = _read_data(selected, explicit, options, limit, problems) if options else ({}, [])
        kinds = {name: kind for name, kind in kinds.items() if name not in missing}
        outcomes = _tried(_scorer_checks(kinds, begun, skip_unscorable))
        sound = not problems.found and (skip_unscorable or not any(errors for errors, _ in outcomes))
        model = _checked(check_model, kinds, sound, problems) if unpacked or sound else None
        of_model = options_of_model(model.model_type) if model and options else {}
        with use_settings(current_settings().with_(suite=of_model)):
            with problems.collecting():
                warn_before_run(selected)
            if of_model:  # the prompts may depend on them
                subsets, _ = _read_data(list(kinds), explicit, read_data_options(), limit, problems)
        outcomes += _tried(_refusals(kinds, model) if model else [])
        unscorable = _unscorable(outcomes, len(kinds), problems, skip_unscorable)
        problems.raise_if_any()
        assert model is not None  # or its check has raised
        run = CheckedRun(
            model, [name for name in kinds if name not in unscorable], missing, unscorable, subsets, of_model
        )
        return _with_scorers(run, kinds, skip_unscorable)


def _checked(
    check_model: ModelCheck, kinds: Mapping[str, Kind], sound: bool, problems: ProblemList
) -> CheckedModel | None:
    """The model; None where it has problems, which are collected. Where there are others, no library is loaded."""
    scored = [name for name, kind in kinds.items() if kind.generation_size < 0]
    with problems.collecting():
        return check_model(any(map(_shows_images, kinds)), bool(scored), sound)
    return None


def _with_scorers(run: CheckedRun, kinds: Mapping[str, Kind], skip_unscorable: bool) -> CheckedRun:
    """The run with the judges that can be asked, and without metrics that lack what they need; both are told."""
    if skip_unscorable and any(kind.judge_templates for kind in kinds.values()):
        run.judges, run.unjudged = usable_judges()
    for name, reason in run.unjudged.items():
        print_note(f"The scores of the judge {name} are left out. {reason}")
    instruments = (kinds[name].instrument for name in run.tasks)
    for instrument in filter(None, dict.fromkeys(instruments)):
        if instrument.lacking and (reason := instrument.lacking()):
            print_note(reason)
            run.without |= instrument.without
    return run


def _settings_with_tasks(problems: ProblemList) -> Settings:
    """The current settings, without a file of `--sources` that is refused, which would hide wrong names of tasks."""
    settings = current_settings()
    with problems.collecting():
        registered(settings)
        return settings
    return settings.model_copy(update={"sources": None})


def check_scorers(names: list[str]) -> None:
    """Tries what scores tasks, for harnesses with runs of their own, and says what their suites say before a run."""
    checks = [check for check, _ in _scorer_checks({name: kind_of(name) for name in names})]
    all_of([*checks, partial(warn_before_run, names)])


def warn_before_run(tasks: Sequence[str]) -> None:
    """Prints on standard error what the suites of the selected tasks (`cvlue_vg|0`) say about them.

    Raises:
        CulturevalError: A suite refuses the tasks (`Suite.before_run`), or its function cannot be loaded.
    """
    for name, suite in all_suites().items():
        selected = [task for task in tasks if all_tasks()[name_and_shots(task)[0]].suite == name]
        if selected and (check := suite.part("before_run")):
            for sentence in check(selected):
                print_note(sentence)


def _settings_checks() -> list[Check]:
    settings = current_settings()
    folders = ((user_cache, variable_of("cache")), (lambda: settings.journal, variable_of("journal")))
    return [
        lambda: all_of([partial(option.read, settings) for option in all_options(settings)]),
        lambda: manifest_of(settings.manifest),
        *(lambda place=place, name=name: require_folder(place() or user_cache(), name) for place, name in folders),
    ]


def _select(names: list[str], problems: ProblemList) -> tuple[list[str], set[str]]:
    """As `select_tasks`; wrong names are collected, and the others selected."""
    selected: dict[str, None] = {}
    explicit: set[str] = set()
    for name in names:
        with problems.collecting():
            found, one_by_one = select_tasks([name])
            selected |= dict.fromkeys(found)
            explicit |= one_by_one
    return list(selected), explicit


def _shows_images(name: str) -> bool:
    return all_tasks()[name_and_shots(name)[0]].images


def _read_data(
    selected: list[str], explicit: set[str], options: DataOptions, limit: int | None, problems: ProblemList
) -> tuple[dict[str, PreparedSubset], list[str]]:
    """The prepared rows of all tasks, and the tasks without data; a data root may hold a part of a group."""
    subsets: dict[str, PreparedSubset] = {}
    absent: dict[str, CulturevalError] = {}
    broken: list[str] = []
    failed: dict[str, CulturevalError] = {}
    for name in selected:
        bare, shots = name_and_shots(name)
        try:
            subsets[bare] = subsets.get(bare) or prepare_subset(all_tasks()[bare], options, limit)
            require_examples(bare, int(shots or 0), subsets[bare].report)
        except SourceUnavailable as error:
            may_be_left_out = options.root is not None and name not in explicit
            (absent if may_be_left_out else failed)[name] = error
        except BrokenRows as error:
            broken += error.rows
        except MissingExtra as error:
            problems.add(error)  # the same for every task
        except CulturevalError as error:
            failed[name] = error
    if broken:
        problems.add(BrokenRows(list(dict.fromkeys(broken))))
    if absent and not subsets and not failed and not broken:
        failed, absent = absent | failed, {}
    for group in dict.fromkeys(_group(name) for name in failed):
        members = [name for name in failed if _group(name) == group]
        more = f" {counted(len(members) - 1, 'more task')} of {group} cannot be run either." if members[1:] else ""
        problems.add(CulturevalError(f"{failed[members[0]]}{more}"))
    if absent:
        print_note(f"{len(absent)} of {len(selected)} tasks have no data under {options.root} and are left out.")
    return subsets, list(absent)


def _group(name: str) -> str:
    return all_tasks()[name_and_shots(name)[0]].group


def _begin_waiting(kinds: Iterable[Kind]) -> dict[Check, Check]:
    """Begins the checks that wait for other processes; what stands for each waits for its end."""
    instruments = dict.fromkeys(kind.instrument for kind in kinds if kind.instrument and kind.instrument.waits)
    return {instrument.check: _begun(instrument.check) for instrument in instruments}


def _begun(check: Check) -> Check:
    found: Future[None] = Future()

    def run() -> None:
        try:
            check()
        except BaseException as error:
            found.set_exception(error)
        else:
            found.set_result(None)

    Thread(target=run, daemon=True).start()  # Ctrl-C must not wait for it
    return found.result


Outcome = tuple[dict[str, CulturevalError], list[str]]  # problems of a check by their texts, tasks concerned


def _tried(checks: Iterable[tuple[Check, list[str]]]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for check, concerned in checks:
        failed = ProblemList()
        with failed.collecting():
            check()
        outcomes.append((failed.found, concerned))
    return outcomes


def _unscorable(outcomes: Iterable[Outcome], count: int, problems: ProblemList, skip: bool) -> dict[str, str]:
    """The tasks that cannot be scored, with the reasons; without `skip`, or if none is left, these are problems."""
    errors: dict[str, CulturevalError] = {}
    reasons: dict[str, dict[str, None]] = {}
    for found, concerned in outcomes:
        errors |= found
        for name in concerned if found else []:
            reasons.setdefault(name, {}).update(dict.fromkeys(found))
    if none_left := skip and bool(reasons) and len(reasons) == count:
        problems.add(CulturevalError("No task is left: none of them can be scored."))
    for text, error in errors.items():
        if skip and not none_left:
            named = [name for name, found in reasons.items() if text in found]
            told = f"{len(named)} of {count} tasks cannot be scored and are left out: {shown_names(named)}."
            print_note(f"{told} {text}")
        else:
            problems.add(error)
    return {name: " ".join(found) for name, found in reasons.items()} if skip else {}


def _scorer_checks(
    kinds: Mapping[str, Kind], begun: Mapping[Check, Check] | None = None, skip_judges: bool = False
) -> list[tuple[Check, list[str]]]:
    """The check of each instrument and of the judges, with the tasks that need it."""
    by_check: dict[Check, list[str]] = {}
    for name, kind in kinds.items():
        if kind.instrument:
            by_check.setdefault(kind.instrument.check, []).append(name)
        if kind.judge_templates and not skip_judges:  # these tasks have other metrics
            by_check.setdefault(check_judges, []).append(name)
    return [((begun or {}).get(check, check), names) for check, names in by_check.items()]


def _refusals(kinds: Mapping[str, Kind], model: CheckedModel) -> list[tuple[Check, list[str]]]:
    """Checks that fail with what the model cannot do, and the tasks that need it."""
    seen = [name for name in kinds if _shows_images(name)]
    choices = [name for name, kind in kinds.items() if kind.generation_size < 0]
    reasons = ((model.no_images, seen), (model.no_likelihoods, choices))
    return [(partial(_refuse, reason, names), names) for reason, names in reasons if reason and names]


def _refuse(reason: str, names: list[str]) -> None:
    more = f" and {len(names) - 1} more" if names[1:] else ""
    raise CulturevalError(f"{reason} Asked for: {names[0]}{more}.")
