"""AL-QASIDA's tables of a run: ADI2 of requests by dialect and genre, translation by corpus and direction, judges.

Paper: arXiv 2412.04193, Figures 3 to 6, 9 and 10, whose numbers its repository holds (`published.csv`). Ours: the
standard errors, and the average over all sets, which the paper does not print.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

from cultureval.metrics.alqasida.countries import NAMES
from cultureval.metrics.alqasida.names import GAIN, ZERO
from cultureval.reports.charts import Chart, Charted, Interval, Point, dots, interval_of_cell, scatter
from cultureval.reports.paper_numbers import published_model, published_rows, published_scores
from cultureval.runs.judged import BOUNDS_NOTE, JudgeScores, bounded_mean, by_judge, incomplete, judge_scores
from cultureval.runs.means import Estimate, as_written, estimate, mean_of, percentage
from cultureval.runs.record import Run, TaskRecord
from cultureval.runs.table import (
    NO_AVERAGE,
    Cell,
    Column,
    Content,
    Coverage,
    Row,
    SuiteTable,
    cell_of,
    one_row,
    table_of_cells,
)
from cultureval.runtime.errors import shown_names
from cultureval.tasks.alqasida.benchmarks import direction_of
from cultureval.tasks.alqasida.published_prompts import NOT_PUBLISHED
from cultureval.tasks.catalogue import all_tasks
from cultureval.tasks.suite import Task

PUBLISHED = Path(__file__).with_name("published.csv")
KINDS = {"mono": "monolingual", "cross": "cross-lingual"}
SUITE, TRANSLATIONS = "alqasida", "Translations"
MAIN = Column(KINDS["mono"], "Average")
DIRECTIONS = {
    "dialect_to_eng": "dialect to English",
    "eng_to_dialect": "English to dialect",
    "dialect_to_msa": "dialect to MSA",
    "msa_to_dialect": "MSA to dialect",
}
# Their published cross-lingual numbers leave out what the profile `released` leaves out.
RELEASED_PROFILE = ("c4ai-command-r-v01", "c4ai-command-r-plus", "command-r-base", "command-r-plus-base", "gpt-4o")
CRITERIA = {  # template and criterion, as in metrics' names
    ("adherence", "adherence"): "Adherence (1-3)",
    ("fulfilment", "fulfilment"): "Fulfilment",
    ("adequacy", "adequacy"): "Adequacy",
    ("fluency", "fluency"): "Fluency",
    ("dialectal_fidelity", "dialectal_fidelity"): "Dialectal fidelity",
}
Estimates = Mapping[str, Estimate]  # by the name of the task without `|k`
Published = Mapping[str, float]


def tables(run: Run, suite: str = SUITE) -> list[SuiteTable]:
    """Requests, then translations, for each number of few-shot examples; then the judges' scores.

    Args:
        suite: `alqasida`, or `alqasida_dev` for the development sets.
    """
    made = []
    records = run.tasks_of(suite)
    for shots in dict.fromkeys(record.shots for record in records):
        tasks = {record.task.partition("|")[0]: record for record in records if record.shots == shots}
        published = published_scores(PUBLISHED, run.model) if shots == 0 else {}
        found = [_requests(run, suite, tasks, published), _translations(run, suite, tasks, published)]
        made += [table for table in found if table]
    return made + [_judge_table(*of_judge) for of_judge in by_judge(judge_scores(run, records)).items()]


development_tables = partial(tables, suite="alqasida_dev")


def _requests(run: Run, suite: str, tasks: Mapping[str, TaskRecord], published: Published) -> SuiteTable | None:
    """ADI2 in percent: a row a dialect (mean of its genres), the average of all sets, a row a genre."""
    scores = {name: score for name, record in tasks.items() if (score := percentage(run, record, "adi2"))}
    kinds = {kind: _sets(suite, kind, tasks) for kind in KINDS}
    kinds = {kind: sets for kind, sets in kinds.items() if any(task.task in scores for task in sets)}
    if not kinds:
        return None
    present = [task for sets in kinds.values() for task in sets if task.task in scores]
    rows = []
    for dialect in sorted({_place(task)[1] for task in present}):
        members = [[task for task in sets if _place(task)[1] == dialect] for sets in kinds.values()]
        members = [_counted(sets, scores) for sets in members]
        label = NAMES.get(dialect, dialect)
        rows.append(Row(label, [cell for sets in members for cell in _mean_cells(sets, scores, published)]))
    shots = next(iter(tasks.values())).shots
    cells = [cell for sets in kinds.values() for cell in _average_cells(run, shots, sets, scores, published)]
    rows.append(Row("Average", cells))
    for genre in dict.fromkeys(task.benchmark for task in present):
        members = [[task for task in sets if task.benchmark == genre] for sets in kinds.values()]
        rows.append(Row(genre, [cell for sets in members for cell in _mean_cells(sets, scores, published)]))
    columns = [column for kind in kinds for column in (KINDS[kind], Column("sets", KINDS[kind]))]
    unit = f"ADI2 in percent, {shots}-shot"
    note = "[ ] cross-lingual leaves replies without a line of five words out."
    notes = [note] if published and "cross" in kinds and published_model(run.model, RELEASED_PROFILE) else []
    notes += _other_prompts([tasks[task.task] for task in present])
    return SuiteTable("AL-QASIDA, requests", unit, ("Dialect, genre", *columns), rows, notes, main=MAIN)


def _other_prompts(records: Sequence[TaskRecord]) -> list[str]:
    """A line on the sets whose prompts are not the paper's."""
    others = [one.task.partition("_")[2].partition("|")[0] for one in records if one.prompt_hash == NOT_PUBLISHED]
    if not others:
        return []
    told = f"{NOT_PUBLISHED[0].upper()}{NOT_PUBLISHED[1:]}: {shown_names(others, 3)}"
    return [f"{told} ({len(others)} of {len(records)} sets)."]


