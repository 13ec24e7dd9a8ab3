"""`cultureval compare m2cqa`: models and prompts beside each other, with the paper's tests of differences and figures.

Paper: arXiv 2602.05437, Table 2 (cells), Table 7 (differences of CFHR), Figure 3 (regimes of Q+ accuracy and CFHR),
Figures 5 and 8 (CFHR against model size). Ours: the borders between the regimes, which the paper names only.
"""

import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cultureval.reports.m2cqa.cells import Cell, mismatches, read_cells
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.m2cqa.benchmarks import DIALECTS, PROMPTS, VARIETIES

if TYPE_CHECKING:
    import numpy as np

Row = dict[str, Any]
VALUES = ("q_plus_acc", "q_minus_acc", "f1", "combined_acc", "cfhr", "cfhr_stderr", "invalid_rate", "cfhr_valid_only")
VALUES += ("n_items", "n_q_plus")
CELL_COLUMNS = ("model", "prompt", "variety", *VALUES, "regime", "size_b")
DIFFERENCE_COLUMNS = (
    "variety",
    "held",
    "first",
    "second",
    "delta",
    "ci_low",
    "ci_high",
    "p_value",
    "n_items",
    "skipped",
)
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[bB](?![A-Za-z0-9])")


@dataclass(frozen=True)
class Borders:
    """Where "high" begins: accuracy on Q+, and CFHR."""

    q_plus_acc: float
    cfhr: float

    def regime(self, q_plus_acc: float, cfhr: float | None) -> str:
        """The paper's name (Figure 3) for a pair of values; "undefined" without a CFHR."""
        if cfhr is None:
            return "undefined"
        if q_plus_acc >= self.q_plus_acc:
            return "over-acceptance" if cfhr >= self.cfhr else "strong grounding"
        return "frequent hallucination" if cfhr >= self.cfhr else "conservative rejection"


@dataclass(frozen=True)
class Sampled:
    """A CFHR in the sample and in shared resamples of its items; nan where undefined."""

    ids: tuple[str, ...]
    point: float
    draws: "np.ndarray"


def compare_m2cqa(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Output folders or results files.")],
    output_dir: Annotated[Path, typer.Option(help="Where tables and plots go.")] = Path("results/compare"),
    profile: Annotated[
        Literal["strict", "tolerant", "lenient"], typer.Option(help="Reading of the outputs; the paper's is strict.")
    ] = "strict",
    iterations: Annotated[int, typer.Option(min=1, help="Bootstrap resamples of items.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the resamples.")] = 0,
    size: Annotated[
        list[str] | None, typer.Option(help="MODEL=BILLIONS, where the name does not tell, as in -32B-.")
    ] = None,
    q_plus_border: Annotated[float, typer.Option(help="Q+ accuracy from which it counts as high.")] = 0.8,
    cfhr_border: Annotated[float, typer.Option(help="CFHR from which it counts as high.")] = 0.3,
    force: Annotated[bool, typer.Option(help="Compare runs whose signatures differ, on the items both have.")] = False,
) -> None:
    """Prompts and models of M2CQA beside each other. Example: cultureval compare m2cqa out-a out-b"""
    from cultureval.reports.m2cqa.plots import draw_regimes, draw_sizes

    cells = read_cells(results, profile)
    notes = mismatches(cells)
    if notes and not force:
        more = f" ({len(notes) - 1} more such pairs.)" if len(notes) > 1 else ""
        raise CulturevalError(
            f"{notes[0]}{more} Scores that rest on other data or prompts are not compared; --force does."
        )
    borders, sizes = Borders(q_plus_border, cfhr_border), model_sizes({cell.model for cell in cells}, size or [])
    rows = cell_rows(cells, borders, sizes)
    differences = difference_rows(cells, iterations, seed)
    output_dir.mkdir(parents=True, exist_ok=True)
    _write_csv(output_dir / "cells.csv", CELL_COLUMNS, rows)
    _write_csv(output_dir / "differences.csv", DIFFERENCE_COLUMNS, differences)
    text = report(rows, differences, profile, notes)
    (output_dir / "comparison.md").write_text(text, encoding="utf-8")
    drawn = draw_regimes(rows, borders, output_dir / "regimes") + draw_sizes(rows, output_dir / "cfhr_by_size")
    print(text)
    for note in [*notes, *_left_out(rows, sizes)]:
        print(f"cultureval: {note}", file=sys.stderr)
    print(f"Tables and plots: {output_dir.resolve()} ({', '.join(file.name for file in drawn)})")


