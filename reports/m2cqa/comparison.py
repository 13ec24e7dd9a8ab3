"""Compare models and prompts of M2CQA: files with the paper's tables, tests of differences, and figures.

Paper: arXiv 2602.05437, Table 2 (cells), Table 7 (differences of CFHR), Figure 3 (regimes of Q+ accuracy and CFHR),
Figures 5 and 8 (CFHR against model size).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cultureval.metrics.m2cqa.names import (
    CFHR,
    COMBINED_ACC,
    F1,
    INVALID_RATE,
    N_ITEMS,
    N_Q_PLUS,
    Q_MINUS_ACC,
    Q_PLUS_ACC,
    Profile,
)
from cultureval.reports.charts import FORMATS, chart_files
from cultureval.reports.comparison.compared_models import sides_of
from cultureval.reports.comparison.paired_runs import TestedDifference
from cultureval.reports.comparison.report import comparison_notes, items_cell, left_out_sentences
from cultureval.reports.leaderboard.exports import escaped_markdown, markdown_table
from cultureval.reports.m2cqa.charts import regimes
from cultureval.reports.m2cqa.charts import sizes as size_charts
from cultureval.reports.m2cqa.comparison_rows import (
    BREAKDOWN_COLUMNS,
    CELL_COLUMNS,
    GROUP,
    HIGH,
    LOW,
    N_ASKED,
    N_UNSCORED,
    OF_MODELS,
    OF_PROMPTS,
    Borders,
    Row,
    breakdown_rows,
    by_prompt,
    cell_rows,
    difference_rows,
    differences_of,
    paired_prompts,
    read_cells,
    under_profile,
)
from cultureval.reports.model_sizes import model_sizes
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.csv_files import write_csv
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.rounding import printed, printed_or_na
from cultureval.tasks.m2cqa.benchmarks import PROMPTS, VARIETIES

CELL_HEADER = ("Variety", "Model", "Q+", "Q-", "F1", "Combined", "CFHR", "95%", "Invalid", "Right Q+", "Regime")
CELL_ALIGN = "llrrrrrrrrl"
DIFFERENCE_ALIGN = "llllrrlll"
MOST_COLUMNS = 6  # of models and prompts in the tables by country and category


class Comparison(NamedTuple):
    """The result of `write_comparison`: text for the terminal, notes, and the figures' files."""

    text: str
    notes: list[str]
    figures: list[Path]


@dataclass(frozen=True)
class ReportTable:
    """A table of the report with its title and lead; names in it are as they are, markup or not."""

    title: str
    lead: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str

    def markdown(self) -> str:
        """The section as Markdown."""
        header, *rows = ([escaped_markdown(cell) for cell in row] for row in (self.header, *self.rows))
        table = markdown_table(header, rows, self.align)
        return "\n".join([f"## {self.title}", "", *([self.lead, ""] if self.lead else []), table])

    def terminal(self) -> str:
        """The section as text for the terminal."""
        title = self.title.replace("`", "") + (f": {self.lead}" if self.lead else "")
        return terminal_table(self.header, self.rows, self.align, title)


