"""CVLUE: Chinese image-text retrieval, visual question answering, grounding and dialogue, and English counterparts.

Paper: "CVLUE: A New Benchmark Dataset for Chinese Vision-Language Understanding Evaluation", arXiv 2407.01081 (AAAI
2025); prompts from its appendix A.2, splits from Tables 2 and 7, metrics from section 3.
Verified: prompts, file formats, the released scorers' verdicts (metrics), VisDial's and VQA v2's own metrics.
Inferred: line breaks in the dialogue prompt, the history's separators; the names of the released test files.
Ours: candidates of dialogues are ranked by mean log-probability of a token. The paper does not say whether it uses sum
or mean; results have both. Also ours: prompts for box formats other than Qwen-VL's; retrieval by generative models in
galleries of 20 images, which the paper does not have (dual encoders: `reports/cvlue/retrieval`).
"""

import re
from typing import Any

from cultureval.metrics.cvlue import names
from cultureval.metrics.cvlue.grounding import BOX_FORMATS, format_of_model
from cultureval.prompts.cvlue import rows
from cultureval.prompts.preparation import Prepare
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.settings import Option
from cultureval.tasks.cvlue import files
from cultureval.tasks.suite import Benchmark, Kind, Source, Subset, Suite

METRICS = "cultureval.metrics.cvlue.lighteval"


def _kind(
    name: str, task_type: str, declared: Any, prompt: Any, metrics: str, *generation: Any, **arguments: Any
) -> Kind:
    """A kind of CVLUE; without `generation` (new tokens, stop strings) choices are ranked."""
    make_metrics = lazy_call(f"{METRICS}:{metrics}", **arguments)
    return Kind(name, task_type, declared, prompt, make_metrics, *generation)


# Lengths of generations are ours: short answers end with a newline; a box in JSON fits into 128 tokens.
VQA = _kind("cvlue_vqa", "VQA", names.VQA, rows.answer_prompt, "cvlue_vqa_metrics", 32, ("\n",))
VQA_V2 = _kind("vqa_v2", "VQA", names.VQA_V2, rows.answer_prompt, "vqa_v2_metrics", 32, ("\n",))
GROUNDING = _kind("grounding", "visual grounding", names.GROUNDING, rows.box_prompt, "grounding_metrics", 128)
DIALOGUE = _kind("dialogue", "visual dialogue", names.DIALOGUE, rows.dialogue_prompt, "dialogue_metrics")
DENSE_DIALOGUE = _kind(
    *("dense_dialogue", "visual dialogue", names.DENSE_DIALOGUE, rows.dialogue_prompt, "dialogue_metrics"), dense=True
)
RETRIEVAL = _kind("galleries", "image-text retrieval", names.GALLERIES, rows.gallery_prompt, "gallery_metrics")
VG, VD = "vg_{box_format}", "vd_{dialogue_layout}"

_ON_REQUEST = "the released folder from CVLUE's authors (on request: github.com/WangYuxuan93/CVLUE)"


def released(part: str, prepare: Prepare, read: Any) -> Source:
    """One of CVLUE's four parts."""
    return Source(
        "cvlue",
        "original",
        prepare,
        find=files.find_released(part),
        read=read,
        notes=files.released_notes(part),
        other_data=files.other_split(part),
        on_hub=False,
        licence="CC BY-NC-ND 4.0",
        gated=True,
        how_to_get=_ON_REQUEST,
    )


def task(group: str, name: str, source: Source, kind: Kind, template: str, items: int | None = None) -> Benchmark:
    """A benchmark of one task; its template is `LANGUAGE/FILE`."""
    language, path = template.partition("/")[0], f"cvlue/templates/{template}"
    subset = Subset(name, key="", rows=items, register="standard")
    return Benchmark(
        name,
        kind,
        language=language,
        domain="vision-language",
        group=group,
        sources=(source,),
        subsets=(subset,),
        template=path,
        images=True,
    )


