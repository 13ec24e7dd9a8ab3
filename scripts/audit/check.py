"""`cultureval audit check`, `responses` and `shortcuts`: bad items, told without judges."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.data.user_cache import write_json_lines
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.extras import require_extra
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.audit.options import Columns, Force, SourceNames, read_sources, require_new
from cultureval.scripts.evaluate import with_model_settings
from cultureval.scripts.options import (
    Data,
    Device,
    Dtype,
    Form,
    OnlyJson,
    Seed,
    SourcesFile,
    data_settings,
    with_sources,
)
from cultureval.tasks.options import read_data_options


def check(
    source: SourceNames,
    data: Data = None,
    form: Form = None,
    columns: Columns = None,
    only: Annotated[list[str] | None, typer.Option(help="Run only this check. Repeatable.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="Leave out this check. Repeatable.")] = None,
    findings: Annotated[Path | None, typer.Option(help="Write all findings into this file, as JSON lines.")] = None,
    write_manifest: Annotated[
        Path | None,
        typer.Option(help="Write a manifest: errors discard an item, warnings ask for a review, all others are kept."),
    ] = None,
    force: Force = False,
    full: Annotated[bool, typer.Option("--full", help="Print every finding.")] = False,
    json: OnlyJson = False,
    sources: SourcesFile = None,
) -> None:
    """Looks for bad items without a model: gold, options, encoding, labels, duplicates, few-shot rows in the test set.

    Example: cultureval audit check qimma_arabicmmlu --data DIR
    """
    require_extra("audit")
    from cultureval.audit.checks.table import CHECKS, manifest_rows, run_checks
    from cultureval.reports.audit.texts import findings_text
    from cultureval.tasks.manifest import write_manifest as write_rows

    require_new(write_manifest, force)
    with data_settings(data, form, sources):
        items = read_sources(source, columns)
    found = run_checks(items, only or (), without or ())
    if findings:
        write_json_lines(findings, map(asdict, found))
    if write_manifest:
        write_rows(write_manifest, manifest_rows(items, found))
    if json:
        report = {"items": len(items), "findings": [asdict(one) for one in found]}
        print(json_format.dumps(report, ensure_ascii=False, indent=2))
    else:
        print(findings_text(CHECKS, found, items, full))
    for written in filter(None, (findings, write_manifest)):
        print_note(f"saved: {written}")


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
    from cultureval.reports.audit.texts import report_records, responses_text
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


def shortcuts(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Hub id, folder, or YAML file with settings (base_url: a server).")
    ],
    source: SourceNames,
    data: Data = None,
    form: Form = None,
    columns: Columns = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Ask this many random items per subset (see --seed).")
    ] = None,
    seed: Seed = 0,
    rotations: Annotated[
        int, typer.Option(min=1, help="Ask each item in so many orders of its options, so that places cancel out.")
    ] = 5,
    device: Device = None,
    dtype: Dtype = None,
    chat_template: Annotated[str | None, typer.Option(help="auto, on, off; auto: if the tokenizer has one.")] = None,
    findings: Annotated[Path | None, typer.Option(help="Write all answers into this file, as JSON lines.")] = None,
    write_manifest: Annotated[
        Path | None, typer.Option(help="Write a manifest that asks for a review of items that are right without it.")
    ] = None,
    force: Force = False,
    sources: SourcesFile = None,
) -> None:
    """Scores choices without the question, and image questions without the image: which subsets are above chance?

    Example: cultureval audit shortcuts MODEL qimma_arabicmmlu
    """
    from cultureval.audit.shortcuts import (
        answer_blindly,
        blind_questions,
        named_items,
        shortcut_rows,
        shortcut_signature,
        shortcuts_of,
    )
    from cultureval.audit.sources import sampled_items
    from cultureval.models.choice import check_model
    from cultureval.reports.audit.texts import shortcuts_text, write_answers
    from cultureval.tasks.manifest import write_manifest as write_rows

    require_new(write_manifest, force)
    of_model = {"device": device, "dtype": dtype, "chat_template": chat_template}
    settings = with_sources(current_settings(), sources).with_(data_root=data, form=form)
    with use_settings(with_model_settings(settings, of_model)):
        items = read_sources(source, columns)
        asked = blind_questions(sampled_items([item for item in items if item.split == "test"], sample, seed))
        check_model(model, images=False, likelihoods=True)
        from cultureval.models.choice import load_model

        loaded = load_model(model)
        print_note(f"{len(asked):,} questions, each in {rotations} orders of its options at most.")
        answers = answer_blindly(asked, loaded.loglikelihood, rotations)
        fields = getattr(loaded, "signature_fields_of", lambda generated: loaded.signature_fields())(False)
    subsets = shortcuts_of(answers)
    named = named_items(answers, subsets)
    if findings:
        write_answers(findings, answers)
    if write_manifest:
        write_rows(write_manifest, shortcut_rows(named))
    print(shortcuts_text(subsets, named, shortcut_signature(answers, rotations, fields)))
