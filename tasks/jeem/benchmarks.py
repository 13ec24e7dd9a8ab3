"""JEEM: captions in MSA and four dialects, and questions in the dialects.

Paper: "JEEM: Vision-Language Understanding in Four Arabic Dialects", arXiv 2503.21910: data from section 3 and Table 1,
metrics from section 5.
Verified: numbers of images and questions, varieties, reference metrics, the judge's prompts and criteria.
Inferred: BERTScore's model; one reference caption an image and variety.
Ours: the prompts for models, the generations' lengths (512 and 256 new tokens, greedy), BERTScore's layer, reference
metrics of answers (the paper has answers judged only), the words that are compared.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from cultureval.metrics.jeem.names import REFERENCE
from cultureval.prompts.cells import column_name, has_column
from cultureval.prompts.jeem import rows
from cultureval.prompts.preparation import Prepare, PreparedRow
from cultureval.runtime.data.content_store import store_texts
from cultureval.runtime.data.row_files import PlacedRow, Row, files_matching, read_rows
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.errors import BadRow, CulturevalError, MissingColumn
from cultureval.runtime.extras import require_camel_tools
from cultureval.runtime.settings import current_settings
from cultureval.tasks.suite import Benchmark, Instrument, Kind, Source, Subset, Suite, Task


def _bertscore_name() -> str:
    from cultureval.metrics.semantic import NO_MODEL, caption_bertscore_model
    from cultureval.runtime.data.scorers import versioned_name

    model, layer = caption_bertscore_model()
    if model == NO_MODEL:
        return "no BERTScore"
    return f"BERTScore({versioned_name(model)},layer {layer},no idf,no rescaling)"


def _bertscore_model() -> tuple[str, ...]:
    from cultureval.metrics.semantic import caption_bertscore_model

    return caption_bertscore_model()[:1]


def _check_words_and_model() -> None:
    from cultureval.metrics.semantic import NO_MODEL, check_caption_bertscore

    require_camel_tools()
    if current_settings().caption_bertscore_model not in (None, "", NO_MODEL):
        check_caption_bertscore()  # a model that is named is wanted


def _bertscore_lacks() -> str:
    from cultureval.metrics.semantic import check_caption_bertscore

    if current_settings().caption_bertscore_model:
        return ""
    try:
        check_caption_bertscore()
    except CulturevalError as error:
        return f"JEEM's BERTScore is left out. {error}"
    return ""


BERTSCORE = Instrument(
    name=_bertscore_name,
    check=_check_words_and_model,
    sources=_bertscore_model,
    lacking=_bertscore_lacks,
    without={"caption_bertscore_model": "none"},
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
QUESTIONS = 5  # an image
# Words of a caption on average (Table 1): country -> dialect, MSA.
WORDS = {"JO": (46, 52), "AE": (41, 44), "EG": (58, 63), "MA": (52, 52)}

HOW_TO_GET = (
    "toloka/JEEM is gated: log in at huggingface.co/datasets/toloka/JEEM, accept its terms (they share your contact "
    "information with its authors), then `hf auth login` on the machine that fetches"
)


def data_files(folder: Path, task: Task) -> tuple[list[Path], list[Path]]:
    """All files of rows of the folder: all of JEEM is a test set, whatever its configs and splits are called."""
    files = files_matching(folder, ["*"])
    return [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)], []


def read(files: Sequence[Path], task: Task) -> Iterator[PlacedRow]:
    """The rows, each with its country, whether its image is of the shared pool, and its variety's set of references.

    A row's country is in its cell, else in its file's path.
    """
    survey = _survey(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files))
    kind = "answers" if task.group == "jeem_vqa" else "captions"
    variety = "MSA" if task.subset == "MSA" else task.subset_names[-1]
    reference_set = store_texts(survey.references.get((kind, variety), []))
    for file in files:
        for number, row in enumerate(read_rows(file)):
            placed = _placed(row, file)
            shared = any(len(survey.countries.get(key, ())) > 1 for key in placed["__image_keys"])
            yield PlacedRow(
                f"{file.parent.name}/{file.name}",
                number,
                placed | {"__shared": shared, "__reference_set": reference_set},
            )


@dataclass
class Survey:
    """Facts that need all rows.

    Attributes:
        countries: Key of an image -> the countries whose annotators described it.
        references: ("captions" or "answers", variety) -> the references of that variety.
    """

    countries: dict[str, set[str]] = field(default_factory=dict)
    references: dict[tuple[str, str], list[str]] = field(default_factory=dict)


@lru_cache(maxsize=4)
def _survey(files: tuple[tuple[Path, int, int], ...]) -> Survey:
    """One pass over all rows; broken rows are reported later, when they are prepared.

    The files' sizes and times of change tell a changed file from a known one.
    """
    survey = Survey()
    for file, *_ in files:
        for row in read_rows(file):
            placed = _placed(row, file)
            if country := placed["__country"]:
                for key in placed["__image_keys"]:
                    survey.countries.setdefault(key, set()).add(country)
                for name, texts in _references(placed, country).items():
                    survey.references.setdefault(name, []).extend(texts)
    return survey


def _references(row: Row, country: str) -> dict[tuple[str, str], list[str]]:
    readers = {
        ("captions", "MSA"): lambda: [rows.arabic_cell(row, rows.CAPTION_MSA)],
        ("captions", country): lambda: [rows.arabic_cell(row, rows.CAPTION_DIALECT)],
        ("answers", country): lambda: [
            rows.reference_answer(answer, country) for _, answer in rows.question_pairs(row)
        ],
    }
    found = {}
    for name, read_texts in readers.items():
        try:
            found[name] = read_texts()
        except (BadRow, MissingColumn):
            continue
    return found


def _placed(row: Row, file: Path) -> Row:
    """The row with its country and the keys of its image.

    The path of an image, which is relative to the file's folder or one above, is made absolute.
    """
    placed = row | {"__country": rows.country_of(row, [file.stem, *(folder.name for folder in file.parents[:2])])}
    folder = file.parent
    if has_column(row, rows.IMAGE):
        name = column_name(row, rows.IMAGE)
        value = row[name]
        path = value.get("path") if isinstance(value, Mapping) and not value.get("bytes") else value
        if isinstance(path, str) and not Path(path).is_absolute() and ".." not in Path(path).parts:
            folder = next((place for place in file.parents[:3] if os.path.isfile(place / path)), folder)
            placed[name] = str(folder / path)
    return placed | {"__image_keys": rows.image_keys(placed, folder)}


def refuse_repeated(prepared: Sequence[PreparedRow]) -> None:
    """Refuses duplicated rows (country, image, question), as in a folder that holds the data in two layouts."""
    seen: dict[tuple[Any, ...], str] = {}
    for row in prepared:
        key = (row["country"], row["image_id"], row.get("question_number"))
        if key in seen:
            raise CulturevalError(
                f"toloka/JEEM: the image {row['image_id']!r} of {row['country']} is duplicated, in {seen[key]} and "
                f"{row['source_row']}. Keep one copy of the data in the folder."
            )
        seen[key] = row["source_row"]


def notes(prepared: Sequence[PreparedRow]) -> list[str]:
    """Numbers to compare with the paper's: images, shared images, lengths of captions, unanswerable questions."""
    images = {row["image"] for row in prepared}
    shared = {row["image"] for row in prepared if row["shared"]}
    found = [f"{len(images)} distinct images, {len(shared)} of them of the shared pool."]
    if "answerable" in prepared[0]:
        unknown = sum(not row["answerable"] for row in prepared)
        return [*found, f'{unknown} of {len(prepared)} answers are "cannot tell from the picture".']
    words = [len(row["references"][0].split()) for row in prepared]
    expected = [WORDS[row["country"]][row["variety"] == "MSA"] for row in prepared]
    means = [sum(values) / len(prepared) for values in (words, expected)]
    return [*found, f"Captions have {means[0]:.1f} words on average; the paper's have {means[1]:.1f}."]


def source(prepare: Prepare, one_country: bool = True) -> Source:
    """The hub's data set, of one country's rows or of all."""
    return Source(
        "toloka/JEEM",
        "original",
        prepare,
        find=data_files,
        read=read,
        subset_of=_country if one_country else None,
        check=refuse_repeated,
        notes=notes,
        licence="captions, questions and answers MIT; images keep their own (Wikimedia Commons, Flickr CC)",
        how_to_get=HOW_TO_GET,
        gated=True,
        caveat="JEEM: the prompts for models are ours (the paper prints none); scores are times 100, as its tables.",
    )


def _country(row: Mapping[str, Any]) -> str | None:
    return row["__country"]


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
        sources=(source(rows.msa_caption, one_country=False),),
        subsets=(Subset("MSA", key="msa", rows=TOTAL, template="jeem/templates/caption_msa"),),
        kind=MSA_CAPTION,
        images=True,
    ),
    Benchmark(
        name="JEEM captions",
        domain="Captioning",
        group="jeem_caption",
        sources=(source(rows.dialect_caption),),
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
    order=20,
)
