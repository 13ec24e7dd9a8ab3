"""`cultureval compare`: paired tests of finished runs of any suite; `compare m2cqa` and `compare cvlue` say more."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cultureval.metrics.m2cqa.names import Profile
from cultureval.scripts.options import ALL_FORMATS, Figures

Runs = Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Output folders or results files.")]
OutputDir = Annotated[Path | None, typer.Option(help="New folder for tables and items; default: none written.")]
Allowed = Annotated[
    str, typer.Option("--allow", metavar="FIELDS", help="What may differ besides the model: rows,prompt,...; or all.")
]
Draws = Annotated[int, typer.Option(min=100, help="Random swaps of the permutation tests.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the swaps.")]


def compare_runs(
    results: Annotated[
        list[str], typer.Argument(metavar="RUNS...", help="Output folders or results files; with --plan see there.")
    ],
    output_dir: OutputDir = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Compare this metric; repeatable; default: each task's headline.")
    ] = None,
    allow: Allowed = "",
    draws: Draws = 10_000,
    seed: Seed = 0,
    items: Annotated[int, typer.Option(min=0, help="Show at most so many items that differ, each way.")] = 2,
    subsets: Annotated[bool, typer.Option("--subsets", help="Show subsets too; differences.csv has them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as one JSON document.")] = False,
    planned: Annotated[
        bool,
        typer.Option("--plan", help="Smallest difference that can be found: RUNS are numbers of items."),
    ] = False,
    discordant: Annotated[
        float, typer.Option(help="--plan: share of items that one of two models alone has right.")
    ] = 0.2,
    power: Annotated[float, typer.Option(help="--plan: chance of finding the difference.")] = 0.8,
    tests: Annotated[int | None, typer.Option(min=1, help="--plan: differences tested together.")] = None,
) -> None:
    """Compares runs item by item; the word `runs` may be left out. Example: cultureval compare out-a out-b"""
    if planned:
        from cultureval.reports.comparison.planning import plan

        return print(plan(results, discordant, power, tests))
    from cultureval.reports.comparison.report import compare_all

    found = compare_all(
        [Path(one) for one in results],
        output_dir,
        metric or [],
        _fields(allow),
        draws,
        seed,
        most_items=items,
        subsets=subsets,
        isolate=sys.stdout.isatty(),
    )
    print(json.dumps(found.document, ensure_ascii=False, indent=2) if as_json else found.text)
    if not as_json:
        _print_files(found.files)


def compare_m2cqa(
    results: Runs,
    output_dir: OutputDir = None,
    profile: Annotated[Profile, typer.Option(help="How verdicts are parsed; the paper's is strict.")] = "strict",
    draws: Draws = 10_000,
    seed: Seed = 0,
    figures: Figures = ALL_FORMATS,
    allow: Allowed = "",
) -> None:
    """Compares prompts and models of M2CQA. Example: cultureval compare m2cqa out-a out-b"""
    from cultureval.reports.charts import chart_formats
    from cultureval.reports.m2cqa.comparison import compare_m2cqa

    formats = chart_formats(figures, "--figures") if output_dir else ()
    text, files = compare_m2cqa(results, output_dir, profile, draws, seed, _fields(allow), formats)
    print(text)
    _print_files(files)


def compare_cvlue(results: Runs) -> None:
    """Shows models on CVLUE beside the paper's Table 10. Example: cultureval compare cvlue out-a out-b"""
    from cultureval.reports.cvlue.comparison import beside_the_paper

    print(beside_the_paper(results))


def _print_files(files: list[Path]) -> None:
    if files:
        print(f"\n{files[0].parent.resolve()}: {', '.join(file.name for file in files)}")


def _fields(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