def _sets(suite: str, kind: str, records: Mapping[str, TaskRecord]) -> list[Task]:
    """The paper's sets, then those of outputs of other prompts (`cultureval score alqasida`)."""
    known = [task for task in all_tasks().values() if task.suite == suite and task.group == f"{suite}_{kind}"]
    others = {name: one for name, one in records.items() if one.group == f"{suite}_{kind}" and name not in all_tasks()}
    return known + [_own_set(known[0], name, record) for name, record in others.items()]


def _counted(sets: Sequence[Task], scores: Estimates) -> list[Task]:
    """The paper's sets, of which a mean shows how many there are; those of other prompts where none of them was run."""
    of_paper = [task for task in sets if task.task in all_tasks()]
    others = [task for task in sets if task.task not in all_tasks()]
    return of_paper if not others or any(task.task in scores for task in of_paper) else others


def _own_set(like: Task, name: str, record: TaskRecord) -> Task:
    corpus, _, languages = record.subset.partition("_")
    source, _, target = languages.partition("_to_")
    mean = f"{record.group}:_{corpus}_{direction_of(source, target)}" if target else None
    return replace(like, task=name, benchmark=record.benchmark, subset=record.subset, mean=mean)


def _place(task: Task) -> tuple[str, str]:
    """The corpus and the dialect of a set of requests; of translations, the corpus and the direction."""
    corpus, _, languages = task.subset.partition("_")
    return corpus, languages


def _mean_cells(
    sets: Sequence[Task],
    scores: Estimates,
    published: Published,
    written: Callable[[Estimate], Estimate] | None = None,
) -> tuple[Cell | None, Coverage | str]:
    """The mean over the sets that were run, and how many of them; nothing where there are none.

    `written` is for the mean over all of them, which the results file has.
    """
    present = [task for task in sets if task.task in scores]
    if not present:
        return None, Coverage(0, len(sets)) if sets else ""
    mean = mean_of([scores[task.task] for task in present], _share_items(present))
    mean = written(mean) if written and len(present) == len(sets) else mean
    coverage = Coverage(len(present), len(sets))
    return replace(cell_of(mean, _published_mean(present, published), digits=1), coverage=coverage), coverage


