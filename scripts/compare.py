"""`cultureval compare`: paired tests of finished runs of any suite; a suite's own comparison with `--suite`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.catalogue import all_suites

Runs = Annotated[list[str], typer.Argument(metavar="RUNS...", help="Output folders or results files; see --plan.")]
Metrics = Annotated[list[str] | None, typer.Option(help="Metric to compare; default: each task's first. Repeatable.")]


def compare(
    results: Runs,
    output_dir: Annotated[Path | None, typer.Option(help="New folder for tables and items; default: none.")] = None,
    suite: Annotated[
        str, typer.Option(help="A paper's own comparison: m2cqa (prompts, models), cvlue (Table 10).")
    ] = "",
    metric: Metrics = None,
    allow: Annotated[
        str, typer.Option(metavar="FIELDS", help="May differ besides the model: rows,prompt,...; all.")
    ] = "",
    draws: Annotated[int, typer.Option(min=100, help="Random swaps of the permutation tests.")] = 10_000,
    items: Annotated[int, typer.Option(min=0, help="Show at most this many items that differ, each way.")] = 2,
    subsets: Annotated[bool, typer.Option("--subsets", help="Show subsets too; differences.csv has them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as one JSON document.")] = False,
    planned: Annotated[bool, typer.Option("--plan", help="Smallest detectable difference; RUNS: item counts.")] = False,
    discordant: Annotated[float, typer.Option(help="--plan: share of items that one model alone has right.")] = 0.2,
    power: Annotated[float, typer.Option(help="--plan: chance of finding the difference.")] = 0.8,
    tests: Annotated[int | None, typer.Option(min=1, help="--plan: differences tested together.")] = None,
) -> None:
    """Compares runs item by item: intervals, tests, items that flipped. Example: cultureval compare out-a out-b"""
    paths, allowed = [Path(path) for path in results], [name.strip() for name in allow.split(",") if name.strip()]
    if planned:
        from cultureval.reports.comparison.planning import plan

        return print(plan(results, discordant, power, tests))
    if suite:
        own = {name: suite for name, suite in all_suites().items() if suite.comparison}
        if suite not in own:
            raise CulturevalError(f"--suite {suite}: {', '.join(own)} have a comparison of their own.")
        text, files = own[suite].part("comparison")(paths, output_dir, allowed, draws)
    else:
        from cultureval.reports.comparison.report import compare_all

        options = (paths, output_dir, metric or [], allowed, draws)
        found = compare_all(*options, most_items=items, subsets=subsets, isolate=sys.stdout.isatty())
        if as_json:
            return print(json.dumps(found.document, ensure_ascii=False, indent=2))
        text, files = found.text, found.files
    print(text)
    if files:
        print(f"\n{files[0].parent.resolve()}: {', '.join(file.name for file in files)}")
