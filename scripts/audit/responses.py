"""`cultureval audit responses`: which items models' answers speak against."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.scripts.audit.options import Force, require_new
from cultureval.scripts.options import Data, Form, OnlyJson, SourcesFile, data_settings
from cultureval.tasks.options import read_data_options


def responses(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS...", help="Output folders or results files of models, with details."),
    ],
    limit: Annotated[int, typer.Option(min=1, help="List at most this many items.")] = 50,
    findings: Annotated[
        Path | None, typer.Option(help="Write all items, ranked, into this file, as JSON lines.")
    ] = None,
    write_manifest: Annotated[
        Path | None,
        typer.Option(help="Write a manifest that asks for a review of the items with a reason; see --data."),
    ] = None,
    force: Force = False,
    data: Data = None,
    form: Form = None,
    json: OnlyJson = False,
    sources: SourcesFile = None,
) -> None:
    """Ranks items by what models' answers say of them: probable wrong keys, and items that weak models get right.

    Example: cultureval audit responses results
    """
    from cultureval.audit.responses import FEWEST_MODELS, REASONS, rank_items, review_rows
    from cultureval.audit.sources import read_items
    from cultureval.reports.audit.answers import read_answers
    from cultureval.reports.audit.responses import report_records, responses_text
    from cultureval.runtime.data.user_cache import write_json_lines
    from cultureval.tasks.manifest import write_manifest as write_rows

    require_new(write_manifest, force)
    answers = read_answers(results)
    if len(answers.models) < FEWEST_MODELS:
        raise CulturevalError(
            f"These are results of {len(answers.models)} models ({', '.join(answers.models)}): item analysis needs "
            f"{FEWEST_MODELS} at least, and 8 or more to be trusted."
        )
    gold = [item.gold[0] if len(item.gold) == 1 else -1 for item in answers.items]
    counts = [len(item.options) for item in answers.items]
    ranked = rank_items(answers.right, answers.chosen, counts, gold, [item.group for item in answers.items])
    if not ranked:
        raise CulturevalError(f"No benchmark was answered by {FEWEST_MODELS} of these models.")
    if findings:
        write_json_lines(findings, report_records(answers, ranked))
    if write_manifest:
        asked: dict[tuple[str, str], list[str]] = {}
        for one in ranked:
            if one.reasons:
                item = answers.items[one.place]
                asked.setdefault((item.task, item.row), []).extend(one.reasons)
        with data_settings(data, form, sources):
            items = read_items(list(dict.fromkeys(task for task, _ in asked)), read_data_options()) if asked else []
        write_rows(write_manifest, review_rows(items, asked))
    if json:
        report = {"models": list(answers.models), "items": report_records(answers, ranked)}
        print(json_format.dumps(report, ensure_ascii=False, indent=2))
    else:
        print(responses_text(answers, ranked, REASONS, limit))
