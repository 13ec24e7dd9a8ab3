"""The pages of a leaderboard: the first with the tables, one a model, one a task."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.metrics.declared import bounds_of_mean
from cultureval.reports.charts import Chart
from cultureval.reports.leaderboard.assets import file_name, shown, shown_apart
from cultureval.reports.leaderboard.board import Board, Section
from cultureval.reports.leaderboard.entries import PAPER, Entry
from cultureval.reports.leaderboard.exports import FORMATS
from cultureval.reports.leaderboard.models import UNKNOWN, ModelFacts, family_of
from cultureval.reports.leaderboard.tables import BoardRow, BoardTable, best_cells, cell_text, whole_number
from cultureval.reports.model_sizes import billions_of, size_text
from cultureval.reports.viewer_links import PublishedAnswers
from cultureval.runs.means import interval_of
from cultureval.runs.record import TaskRecord
from cultureval.runs.table import Cell, Column, higher_is_better
from cultureval.runs.warnings import task_warnings
from cultureval.runtime.rounding import printed
from cultureval.tasks.catalogue import all_suites, all_tasks, declared_metric

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_TAB = 30  # letters of a name of a tab
MOST_NAMED = 6  # models that the sentence above a table names
LEFTWARDS = re.compile(r"[^\s`]*[\u0590-\u08ff][^\s`]*(?:\s+[^\s`]*[\u0590-\u08ff][^\s`]*)*")  # Hebrew to Arabic
Asked = Counter[tuple[str, str]]  # the letter of a group and a task -> how many items were asked
FILTERS = ("benchmark", "domain", "task_type", "register_", "language")
# 'self' is the page's own folder, where the scripts and styles are; nothing can be sent or loaded from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-src 'none'"
)


@dataclass(frozen=True)
class TaskScore:
    """A score of an entry on a task by a metric, for pages; `asked` is how many items others of its group have."""

    entry: Entry
    record: TaskRecord
    metric: str
    asked: int = 0

    @property
    def value(self) -> float | None:
        """As its items say, and without these the results file."""
        return self.entry.run.value(self.record.task, self.metric)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 %, within the range of the metric."""
        error = self.entry.run.stderr(self.record.task, self.metric)
        return interval_of(self.record.task, self.metric, self.value, error)

    @property
    def scored(self) -> int:
        """Items that it is of."""
        return self.record.n_of(self.metric)

    @property
    def order(self) -> float | None:
        """By what it stands among others: with the worst score for each item that it lacks.

        None where none is, and where its items do not prove it: these stand below, as they do without a rank.
        """
        if self.entry.unranked or self.record.task in self.entry.run.unchecked:
            return None
        declared, count = declared_metric(self.record.task, self.metric), self.record.items_with(self.metric)
        missing = max(self.asked - count, 0)
        if self.value is None or not missing:
            return self.value
        ends = bounds_of_mean(self.value * count, count, missing, declared.range) if declared else (math.inf, math.inf)
        end = ends[0 if higher_is_better(self.entry.run, self.record.task, self.metric) else 1]
        return end if math.isfinite(end) else None


def _first(score: TaskScore) -> float:
    return next((one for one in (score.order, score.value) if one is not None), 0.0)


