"""The pages of a leaderboard: a tab for each suite, a page for each model; each file has its style and script."""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cultureval.reports.charts import inline_svg, short_names
from cultureval.reports.leaderboard.assets import file_name, shown
from cultureval.reports.leaderboard.board import Board, BoardTable, Entry, Row
from cultureval.reports.leaderboard.exports import FORMATS, cell_text
from cultureval.reports.model_sizes import size_text
from cultureval.reports.summary_text import of_asked
from cultureval.reports.viewer_links import PublishedAnswers
from cultureval.runs.scores import Score
from cultureval.runs.table import Cell
from cultureval.runtime.errors import shown_names
from cultureval.runtime.rounding import printed
from cultureval.tasks.catalogue import all_suites

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_TAB = 30  # letters of a tab's name
LEFTWARDS = re.compile(r"[^\s`]*[\u0590-\u08ff][^\s`]*(?:\s+[^\s`]*[\u0590-\u08ff][^\s`]*)*(?<![,.;:])")
RECORDED = ("model", "machine", "timing", "versions")  # parts of a run's record that its page shows


@dataclass
class Pages:
    """The pages of a board. `formats` are the charts' file formats; `about` is the text below the heading."""

    board: Board
    title: str
    formats: Sequence[str]
    answers: PublishedAnswers = field(default_factory=PublishedAnswers)
    about: str = ""

    def all(self) -> Iterator[tuple[str, str]]:
        """(path below the folder, text) of each page."""
        yield "index.html", self._index()
        models: dict[str, list[Entry]] = {}
        for entry in self.board.entries:
            models.setdefault(entry.run.model, []).append(entry)
        for model, entries in models.items():
            parts = [self._run(entry) for entry in entries]
            values = {"title": shown(model), "board": self.title, "parts": parts, "logs": self.answers.address}
            yield f"models/{file_name(model)}.html", rendered("model.html", **values)

    @cached_property
    def _names(self) -> dict[str, str]:
        """The distinct names of rows on pages."""
        rows = [row.name for section in self.board.sections for table in section.tables for row in table.rows]
        names = dict.fromkeys([*(entry.run.name for entry in self.board.entries), *rows])
        return {name: shown(short) for name, short in short_names(list(names)).items()}

    def _index(self) -> str:
        panels = [
            {
                "id": f"suite-{number}",
                "name": tab_name(section.suite),
                "tables": [self._table(table) for table in section.tables],
                "charts": [(chart, inline_svg(chart)) for chart in section.charts] if self.formats else [],
            }
            for number, section in enumerate(self.board.sections)
        ]
        return rendered(
            "index.html",
            title=self.title,
            about=self.about,
            panels=panels,
            models=len({entry.run.model for entry in self.board.entries}),
            runs=len(self.board.entries),
            newest=self.board.entries[0].run.date[:10],
            formats=self.formats,
            exports=list(FORMATS),
            logs=self.answers.address,
            left_out=[shown(file.sentence, 400) for file in self.board.left_out],
        )

    def _table(self, table: BoardTable) -> dict[str, Any]:
        heads = [table.heads(place) for place in table.columns]
        columns = [
            {"name": shown(head[1], 60), "main": place == table.main, "lower": place in table.lower}
            for head, place in zip(heads, table.columns, strict=True)
        ]
        groups = [(shown(above, 60), len(list(of))) for above, of in groupby(heads, lambda head: head[0])]
        return {
            "id": file_name(table.name),
            "title": shown(table.name),
            "unit": shown(table.unit),
            "lead": self._lead(table),
            "columns": columns,
            "groups": groups if any(above for above, _ in groups) else [],
            "ranked": bool(table.ranked),
            "rows": [self._row(table, row) for row in table.rows if not row.differs],
            "others": [self._row(table, row) for row in table.rows if row.differs],
            "notes": [shown(note, 600) for note in table.notes],
        }

    def _row(self, table: BoardTable, row: Row) -> dict[str, Any]:
        run = row.entry.run if row.entry else None
        counted = run and run.record.model.parameters
        size = [size_text(counted / 1e9)] if counted else []
        explained = [
            (shown(sentence.mark, 60), shown(sentence.sentence, 1000)) for sentence in row.warnings if sentence.mark
        ]
        explained += [("other settings", sentence) for sentence in row.differs]
        return {
            "name": self._names[row.name],
            "href": f"models/{file_name(run.model)}.html" if run else "",
            "facts": [*size, shown(run.date[:10], 20)] if run else [],
            "explained": explained,
            "marks": list(dict.fromkeys(mark for mark, _ in explained)),
            "rank": row.interval,
            "top": row.rank is not None and row.rank.low == 1,
            "cells": [_cell(row.cells.get(place), table.is_best(row, place)) for place in table.columns],
            "notes": [shown(note, 400) for note in row.notes],
        }

    def _lead(self, table: BoardTable) -> str:
        """The first sentence: which models may be the best; "" without ranks."""
        if table.main is None or len(table.ranked) < 2:
            return ""
        top = [self._names[row.name] for row in table.ranked if row.rank and row.rank.low == 1]
        column = shown(table.title(table.main), 80)
        return f"By {column}, {len(top)} of {len(table.ranked)} models may be the best: {shown_names(top, 6)}."

    def _run(self, entry: Entry) -> dict[str, Any]:
        """A run on its model's page: its warnings, the scores of tasks, and its record."""
        run, record = entry.run, entry.run.record
        parts = record.model_dump(mode="json", include={*RECORDED}, exclude_defaults=True)
        facts = {f"{part} {name}": value for part in RECORDED for name, value in parts.get(part, {}).items()}
        facts |= {f"signature {item.group}": item.text for item in record.signatures}
        facts |= {"results files": ", ".join(sorted({file.name for file in run.files.values()}))}
        return {
            "name": self._names[run.name],
            "date": shown(run.date),
            "warnings": [shown(item.sentence, 1000) for item in entry.warnings],
            "scores": [
                _task_row(task, metric, score, self.answers.of(run, task))
                for task, metrics in run.scores.items()
                for metric, score in metrics.items()
            ],
            "facts": [(shown(name), shown(str(value), 4000)) for name, value in facts.items()],
        }