def _average_cells(
    run: Run, shots: int, sets: Sequence[Task], scores: Estimates, published: Published
) -> list[Content]:
    """The mean over all sets of a kind; without it where one is missing."""
    scored = {task.task for task in sets if task.task in scores}
    sets = _counted(sets, scores)
    if any(task.task not in scores for task in sets):
        return [Cell(None, words=NO_AVERAGE), Coverage(sum(task.task in scores for task in sets), len(sets))]
    corpora: dict[str, list[Task]] = {}
    for task in sets:
        corpora.setdefault(task.benchmark, []).append(task)
    means = [mean_of([scores[task.task] for task in members], _share_items(members)) for members in corpora.values()]
    weights = [len(sets_of) * len(corpora) / len(sets) for sets_of in corpora.values()]
    weighted = [
        Estimate(weight * mean.value, None if mean.stderr is None else weight * mean.stderr, mean.n)
        for weight, mean in zip(weights, means, strict=True)
    ]
    mean = mean_of(weighted)
    if len(scored) == len(sets):  # else the file's mean is over others too
        mean = as_written(run, f"{sets[0].group}:_average|{shots}", "adi2", mean, 100)
    parts = {(f"{task.task}|{shots}", "adi2"): 1 / len(sets) for task in sets}
    cell = replace(cell_of(mean, _published_mean(sets, published), digits=1), parts=parts)
    return [cell, Coverage(len(sets), len(sets))]


def _share_items(sets: Sequence[Task]) -> bool:
    return len({task.shared_items or task.task for task in sets}) == 1


def _published_mean(sets: Sequence[Task], published: Published) -> float | None:
    """The paper's mean over the same sets, where it lists all of them."""
    if any(task.task not in published for task in sets):
        return None
    return sum(published[task.task] for task in sets) / len(sets)


def _translations(run: Run, suite: str, tasks: Mapping[str, TaskRecord], published: Published) -> SuiteTable | None:
    """spBLEU, and how far it is above that of the untranslated source: a row a direction, means over dialects."""
    scores = {name: score for name, record in tasks.items() if (score := estimate(run, record, "spbleu"))}
    sets = _sets(suite, "mt", tasks)
    corpora = [one for one in dict.fromkeys(task.benchmark for task in sets) if _present(sets, one, scores)]
    if not corpora:
        return None
    gains = {name: gain for name in scores if (gain := _gain(run, tasks[name]))}
    rows: list[Row] = []
    coverage: dict[str, list[Coverage | str]] = {}
    for direction, label in DIRECTIONS.items():
        cells: list[Cell | str | None] = []
        asked = [task for task in sets if direction_of_task(task) == direction]
        if not any(task.task in scores for task in asked):
            continue
        for corpus in corpora:
            members = [task for task in asked if task.benchmark == corpus]
            name = f"{members[0].mean}|{next(iter(tasks.values())).shots}" if members else ""
            mean = partial(as_written, run, name)
            cell, count = _mean_cells(members, scores, published, partial(mean, "spbleu"))
            gain, _ = _mean_cells(members, gains, {}, partial(mean, GAIN))
            cells += [cell, gain and replace(gain, column=Column(f"{corpus} gain", label))]
            coverage.setdefault(corpus, []).append(count)
        rows.append(Row(label, cells))
    dialects = ", ".join(f"{corpus} {_range(counts)}" for corpus, counts in coverage.items())
    columns = [column for corpus in corpora for column in (corpus, Column("gain", corpus))]
    unit = f"spBLEU 0 to 100, gain over source; dialects: {dialects}"
    return SuiteTable(TRANSLATIONS, unit, ("Direction", *columns), rows)


def _present(sets: Sequence[Task], corpus: str, scores: Estimates) -> bool:
    return any(task.benchmark == corpus and task.task in scores for task in sets)


def direction_of_task(task: Task) -> str:
    """The direction of a set of translations: `dialect_to_eng`; "" of other sets."""
    return (task.mean or "").partition(":_")[2].partition("_")[2]


def _range(coverage: Sequence[Coverage | str]) -> str:
    counts = list(map(str, coverage))
    return counts[0] if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def _gain(run: Run, record: TaskRecord) -> Estimate | None:
    """The paired difference; in files of before it, the difference without an error."""
    if found := estimate(run, record, GAIN):
        return found
    score, source = estimate(run, record, "spbleu"), estimate(run, record, "spbleu" + ZERO)
    return Estimate(score.value - source.value, None, score.n) if score and source else None


