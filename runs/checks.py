"""The numbers of a results file against what they are made of: what differs is told (`Run.claims`) and replaced."""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from cultureval.metrics.declared import SHARE, bounds_of_mean
from cultureval.metrics.item_statistics import ItemStatistics
from cultureval.metrics.judges.items import JUDGED, labels_of
from cultureval.metrics.judges.verdicts import JudgeVerdict, count_verdicts, numbers_of_judge
from cultureval.metrics.paired_tests import Floats
from cultureval.metrics.standard_errors import error_that_adds
from cultureval.runs.answers import ANSWERS, choice_metrics, scores_by_answers
from cultureval.runs.comparable import ASKED, digest_of
from cultureval.runs.files import (
    UNVERIFIED,
    details_by_task,
    details_files_of_run,
    judged_of,
    output_folder,
    own_details,
    read_details,
)
from cultureval.runs.items import (
    CLUSTERS,
    ItemScores,
    clusters_of,
    in_denominator,
    item_scores,
    leaf,
    score_of_all,
    suite_statistics,
)
from cultureval.runs.judged import MISSING, UNFLAGGED
from cultureval.runs.means import ROUNDING, Estimate, agree, mean_of, members_of
from cultureval.runs.record import Claim, ModelRecord, Run, TaskRecord
from cultureval.runs.rows import headline_of, owner_of
from cultureval.runtime.errors import CulturevalError, counted, shorten
from cultureval.runtime.patches.lighteval.group_averages import StandardError
from cultureval.tasks.catalogue import all_suites, all_tasks, declared_metric, kind_of

if TYPE_CHECKING:
    import pyarrow

ROWS = "rows"
ERROR = "_stderr"
FEW = 15  # items, below which the error of a score of sums is too rough for a check
RATIO = 2  # sums that a mean, or a ratio, is made of
COUNTED = {"unparsable": "unreadable answers", "truncated": "cut answers", "cut_prompts": "cut prompts"}
ENDS, CUT = "doc.specific.finish_reasons", "model_response.truncated_tokens_count"
NO_ANSWER = "no_answer"  # the kind of refused rows of which a record tells none
GROUPS = 100  # of clusters at most, that a jackknife leaves out one after another
FACTOR = 1.5  # between two errors of one score that are of other draws, or of a bootstrap and a jackknife
Change = tuple[Claim | None, dict[str, float | None]]  # what the file says otherwise, and the values that stand instead
Scores = Mapping[str, Mapping[str, float | None]]
P, T = ParamSpec("P"), TypeVar("T")


