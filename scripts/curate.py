"""`cultureval audit curate`: from a folder of images to a data set of counterfactual statements, as M2CQA's paper."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cultureval.runtime.csv_files import require_unfilled
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note, print_result
from cultureval.scripts.options import OutputDir

if TYPE_CHECKING:
    from cultureval.audit.m2cqa.curation import CurationPlan
    from cultureval.audit.m2cqa.items import Item


def curate(
    images: Annotated[Path, typer.Argument(metavar="IMAGES", help="Folder of images with metadata.jsonl (or .csv).")],
    writer: Annotated[str, typer.Option(help="Model of questions and statements, with images: a YAML file or an id.")],
    blind: Annotated[list[str], typer.Option(metavar="A,B", help="Models of the image-blind filter.")],
    translator: Annotated[
        list[str] | None,
        typer.Option(metavar="VARIETY=MODEL", help="Also make msa, ajp or arz with this model. Repeatable."),
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Sentence encoder of the contrast check: hub id or folder; default: none.")
    ] = None,
    share: Annotated[float, typer.Option(min=0, max=1, help="Share of the items in the sheet for people.")] = 0.15,
    people: Annotated[
        list[Path] | None,
        typer.Option(exists=True, metavar="FILE", help="An annotator's filled sheet (amal.csv). Repeatable."),
    ] = None,
    budget: Annotated[float | None, typer.Option(min=0, help="Maximal cost of each model's replies.")] = None,
    output_dir: OutputDir = "curated",
) -> None:
    """Makes true and counterfactual statements on images as M2CQA's paper does, as a data set for the m2cqa tasks.

    Example: cultureval audit curate images --writer gpt.yaml --blind gpt.yaml,gemini.yaml
    """
    from cultureval.audit.m2cqa import curation
    from cultureval.audit.m2cqa.files import write_dataset
    from cultureval.audit.m2cqa.people import LABELS, stratified, write_sheet
    from cultureval.reports.m2cqa.curation import curation_text, write_rejected

    output = Path(output_dir).expanduser()
    if not people:
        require_unfilled(output / "sheet.csv", tuple(LABELS))
    plan = _plan(images, writer, blind, translator or [], budget)
    outcomes, askers = curation.curate(plan)
    items = list(outcomes.values())[-1].kept
    write_rejected(outcomes, output / "rejected.jsonl")
    contrasts = {}
    if encoder:
        from cultureval.models.encoders.dual_encoder import EncoderSettings
        from cultureval.models.encoders.sentence_encoder import SentenceEncoder

        contrasts = curation.contrasts(items, SentenceEncoder(EncoderSettings(encoder)).encode)
    else:
        print_note("no contrast check: --encoder names a sentence encoder (sentence-transformers/all-MiniLM-L6-v2).")
    folder = write_dataset(items, plan.varieties, output)
    if people:
        reviewed = _apply_sheets(people, items, plan.varieties, output)
    else:
        sample = stratified(items, share)
        write_sheet(output / "sheet.csv", sample, plan.varieties)
        reviewed = f"A sample of {len(sample):,} items for people, a copy an annotator: {output / 'sheet.csv'}"
    costs = "; ".join(f"{name}: {asker.budget}" for name, asker in askers.items())
    print_result(
        f"{curation_text(outcomes, contrasts, len(items))}\n\n{len(items):,} items in {', '.join(plan.varieties)}: "
        f"{folder}\n{reviewed}\nCost: {costs}. Run them: cultureval eval MODEL m2cqa --data {output}",
        output,
    )


def _plan(images: Path, writer: str, blind: list[str], translators: list[str], budget: float | None) -> "CurationPlan":
    from cultureval.audit.m2cqa.curation import MAX_TOKENS, CurationPlan
    from cultureval.metrics.judges.settings import find_judges, find_one_judge

    models = {}
    for value in translators:
        variety, _, model = value.partition("=")
        if not model:
            raise CulturevalError(f"--translator {value!r}: write VARIETY=MODEL.")
        models[variety] = find_one_judge("--translator", model)
    known = [find_one_judge("--writer", writer), *models.values(), *find_judges(",".join(blind).split(","))]
    known = [model.with_reply_length(MAX_TOKENS).with_(budget=budget) for model in known]
    translating = dict(zip(models, known[1:], strict=False))
    return CurationPlan(images.expanduser(), known[0], tuple(known[1 + len(models) :]), translating)


def _apply_sheets(sheets: list[Path], items: "tuple[Item, ...]", varieties: tuple[str, ...], output: Path) -> str:
    """Writes the manifest of what people decide; returns agreement, counts and where the manifest is."""
    from cultureval.audit.m2cqa.files import manifest_rows
    from cultureval.audit.m2cqa.people import agreement, decisions, majorities, read_sheets
    from cultureval.reports.m2cqa.curation import people_text
    from cultureval.tasks.manifest import write_manifest

    labels = read_sheets(sheets, items)
    majority = majorities(labels)
    decided = decisions(majority)
    file = output / "manifest.jsonl"
    write_manifest(file, manifest_rows(items, varieties, decided, sorted(labels["annotator"].unique())))
    leave_out = f"cultureval eval MODEL m2cqa --data {output} --manifest {file}"
    return f"{people_text(agreement(labels), majority, decided)}\nLeave out the discarded items: {leave_out}"
