"""`cultureval curate`: from a folder of images to a data set of counterfactual statements, as M2CQA's paper does."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note, print_result
from cultureval.runtime.settings import current_settings, use_settings
from cultureval.scripts.options import OutputDir, ReuseReplies, Seed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cultureval.audit.m2cqa.curation import Contrast, CurationPlan
    from cultureval.audit.m2cqa.items import Item
    from cultureval.audit.m2cqa.people import Key, SheetLabel


def curate_m2cqa(
    images: Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder of images with metadata.jsonl (or .csv).")],
    writer: Annotated[
        str, typer.Option(help="The model that writes questions and statements, with images: a YAML file or an id.")
    ],
    blind: Annotated[
        list[str], typer.Option(help="Models of the image-blind filter, A,B: YAML files or ids. Repeatable.")
    ],
    translator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VARIETY=MODEL",
            help="Also make msa, ajp or arz: VARIETY=FILE.yaml, or an id. Repeatable.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Sentence encoder of the contrast check (all-MiniLM-L6-v2): hub id or folder; default: none."
        ),
    ] = None,
    share: Annotated[float, typer.Option(min=0, max=1, help="Share of the items in the sheet for people.")] = 0.15,
    people: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="An annotator's filled sheet (amal.csv), for manifest.jsonl. Repeatable."),
    ] = None,
    seed: Seed = 0,
    budget: Annotated[float | None, typer.Option(min=0, help="Maximal cost of each model's replies.")] = None,
    output_dir: OutputDir = "curated",
    resume: ReuseReplies = None,
) -> None:
    """Makes true and counterfactual statements on images as M2CQA's paper does, as a data set for the m2cqa tasks.

    Example: cultureval audit curate m2cqa images --writer gpt.yaml --blind gpt.yaml,gemini.yaml
    """
    from cultureval.audit.m2cqa.curation import curate
    from cultureval.audit.m2cqa.files import write_dataset
    from cultureval.audit.m2cqa.people import read_sheets
    from cultureval.reports.m2cqa.curation import curation_text, write_rejected

    labels = read_sheets(people or [])  # before anything is paid
    output = Path(output_dir).expanduser()
    with use_settings(current_settings().with_(resume=resume)):
        plan = _plan(images, writer, blind, translator or [], budget, seed)
        outcomes, askers = curate(plan)
    items = list(outcomes.values())[-1].kept
    write_rejected(outcomes, output / "rejected.jsonl")
    text = curation_text(outcomes, _contrasts(items, encoder, seed))
    folder = write_dataset(items, plan.varieties, output)
    asked = _decide(items, plan, output, labels) if labels else _write_sheet(items, plan, output, share)
    costs = "; ".join(f"{name}: {one.budget}" for name, one in askers.items())
    print_result(
        f"{text}\n\n{len(items):,} items in {', '.join(plan.varieties)}: {folder}\n{asked}\n"
        f"Cost: {costs or 'nothing was asked'}. Run them: cultureval eval MODEL m2cqa --data {output}",
        output,
    )


def people_agreement(
    sheets: Annotated[list[Path], typer.Argument(metavar="SHEET...", help="Filled sheets, one an annotator.")],
) -> None:
    """Agreement of annotators on the sample of a curation (AC1, raw), and the statements that a third must resolve.

    Example: cultureval audit curate agreement annotator_1.csv annotator_2.csv
    """
    from cultureval.audit.m2cqa.people import agreement, disputed, read_sheet, wrong_items
    from cultureval.reports.m2cqa.curation import agreement_text, disputed_text

    labels = [read_sheet(sheet) for sheet in sheets]
    found = agreement(labels)
    items = {key[0] for one in labels for key in one}
    lines = [agreement_text(found, len(items)), disputed_text(disputed(labels))]
    wrong = wrong_items(labels)
    lines.append(f"{len(wrong):,} items that most reject: {', '.join(list(wrong)[:10]) or 'none'}.")
    print("\n".join(lines))


def _plan(
    images: Path, writer: str, blind: list[str], translators: list[str], budget: float | None, seed: int
) -> "CurationPlan":
    from cultureval.audit.m2cqa.curation import CurationPlan, writing
    from cultureval.metrics.judges.settings import find_judges, find_one_judge

    given = {}
    for one in translators:
        name, _, value = one.partition("=")
        if not value:
            raise CulturevalError(f"--translator {one!r}: write VARIETY=MODEL.")
        given[name] = writing(find_one_judge("--translator", value), budget)
    known = writing(find_one_judge("--writer", writer), budget)
    readers = find_judges([part for name in blind for part in name.split(",") if part.strip()])
    return CurationPlan(images.expanduser(), known, tuple(writing(one, budget) for one in readers), given, seed)


def _decide(
    items: "tuple[Item, ...]", plan: "CurationPlan", output: Path, labels: "dict[str, dict[Key, SheetLabel]]"
) -> str:
    """Writes the manifest of what people decide; says where it is and what is in it."""
    from cultureval.audit.m2cqa.files import manifest_rows
    from cultureval.audit.m2cqa.people import decisions
    from cultureval.tasks.manifest import write_manifest

    decided = decisions(labels, items)
    file = output / "manifest.jsonl"
    write_manifest(file, manifest_rows(items, plan.varieties, decided))
    counts = Counter(one.decision for one in decided.values())
    return (
        f"Of {len(decided):,} items that people labelled, {counts['keep']:,} are kept, {counts['discard']:,} "
        f"discarded, {counts['review']:,} still to be reviewed: {file}\n"
        f"Leave out the discarded ones: cultureval eval MODEL m2cqa --data {output} --manifest {file}"
    )


def _contrasts(items: "tuple[Item, ...]", encoder: str | None, seed: int) -> "Mapping[str, Contrast]":
    if not encoder:
        print_note("no contrast check: --encoder names a sentence encoder (sentence-transformers/all-MiniLM-L6-v2).")
        return {}
    from cultureval.audit.m2cqa.curation import contrasts
    from cultureval.models.encoders.dual_encoder import EncoderSettings
    from cultureval.models.encoders.sentence_encoder import SentenceEncoder

    return contrasts(items, SentenceEncoder(EncoderSettings(encoder)).encode, seed)


def _write_sheet(items: "tuple[Item, ...]", plan: "CurationPlan", output: Path, share: float) -> str:
    """Writes the empty sheet for people; says where it is."""
    from cultureval.audit.m2cqa.people import stratified, write_sheet

    drawn = stratified(items, share, plan.seed)
    file = output / "sheet.csv"
    write_sheet(file, drawn, plan.varieties, plan.seed)
    return f"A sample of {len(drawn):,} items for people, a copy an annotator: {file}"


curate = typer.Typer(
    help="Makes data sets in the way of a paper. Example: cultureval audit curate m2cqa images --writer gpt.yaml ...",
    no_args_is_help=True,
    rich_markup_mode=None,
)
curate.command("m2cqa")(curate_m2cqa)
curate.command("agreement")(people_agreement)