def _tried(check: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> tuple[T | None, str]:
    """What a check of details finds, or None and why it finds nothing: details are anybody's."""
    try:
        return check(*arguments, **named), ""
    except CulturevalError as error:
        return None, str(error).rstrip(".")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return None, f"its details are not those of the task ({shorten(repr(error), 80)})"


class _Drawn(StandardError):
    """A standard error of random draws: the same items in another order have another, within `FACTOR`."""


class _Read(NamedTuple):
    """What is read of a task's details.

    Attributes:
        rows: Their number.
        columns: Metrics that are numbers -> [N] theirs, nan where a row has none.
        clusters: [N] of the rows, None where a row shares nothing.
        asked: As of `comparable.digest_of`.
        answers: Metrics of chosen options -> [N] what the rows' answers make of them, nan where they tell nothing.
        counts: Fields of a record that count rows, `COUNTED` -> how many of these rows are such.
    """

    rows: int
    columns: dict[str, Floats]
    clusters: Sequence[str | None]
    asked: str
    answers: dict[str, Floats]
    counts: dict[str, int]


class _Checked(NamedTuple):
    """A task's scores by its details.

    Attributes:
        changes: What the file says otherwise, each with the values that stand in place of it.
        record: With the numbers of rows that the details have.
        errors: The standard errors of metrics that are means, or whose draws are known.
        unchecked: Why a score is not checked; "" where all are.
        impossible: What is wrong with the items' scores, which nothing in the details gives; "" for nothing.
        asked: As of `_Read`.
        means: Metric -> the mean of the rows' values and their number, where these are the score.
    """

    changes: list[Change]
    record: TaskRecord
    errors: dict[str, StandardError]
    unchecked: str
    impossible: str
    asked: str
    means: dict[str, tuple[float, int]]


def checked(run: Run) -> Run:
    """A run whose scores are those that its items, and for averages its subsets, give; `claims` has what differs.

    Means of rows' values and their standard errors are checked for every metric, other scores from their statistics.
    What has no details stays as it is; of how many items its rates are then is what the file says of it.
    """
    files = details_files_of_run(run)
    claims = [claim for one in run.record.tasks.values() for claim in count_claims(one)]
    unchecked = dict(run.unchecked)  # of judgements
    scores: dict[str, Mapping[str, float | None]] = dict(run.scores)
    found: dict[str, _Checked] = {}
    records = {name: _with_refused(one) for name, one in run.record.tasks.items()}
    for name, record in records.items():
        if name not in files:
            unchecked |= {name: UNVERIFIED} if run.scores.get(name) else {}
            continue
        one, why = _tried(_of_items, run, record, files[name])
        if one is None:
            unchecked[name] = why
            continue
        found[name] = one
        unchecked |= {name: one.unchecked} if one.unchecked else {}
        for claim, values in one.changes:
            claims += [claim] if claim else []
            scores[name] = {**scores.get(name, {}), **values}
    errors = {(name, metric): error for name, one in found.items() for metric, error in one.errors.items()}
    for name, (claim, values) in list(_of_subsets(scores, errors)):
        claims += [claim] if claim else []
        scores[name] = {**scores[name], **values}
    tasks = {name: found[name].record if name in found else _told(run, one) for name, one in records.items()}
    means = {name: one.means for name, one in found.items()}
    tasks = {name: _with_bounds(one, scores.get(name, {}), means.get(name), claims) for name, one in tasks.items()}
    record = run.record.model_copy(update={"tasks": tasks})
    asked = {name: one.asked for name, one in found.items() if one.asked}
    impossible = {name: one.impossible for name, one in found.items() if one.impossible}
    known = {"claims": (*run.claims, *claims), "unchecked": unchecked, "impossible": impossible, "asked": asked}
    return replace(run, scores=scores, record=record, **known)


def checked_judgement(run: Run) -> Run:
    """A judgement, or a run that was judged while it ran, whose judges' numbers are those of its details' verdicts.

    Means, standard errors, bounds and counts are made anew; `claims` has what its file says otherwise.
    """
    judged = [task for task, values in run.scores.items() if any(name.startswith(JUDGED) for name in values)]
    judged = [task for task in judged if members_of(task, run.scores) is None]
    files = details_by_task(own_details(run.file)) if judged and output_folder(run.file) else {}
    scores, tasks, claims, unchecked = dict(run.scores), dict(run.record.tasks), [*run.claims], dict(run.unchecked)
    for task in judged:
        if task not in files:
            unchecked |= {task: "the details of its judgement are not there"} if judged_of(run.content) else {}
            continue
        found, why = _tried(_of_verdicts, scores[task], files[task])
        if found is None:
            unchecked[task] = why
            continue
        numbers, scored = found
        told = {name: scores[task].get(name) for name in numbers}
        other = {name: claimed for name, claimed in told.items() if claimed is not None}
        other = {name: claimed for name, claimed in other.items() if not agree(numbers[name], claimed)}
        claims += [Claim(task, name, claimed, numbers[name], "items") for name, claimed in other.items()]
        known = {name: None if math.isnan(numbers[name]) else numbers[name] for name in other}
        scores[task] = {**scores[task], **known}
        if task in tasks:
            tasks[task] = tasks[task].model_copy(update={"scored": tasks[task].scored | scored})
    record = run.record.model_copy(update={"tasks": tasks})
    return replace(run, scores=scores, record=record, claims=tuple(claims), unchecked=unchecked)


def _of_verdicts(values: Mapping[str, float | None], file: Path) -> tuple[dict[str, float], dict[str, int]]:
    """The numbers of judges by the verdicts in details, and for each score the number of verdicts that it is of.

    Raises:
        CulturevalError: They have no verdicts.
    """
    table = read_details(file, ["metric", *CLUSTERS])
    clusters = clusters_of(table)
    names = [one.name for one in table.schema.field("metric").type if one.name.startswith(JUDGED)]
    columns = {name: leaf(table, f"metric.{name}").to_pylist() for name in names}
    records = {name: column for name, column in columns.items() if any(isinstance(one, Mapping) for one in column)}
    if not records:
        raise CulturevalError("its details have no verdicts of judges")
    found: dict[str, float] = {}
    scored: dict[str, int] = {}
    owners = {name: owner_of(name, records) for name in names}
    for prefix, verdicts in records.items():
        own = [name for name in names if owners[name] == prefix and name not in records]
        marks = {name.removeprefix(f"{prefix}_"): columns[name] for name in own}
        read = [
            JudgeVerdict(
                item="",
                scores={name: column[row] for name, column in marks.items() if column[row] == column[row] is not None},
                outcome=one["outcome"],
                flags=tuple(one.get("flags") or ()),
                cluster=clusters[row] or "",
                label=one.get("label"),
            )
            for row, one in enumerate(verdicts)
            if one
        ]
        tops = {name: top for name in marks if (top := _top_of(f"{prefix}_{name}", values))}
        found |= numbers_of_judge(prefix, read, list(marks), tops, labels_of(prefix) or {})
        for end, some in (("", read), (UNFLAGGED, [one for one in read if not one.flagged])):
            scored |= {f"{prefix}_{name}{end}": sum(name in one.scores for one in some) for name in marks}
    told = (name for name, value in values.items() if value is not None and owner_of(name, records))
    if others := [name for name in told if name not in found]:
        raise CulturevalError(f"{others[0]}: its details have no verdicts that give it")
    return found, scored


def _top_of(metric: str, values: Mapping[str, float | None]) -> int:
    """The highest score of a judge's scale, by the names of its bounds; 0 where they do not tell it."""
    ends = (name.removeprefix(f"{metric}{MISSING}") for name in values if name.startswith(f"{metric}{MISSING}"))
    return max([int(end) for end in ends if end.isdigit() and end != "1"], default=0)


def _read(file: Path, task: str, metrics: Sequence[str]) -> _Read:
    """What a check needs of details, all at once: opening a file is half of reading it.

    Raises:
        CulturevalError: As of `read_details`.
    """
    import pyarrow
    import pyarrow.compute

    chosen = choice_metrics(task)
    unreadable = kind_of(task).unreadable if task.partition("|")[0] in all_tasks() else None
    named = ["metric"] if unreadable else [f"metric.{name}" for name in metrics]
    table = read_details(file, list(dict.fromkeys([*named, *ASKED, ENDS, CUT, *(ANSWERS if chosen else ())])))
    columns = {}
    for name in metrics:
        column = leaf(table, f"metric.{name}")
        kinds = pyarrow.types.is_floating, pyarrow.types.is_integer, pyarrow.types.is_null
        if column is not None and any(test(column.type) for test in kinds):
            columns[name] = column.cast(pyarrow.float64()).to_numpy()
    answers = scores_by_answers(table, task) if chosen else {}
    counts = _counts_of(table, unreadable)
    return _Read(table.num_rows, columns, clusters_of(table), digest_of(table), answers, counts)


def _counts_of(table: "pyarrow.Table", unreadable: Callable[[Mapping[str, Any]], bool] | None) -> dict[str, int]:
    """As `recording` counts rows; `unreadable` is that of the task's kind, whose metrics other details may lack."""
    rows = table["metric"].to_pylist() if unreadable else []
    ends, cut = (column.to_pylist() if (column := leaf(table, path)) is not None else [] for path in (ENDS, CUT))
    counts = {
        "truncated": sum("length" in (reasons or ()) for reasons in ends),
        "cut_prompts": sum((tokens or 0) > 0 for tokens in cut),
    }
    try:
        return {"unparsable": sum(map(unreadable, rows)) if unreadable else 0} | counts
    except LookupError:
        return counts


def _against_rows(record: TaskRecord, model: ModelRecord, read: _Read) -> tuple[list[Change], TaskRecord, str]:
    """What the rows say otherwise of the record's counts of them, the record with theirs, and why one is unchecked."""
    ours = model.backend and model.backend.islower()  # LightEval's backends, which are classes, count no tokens
    counts = {name: count for name, count in read.counts.items() if ours or name != "cut_prompts"}
    other = {name: count for name, count in counts.items() if getattr(record, name) != count}
    told = [name for name in other if name in record.model_fields_set]
    claims = [Claim(record.task, COUNTED[name], getattr(record, name), other[name], "details") for name in told]
    lacking = not read.counts.keys() >= {"unparsable"} and "unparsable" in record.model_fields_set
    unchecked = "its details do not tell which answers were unreadable" if lacking else ""
    return [(one, {}) for one in claims], record.model_copy(update=other) if other else record, unchecked


def _of_items(run: Run, record: TaskRecord, file: Path) -> _Checked:
    """What a task's scores are by its details."""
    told = (
        name for name in run.scores.get(record.task, {}) if not name.endswith(ERROR) and not name.startswith(JUDGED)
    )
    metrics = dict.fromkeys([*record.metrics, *told])  # the list of a file may be shorter than its scores
    read = _read(file, record.task, list(metrics))
    changes: list[Change] = []
    if record.rows and read.rows != record.rows:
        changes.append((Claim(record.task, ROWS, record.rows, read.rows, "details"), {}))
        record = record.model_copy(update={"rows": read.rows, "items": None, "scored": {}})
    of_counts, record, uncounted = _against_rows(record, run.record.model, read)
    changes += of_counts
    known = {metric: column[np.isfinite(column)] for metric, column in read.columns.items()}
    counts = {metric: _scored(run, record, file, metric, len(column), read.rows) for metric, column in known.items()}
    made = _made_of_sums(record, file, [metric for metric in metrics if len(known.get(metric, ())) < read.rows])
    for metric, items in made.items():  # rows of items whose unreadable answer a rate's denominator rests on have none
        pairs = zip(items.rows, items.scored, strict=True)
        counts[metric] = read.rows - sum(len(rows) for rows, scored in pairs if not scored)
    headline = headline_of(record.task)
    if headline in record.metrics and headline not in known and run.value(record.task, headline) is None:
        if headline not in made or not _is_ratio(made[headline]):  # a ratio without a denominator is undefined
            counts[headline] = 0
    record = _with_counts(record, read.rows, counts, headline)
    errors: dict[str, StandardError] = {}
    contradicted, unanswered = _against_answers(record.task, read)
    unchecked = uncounted
    changes += contradicted.values()
    for metric in metrics:
        try:
            changes += [] if metric in contradicted else _of_metric(run, record, file, metric, read, errors)
        except CulturevalError as error:
            unchecked = unchecked or f"{metric}: {str(error).rstrip('.')}"
    outside = (_impossible(record.task, name, column) for name, column in known.items())
    impossible = next(filter(None, (unanswered, *outside)), "")
    counted = {metric: count for metric, count in record.counted.items() if metric not in {**known, **made}}
    counted |= {metric: count for metric, items in made.items() if (count := _counted(items)) < len(items.keys)}
    record = record if record.counted == counted else record.model_copy(update={"counted": counted})
    means = {metric: (float(column.mean()), len(column)) for metric, column in known.items() if len(column)}
    return _Checked(changes, record, errors, unchecked, impossible, read.asked, means)


def _against_answers(task: str, read: _Read) -> tuple[dict[str, Change], str]:
    """Metric -> what the answers in the same rows say otherwise of the items' scores, their mean then stands instead;
    and what some lack of the answers that they would be of, "" where none does.
    """
    found: dict[str, Change] = {}
    unanswered = ""
    for metric, answers in read.answers.items():
        items = read.columns.get(metric, np.empty(0))
        if not len(items):
            continue
        both = np.isfinite(items) & np.isfinite(answers)
        if alone := int((np.isfinite(items) & ~both).sum()):
            unanswered = f"{metric}: its details lack the options' log-probabilities of {counted(alone, 'row')}"
        if (np.abs(items - answers)[both] > ROUNDING).any():
            claim = Claim(task, metric, float(items[both].mean()), float(answers[both].mean()), "answers")
            found[metric] = claim, {metric: claim.found, f"{metric}{ERROR}": None}
    return found, unanswered


def count_claims(record: TaskRecord) -> list[Claim]:
    """The counts of a record that its other counts contradict."""
    counts, scored = record.row_counts, record.row_counts.get("scored", 0)
    parts = [count for part, count in counts.items() if part != ROWS]
    refused, skipped = counts.get("refused", 0), record.skipped_rows + record.skipped_few_shot_rows
    kinds, asked, whole = sum(record.refused_by.values()), record.rows + record.refused, record.limit is None
    left_out, least, most = counts.get("not_asked", 0), min(parts, default=0), max(record.scored.values(), default=0)
    routes = sum(record.routes.values())
    rules = {  # name of the count -> what the record says of it, what its other counts say, and whether both can be
        ROWS: (counts.get(ROWS, sum(parts)), sum(parts), counts.get(ROWS, sum(parts)) == sum(parts)),
        "parts of its rows": (least, 0, least >= 0),
        "scored rows": (scored, record.rows, not whole or scored <= record.rows),
        "rows that were not asked": (left_out, 0, not whole or not left_out),
        "refused rows": (record.refused, refused, not counts or _are_of_rows(record.refused, refused)),
        "refused rows by kind": (kinds, record.refused, not record.refused_by or kinds == record.refused),
        "skipped rows": (skipped, counts.get("skipped", 0), _are_of_rows(skipped, counts.get("skipped", skipped))),
        "reused rows": (record.reused, asked, record.reused <= asked),
        "rows by route": (routes, asked, routes <= asked),
        "rows with a score": (most, record.rows, most <= record.rows),
    }
    return [Claim(record.task, name, *values, "row counts") for name, (*values, holds) in rules.items() if not holds]


def _with_refused(record: TaskRecord) -> TaskRecord:
    """The record with the refused rows that its other counts tell."""
    refused = record.row_counts.get("refused", 0)
    if record.refused >= refused:
        return record
    return record.model_copy(update={"refused": refused, "refused_by": {NO_ANSWER: refused}})


def _are_of_rows(docs: int, rows: int) -> bool:
    """Whether so many questions can be of so many rows, each of which asks one or more."""
    return docs >= rows and bool(docs) == bool(rows)


def _with_bounds(
    record: TaskRecord,
    scores: Mapping[str, float | None],
    means: Mapping[str, tuple[float, int]] | None,
    claims: list[Claim],
) -> TaskRecord:
    """The record with the means that its refused rows allow; what it says otherwise is added to `claims`.

    They are made anew of means of rows (`means`, as of `_Checked`) between known limits; other scores have none.
    Without details (None) they stay as they are.
    """
    bounds: dict[str, tuple[float, float]] = {}
    for metric in dict.fromkeys([*record.bounds, record.headline]) if record.refused or record.bounds else ():
        told, score, declared = record.bounds.get(metric), scores.get(metric), declared_metric(record.task, metric)
        score = math.nan if score is None else score
        low, high = declared.range if declared else (-math.inf, math.inf)
        mean, count = (means or {}).get(metric, (math.nan, 0))
        if agree(mean, score) and _is_bounded(record.task, metric) and (told or (low, high) == SHARE):
            bounds[metric] = bounds_of_mean(mean * count, count, record.refused, (low, high))
        elif told and means is None:  # nothing to check them with; the run is not verified
            bounds[metric] = told
        made = bounds.get(metric, (math.nan, math.nan))
        claims += [
            Claim(record.task, f"{metric} {end}", claimed, own, "items")
            for end, claimed, own in zip(("lowest", "highest"), told or (), made, strict=bool(told))
            if not agree(claimed, own)
        ]
    return record if bounds == record.bounds else record.model_copy(update={"bounds": bounds})


def _of_metric(
    run: Run, record: TaskRecord, file: Path, metric: str, read: _Read, errors: dict[str, StandardError]
) -> list[Change]:
    """What the file says otherwise of a score of a task; its error, where its items give it, is added to `errors`.

    Raises:
        CulturevalError: What it is made of is not in the details, or not on this machine.
    """
    claimed = run.value(record.task, metric)
    if claimed is None:
        return _restored(record, file, metric, read, errors)
    if metric not in read.columns:
        headline = record.headline == metric
        if not headline and not _has_statistics(record):
            return []
        if (headline or _is_bounded(record.task, metric)) and not _known_items(record, file, metric):
            raise CulturevalError("its details have no scores of it")
        return _by_statistics(run, record, file, metric, None, errors)
    column = read.columns[metric][np.isfinite(read.columns[metric])]
    if not len(column):
        values = {metric: None, f"{metric}{ERROR}": None}  # no item has a part of it
        nothing = Claim(record.task, metric, claimed, math.nan, "items")
        return _by_statistics(run, record, file, metric, None, errors) or [(nothing, values)]
    error, mean = _error_of_mean(record.task, metric, read), float(column.mean())
    if not agree(mean, claimed) or not _is_mean(file, record.task, metric, mean):
        return _by_statistics(run, record, file, metric, Estimate(mean, error), errors)
    if not declared_metric(record.task, metric):
        return []
    alike = column.min() == column.max() and run.stderr(record.task, metric) == 0
    own = run.signature_of(record.task) and not math.isnan(error)  # others say 0 where all scores are alike
    errors[metric] = StandardError(0.0, len(column)) if alike and not own else error
    return _error_change(record.task, metric, run.stderr(record.task, metric), errors[metric])


def _restored(
    record: TaskRecord, file: Path, metric: str, read: _Read, errors: dict[str, StandardError]
) -> list[Change]:
    """A score that the details give and the file lacks, whose group's average it would leave.

    Raises:
        CulturevalError: As of `item_scores`.
    """
    column = read.columns.get(metric, np.empty(0))
    column = column[np.isfinite(column)]
    if metric != headline_of(record.task) and not (len(column) and declared_metric(record.task, metric)):
        return []
    if len(column) and _is_mean(file, record.task, metric, float(column.mean())):
        found, error = float(column.mean()), float(_error_of_mean(record.task, metric, read))
    else:
        items = item_scores(file, record.task, metric)
        whole = items and (len(column) or _is_ratio(items))  # without a column, a corpus score lacked its instrument
        found = score_of_all(items) if items and whole else math.nan
        error = _known_error(items, metric, errors) or math.nan
    if math.isnan(found):
        return []
    values = {metric: found, f"{metric}{ERROR}": None if math.isnan(error) else error}
    return [(Claim(record.task, metric, math.nan, found, "items"), values)]


def _is_mean(file: Path, task: str, metric: str, mean: float) -> bool:
    """Whether a score that the rows' mean gives is that mean, and not one of the sums of all rows (BLEU)."""
    made = suite_statistics(file, task, metric)
    return made is None or _is_ratio(made) and agree(score_of_all(made), mean)


def _is_ratio(items: ItemScores | ItemStatistics) -> bool:
    """Whether a score is a mean, or a ratio of two sums, and none of more sums (BLEU)."""
    return items.parts.shape[1] == RATIO


def _is_bounded(task: str, metric: str) -> bool:
    """Whether a metric is declared, and no count without end."""
    declared = declared_metric(task, metric)
    return declared is not None and all(map(math.isfinite, declared.range))


def _by_statistics(
    run: Run, record: TaskRecord, file: Path, metric: str, mean: Estimate | None, errors: dict[str, StandardError]
) -> list[Change]:
    """What the file says otherwise of a score that may count items otherwise than the mean of the rows' numbers does.

    Raises:
        CulturevalError: As of `item_scores`.
    """
    items, claimed = item_scores(file, record.task, metric), run.value(record.task, metric)
    found = score_of_all(items) if items else mean.value if mean else None
    if found is None or claimed is None:
        return []
    of_mean = mean is not None and (items is None or _is_ratio(items)) and agree(found, mean.value)
    error = mean.stderr if mean and of_mean else _known_error(items, metric, errors)
    error = None if error is None or math.isnan(error) else float(error)
    if not agree(found, claimed):
        values = {metric: None if math.isnan(found) else found, f"{metric}{ERROR}": error}
        return [(Claim(record.task, metric, claimed, found, "items"), values)]
    told = run.stderr(record.task, metric)
    if told is None or items is None:
        return []
    rough = not items.error and not _is_ratio(items)
    if not error or rough and len(items.keys) < FEW:  # nothing checks a corpus score's, which is not shown
        return [] if _is_ratio(items) else [(None, {f"{metric}{ERROR}": None})]
    return [] if rough and _is_near(told, error) else _error_change(record.task, metric, told, _Drawn(error))


def _error_of_mean(task: str, metric: str, read: _Read) -> StandardError:
    """The standard error of a mean of rows."""
    column, declared = read.columns[metric], declared_metric(task, metric)
    known = np.isfinite(column)
    bounds = declared.range if declared and _is_bounded(task, metric) else None
    clusters = [read.clusters[row] or place for place, row in enumerate(np.flatnonzero(known))]
    return error_that_adds(column[known], clusters, bounds)


def _known_error(items: ItemScores | None, metric: str, errors: dict[str, StandardError]) -> float | None:
    """As of `_error_of_sums`; one whose draws are known is added to `errors`."""
    error = _error_of_sums(items)
    if items and items.error and error is not None:
        names = {name or place for place, name in enumerate(items.clusters)}
        errors[metric] = _Drawn.of_whole(error, len(items.keys), names)
    return error


def _error_change(
    task: str, metric: str, told: float | None, error: StandardError, made_of: str = "items"
) -> list[Change]:
    """What the file says otherwise of a standard error; that of other draws is replaced without a word."""
    if told is None or abs(told - error) <= ROUNDING + 1e-4 * abs(error):
        return []
    known = None if math.isnan(error) else float(error)
    near = isinstance(error, _Drawn) and _is_near(told, error)
    claim = None if near else Claim(task, f"{metric}{ERROR}", told, float(error), made_of)
    return [(claim, {f"{metric}{ERROR}": known})]


def _is_near(told: float, error: float) -> bool:
    return bool(error) and 1 / FACTOR < told / error < FACTOR


def _impossible(task: str, metric: str, column: Floats) -> str:
    """Words for scores of items that a metric does not give; "" for others."""
    declared = declared_metric(task, metric)
    if declared is None or not len(column):
        return ""
    low, high = declared.range
    least, most = float(column.min()), float(column.max())
    inside = low - ROUNDING <= least and most <= high + ROUNDING
    return "" if inside else f"its items' {metric} is {least:g} to {most:g}, outside {low:g} to {high:g}"


def _scored(run: Run, record: TaskRecord, file: Path, metric: str, count: int, rows: int) -> int:
    """How many rows a metric has a score of; rows that it does not apply to need none."""
    if count == rows or not run.record.schema_ or record.scored.get(metric) == count:
        return count
    items = _known_items(record, file, metric)
    return rows - int((~items.scored).sum()) if items and len(items.keys) == rows else count


def _known_items(record: TaskRecord, file: Path, metric: str) -> ItemScores | None:
    """A metric's items; None where they are not known, or what makes them (a classifier's file) is not here."""
    try:
        return item_scores(file, record.task, metric)
    except CulturevalError:
        return None


def _with_counts(record: TaskRecord, rows: int, counts: Mapping[str, int], headline: str) -> TaskRecord:
    """The record with the numbers of rows that have a score, as the details have them: stock LightEval tells none.

    A task's headline applies to it, whatever the record says.
    """
    silent = tuple(metric for metric in record.not_applicable if metric != headline)
    told = {metric: count for metric, count in counts.items() if count or metric not in silent}
    scored = {metric: count for metric, count in record.scored.items() if metric not in told}
    scored |= {metric: count for metric, count in told.items() if count < rows}
    changed = {"rows": rows, "scored": scored, "not_applicable": silent}
    same = all(getattr(record, name) == value for name, value in changed.items())
    return record if same else record.model_copy(update=changed)


def _told(run: Run, record: TaskRecord) -> TaskRecord:
    """The record of a task without details: its rates are of as many items as other scores of the file say."""
    counted = {}
    for metric in (name for name in run.scores.get(record.task, {}) if not name.endswith(ERROR)):
        declared = declared_metric(record.task, metric)
        values = [run.value(record.task, name) for name in declared.of] if declared else []
        if values and None not in values:
            counted[metric] = round(math.prod(value for value in values if value is not None))
    return record.model_copy(update={"counted": record.counted | counted}) if counted else record


def _made_of_sums(record: TaskRecord, file: Path, metrics: Sequence[str]) -> dict[str, ItemScores]:
    """The items of metrics that details lack numbers of, whose task's suite knows what they are made of."""
    known = {metric: _known_items(record, file, metric) for metric in metrics if _has_statistics(record)}
    return {metric: items for metric, items in known.items() if items}


def _counted(items: ItemScores) -> int:
    """How many items a rate counts: those of its denominator; of other scores all."""
    return in_denominator(items) if _is_ratio(items) else len(items.keys)


def _has_statistics(record: TaskRecord) -> bool:
    """Whether a task's suite tells what scores that are no means of rows are made of."""
    suite = all_suites().get(record.suite)
    return bool(suite and suite.statistics)


def _error_of_sums(items: ItemScores | None) -> float | None:
    """The standard error of a score of sums over items, clusters whole: that of its metric's own draws, else of a
    ratio of two the linearised one, else the jackknife's; None of other scores, and of one cluster.
    """
    if items is None:
        return None
    of_two, numbers = _is_ratio(items), dict[Hashable, int]()
    members = [numbers.setdefault(name or place, len(numbers)) for place, name in enumerate(items.clusters)]
    groups = len(numbers) if of_two or items.error else min(len(numbers), GROUPS)
    sums = np.zeros((groups, items.parts.shape[1]))
    np.add.at(sums, np.array(members) % groups, items.parts)
    if items.error:
        return items.error(sums)
    sums = sums[sums[:, 1] != 0] if of_two else sums
    total, count = sums.sum(axis=0), len(sums)
    if count < 2:
        return None
    if of_two:
        residuals = (sums[:, 0] - total[0] / total[1] * sums[:, 1]) / total[1]
        return math.sqrt(count / (count - 1) * float(residuals @ residuals))
    without = items.score(total - sums)
    return math.sqrt((count - 1) / count * float(((without - without.mean()) ** 2).sum()))


def _of_subsets(scores: Scores, errors: Mapping[tuple[str, str], StandardError]) -> Iterator[tuple[str, Change]]:
    """The averages, and their standard errors, that are not those of their subsets, whose `errors` are known."""
    for name, values in scores.items():
        members = members_of(name, scores)
        for metric, claimed in values.items() if members is not None else ():
            if metric.endswith(ERROR) or claimed is None:
                continue
            if not members or not all(metric in scores.get(member, {}) for member in members):
                if not metric.startswith(JUDGED):  # judges may have been asked about some subsets alone
                    gone = Claim(name, metric, claimed, math.nan, "subsets")
                    yield name, (gone, {metric: None, f"{metric}{ERROR}": None})
                continue
            parts = [scores[member][metric] for member in members]
            told_errors = [scores[member].get(f"{metric}{ERROR}") for member in members]
            known = [part for part in parts if part is not None]
            found = [errors[member, metric] for member in members if (member, metric) in errors]
            error = _error_of_average(name, found) if len(found) == len(members) else None
            added = _is_count(members[0], metric)
            whole, mean_of_known = math.fsum(known), math.fsum(known) / max(len(known), 1)  # undefined ones left out
            if known and (agree(mean_of_known, claimed) or added and agree(whole, claimed)):
                told = values.get(f"{metric}{ERROR}")
                least = math.hypot(*(one or 0.0 for one in told_errors)) / len(members)
                if error is None and told is not None and told * FACTOR < least:  # no less than of independent subsets
                    error = _Drawn(least)
                changes = _error_change(name, metric, told, error, "subsets") if error == error is not None else []
                yield from ((name, change) for change in changes)
                continue
            mean = mean_of([Estimate(*part) for part in zip(known, told_errors, strict=False)]) if known else None
            value = (whole if added else mean.value) if mean and len(known) == len(parts) else math.nan
            known_error = mean.stderr if mean and error is None else error
            known_error = None if known_error is None or math.isnan(known_error) else float(known_error)
            found_values = {metric: value, f"{metric}{ERROR}": known_error} if value == value else {metric: None}
            yield name, (Claim(name, metric, claimed, value, "subsets"), found_values)


def _is_count(task: str, metric: str) -> bool:
    """Whether a metric is a number of items, which may be added over subsets."""
    if metric.startswith(JUDGED):
        return metric.endswith(tuple(f"_{name}" for name in count_verdicts([])))
    declared = declared_metric(task, metric)
    return declared is not None and declared.role == "count" and not _is_bounded(task, metric)


def _error_of_average(name: str, errors: Sequence[StandardError]) -> StandardError:
    """The error of an average: of a group's as LightEval adds them, of a declared mean their mean, an upper bound."""
    of_group = name.partition("|")[0].endswith(":_average")
    error = sum(errors[1:], start=errors[0]) / len(errors) if of_group else math.fsum(errors) / len(errors)
    return (_Drawn if any(isinstance(one, _Drawn) for one in errors) else StandardError)(float(error))
