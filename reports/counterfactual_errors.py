"""Items that fooled a model, as text and as a page: what `cultureval show --fooled` prints and writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from cultureval.reports.item_view import shown_text
from cultureval.runs.rows import find_task, rows_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.servers.data_urls import data_url
from cultureval.tasks.catalogue import all_suites, known_task

SAID = {"true": "accepted", "invalid": "no readable verdict"}
PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<style>body{{font:16px sans-serif;margin:2em}}article{{display:flex;gap:1em;margin:1em 0;border-top:1px solid #ccc;
padding-top:1em}}img{{max-width:20em;max-height:20em}}.wrong{{color:#b00020}}p{{margin:.3em 0}}</style>
<h1>{title}</h1>
{items}
"""


@dataclass(frozen=True)
class FooledStatement:
    """A false statement that the model did not reject.

    Attributes:
        statement: The statement.
        verdict: "true", or "invalid" where the output could not be read.
        reply: The output.
    """

    statement: str
    verdict: str
    reply: str


@dataclass(frozen=True)
class FooledItem:
    """An item that fooled the model; a suite's `fooled` returns these.

    Attributes:
        item: Its id in the data.
        image: Its file.
        country: "" where unknown.
        category: "" where unknown.
        true: The true statement, which the model accepted.
        fooled_by: The false statements that it did not reject.
    """

    item: str
    image: str
    country: str
    category: str
    true: str
    fooled_by: Sequence[FooledStatement]


def find_fooled(results: Path, task: str) -> tuple[list[FooledItem], str]:
    """The items of the newest details of a task that fooled the model, and the task's, run's and date's names.

    Raises:
        CulturevalError: There are no such details, or the task's suite does not say what fools.
    """
    run, name = find_task(results, task)
    known = known_task(name)
    listed = all_suites()[known.suite].part("fooled") if known else None
    if listed is None:
        able = ", ".join(name for name, suite in all_suites().items() if suite.fooled)
        raise CulturevalError(f"{task}: nothing is known of what fools a model there; --fooled is for {able}.")
    return listed(rows_of(run.details[name]), name), f"{name}, {run.name}, {run.date}"


def fooled_text(items: Sequence[FooledItem], isolate: bool = False) -> str:
    """The items as text, with control characters as escapes.

    Args:
        isolate: Whether right-to-left text is isolated for a terminal.
    """
    lines = []
    for item in items:
        place = ", ".join(filter(None, (item.country, item.category)))
        lines += [f"{item.item}{f' ({place})' if place else ''}: {item.image}", f"  true      {item.true}"]
        lines += [
            f"  not true  {one.statement}  [{SAID[one.verdict]}: {' '.join(one.reply.split())[:200]}]"
            for one in item.fooled_by
        ]
    return "\n".join(shown_text(line, isolate) for line in lines)


def write_gallery(items: Sequence[FooledItem], title: str, path: Path) -> None:
    """Writes the items as one HTML page that holds their images."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PAGE.format(title=escape(title), items="\n".join(map(_article, items))), encoding="utf-8")


def _article(item: FooledItem) -> str:
    file = Path(item.image)
    source = data_url(file) if file.is_file() else ""
    place = ", ".join(filter(None, (item.item, item.country, item.category)))
    lines = [f"<p>{escape(place)}</p>", f'<p dir="auto">&#10003; {escape(item.true)}</p>']
    lines += [
        f'<p dir="auto" class="wrong">&#10007; {escape(one.statement)} '
        f"<small>({SAID[one.verdict]}: {escape(one.reply[:500])})</small></p>"
        for one in item.fooled_by
    ]
    return f'<article><img src="{source}" alt=""><div>{"".join(lines)}</div></article>'
