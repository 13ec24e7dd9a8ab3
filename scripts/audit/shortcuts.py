"""`cultureval audit shortcuts`: what a model knows of the answers without the question, or without the image."""

from pathlib import Path
from typing import Annotated

import typer

from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.audit.options import Columns, Force, SourceNames, read_sources, require_new
from cultureval.scripts.evaluate import with_model_settings
from cultureval.scripts.options import Data, Device, Dtype, Form, Seed, SourcesFile, with_sources


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
    from cultureval.models.preflight import check_model
    from cultureval.reports.audit.texts import shortcuts_text, write_answers
    from cultureval.runtime.patches.lighteval.start_up import prepare_lighteval
    from cultureval.tasks.manifest import write_manifest as write_rows
    from cultureval.tasks.own_tasks import OWN_TASKS

    require_new(write_manifest, force)
    of_model = {"device": device, "dtype": dtype, "chat_template": chat_template}
    settings = with_sources(current_settings(), sources).with_(data_root=data, form=form)
    with use_settings(with_model_settings(settings, of_model)):
        items = read_sources(source, columns)
        asked = blind_questions(sampled_items([item for item in items if item.split == "test"], sample, seed))
        check_model(model, images=False, likelihoods=True)
        prepare_lighteval(OWN_TASKS)
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