def _judge_table(judge: str, scores: Sequence[JudgeScores]) -> SuiteTable:
    """A judge's means over the sets of each kind, on the scales of the paper's people, who rated two dialects."""
    rows, part = [], f", {told}" if (told := incomplete(scores)) else ""
    for kind, label in {**KINDS, "mt": "translation"}.items():
        of_kind = [one for one in scores if one.task.partition("|")[0].partition(":")[0].endswith(f"_{kind}")]
        cells: list[Content] = []
        for template, criterion in CRITERIA:
            members = [one for one in of_kind if one.template == template and criterion in one.criteria]
            found = [one.criteria[criterion] for one in members]
            known = [one.mean for one in found if one.mean]
            whole = known and len(known) == len(found) and not part
            bounded = bounded_mean(found) if not whole or any(one.is_doubted for one in members) else None
            cells.append(bounded or (cell_of(mean_of(known)) if whole else None))
        if any(cells):
            rows.append(Row(label, cells))
    name = f"AL-QASIDA, judge {judge}, 1 to 5{part}"
    notes = [BOUNDS_NOTE] if any(isinstance(cell, str) for row in rows for cell in row.cells) else ()
    return SuiteTable(name, "", ("Task", *CRITERIA.values()), rows, notes, judge=judge)


def published_tables() -> dict[str, list[SuiteTable]]:
    """Model -> its rows; means are over the sets that the paper lists, the average only over all of them."""
    found = {}
    for row in published_rows(PUBLISHED):
        cells: dict[Column, Cell] = {}
        for kind, name in KINDS.items():
            sets = [task for task in all_tasks().values() if task.group == f"{SUITE}_{kind}"]
            known = [task for task in sets if row.get(task.task)]
            parts = {NAMES[_dialect(task)]: [one for one in known if _dialect(one) == _dialect(task)] for task in known}
            parts |= {task.benchmark: [one for one in known if one.benchmark == task.benchmark] for task in known}
            parts |= {"Average": known} if len(known) == len(sets) else {}
            cells |= {Column(name, label): _mean(row, tasks) for label, tasks in parts.items()}
        requests = table_of_cells("AL-QASIDA, requests", cells)
        found[row["model"]] = [requests, table_of_cells(TRANSLATIONS, _published_translations(row))]
    return found


def _published_translations(row: dict[str, str]) -> dict[Column, Cell]:
    """SpBLEU by direction and corpus; the paper has no gain over the source."""
    cells: dict[Column, Cell] = {}
    for direction, label in DIRECTIONS.items():
        known = [task for task in all_tasks().values() if row.get(task.task) and direction_of_task(task) == direction]
        for corpus in dict.fromkeys(task.benchmark for task in known):
            cells[Column(corpus, label)] = _mean(row, [task for task in known if task.benchmark == corpus])
    return cells


def _dialect(task: Task) -> str:
    return task.subset.partition("_")[2]


def _mean(row: dict[str, str], tasks: Sequence[Task]) -> Cell:
    return Cell(sum(float(row[task.task]) for task in tasks) / len(tasks), digits=1)


def charts(models: Sequence[Charted]) -> list[Chart]:
    """Of comparable models: dots a kind of requests, then translations into dialects by both scores."""
    found = []
    for kind, name in KINDS.items():
        values = {model.label: row for model in models if (row := _by_country(model, name))}
        if values:
            title = f"ADI2 of {name} requests by country, percent"
            note = "Means over the sets that were run."
            found.append(dots(f"alqasida_{kind}", title, values, note=note))
    points = [point for model in models if (point := _translation(model))]
    if points:
        axes = ("spBLEU, English to dialect", "ADI2 of the translations, percent")
        note = "Means over the corpora and dialects that were run; high on both axes: right, and in the dialect."
        found.append(scatter("alqasida_translation", "Quality and fidelity of translations", axes, points, note=note))
    return found


def _by_country(model: Charted, kind: str) -> dict[str, Interval]:
    cells = {column: cell for table in tables(model.run) for column, cell in one_row(table).cells.items()}
    found = {column.above: interval_of_cell(cell) for column, cell in cells.items() if column.name == kind}
    return {country: found[country] for country in NAMES.values() if found.get(country)}


def _translation(model: Charted) -> Point | None:
    pairs = [
        (quality, 100 * fidelity)
        for task in model.run.tasks_of(SUITE)
        if "_eng_to_" in task.task
        and (quality := model.run.value(task.task, "spbleu")) is not None
        and (fidelity := model.run.value(task.task, "adi2")) is not None
    ]
    return Point(model.label, fmean(x for x, _ in pairs), fmean(y for _, y in pairs)) if pairs else None
