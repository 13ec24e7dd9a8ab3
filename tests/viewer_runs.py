"""Saved runs with an answer of each kind that suites have, for tests of the viewer."""

import io
import random
from pathlib import Path
from typing import Any

import pyarrow
from PIL import Image

from cultureval.runs.files import find_saved_tasks, read_details
from cultureval.runs.record import RunRecord
from cultureval.runs.writing import write_derived, write_details, write_results
from cultureval.runtime.data.image_store import store_image, stored_image

DATE = "2026-11-01T10-00-00"
ARABIC = "ما عاصمة المغرب (1975)؟\nأ) الرباط.\nب) فاس.\nاختر حرفًا واحدًا."


def row(number: int, query: str, metric: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A row of details: `answer` or `logprobs`, `choices`, `gold`, `images` and facts of `Doc.specific`."""
    answer, logprobs = fields.pop("answer", None), fields.pop("logprobs", [])
    reasoning = fields.pop("reasoning", None)
    doc = {"query": query, "choices": fields.pop("choices", [""]), "gold_index": fields.pop("gold", [0])}
    doc |= {"images": fields.pop("images", None), "id": str(number), "specific": {"source_row": f"a:{number}"} | fields}
    texts = [] if answer is None else [answer]
    response = {"text": texts, "text_post_processed": texts, "logprobs": logprobs, "reasonings": [reasoning]}
    return {"doc": doc, "metric": metric, "model_response": response | {"output_tokens": [[1]] * len(logprobs)}}


def save(root: Path, task: str, rows: list[dict[str, Any]], model: str = "lab/model") -> None:
    """Writes the details of a task of one run."""
    write_details(root, model, DATE, f"{task}|0", pyarrow.Table.from_pylist(rows))


def picture() -> str:
    """The path of an image in the store that is large enough to be shown smaller."""
    noise = Image.frombytes("RGB", (1600, 600), random.Random(0).randbytes(1600 * 600 * 3))
    content = io.BytesIO()
    noise.save(content, "PNG")
    return str(stored_image(store_image(content.getvalue())))


def save_all(root: Path) -> None:
    """A run with an answer of each kind: choices, several golds, texts, judged captions, images, boxes, code."""
    choices = {"choices": ["أ", "ب", "ج"], "logprobs": [-1.0, -0.25, -3.0]}
    save(root, "qimma_aratrust", [row(1, ARABIC, {"acc_norm": 0.0, "acc": 0.0}, gold=[0], **choices)])
    save(root, "qimma_medarabiq_multi", [row(1, ARABIC, {"acc": 1.0}, gold=[0, 2], **choices)])
    reply = {"answer": "الرباط هي العاصمة.", "choices": ["الرباط."], "reasoning": "أفكر أولاً."}
    save(root, "qimma_arablegalqa", [row(1, ARABIC, {"BERTScore-F": 0.71234567, "BERTScore-P": float("nan")}, **reply)])
    shown = {"images": [picture()], "answer": "نخلة عند بيت.", "choices": ["نخلة."], "id": "ae_palm"}
    save(root, "jeem_caption:ae", [row(n, "اوصف الصورة.", {"cider": 0.5}, **shown) for n in (1, 2)])
    (saved,) = [one for one in find_saved_tasks([root]) if one.task.startswith("jeem")]
    verdict = {"outcome": "scored", "reason": "", "reply": "Consistency: 4/5\nFluency: 5/5", "asked": 1}
    judged = read_details(saved.file).slice(1)
    date, of_run = "2026-11-02T10-00-00", {"details": [str(saved.file.relative_to(root))]}
    write_derived(saved, date, judged, [{"judge_gpt_vqa": verdict, "judge_gpt_vqa_fluency": 5.0}])
    general = {"model_name": "lab/model", "judged": of_run}
    write_results(root, "lab/model", date, {"config_general": general, "results": {}}, RunRecord())
    box = {
        "box": [100.0, 100.0, 300.0, 200.0],
        "size": [1600, 600],
        "box_format": "qwen_vl",
        "box_pixels": "3136-12845056",
    }
    found = {"iou": 0.5, "iou_continuous": 0.5}
    save(root, "cvlue_vg", [row(1, "框出图中的灯笼", found, images=[picture()], answer="(50,100),(250,500)", **box)])
    candidates = {"choices": [f"候选{n}" for n in range(100)], "logprobs": [-float(n) for n in range(100)]}
    save(root, "cvlue_visdial", [row(1, "问：几个人？", {"mrr": 1 / 8}, gold=[7], **candidates)])
    verdict = {"base": "fail", "plus": "fail", "reason": "wrong output in call 1 of 3, input (2750)"}
    code = "def f(x):\n    return x  # <b>no</b>\n"
    save(root, "qimma_code:mbpp_plus", [row(1, '"""f"""', {"plus_pass@1": 0.0}, answer=code, verdict=verdict)])
    save(root, "arc_of_stock_lighteval", [row(1, "2 + 2 =", {"em": 1}, answer="4", choices=["4"], gold=0)], "gpt2")