@dataclass
class Pages:
    """The pages of a board.

    Attributes:
        board: The leaderboard.
        title: Heading of the first page.
        formats: Of the charts' files; empty: no charts.
        answers: Where single answers can be looked at.
        about: What stands below the heading.
    """

    board: Board
    title: str
    formats: Sequence[str]
    answers: PublishedAnswers = field(default_factory=PublishedAnswers)
    about: str = ""

    def all(self) -> Iterator[tuple[str, str]]:
        """Path below the folder, and text, of each page."""
        yield "index.html", self._index()
        for model, entries in self._entries.items():
            yield f"models/{file_name(model)}.html", self._model(model, entries)
        for task in self._tasks:
            yield f"tasks/{file_name(task)}.html", self._task(task)

    def tables(self) -> Iterator[tuple[BoardTable, str]]:
        """Each table with the name of its files."""
        for section, letter in self._lettered:
            for table in section.tables:
                yield table, _file_of(table.title, letter)

    def charts_of(self, section: Section) -> Sequence[Chart]:
        """The charts of a section; those of the first group of a suite alone have some."""
        return section.charts if self.formats and not section.group.differences else []

    @cached_property
    def _lettered(self) -> list[tuple[Section, str]]:
        """The sections, each with the letter of its group within the suite."""
        counts: dict[tuple[str, int], int] = {}
        found = []
        for section in self.board.sections:
            place = (section.division.suite, section.division.shots)
            number = counts[place] = counts.get(place, 0) + 1
            found.append((section, _letters(number)))
        return found

    @cached_property
    def _names(self) -> dict[str, str]:
        """The labels of rows as pages show them: no two alike."""
        labels = [row.label for section in self.board.sections for table in section.tables for row in table.rows]
        labels += [entry.label for entries in self._entries.values() for _, entry in entries]
        return shown_apart(labels)

    @cached_property
    def _placed(self) -> list[tuple[Section, str, Entry]]:
        """Each entry with the first group that it is in, and the group's letter."""
        places: dict[int, tuple[Section, str, Entry]] = {}
        for section, letter in self._lettered:
            for entry in section.group.entries:
                places.setdefault(id(entry), (section, letter, entry))
        return list(places.values())

    @cached_property
    def _entries(self) -> dict[str, list[tuple[Section, Entry]]]:
        found: dict[str, list[tuple[Section, Entry]]] = {}
        for section, _, entry in self._placed:
            found.setdefault(entry.model, []).append((section, entry))
        return found

    @cached_property
    def _models(self) -> dict[tuple[str, Any], int]:
        """The models, numbered: what the page counts, whose runs may be several rows."""
        return {one: number for number, one in enumerate(dict.fromkeys(one.identity for *_, one in self._placed))}

    @cached_property
    def _tasks(self) -> dict[str, list[tuple[Section, str, Entry]]]:
        found: dict[str, list[tuple[Section, str, Entry]]] = {}
        for section, letter, entry in self._placed:
            for task in entry.run.record.tasks:
                found.setdefault(task, []).append((section, letter, entry))
        return found

    def _index(self) -> str:
        suites: dict[str, list[dict[str, Any]]] = {}
        for section, letter in self._lettered:
            name = _suite_name(section.division.suite, section.division.shots)
            suites.setdefault(name, []).append(self._section(section, letter))
        panels = [
            {"id": f"suite-{number}", "name": name, "sections": sections, "lettered": len(sections) > 1}
            for number, (name, sections) in enumerate(suites.items())
        ]
        facts = [*self.board.models.values()]
        labels = [row.label for table, _ in self.tables() for row in table.rows if not row.entry]
        facts += map(_published_facts, dict.fromkeys(labels))
        return rendered(
            "index.html",
            root="",
            title=self.title,
            about=self.about,
            panels=panels,
            models=len(self._models),
            files=len(self.board.runs),
            newest=self.board.runs[0].date[:10],
            families=sorted({one.family for one in facts}),
            licences=sorted({one.licence for one in facts}),
            charts=any(self.charts_of(section) for section in self.board.sections),
            subsets=self._subsets(),
            published=any(row.entry is None for table, _ in self.tables() for row in table.rows),
            logs=self.answers.address,
            left_out=[shown(one.sentence, 400) for one in self.board.left_out],
        )

    def _section(self, section: Section, letter: str) -> dict[str, Any]:
        return {
            "letter": letter,
            "models": len({one.identity for one in section.group.entries}),
            "differences": [shown(one, 400) for one in section.group.differences],
            "tables": [self._table(table, _file_of(table.title, letter)) for table in section.tables],
            "charts": self.charts_of(section),
            "formats": self.formats,
        }

    def _table(self, table: BoardTable, name: str) -> dict[str, Any]:
        best = best_cells(table)
        return {
            "id": name,
            "title": shown(table.title),
            "unit": shown(table.unit),
            "lead": self._lead(table),
            "groups": [
                (shown(name, 60), [_column(one, table) for one in columns])
                for name, columns in groupby(table.columns, lambda column: column.above)
            ],
            "rows": [self._row(table, row, number, best) for number, row in enumerate(table.rows)],
            "ranked": any(row.rank for row in table.rows),
            "notes": [shown(note, 600) for note in table.notes],
            "formats": list(FORMATS),
        }

    def _row(self, table: BoardTable, row: BoardRow, number: int, best: set[tuple[int, int]]) -> dict[str, Any]:
        facts = self.board.models[row.label] if row.entry else _published_facts(row.label)
        return {
            "label": self._names[row.label],
            "href": self._href(row.entry),
            "of": self._models[row.entry.identity] if row.entry else self._names[row.label],
            "rank": row.rank,
            "top": row.top,
            "marks": [shown(one, 60) for one in row.entry.marks] if row.entry else [],
            "warnings": [(one.mark, shown(one, 1000)) for one in row.entry.warnings if one.mark] if row.entry else [],
            "facts": _facts(row.entry, facts) if row.entry else [],
            **facts.told(),
            "cells": [_cell(cell, (number, place) in best) for place, cell in enumerate(row.cells)],
            "notes": [shown(note, 400) for note in row.notes],
        }

    def _href(self, entry: Entry | None) -> str:
        return f"models/{file_name(entry.model)}.html" if entry else ""

    def _lead(self, table: BoardTable) -> dict[str, Any] | None:
        """What a reader sees first: how many models may be the best; None without ranks."""
        if not table.ranking or len(table.ranking.rows) < 2 or table.main is None:
            return None
        top = [row.model for row in table.ranking.rows if row.tied_for_top]
        entries = {row.label: row.entry for row in table.rows if row.entry}
        named = top if len(top) <= MOST_NAMED else []
        return {
            "models": len(table.ranking.rows),
            "top": len(top),
            "sure": table.ranking.is_one_on_top,
            "named": [(self._names[label], self._href(entries[label])) for label in named],
            "column": shown(table.columns[table.main].whole, 80),
            "unranked": len(entries) - len(table.ranking.rows),
        }

    def _subsets(self) -> list[dict[str, Any]]:
        """The headline scores of all subsets by model, for the page's own means over a selection."""
        found = []
        for section, letter in self._lettered:
            lettered = sum(one.division == section.division for one, _ in self._lettered) > 1
            records = {name: one for entry in section.group.entries for name, one in entry.run.record.tasks.items()}
            tasks = [one for one in records.values() if one.metrics]
            asked = _asked((letter, entry) for entry in section.group.entries)
            found.append(
                {
                    "name": _suite_name(section.division.suite, section.division.shots)
                    + (f", group {letter}" if lettered else ""),
                    "tasks": [
                        {
                            "metric": one.headline,
                            "lower": not _higher(section.group.entries, one),
                            "href": f"tasks/{file_name(one.task)}.html",
                            "name": shown(one.task.partition("|")[0], 80),
                            **{key.rstrip("_"): shown(str(getattr(one, key)), 60) or "-" for key in FILTERS},
                        }
                        for one in tasks
                    ],
                    "models": [self._subset_row(entry, tasks, letter, asked) for entry in section.group.entries],
                }
            )
        return found

    def _subset_row(self, entry: Entry, tasks: Sequence[TaskRecord], letter: str, asked: Asked) -> dict[str, Any]:
        facts, known = self.board.models[entry.label], entry.run.record.tasks
        scores = [TaskScore(entry, known.get(one.task, one), one.headline, asked[letter, one.task]) for one in tasks]
        errors = [entry.run.stderr(one.task, one.headline) for one in tasks]
        return {
            "label": self._names[entry.label],
            "of": self._models[entry.identity],
            "href": self._href(entry),
            **facts.told(),
            "marks": [shown(one, 60) for one in entry.marks],
            "n": [known[one.task].n_of(one.headline) if one.task in known else 0 for one in tasks],
            "scores": [None if one.value is None else round(one.value, 6) for one in scores],
            "orders": [None if one.order is None else round(one.order, 6) for one in scores],
            "errors": [None if error is None else round(error, 6) for error in errors],
        }

    def _model(self, model: str, entries: Sequence[tuple[Section, Entry]]) -> str:
        facts = self.board.models[entries[0][1].label]
        parts = [self._entry(section, entry) for section, entry in entries]
        return rendered(
            "model.html",
            root="../",
            title=shown(model),
            facts=facts,
            parts=parts,
            board=self.title,
            size=size_text(facts.billions) if facts.billions else "",
            logs=self.answers.address,
        )

    def _entry(self, section: Section, entry: Entry) -> dict[str, Any]:
        scores = [
            TaskScore(entry, one, metric) for one in entry.run.record.tasks.values() for metric in one.metrics[:1]
        ]
        scale = _scales(scores)
        record = entry.run.record
        groups = {(one.record.group, one.record.shots) for one in scores}
        return {
            "suite": _suite_name(section.division.suite, section.division.shots),
            "label": self._names[entry.label],
            "rows": [self._score_row(one, scale[one.metric]) for one in scores],
            "signatures": [
                {"group": one.group, "text": shown(one.text, 4000)}
                for one in record.signatures
                if _group_of(one.group) in groups
            ],
            "settings": [
                (name, shown(str(value), 300))
                for name, value in record.model.model_dump(mode="json").items()
                if value not in (None, "", [], {}, ())
            ],
            "files": sorted({shown(run.file.name) for run in entry.sources.values()}),
            "marks": [shown(one, 60) for one in entry.marks],
            "warnings": [shown(one, 1000) for one in entry.warnings],
            "unranked": shown(entry.unranked, 600),
            "notes": list(dict.fromkeys(shown(note, 400) for one in scores for note in one.record.notes))[:20],
            "date": entry.run.date[:10],
        }

    def _task(self, task: str) -> str:
        places = self._tasks[task]
        record = places[0][2].run.record.tasks[task]
        asked = _asked((letter, entry) for _, letter, entry in places)
        scores = [
            TaskScore(entry, entry.run.record.tasks[task], metric, asked[letter, task])
            for _, letter, entry in places
            for metric in entry.run.scores.get(task, {})
            if not metric.endswith("_stderr")
        ]
        scale = _scales(scores)
        headline = record.headline
        letters = {id(entry): letter for _, letter, entry in places}
        marks = {id(entry): [one.mark for one in task_warnings(entry.run, task) if one.mark] for _, _, entry in places}
        sign = -1 if _higher([entry for _, _, entry in places], record) else 1
        several = len(set(letters.values())) > 1
        rows = sorted(
            (one for one in scores if one.metric == headline),
            key=lambda one: (letters[id(one.entry)], one.order is None, one.value is None, sign * _first(one)),
        )
        others = [one for one in scores if one.metric != headline]
        known = all_tasks().get(task.partition("|")[0])
        source = known.sources[0] if known else None
        return rendered(
            "task.html",
            root="../",
            title=shown(task.partition("|")[0]),
            board=self.title,
            record=record,
            suite=_suite_name(record.suite, record.shots),
            licence=source.licence if source else "",
            metric=headline,
            rows=[
                self._score_row(one, scale[one.metric], marks[id(one.entry)], letters[id(one.entry)] if several else "")
                for one in rows
            ],
            others=[self._score_row(one, scale[one.metric], marks[id(one.entry)]) for one in others],
            several=several,
            logs=self.answers.address,
        )

    def _score_row(
        self, score: TaskScore, scale: float, marks: Sequence[str] | None = None, letter: str = ""
    ) -> dict[str, Any]:
        """A row of a task's page, with the model and its marks, or without `marks` of a model's, with the task."""
        record, source, interval = score.record, score.entry.sources.get(score.record.task), score.interval
        answers = self.answers.of(source, record.task) if source else ""
        digits = 4 if scale <= 1 else 2
        pixels = (lambda value: round(min(max(value / scale, 0), 1) * 120, 1)) if scale else (lambda value: 0)
        to_task = marks is None
        href = f"tasks/{file_name(record.task)}" if to_task else f"models/{file_name(score.entry.model)}"
        facts = {"benchmark": 60, "domain": 60, "task_type": 40, "register_": 40, "language": 20}  # letters at most
        return {
            "name": shown(record.task.partition("|")[0], 100) if to_task else self._names[score.entry.label],
            "href": f"../{href}.html",
            "letter": letter,
            "marks": [shown(one, 60) for one in marks or ()],
            **{name.rstrip("_"): shown(getattr(record, name), most) for name, most in facts.items()},
            "metric": shown(score.metric, 80),
            "order": score.order,
            "value": score.value,
            "text": "n/a" if score.value is None else printed(score.value, digits),
            "low": None if interval is None else printed(interval[0], digits),
            "high": None if interval is None else printed(interval[1], digits),
            "bar": 0 if score.value is None else pixels(score.value),
            "ends": None if interval is None else [pixels(end) for end in interval],
            "scored": score.scored,
            "rows": record.n,
            "expected": record.expected_rows,
            "answers": answers if "://" in answers or not answers else f"../{answers}",
        }


