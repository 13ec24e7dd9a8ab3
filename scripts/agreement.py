"""`cultureval agreement`: how far metrics and judges agree with people, and people with each other."""

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cultureval.reports.human_ratings import ALQASIDA_CRITERIA, JEEM_CRITERIA, READERS, Rating
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from cultureval.metrics.agreement import Correlation
    from cultureval.reports.saved_results import SavedTask

MEAN = "mean"  # of a text's criteria, where it has a score for each
ALL = "all"
# The human score of the table by dialect; AL-QASIDA's criteria have different scales, so it has no mean.
HEADLINES = {"jeem": MEAN, "alqasida": "Dialectal Accuracy"}
# A criterion that judges call otherwise than the column of the human file.
JUDGED_AS = {"Dialectal Accuracy": "Dialectal Fidelity"}


def agreement(
    suite: Annotated[Literal["jeem", "alqasida"], typer.Argument(help="Whose human ratings: jeem or alqasida.")],
    human: Annotated[Path, typer.Argument(metavar="HUMAN.csv", help="The human ratings; columns: see docs/jeem.md.")],
    results: Annotated[
        list[Path] | None, typer.Argument(metavar="RESULTS...", help="Output folders or results files of the models.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="HUMAN_NAME=RESULTS_NAME, where a model is called otherwise. Repeatable."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="CSV file for every correlation with its interval.")] = None,
    draws: Annotated[int, typer.Option(min=100, help="Resamples of items behind an interval.")] = 1000,
) -> None:
    """Kendall's tau-c of metrics with people, Gwet's AC1. Example: cultureval agreement jeem HUMAN.csv results"""
    from cultureval.reports.saved_results import find_saved_tasks

    ratings, references = READERS[suite](human)
    saved = scored_texts(find_saved_tasks(results), suite) if results else {}
    texts, lines = join(ratings, saved, dict(_pair(name) for name in model or ()), bool(results))
    lines += [f"{references} ratings of human references left out."] if references else []
    cells = correlations(texts, HEADLINES[suite], draws)
    print("\n".join([*lines, *tables(cells, HEADLINES[suite]), *rater_lines(ratings, texts, suite)]))
    if output:
        write_cells(output, cells)
        print(f"All {len(cells)} correlations: {output}")


@dataclass
class Text:
    """A rated text with what people and metrics say of it.

    Attributes:
        group: The dialect.
        item: What was asked of all models.
        human: Criterion -> mean over annotators; `MEAN` where all criteria are scored.
        metrics: Metric -> score.
    """

    group: str
    item: str
    human: dict[str, float]
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Saved:
    """A text of a results file: the model's reply and its finite metrics."""

    reply: str
    metrics: dict[str, float]


Key = tuple[str, str]  # the model's folder below the results, the item


def scored_texts(tasks: "Sequence[SavedTask]", suite: str) -> dict[Key, Saved]:
    """The texts of a suite's saved tasks with their metrics, those of later judgements included.

    Raises:
        CulturevalError: The results hold no text of the suite.
    """
    wanted = "jeem_caption:" if suite == "jeem" else "alqasida_"
    found: dict[Key, Saved] = {}
    for task in tasks:
        if task.task.startswith(wanted) and not task.task.startswith("jeem_caption:msa"):
            found |= {(task.model, item): saved for item, saved in _rows(task, suite).items()}
    if not found:
        raise CulturevalError(f"The results hold no texts of {suite} that people rate ({wanted}... tasks).")
    return found


def _rows(task: "SavedTask", suite: str) -> dict[str, Saved]:
    from cultureval.reports.saved_results import derived_from

    rows: dict[str, Saved] = {}
    for source in (task, *derived_from(task)):
        for row in source.table().to_pylist():
            specific = row["doc"].get("specific") or {}
            if suite == "jeem":
                item = f"{specific['country']}/{specific['image_id']}"
            else:
                item = (specific.get("prompt") or row["doc"]["query"]).strip()
            old = rows.get(item) or Saved(_reply(row["model_response"]), {})
            rows[item] = Saved(old.reply, old.metrics | _finite(row["metric"]))
    return {item: Saved(row.reply, row.metrics | judge_means(row.metrics)) for item, row in rows.items()}


def judge_means(metrics: Mapping[str, float]) -> dict[str, float]:
    """The mean of each judge's four criteria under each template, where all are scored; ours, as the human mean is."""
    from cultureval.metrics.judges.verdicts import metric_part

    parts = [f"_{metric_part(name)}" for name in JEEM_CRITERIA]
    judged = [name.removesuffix(parts[0]) for name in metrics if name.startswith("judge_") and name.endswith(parts[0])]
    whole = [name for name in judged if all(name + part in metrics for part in parts)]
    return {f"{name}_{MEAN}": sum(metrics[name + part] for part in parts) / len(parts) for name in whole}


def _finite(metrics: Mapping[str, Any]) -> dict[str, float]:
    numbers = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def _reply(response: Mapping[str, Any]) -> str:
    texts = response.get("text_post_processed") or response.get("text") or [""]
    return texts[0] or ""


def _pair(text: str) -> tuple[str, str]:
    name, sign, other = text.partition("=")
    if not sign or not name or not other:
        raise CulturevalError(f"--model {text!r}: write HUMAN_NAME=RESULTS_NAME.")
    return name, other


def join(
    ratings: Sequence[Rating], saved: Mapping[Key, Saved], renamed: Mapping[str, str], needed: bool
) -> tuple[list[Text], list[str]]:
    """Brings ratings and saved texts together.

    Args:
        ratings: Of people; several of one text are averaged, criterion by criterion.
        saved: Of the results.
        renamed: The models' names in the ratings -> those in the results.
        needed: Whether a rating counts only with a saved text.

    Returns:
        The rated texts, and what to say of those that were left out.

    Raises:
        CulturevalError: A model's name in the ratings fits several in the results, or nothing is left.
    """
    known = sorted({model for model, _ in saved})
    folders = {name: folder_of(renamed.get(name, name), known) for name in {rating.model for rating in ratings}}
    groups: dict[Key, list[Rating]] = defaultdict(list)
    for rating in ratings:
        groups[rating.model, rating.item].append(rating)
    texts, left_out = [], Counter[str]()
    for (model, item), members in groups.items():
        found = saved.get((folders[model] or "", item))
        if needed and found is None:
            left_out["have no text in the results" if folders[model] else f"are of {model!r}, of which no results"] += 1
        elif found and any(member.text and member.text.strip() != found.reply.strip() for member in members):
            left_out["are of another text than the results hold"] += 1
        else:
            metrics = members[0].metrics | (found.metrics if found else {})
            texts.append(Text(members[0].group, item, _mean_scores(members), metrics))
    lines = [f"{count} rated texts left out: they {reason}." for reason, count in left_out.items()]
    if not texts:
        names = ", ".join(known) or "none"
        raise CulturevalError(f"No rated text is left. {' '.join(lines)} Models of the results: {names} (see --model).")
    return texts, [f"{len(texts)} rated texts of {len(ratings)} ratings.", *lines]


def folder_of(name: str, known: Sequence[str]) -> str | None:
    """The model of the results that a name stands for: the same, or its last part; any, where there is no name.

    Raises:
        CulturevalError: It could be several.
    """
    plain = name.lower()
    fitting = [model for model in known if plain in ("", model.lower(), model.lower().rsplit("/", 1)[-1])]
    if len(fitting) > 1:
        raise CulturevalError(
            f"The ratings' model {name!r} may be {' or '.join(fitting)}: name the results of one, or use --model."
        )
    return fitting[0] if fitting else None


def _mean_scores(members: Sequence[Rating]) -> dict[str, float]:
    criteria = dict.fromkeys(name for member in members for name in member.scores)
    means = {}
    for name in criteria:
        scores = [member.scores[name] for member in members if name in member.scores]
        means[name] = sum(scores) / len(scores)
    return means


Cell = tuple[str, str, str]  # metric, criterion, dialect


def correlations(texts: Sequence[Text], headline: str, draws: int) -> "dict[Cell, Correlation]":
    """Tau-c of every metric with every criterion, in each dialect and in all together.

    With the headline `MEAN`, also with the mean of the criteria of texts that have a score for each. Items are
    resampled: an image or a prompt with all models' texts.
    """
    from cultureval.metrics.agreement import tau_c_with_interval

    criteria = list(dict.fromkeys(name for text in texts for name in text.human))
    if headline == MEAN:
        for text in texts:
            if len(text.human) == len(criteria):
                text.human[MEAN] = sum(text.human.values()) / len(criteria)
        criteria.insert(0, MEAN)
    dialects = list(dict.fromkeys(text.group for text in texts))
    cells = {}
    for metric in dict.fromkeys(name for text in texts for name in text.metrics):
        for criterion in criteria:
            for dialect in (ALL, *(dialects if len(dialects) > 1 else ())):
                pairs = [
                    (text.metrics[metric], text.human[criterion], text.item)
                    for text in texts
                    if dialect in (ALL, text.group) and metric in text.metrics and criterion in text.human
                ]
                if pairs:
                    cells[metric, criterion, dialect] = tau_c_with_interval(*zip(*pairs, strict=True), draws=draws)
    return cells


def tables(cells: "Mapping[Cell, Correlation]", headline: str) -> list[str]:
    """Two tables: the headline's human score by dialect, and the criteria over all dialects."""
    if not cells:
        return ["", "No metric to compare with: name the RESULTS of the models that were rated."]
    by_dialect = {
        (metric, dialect): cell for (metric, criterion, dialect), cell in cells.items() if criterion == headline
    }
    by_criterion = {(metric, criterion): cell for (metric, criterion, dialect), cell in cells.items() if dialect == ALL}
    title = "the mean human score" if headline == MEAN else f"the human score of {headline}"
    lines = ["", f"Kendall's tau-c x 100 with {title}, by dialect [95% interval over items]:", *_table(by_dialect)]
    return [*lines, "", "The same by criterion, all dialects:", *_table(by_criterion)]


def _table(cells: "Mapping[tuple[str, str], Correlation]") -> list[str]:
    columns = list(dict.fromkeys(column for _, column in cells))
    rows = [["metric", *columns, "n"]]
    for metric in dict.fromkeys(metric for metric, _ in cells):
        found = [cells.get((metric, column)) for column in columns]
        most = max(cell.pairs for cell in found if cell)
        rows.append([metric, *(_shown(cell) for cell in found), str(most)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _shown(cell: "Correlation | None") -> str:
    if cell is None or math.isnan(cell.value):
        return "n/a"
    interval = "n/a" if math.isnan(cell.low) else f"{100 * cell.low:.1f}, {100 * cell.high:.1f}"
    return f"{100 * cell.value:.1f} [{interval}]"


def rater_lines(ratings: Sequence[Rating], texts: Sequence[Text], suite: str) -> list[str]:
    """AC1 and raw agreement: of annotators who rated the same texts, and of judges with people."""
    highest = JEEM_CRITERIA if suite == "jeem" else ALQASIDA_CRITERIA
    lines = []
    for name, top in highest.items():
        judged = judge_tables(texts, name) if top == highest_of_judges(suite, name) else []
        for title, table in (("annotators", annotator_table(ratings, name)), *judged):
            lines += _ac1_line(f"{name}, {title}", table, top)
    if not lines:
        return ["", "AC1: no text has two ratings on the categories of the scale."]
    return ["", "Gwet's AC1 and raw agreement, categories 1 to the highest score:", *lines]


def highest_of_judges(suite: str, criterion: str) -> int:
    """Where the judges' scale of a criterion ends; people's may end elsewhere."""
    from cultureval.judge_prompts.templates import TEMPLATES

    name = JUDGED_AS.get(criterion, criterion)
    return next(row.top(name) for key, row in TEMPLATES.items() if key.startswith(suite) and name in row.criteria)


def annotator_table(ratings: Iterable[Rating], criterion: str) -> list[list[float | None]]:
    """The ratings of a criterion, a row a text, a column an annotator; only texts that several rated.

    Where the file names no annotators, a text's first rating is the first column's, and so on.
    """
    texts: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for rating in ratings:
        if criterion in rating.scores:
            scores = texts[rating.group, rating.item, rating.model]
            scores[rating.annotator or f"#{len(scores)}"] = rating.scores[criterion]
    rated = [scores for scores in texts.values() if len(scores) > 1]
    names = sorted({name for scores in rated for name in scores})
    return [[scores.get(name) for name in names] for scores in rated]


def judge_tables(texts: Sequence[Text], criterion: str) -> list[tuple[str, list[list[float | None]]]]:
    """For each judge that scored the criterion: a row a text, the human score beside the judge's."""
    from cultureval.metrics.judges.verdicts import metric_part

    ending = f"_{metric_part(JUDGED_AS.get(criterion, criterion))}"
    names = dict.fromkeys(name for text in texts for name in text.metrics if name.startswith("judge_"))
    return [
        (
            f"people and {name.removesuffix(ending)}",
            [
                [text.human[criterion], text.metrics[name]]
                for text in texts
                if name in text.metrics and criterion in text.human
            ],
        )
        for name in names
        if name.endswith(ending)
    ]


def _ac1_line(title: str, table: Sequence[Sequence[float | None]], top: int) -> list[str]:
    from cultureval.metrics.agreement import gwet_ac1, raw_agreement

    scale = list(range(1, top + 1))
    on_scale = [row for row in table if all(cell is None or cell in scale for cell in row)]
    if not on_scale:
        return []
    left_out = len(table) - len(on_scale)
    note = f", {left_out} between two categories left out" if left_out else ""
    values = f"AC1 {gwet_ac1(on_scale, scale):.3f}  raw {raw_agreement(on_scale, scale):.3f}"
    return [f"  {title}: {values}  ({len(on_scale)} texts{note})"]


def write_cells(path: Path, cells: "Mapping[Cell, Correlation]") -> None:
    """Every correlation as a row of a CSV file; undefined numbers are empty cells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["metric", "criterion", "dialect", "tau_c", "low", "high", "pairs", "items"])
        for (metric, criterion, dialect), cell in cells.items():
            numbers = ["" if math.isnan(value) else value for value in (cell.value, cell.low, cell.high)]
            writer.writerow([metric, criterion, dialect, *numbers, cell.pairs, cell.items])