def write_comparison(
    results: Sequence[Path],
    output_dir: Path,
    profile: Profile,
    draws: int,
    seed: int,
    sizes: Sequence[str],
    borders: Borders,
    allowed: Sequence[str] = (),
    formats: Sequence[str] = FORMATS,
) -> Comparison:
    """Write cells.csv, differences.csv, breakdown.csv (by country and category), comparison.md and the figures.

    Args:
        results: Output folders or results files.
        profile: How verdicts are parsed: strict, tolerant, lenient or organisers.
        sizes: MODEL=BILLIONS of parameters, for names without a size.
        borders: Thresholds above which Q+ accuracy and CFHR count as high.
        allowed: What may differ between the runs, of `comparable.KINDS`.
        formats: Of the figures; () draws none.

    Raises:
        CulturevalError: The results have no runs of M2CQA, or something differs that may not.
    """
    sides = [side for side in sides_of(results) if any(name.startswith(GROUP) for name in side.tasks)]
    prompted = by_prompt(sides)
    if not prompted:
        raise CulturevalError(
            f"{', '.join(map(str, results))}: no run of an m2cqa task. Run `cultureval eval ... m2cqa`."
        )
    known_sizes = model_sizes({model for model, _ in prompted}, sizes)
    cells = read_cells(prompted, profile)
    pairs = paired_prompts(prompted, under_profile(CFHR, profile), allowed)
    found = differences_of(prompted, pairs, draws, seed)
    rows, breakdown = cell_rows(cells, borders, known_sizes), breakdown_rows(cells)
    differences = difference_rows(prompted, found)
    write_csv(output_dir / "cells.csv", rows, CELL_COLUMNS)
    write_csv(output_dir / "differences.csv", differences)
    if breakdown:
        write_csv(output_dir / "breakdown.csv", breakdown, BREAKDOWN_COLUMNS)
    sections = [*cell_sections(rows), *difference_sections(differences, found), *breakdown_sections(breakdown, rows)]
    notes = [*comparison_notes(pairs, sides, found), *left_out_sentences(found)]
    lead = (
        f"Verdicts parsed with the {profile} profile; scores from 0 to 1. Read CFHR together with Q+: few correct Q+ "
        "also keep it low."
    )
    parts = ["# M2CQA", lead, "\n".join(f"- {escaped_markdown(note)}" for note in notes)]
    markdown = "\n\n".join([*filter(None, parts), *(section.markdown() for section in sections)]) + "\n"
    (output_dir / "comparison.md").write_text(markdown, encoding="utf-8")
    charts = [*regimes(rows, borders), *size_charts(rows)]
    figures = [file for chart in charts for file in chart_files(chart, output_dir, formats)]
    text = "\n\n".join([lead, *(section.terminal() for section in sections)])
    return Comparison(text, [*notes, *not_drawn(rows, known_sizes)], figures)


def cell_sections(rows: Sequence[Row]) -> list[ReportTable]:
    """A table of cells like Table 2 for each prompt with cells."""
    names = (Q_PLUS_ACC, Q_MINUS_ACC, F1, COMBINED_ACC, CFHR)
    order = [*VARIETIES, "dialect"]
    sections = []
    for prompt, name in PROMPTS.items():
        of_prompt = [row for row in rows if row["prompt"] == prompt]
        table = [
            [
                *(row["variety"], row["model"], *(_rounded(row[name]) for name in names)),
                *(_interval(row[LOW], row[HIGH]), _rounded(row[INVALID_RATE])),
                *(f"{row[N_Q_PLUS]:g} of {row[N_ASKED]:g}{_unscored(row)}", row["regime"]),
            ]
            for row in sorted(of_prompt, key=lambda row: order.index(row["variety"]))
        ]
        if table:
            sections.append(ReportTable(f"{name} (`{prompt}`)", "", CELL_HEADER, table, CELL_ALIGN))
    return sections


def difference_sections(differences: Sequence[Row], tested: Sequence[TestedDifference]) -> list[ReportTable]:
    """Tables of differences like Table 7: between prompts, and between models, if any.

    Args:
        differences: As of `difference_rows`.
        tested: What they are the rows of.
    """
    lead = "CFHR of the first minus the second, paired by item; p of a permutation test, and by Holm for this table."
    sections = []
    for level, held in ((OF_PROMPTS, "Model"), (OF_MODELS, "Prompt")):
        table = [
            [row["variety"], row["held"], row["first"], row["second"], items_cell(one), *_difference_cells(row)]
            for row, one in zip(differences, tested, strict=True)
            if row["level"] == level
        ]
        if table:
            header = ("Variety", held, "First", "Second", "Items", "Δ", "CI", "p", "p (Holm)")
            sections.append(ReportTable(f"Differences of {level}", lead, header, table, DIFFERENCE_ALIGN))
    return sections