def model_sizes(models: set[str], given: Sequence[str]) -> dict[str, float]:
    """Billions of parameters by model, as given or as the name says (`Qwen3-VL-32B-Instruct`).

    Raises:
        CulturevalError: A given size is not MODEL=NUMBER for one of the models.
    """
    sizes = {model: float(found[1]) for model in models if (found := _SIZE.search(model))}
    for text in given:
        model, _, number = text.rpartition("=")
        if model not in models or not re.fullmatch(r"\d+(\.\d+)?", number) or float(number) <= 0:
            raise CulturevalError(f"--size {text!r} is not MODEL=BILLIONS for one of {', '.join(sorted(models))}.")
        sizes[model] = float(number)
    return sizes


def family(model: str) -> str:
    """A model's name without its size: what models of several sizes have in common."""
    return re.sub(r"[-_ ]{2,}", "-", _SIZE.sub("", model)).strip("-_ ") or model


def cell_rows(cells: Sequence[Cell], borders: Borders, sizes: Mapping[str, float]) -> list[Row]:
    """The metrics of every cell, and of the paper's Dialect rows: the unweighted means of ajp and arz.

    A Dialect row's standard error is the mean too, the largest that it can be: both dialects judge the same items.
    """
    from cultureval.metrics.m2cqa.statement_items import cell_report

    rows = {}
    for cell in cells:
        rows[cell.model, cell.prompt, cell.variety] = cell_report(cell.verdicts)
    for model, prompt in dict.fromkeys((cell.model, cell.prompt) for cell in cells):
        pair = [rows.get((model, prompt, variety)) for variety in DIALECTS]
        if all(pair):
            rows[model, prompt, "dialect"] = {name: _mean(pair[0][name], pair[1][name]) for name in VALUES}
    return [
        {"model": model, "prompt": prompt, "variety": variety}
        | {name: values[name] for name in VALUES}
        | {"regime": borders.regime(values["q_plus_acc"], values["cfhr"]), "size_b": sizes.get(model)}
        for (model, prompt, variety), values in rows.items()
    ]


def difference_rows(cells: Sequence[Cell], iterations: int, seed: int) -> list[Row]:
    """CFHR of every pair of prompts of a model, and of every pair of models under a prompt, variety by variety.

    The difference is first minus second; each resample draws the items once for both (paper, appendix A.5). `skipped`
    counts the resamples without a right Q+ in either.
    """
    sampled = {(cell.model, cell.prompt, cell.variety): _sample(cell, cell.ids, iterations, seed) for cell in cells}
    of_cell = {(cell.model, cell.prompt, cell.variety): cell for cell in cells}
    rows = [_difference(*pair, sampled, of_cell, iterations, seed) for pair in _pairs(sampled)]
    dialects = _dialects(sampled)
    return rows + [_difference(*pair, dialects, {}, iterations, seed) for pair in _pairs(dialects)]


Key = tuple[str, str, str]


def _pairs(keys: Mapping[Key, Sampled]) -> Iterator[tuple[Key, Key]]:
    for first, second in combinations(keys, 2):
        if first[2] == second[2] and (first[0] == second[0]) != (first[1] == second[1]):
            yield first, second


def _sample(cell: Cell, ids: tuple[str, ...], iterations: int, seed: int) -> Sampled:
    from cultureval.metrics.counterfactual import cfhr_replicates

    point, draws = cfhr_replicates([cell.on(ids)], iterations, seed)
    return Sampled(ids, float(point[0]), draws[:, 0])


def _dialects(sampled: Mapping[Key, Sampled]) -> dict[Key, Sampled]:
    """Means of the CFHR of both dialects; only where both have the same items, since resamples must be shared."""
    means = {}
    for model, prompt in dict.fromkeys((model, prompt) for model, prompt, _ in sampled):
        pair = [sampled.get((model, prompt, variety)) for variety in DIALECTS]
        if all(pair) and pair[0].ids == pair[1].ids:
            point, draws = (pair[0].point + pair[1].point) / 2, (pair[0].draws + pair[1].draws) / 2
            means[model, prompt, "dialect"] = Sampled(pair[0].ids, point, draws)
    return means


