"""JEEM: captions in MSA and four dialects, and questions in the dialects.

Paper: "JEEM: Vision-Language Understanding in Four Arabic Dialects", arXiv 2503.21910: data from section 3 and Table 1,
metrics from section 5.
Verified: numbers of images and questions, varieties, reference metrics, the judge's prompts and criteria.
Inferred: BERTScore's model; one reference caption for each image and variety.
Ours: the prompts for models, the lengths of generations (512 and 256 new tokens, greedy), BERTScore's layer, reference
metrics of answers (the paper only uses a judge), the tokenisation of words.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from cultureval.metrics.jeem.names import REFERENCE
from cultureval.metrics.semantic import NO_MODEL, caption_bertscore_model, check_caption_bertscore
from cultureval.prompts.cells import image_bytes
from cultureval.prompts.jeem import rows
from cultureval.prompts.preparation import Prepare
from cultureval.runtime.data.content_store import store_texts
from cultureval.runtime.data.row_files import PlacedRow, Row
from cultureval.runtime.data.scorers import versioned_name
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.errors import BadRow, CulturevalError, MissingColumn
from cultureval.runtime.extras import require_camel_tools
from cultureval.tasks.suite import Benchmark, Instrument, Kind, Source, Subset, Suite, Task


def _bertscore_name() -> str:
    model, layer = caption_bertscore_model()
    if model == NO_MODEL:
        return "no BERTScore"
    return f"BERTScore({versioned_name(model)},layer {layer},no idf,no rescaling)"


def _check_words_and_model() -> None:
    require_camel_tools()
    try:
        if caption_bertscore_model()[0] != NO_MODEL:
            check_caption_bertscore()
    except CulturevalError as error:
        raise CulturevalError(f"{error} CULTUREVAL_CAPTION_BERTSCORE_MODEL=none leaves BERTScore out.") from error


BERTSCORE = Instrument(
    name=_bertscore_name,
    check=_check_words_and_model,
    sources=lambda: caption_bertscore_model()[:1],
    needs="BERTScore model",
)
METRICS = lazy_call("cultureval.metrics.jeem.lighteval:caption_metrics")
CAPTION = Kind(
    *("jeem_caption", "captioning", REFERENCE, rows.caption_prompt, METRICS, 512, (), BERTSCORE),
    judge_templates=rows.CAPTION_TEMPLATES,
)
MSA_CAPTION = replace(CAPTION, name="jeem_caption_msa", judge_templates=rows.MSA_TEMPLATES)
VQA = Kind(
    *("jeem_vqa", "VQA", REFERENCE, rows.question_prompt, METRICS, 256, (), BERTSCORE),
    judge_templates=rows.VQA_TEMPLATES,
)

IMAGES = {"JO": ("Jordan", 606), "AE": ("Emirates", 132), "EG": ("Egypt", 863), "MA": ("Morocco", 577)}
QUESTIONS = 5  # of each image

HOW_TO_GET = (
    "toloka/JEEM is gated: log in at huggingface.co/datasets/toloka/JEEM, accept its terms (they share your contact "
    "information with its authors), then `hf auth login` on the machine that fetches"
)


def with_survey(placed: list[PlacedRow], task: Task, folder: Path) -> Iterator[PlacedRow]:
    """The rows with facts from all rows: whether an image is shared, and the variety's references.

    An image is shared if annotators of several countries described it. Broken rows are reported later, by `prepare`.
    """
    variety = "MSA" if task.subset == "MSA" else task.subset_names[-1]
    column = "" if task.group == "jeem_vqa" else "caption_msa" if variety == "MSA" else "caption_dialect"
    countries: dict[bytes, set[str]] = {}
    references: list[str] = []
    images = [_image_key(row.row, folder) for row in placed]
    for row, image in zip(placed, images, strict=True):
        with suppress(BadRow, MissingColumn):
            country = rows.country_of(row.row)
            countries.setdefault(image, set()).add(country)
            references += _references(row.row, country, column) if variety in ("MSA", country) else []
    reference_set = store_texts(references)
    for row, image in zip(placed, images, strict=True):
        shared = bool(image) and len(countries.get(image, ())) > 1
        file = f"{row.path.parent.name}/{row.file}" if row.path else row.file
        yield row._replace(file=file, row=row.row | {"__shared": shared, "__reference_set": reference_set})


def _image_key(row: Row, folder: Path) -> bytes:
    """A hash of an image's bytes; empty if the cell has no readable image."""
    try:
        return hashlib.sha256(image_bytes(row.get("image"), folder)).digest()
    except (ValueError, OSError):
        return b""


def _references(row: Row, country: str, column: str) -> list[str]:
    if column:
        return [rows.arabic_cell(row, column)]
    return [rows.reference_answer(answer, country) for _, answer in rows.question_pairs(row)]


def source(prepare: Prepare, one_country: bool = True) -> Source:
    """The hub's data set, with the rows of one country or of all."""
    return Source(
        "toloka/JEEM",
        "original",
        prepare,
        few_shot_splits=(),
        pool_configs=True,
        columns=("image_id", "country", "image", "caption_msa", "caption_dialect", "questions", "answers"),
        subset_of=rows.country_of if one_country else None,
        complete=with_survey,
        licence="captions, questions and answers MIT; images keep their own (Wikimedia Commons, Flickr CC)",
        how_to_get=HOW_TO_GET,
        gated=True,
        caveat="JEEM: the prompts for models are ours (the paper prints none); scores are times 100, as its tables.",
    )


def _dialects(template: str, rows_an_image: int) -> tuple[Subset, ...]:
    return tuple(
        Subset(
            name,
            key=code.lower(),
            rows=images * rows_an_image,
            aliases=(code,),
            template=f"{template}_{code.lower()}",
            register="dialectal",
        )
        for code, (name, images) in IMAGES.items()
    )


TOTAL = sum(images for _, images in IMAGES.values())
BENCHMARKS = (
    Benchmark(
        name="JEEM captions",
        domain="Captioning",
        group="jeem_caption",
        sources=(source(partial(rows.caption, column="caption_msa"), one_country=False),),
        subsets=(Subset("MSA", key="msa", rows=TOTAL, template="jeem/templates/caption_msa"),),
        kind=MSA_CAPTION,
        images=True,
    ),
    Benchmark(
        name="JEEM captions",
        domain="Captioning",
        group="jeem_caption",
        sources=(source(partial(rows.caption, column="caption_dialect")),),
        subsets=_dialects("jeem/templates/caption", 1),
        kind=CAPTION,
        images=True,
    ),
    Benchmark(
        name="JEEM questions",
        domain="VQA",
        group="jeem_vqa",
        sources=(source(rows.questions),),
        subsets=_dialects("jeem/templates/vqa", QUESTIONS),
        kind=VQA,
        images=True,
    ),
)

SUITE = Suite(
    name="jeem",
    title="JEEM: captions of images in MSA and four Arabic dialects, and questions in the dialects",
    benchmarks=BENCHMARKS,
    tables="cultureval.reports.jeem.table:tables",
    ratings="cultureval.reports.jeem.ratings:RATINGS",
    page="docs/jeem.md",
)
