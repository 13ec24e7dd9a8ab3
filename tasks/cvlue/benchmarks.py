"""CVLUE: Chinese image-text retrieval, visual question answering, grounding and dialogue, and English counterparts.

Paper: "CVLUE: A New Benchmark Dataset for Chinese Vision-Language Understanding Evaluation", arXiv 2407.01081 (AAAI
2025); prompts from its appendix A.2, splits from Tables 2 and 7, metrics from section 3.
Verified: prompts, file formats, the released scorers' verdicts (metrics), VisDial's and VQA v2's own metrics.
Inferred: line breaks in the dialogue prompt, the history's separators; the names of the released test files.
Ours: candidates of dialogues ranked by mean log-probability a token (the paper does not say whether sum or mean; the
sum is also given); prompts for box formats other than Qwen-VL's; retrieval by generative models in galleries of 20
images (the paper has no retrieval by generative models; dual encoders: `cultureval retrieval`).
"""

from typing import Any

from cultureval.metrics.cvlue import names
from cultureval.prompts.cvlue import rows
from cultureval.prompts.preparation import Prepare
from cultureval.tasks.cvlue import files
from cultureval.tasks.suite import Benchmark, MetricSet, Source, Subset

VQA = MetricSet("cvlue_vqa", "VQA", names.VQA)
VQA_V2 = MetricSet("vqa_v2", "VQA", names.VQA_V2)
GROUNDING = MetricSet("grounding", "visual grounding", names.GROUNDING)
DIALOGUE = MetricSet("dialogue", "visual dialogue", names.DIALOGUE)
VG, VD = "vg_{box_format}", "vd_{dialogue_layout}"
DENSE_DIALOGUE = MetricSet("dense_dialogue", "visual dialogue", names.DENSE_DIALOGUE)
RETRIEVAL = MetricSet("galleries", "image-text retrieval", names.GALLERIES)

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


def task(
    group: str, name: str, source: Source, metrics: MetricSet, template: str, items: int | None = None
) -> Benchmark:
    """A benchmark of one task; its template is `LANGUAGE/FILE`."""
    language, path = template.partition("/")[0], f"cvlue/templates/{template}"
    subset = Subset(name, key="", rows=items, register="standard")
    return Benchmark(name, "vision-language", group, (source,), (subset,), metrics, path, language, images=True)


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
    task("cvlue_vqa", "CVLUE VQA", released("vqa", rows.question, files.read_questions), VQA, "zh/vqa"),
    task("cvlue_vg", "CVLUE VG", released("vg", rows.expression, files.read_expressions), GROUNDING, "zh/" + VG),
    task("cvlue_vd", "CVLUE VD", released("vd", rows.dialogue_round, files.read_rounds), DIALOGUE, "zh/" + VD),
    task("cvlue_itr", "CVLUE ITR", released("itr", rows.caption_gallery, files.read_captions), RETRIEVAL, "zh/itr"),
    task("cvlue_en_vqa", "VQA v2 (val)", VQAV2, VQA_V2, "en/vqa", 214_354),
    task("cvlue_en_vg", "RefCOCOg (test)", REFCOCOG, GROUNDING, "en/" + VG, 9_602),
    task("cvlue_en_vd", "VisDial 1.0 (val)", VISDIAL, DENSE_DIALOGUE, "en/" + VD, 20_640),
    task("cvlue_en_itr", "COCO 5K", COCO, RETRIEVAL, "en/itr", 5_000),
)
