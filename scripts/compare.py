"""`cultureval compare`: paired tests of finished runs of any suite; `compare m2cqa` and `compare cvlue` say more."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cultureval.metrics.m2cqa.names import Profile
from cultureval.runtime.data.hub import go_offline_if_unreachable
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.scripts.options import ALL_FORMATS, Figures

Allowed = Annotated[
    str, typer.Option("--allow", metavar="KINDS", help="What may differ between the runs: items,prompts,scorers.")
]
Force = Annotated[bool, typer.Option("--force", help="The same as --allow items,prompts,scorers.")]


def compare_runs(
    results: Annotated[
        list[str], typer.Argument(metavar="RUNS...", help="Output folders or results files; with --plan see there.")
    ],
    output_dir: Annotated[Path, typer.Option(help="Output folder of tables and items.")] = Path("results/compare"),
    metric: Annotated[
        list[str] | None, typer.Option(help="Compare this metric; repeatable; default: each task's headline.")
    ] = None,
    allow: Allowed = "",
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples, and random swaps.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the resamples.")] = 0,
    items: Annotated[int, typer.Option(min=0, help="Show at most so many items that differ, each way.")] = 2,
    subsets: Annotated[bool, typer.Option("--subsets", help="Show subsets, too; differences.csv has them.")] = False,
    charts: Annotated[
        str, typer.Option(metavar="FORMATS", help="Formats of the forest plots: svg, pdf, png; or none.")
    ] = "svg,pdf",
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as one JSON document.")] = False,
    planned: Annotated[
        bool,
        typer.Option(
            "--plan", help="Smallest difference that can be found: RUNS are numbers of items, tasks, or runs."
        ),
    ] = False,
    discordant: Annotated[
        float, typer.Option(help="--plan: share of items that one of two models alone has right, where no run tells.")
    ] = 0.2,
    power: Annotated[float, typer.Option(help="--plan: chance of finding the difference.")] = 0.8,
    tests: Annotated[int | None, typer.Option(min=1, help="--plan: differences tested together.")] = None,
    leaderboards: Annotated[
        bool, typer.Option("--leaderboards", help="Kendall distance of two: folders of results, or CSV: model,score.")
    ] = False,
) -> None:
    """Compares runs item by item; the word `runs` may be left out. Example: cultureval compare out-a out-b"""
    if planned and leaderboards:
        raise CulturevalError("--plan and --leaderboards are two different things: give one of them.")
    if planned:
        from cultureval.reports.comparison.planning import plan

        return print(plan(results, discordant, power, tests))
    if leaderboards:
        from cultureval.reports.comparison.leaderboard_distance import compare_boards

        return print(compare_boards([Path(one) for one in results], metric or []))
    from cultureval.reports.charts import chart_formats
    from cultureval.reports.comparison.report import compare_all

    formats = chart_formats(charts)
    go_offline_if_unreachable()  # spBLEU's pieces may be fetched, and are looked for once for each task
    paths, drawn, isolate = [Path(one) for one in results], (resamples, seed), sys.stdout.isatty()
    found = compare_all(paths, output_dir, metric or [], _allowed(allow), *drawn, items, subsets, isolate, formats)
    if as_json:
        return print(json.dumps(found.document, ensure_ascii=False, indent=2))
    print(found.text)
    for note in found.notes:
        print_note(note)
    plots = ", forest plots" if formats else ""
    print(f"\nTables and items: {output_dir.resolve()} (differences.csv, items.jsonl, comparison.json{plots})")


def compare_m2cqa(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Output folders or results files.")],
    output_dir: Annotated[Path, typer.Option(help="Output folder of tables and figures.")] = Path("results/compare"),
    profile: Annotated[Profile, typer.Option(help="How verdicts are parsed; the paper's is strict.")] = "strict",
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples, and random swaps.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the resamples.")] = 0,
    size: Annotated[
        list[str] | None, typer.Option(help="MODEL=BILLIONS of parameters, if the name has no size such as -32B-.")
    ] = None,
    q_plus_border: Annotated[float, typer.Option(help="Q+ accuracy from which it counts as high.")] = 0.8,
    cfhr_border: Annotated[float, typer.Option(help="CFHR from which it counts as high.")] = 0.3,
    figures: Figures = ALL_FORMATS,
    allow: Allowed = "",
    force: Force = False,
) -> None:
    """Compares prompts and models of M2CQA. Example: cultureval compare m2cqa out-a out-b"""
    from cultureval.reports.charts import chart_formats
    from cultureval.reports.m2cqa.comparison import write_comparison
    from cultureval.reports.m2cqa.comparison_rows import Borders

    borders = Borders(q_plus_border, cfhr_border)
    formats = chart_formats(figures, "--figures")
    found = write_comparison(
        results, output_dir, profile, resamples, seed, size or [], borders, _allowed(allow, force), formats
    )
    print(found.text)
    for note in found.notes:
        print_note(note)
    drawn = f" ({', '.join(file.name for file in found.figures)})" if found.figures else ""
    print(f"Tables and plots: {output_dir.resolve()}{drawn}")


def compare_cvlue(
    results: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Output folders or results files.")],
    output_dir: Annotated[Path, typer.Option(help="Output folder of tables.")] = Path("results/compare"),
    allow: Allowed = "",
    force: Force = False,
) -> None:
    """Compares models on CVLUE, beside the paper's Table 10. Example: cultureval compare cvlue out-a out-b"""
    from cultureval.reports.cvlue.comparison import compare_runs_of_cvlue

    text, notes = compare_runs_of_cvlue(results, output_dir, _allowed(allow, force))
    print(text)
    for note in notes:
        print_note(note)
    print(f"Tables and items: {output_dir.resolve()} (scores.csv, differences.csv, items.jsonl, comparison.json)")


def _allowed(kinds: str, everything: bool = False) -> list[str]:
    from cultureval.runs.comparable import KINDS

    return [*KINDS] if everything else [name.strip() for name in kinds.split(",") if name.strip()]
