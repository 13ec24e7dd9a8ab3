"""A custom task of LightEval whose Docs say what a judge needs to know; used by test_judge_command.py."""

import os
from pathlib import Path

from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

from cultureval.metrics.judges.lighteval import judge_metrics
from cultureval.runtime.data.image_store import store_image, stored_image

TEMPLATES = ["jeem_caption_image_reference", "jeem_caption_reference"]
ROWS = Path(os.environ["JUDGED_ROWS"])  # a folder with test.jsonl and images


def prompt(line, task_name=None):
    image = stored_image(store_image((ROWS / line["image"]).read_bytes()))
    slots = {"country": "Egypt", "reference": line["reference"], "question": None, "caption_msa": line["reference"]}
    if line.get("question"):
        slots["question"] = line["question"]
    return Doc(
        task_name=task_name,
        query=f"صف الصورة {line['number']}",
        choices=[line["reference"]],
        gold_index=0,
        images=[str(image)],
        specific={"cluster": line["image"], "judge": {"templates": TEMPLATES, "slots": slots}},
    )


TASKS_TABLE = [
    LightevalTaskConfig(
        name=f"judged:{name}",
        prompt_function=prompt,
        hf_repo=str(ROWS / name),
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        metrics=[Metrics.exact_match.value, *judge_metrics(*TEMPLATES)],
        generation_size=32,
        stop_sequence=[],
    )
    for name in ("a", "b")
]