def _higher(entries: Sequence[Entry], task: TaskRecord) -> bool:
    """Whether higher values of a task's headline are better."""
    runs = (one.run for one in entries if task.task in one.run.record.tasks)
    return all(higher_is_better(run, task.task, task.headline) for run in runs)


def _asked(entries: Iterable[tuple[str, Entry]]) -> Asked:
    """The letter of a group and a task -> of how many items the most of its entries is, the refused ones too."""
    found: Asked = Counter()
    for letter, entry in entries:
        found |= Counter({(letter, task): one.n for task, one in entry.run.record.tasks.items()})
    return found


def _group_of(group: str) -> tuple[str, int]:
    """The group and the number of examples of a signature's name."""
    name, _, shots = group.partition("|")
    return name, int(shots) if shots.isdigit() else 0


def _scales(scores: Sequence[TaskScore]) -> Mapping[str, float]:
    """The value at the right end of a metric's bars: 1 for shares, else the next power of ten's step."""
    most: dict[str, float] = {}
    for one in scores:
        most[one.metric] = max(most.get(one.metric, 0.0), one.value or 0.0)
    return {name: 1.0 if value <= 1 else 5.0 if value <= 5 else _rounded_up(value) for name, value in most.items()}


def _rounded_up(value: float) -> float:
    step = 10 ** math.floor(math.log10(value))
    return math.ceil(value / step) * step


