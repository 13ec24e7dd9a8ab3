"""A planted run with an answer of each kind that suites have, for tests of the viewer."""

import io
import random
from pathlib import Path
from typing import Any

from PIL import Image
from planted import judge, plant

from cultureval.runtime.data.image_store import store_image, stored_image

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


def picture() -> str:
    """The path of an image in the store that is large enough to be shown smaller."""
    noise = Image.frombytes("RGB", (1600, 600), random.Random(0).randbytes(1600 * 600 * 3))
    content = io.BytesIO()
    noise.save(content, "PNG")
    return str(stored_image(store_image(content.getvalue())))


def plant_all(root: Path) -> Path:
    """A run with an answer of each kind: choices, several golds, texts, judged captions, images, boxes, code."""
    choices = {"choices": ["أ", "ب", "ج"], "logprobs": [-1.0, -0.25, -3.0]}
    reply = {"answer": "الرباط هي العاصمة.", "choices": ["الرباط."], "reasoning": "أفكر أولاً."}
    shown = {"images": [picture()], "answer": "نخلة عند بيت.", "choices": ["نخلة."], "id": "ae_palm"}
    box = {"box": [100.0, 100.0, 300.0, 200.0], "size": [1600, 600]}
    box |= {"box_format": "qwen_vl", "box_pixels": "3136-12845056"}
    boxed = row(1, "框出图中的灯笼", {"iou": 0.5}, images=[picture()], answer="(50,100),(250,500)", **box)
    candidates = {"choices": [f"候选{n}" for n in range(100)], "logprobs": [-float(n) for n in range(100)]}
    verdict = {"base": "fail", "plus": "fail", "reason": "wrong output in call 1 of 3, input (2750)"}
    code = "def f(x):\n    return x  # <b>no</b>\n"
    captions = [row(n, "اوصف الصورة.", {"cider": 0.5}, **shown) for n in (1, 2)]
    text = {"BERTScore-F": 0.71234567, "BERTScore-P": None}
    file = plant(
        root,
        {
            "qimma_aratrust|0": [
                row(1, ARABIC, {"acc_norm": 0.0, "acc": 0.0}, **choices),
                row(2, ARABIC, {}, **choices),
            ],
            "qimma_medarabiq_multi|0": [row(1, ARABIC, {"acc": 1.0}, gold=[0, 2], **choices)],
            "qimma_arablegalqa|0": [row(1, ARABIC, text, **reply)],
            "jeem_caption:ae|0": captions,
            "cvlue_vg|0": [boxed],
            "cvlue_visdial|0": [row(1, "问：几个人？", {"mrr": 1 / 8}, gold=[7], **candidates)],
            "qimma_code:mbpp_plus|0": [row(1, '"""f"""', {"plus_pass@1": 0.0}, answer=code, verdict=verdict)],
            "arc_of_stock_lighteval|0": [row(1, "2 + 2 =", {"em": 1.0}, answer="4", choices=["4"], gold=0)],
        },
        "lab/model",
    )
    said = {"outcome": "scored", "reason": "", "reply": "Consistency: 4/5\nFluency: 5/5"}
    unasked = {"outcome": "not_asked", "reason": "", "reply": ""}
    scores = [{"judge_gpt_vqa": unasked, "judge_gpt_vqa_fluency": None}]
    scores += [{"judge_gpt_vqa": said, "judge_gpt_vqa_fluency": 5.0}]
    judge(file, "jeem_caption:ae|0", [one | {"metric": of} for one, of in zip(captions, scores, strict=True)])
    return file