VQAV2 = Source(
    "lmms-lab-encoder/VQAv2",
    "original",
    rows.question_with_ten_answers,
    splits=("validation",),
    few_shot_splits=(),  # the hub has no training split
    pool_configs=True,
    licence="CC BY 4.0",
)
REFCOCOG = Source(
    "lmms-lab-encoder/RefCOCOg",
    "original",
    rows.expressions_of_one_box,
    splits=("test",),
    pool_configs=True,
    notes=files.box_notes,
)
VISDIAL = Source(
    "visdial",
    "original",
    rows.dialogue_round,
    find=files.find_visdial,
    read=files.read_visdial,
    notes=files.history_notes,
    on_hub=False,
    licence="CC BY 4.0",
    how_to_get="visdial_1.0_val.json, its dense annotations and images from visualdialog.org",
)
COCO = Source(
    "coco_karpathy",
    "original",
    rows.caption_gallery,
    find=files.find_karpathy,
    read=files.read_karpathy,
    on_hub=False,
    how_to_get="Karpathy's dataset_coco.json and COCO's val2014 images",
)

BENCHMARKS = (
    task("cvlue_vqa", "CVLUE VQA", released("vqa", rows.question, files.read_items), VQA, "zh/vqa"),
    task("cvlue_vg", "CVLUE VG", released("vg", rows.expression, files.read_items), GROUNDING, "zh/" + VG),
    task("cvlue_vd", "CVLUE VD", released("vd", rows.dialogue_round, files.read_rounds), DIALOGUE, "zh/" + VD),
    task("cvlue_itr", "CVLUE ITR", released("itr", rows.caption_gallery, files.read_captions), RETRIEVAL, "zh/itr"),
    task("cvlue_en_vqa", "VQA v2 (val)", VQAV2, VQA_V2, "en/vqa", 214_354),
    task("cvlue_en_vg", "RefCOCOg (test)", REFCOCOG, GROUNDING, "en/" + VG, 9_602),
    task("cvlue_en_vd", "VisDial 1.0 (val)", VISDIAL, DENSE_DIALOGUE, "en/" + VD, 20_640),
    task("cvlue_en_itr", "COCO 5K", COCO, RETRIEVAL, "en/itr", 5_000),
)


def _pixels(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,8}-[1-9]\d{0,8}", text):
        raise ValueError("is not LEAST-MOST, as 3136-1003520")
    return text


BOX_FORMAT = Option(
    "box_format",
    "CULTUREVAL_BOX_FORMAT",
    "qwen_vl",
    "Format of boxes in prompts and answers; default: by the model's type, else the paper's `qwen_vl`",
    values=BOX_FORMATS,
    signed=False,
)
BOX_PIXELS = Option(
    "box_pixels",
    "CULTUREVAL_BOX_PIXELS",
    "3136-12845056",
    "`LEAST-MOST` pixels of the model's image processor, for `qwen2.5_vl`",
    parse=_pixels,
    signed=False,
)
DIALOGUE_HISTORY = Option(
    "dialogue_history",
    "CULTUREVAL_DIALOGUE_HISTORY",
    "full",
    "`full` completes short histories from the gold rounds",
    values=("full", "as_given"),
    signed=False,
)
DIALOGUE_LAYOUT = Option(
    "dialogue_layout",
    "CULTUREVAL_DIALOGUE_LAYOUT",
    "lines",
    "Whether the parts of a dialogue's prompt are on lines of their own",
    values=("lines", "one_line"),
    signed=False,
)
OPTIONS = (BOX_FORMAT, BOX_PIXELS, DIALOGUE_HISTORY, DIALOGUE_LAYOUT)


def options_of_model(model_type: str) -> dict[str, str]:
    """The box format of a model's type, if the table of families has it."""
    box_format = format_of_model(model_type)
    return {BOX_FORMAT.name: box_format} if box_format else {}


SUITE = Suite(
    name="cvlue",
    title="CVLUE: Chinese image-text retrieval, visual question answering, grounding and dialogue",
    benchmarks=BENCHMARKS,
    options=OPTIONS,
    tables="cultureval.reports.cvlue.table:tables",
    of_model=options_of_model,
    comparison="cultureval.reports.cvlue.comparison:beside_the_paper",
    run_files="cultureval.reports.cvlue.run_files:write_run_files",
    submissions="cultureval.reports.cvlue.official_scores:SUBMISSIONS",
    picture="cultureval.reports.cvlue.boxes:draw_sample",
    page="docs/cvlue.md",
)