def _column(column: Column, table: BoardTable) -> dict[str, Any]:
    main = table.main is not None and table.columns[table.main] == column
    return {"name": shown(column.name), "lower": column.lower, "main": main}


def _published_facts(label: str) -> ModelFacts:
    """What the name of a paper's row says, for the filters."""
    name = label.removesuffix(f" ({PAPER})")
    return ModelFacts(family_of(name), billions_of(name), UNKNOWN)


def _facts(entry: Entry, facts: ModelFacts) -> list[str]:
    """Below a model's name: its size where it was counted or given, its licence where known, the run's day."""
    size = size_text(facts.billions) if facts.billions and facts.counted else ""
    licence = shown(facts.licence, 40) if facts.licence != UNKNOWN else ""
    return [part for part in (size, licence, f"run {shown(entry.run.date[:10])}") if part]


def _cell(cell: Cell | str | None, best: bool) -> dict[str, Any]:
    if not isinstance(cell, Cell):
        return {"text": shown(cell or "", 60), "value": None, "error": "", "best": False, "n": None}
    error = "" if cell.stderr is None or cell.value is None else printed(cell.stderr, cell.digits)
    text = cell_text(cell, errors=False)
    return {"text": text, "value": whole_number(cell), "error": error, "best": best, "n": cell.n}


def _suite_name(suite: str, shots: int) -> str:
    known = all_suites().get(suite)
    title = known.title.partition(":")[0].partition(" (")[0] if known else suite
    title = title if len(title) <= LONGEST_TAB else suite
    return shown(f"{title}, {shots}-shot" if shots else title, 60)


def _letters(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _file_of(title: str, letter: str) -> str:
    return file_name(f"{title}-group-{letter}")


def rendered(template: str, *folders: Path, **values: Any) -> str:
    """A page from a template of this folder, or of further folders, which go before; values are escaped."""
    return _environment(*folders).get_template(template).render(policy=POLICY, **values)


@cache
def _environment(*folders: Path) -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    found = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["coded"] = _coded
    return found


def _coded(text: str) -> "Markup":
    """A text, escaped, with its parts between backticks as code, and words from right to left set apart."""
    from markupsafe import Markup, escape

    marked = LEFTWARDS.sub(r"<bdi>\g<0></bdi>", str(escape(text)))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", marked))