def _difference(
    first: Key, second: Key, sampled: Mapping[Key, Sampled], cells: Mapping[Key, Cell], iterations: int, seed: int
) -> Row:
    import numpy as np

    from cultureval.metrics.counterfactual import percentile_difference

    a, b = sampled[first], sampled[second]
    if a.ids != b.ids and first in cells:
        shared = tuple(sorted(set(a.ids) & set(b.ids)))
        if shared:
            a, b = (_sample(cells[key], shared, iterations, seed) for key in (first, second))
    if a.ids == b.ids:
        draws = a.draws - b.draws
        values = percentile_difference(a.point - b.point, draws) | {"skipped": int(np.isnan(draws).sum())}
    else:
        values = dict.fromkeys(("delta", "ci_low", "ci_high", "p_value", "skipped"))
    same_model = first[0] == second[0]
    names = {"held": first[0] if same_model else first[1], "variety": first[2]}
    names |= {"first": first[1 if same_model else 0], "second": second[1 if same_model else 0]}
    return names | values | {"n_items": len(a.ids) if a.ids == b.ids else 0}


def report(rows: Sequence[Row], differences: Sequence[Row], profile: str, notes: Sequence[str]) -> str:
    """The comparison as Markdown: cells in the form of Table 2, differences in that of Table 7."""
    lines = [
        "# M2CQA",
        "",
        f"Verdicts read by the {profile} profile. Read CFHR beside Q+: few right Q+ keep it low too.",
    ]
    if notes:
        lines += ["", "**Compared although the signatures differ, on the items that both have:**", ""]
        lines += [f"- {note}" for note in notes]
    for prompt, name in PROMPTS.items():
        found = [row for row in rows if row["prompt"] == prompt]
        if found:
            lines += ["", f"## {name} (`{prompt}`)", "", *_cell_table(found)]
    for title, of_models in (("Differences of prompts", False), ("Differences of models", True)):
        found = [row for row in differences if (row["held"] in PROMPTS) == of_models]
        if found:
            lines += ["", f"## {title}", "", "CFHR of the first minus the second; 95% interval of a paired bootstrap."]
            lines += ["", *_difference_table(found, "Prompt" if of_models else "Model")]
    return "\n".join(lines) + "\n"


def _cell_table(rows: Sequence[Row]) -> list[str]:
    lines = ["| Variety | Model | Q+ | Q- | F1 | Combined | CFHR | ± | Invalid | Right Q+ | Regime |"]
    lines.append("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    names = ("q_plus_acc", "q_minus_acc", "f1", "combined_acc", "cfhr", "cfhr_stderr", "invalid_rate")
    order = [*VARIETIES, "dialect"]
    for row in sorted(rows, key=lambda row: order.index(row["variety"])):
        numbers = [_rounded(row[name], 3) for name in names]
        cells = [row["variety"], _plain(row["model"]), *numbers, f"{row['n_q_plus']:g} of {row['n_items']:g}"]
        lines.append(f"| {' | '.join([*cells, row['regime']])} |")
    return lines


def _difference_table(rows: Sequence[Row], held: str) -> list[str]:
    lines = [f"| Variety | {held} | First | Second | Δ | CI | p |", "|---|---|---|---|--:|---|---|"]
    for row in rows:
        interval = "n/a" if row["delta"] is None else f"[{row['ci_low']:.3f}, {row['ci_high']:.3f}]"
        names = [row["variety"], *(_plain(row[name]) for name in ("held", "first", "second"))]
        lines.append(f"| {' | '.join([*names, _rounded(row['delta'], 3), interval, p_text(row['p_value'])])} |")
    return lines


def p_text(p_value: float | None) -> str:
    """A p-value as Table 7 prints it: "< 0.001" or "= 0.110"."""
    if p_value is None:
        return "n/a"
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"


def _left_out(rows: Sequence[Row], sizes: Mapping[str, float]) -> list[str]:
    """What the plots do not show, one sentence each."""
    undefined = [f"{row['model']} {row['prompt']}_{row['variety']}" for row in rows if row["cfhr"] is None]
    unsized = sorted({row["model"] for row in rows} - set(sizes))
    notes = [f"no CFHR, so not drawn, since no Q+ was right: {', '.join(undefined)}."] if undefined else []
    if unsized:
        notes.append(f"size not known, so not drawn against size: {', '.join(unsized)} (--size MODEL=BILLIONS).")
    return notes


def _write_csv(file: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, columns)
        table.writeheader()
        table.writerows(rows)


def _mean(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else (first + second) / 2


def _rounded(value: float | None, digits: int) -> str:
    return "n/a" if value is None else f"{value:.{digits}f}"


def _plain(text: str) -> str:
    """A name that cannot break a table's row or become markup."""
    return re.sub(r"[|<>`*\[\]\\\s]", " ", text).strip()