def breakdown_sections(breakdown: Sequence[Row], of_cells: Sequence[Row]) -> list[ReportTable]:
    """Tables of CFHR by country and by category, all varieties of a model and prompt together.

    Args:
        breakdown: As of `breakdown_rows`.
        of_cells: As of `cell_rows`; items without an answer, whose country nobody knows, are theirs alone.
    """
    cells = list(dict.fromkeys((row["model"], row["prompt"]) for row in breakdown))
    if len(cells) > MOST_COLUMNS:
        return []
    sections, gone = [], dict[tuple[str, str], float]()
    for row in of_cells:
        if row["variety"] in VARIETIES and (absent := row[N_ASKED] - row[N_ITEMS]):
            gone[row["model"], row["prompt"]] = gone.get((row["model"], row["prompt"]), 0) + absent
    for field in dict.fromkeys(row["field"] for row in breakdown):
        groups: dict[str, dict[tuple[str, str], list[Row]]] = {}
        for row in breakdown:
            if row["field"] == field:
                groups.setdefault(row["value"], {}).setdefault((row["model"], row["prompt"]), []).append(row)
        table = [[value, *(_pooled(found.get(cell, [])) for cell in cells)] for value, found in sorted(groups.items())]
        lead = "Fooled of the items with a correct Q+, varieties together; breakdown.csv has each with its interval."
        lead += "".join(
            f" {absent:g} items that {model} {prompt} was asked are in no row."
            for (model, prompt), absent in gone.items()
        )
        header = (field.capitalize(), *(f"{model} {prompt}" for model, prompt in cells))
        sections.append(ReportTable(f"CFHR by {field}", lead, header, table, "l" + "r" * len(cells)))
    return sections


def _pooled(rows: Sequence[Row]) -> str:
    """CFHR of some cells together, with its counts."""
    hits = sum(row[N_Q_PLUS] for row in rows)
    fooled, unscored = sum(round((row[CFHR] or 0) * row[N_Q_PLUS]) for row in rows), _unscored(*rows)
    return f"{printed(fooled / hits, 3)} ({fooled}/{hits}{unscored})" if hits else f"n/a{unscored}"


def _unscored(*rows: Row) -> str:
    """How many items some rows leave out, behind a number of those that they count; "" where none."""
    left_out = sum(row[N_UNSCORED] for row in rows)
    return f", {left_out:g} unscored" if left_out else ""


def printed_p_value(p_value: float | None) -> str:
    """A p-value as Table 7 prints it: "< 0.001" or "= 0.110"."""
    if p_value is None:
        return "n/a"
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"


def not_drawn(rows: Sequence[Row], sizes: Mapping[str, float]) -> list[str]:
    """What is missing in the figures, one sentence each."""
    undefined = [f"{row['model']} {row['prompt']}_{row['variety']}" for row in rows if row[CFHR] is None]
    unsized = sorted({row["model"] for row in rows} - set(sizes))
    notes = [f"not drawn, because CFHR is undefined without a correct Q+: {', '.join(undefined)}."] if undefined else []
    if unsized:
        notes.append(
            f"not drawn against size, because the size is unknown: {', '.join(unsized)} (--size MODEL=BILLIONS)."
        )
    return notes


def _difference_cells(row: Row) -> list[str]:
    if row["identical"]:
        return [_rounded(row["delta"]), "identical", "", ""]
    interval = _interval(row["ci_low"], row["ci_high"])
    return [_rounded(row["delta"]), interval, printed_p_value(row["p_value"]), printed_p_value(row["p_holm"])]


def _interval(low: float | None, high: float | None) -> str:
    return "n/a" if low is None or high is None else f"[{printed(low, 3)}, {printed(high, 3)}]"


def _rounded(value: float | None) -> str:
    return printed_or_na(value, 3)