def _cell(cell: Cell | None, strong: bool) -> dict[str, Any]:
    """A number for pages, with its number of items if some are unscored."""
    text = cell_text(cell, errors=False)
    if cell is None or cell.value is None:
        return {"text": shown(text, 60), "order": "", "error": "", "n": "", "best": False}
    n = "" if cell.n is None else of_asked(cell.n, cell.asked or 0)
    return {"text": text, "order": "" if cell.words else cell.value, "error": cell.shown_error, "n": n, "best": strong}


def _task_row(task: str, metric: str, score: Score, href: str) -> dict[str, Any]:
    interval = f"{printed(score.low, 4)} to {printed(score.high or 0.0, 4)}" if score.low is not None else ""
    values = {"text": printed(score.value, 4), "order": score.value, "interval": interval, "href": href}
    return values | {
        "task": shown(task.removesuffix("|0"), 120),
        "metric": shown(metric, 80),
        "n": of_asked(score.n, score.asked),
    }


def tab_name(suite: str) -> str:
    """A suite's name on its tab."""
    found = all_suites().get(suite)
    title = found.title.partition(":")[0].partition(" (")[0] if found else suite or "Other tasks"
    return shown(title if len(title) <= LONGEST_TAB else suite, 60)


def rendered(name: str, **values: Any) -> str:
    """A page from a template; values are escaped, and only the page's own style and script are allowed."""
    style, script = ((TEMPLATES / file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style))
    sources = "script-src 'sha256-{}'; style-src 'sha256-{}'".format(*hashes)
    policy = f"default-src 'none'; {sources}; img-src data:; base-uri 'none'; form-action 'none'"
    return _template(name).render(policy=policy, style=style, script=script, **values)


@cache
def _template(name: str) -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    options: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True}
    found = Environment(loader=FileSystemLoader(TEMPLATES), lstrip_blocks=True, **options)
    found.filters["coded"] = _coded
    return found.get_template(name)


def _coded(text: str) -> "Markup":
    """An escaped text with parts between backticks as code, and right-to-left words in `<bdi>`."""
    from markupsafe import Markup, escape

    marked = LEFTWARDS.sub(r"<bdi>\g<0></bdi>", str(escape(text)))
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", marked))
