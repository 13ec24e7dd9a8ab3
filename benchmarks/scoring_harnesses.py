"""The ways of scoring that are compared: ours, one pass over all, one pass a candidate, LightEval, lm-eval."""

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.lower_limit import image_flops, needed_flops, needed_tokens

if TYPE_CHECKING:
    from lighteval.models.transformers.transformers_model import TransformersModel
    from lighteval.tasks.requests import Doc
    from lm_eval.models.huggingface import HFLM
    from torch import Tensor

    from cultureval.models.hf import HFModel

# LightEval holds the logits of all choices of a doc twice: 100 at once would be over 20 GB, so it gets them in tens.
STOCK_CHOICES = 10
PASS_TOKENS = 512  # per batch of `one_pass`; larger batches are slower on a CPU, since they pad more

Scores = list[list[float]]


class ChoiceItem(NamedTuple):
    """A prompt and its choices, which follow it directly."""

    prompt: str
    choices: list[str]


def load_ours(folder: Path, device: str, dtype: str, temporary: Path, chat_template: str = "auto") -> "HFModel":
    """Our model with a separate journal."""
    from cultureval.models.hf import HFModel
    from cultureval.models.settings import HFModelSettings
    from cultureval.runtime.journal import Journal

    name = str(folder)
    model = HFModel(HFModelSettings(model_name=name, device=device, dtype=dtype, chat_template=chat_template))
    model.journal = Journal(temporary / "journal", resume=False)
    return model


def doc_of(question: ChoiceItem, *images: Any) -> "Doc":
    """A question as LightEval's Doc."""
    from lighteval.tasks.requests import Doc

    prompt, choices = question
    return Doc(query=prompt, choices=choices, gold_index=0, id="0", task_name="bench", images=list(images) or None)


def ours_scores(ours: "HFModel", questions: Sequence[ChoiceItem]) -> Scores:
    """A complete run: rendering, tokens, scores, journal."""
    return scored_afresh(ours, [doc_of(question) for question in questions])


def scored_afresh(ours: "HFModel", docs: list["Doc"]) -> Scores:
    """Our scores, with an empty journal, which is written as usual."""
    from cultureval.runtime.journal import Journal

    ours.journal = Journal(ours.journal.folder, resume=False)
    return [response.logprobs for response in ours.loglikelihood(docs)]


def one_pass(ours: "HFModel", questions: Sequence[ChoiceItem]) -> None:
    """One causal pass of the unchanged model over as many tokens as must be encoded, with our matrix products.

    These are the distinct tokens (`needed_tokens`), in one sequence a question, all of one length: nothing is encoded
    twice or padded, so that a scorer that uses the model as it is takes at least as long. As many sequences are in a
    batch as fit PASS_TOKENS. The lm_head and the softmax are applied to as many rows as predict a choice's token.
    """
    import torch

    from cultureval.runtime.onednn_products import onednn_products

    model, pairs = ours.loaded.model, tokens_of(ours, questions)
    needed = needed_tokens(pairs)
    length, rows = needed.tokens // len(pairs), -(-needed.rows // len(pairs))
    ids = torch.tensor([token for prompt, choices in pairs for token in chain(prompt, *choices)], device=model.device)
    batches = ids[: length * len(pairs)].view(len(pairs), length).split(max(1, PASS_TOKENS // length))
    head = model.get_output_embeddings()
    with torch.inference_mode(), onednn_products(model.device):
        for batch in batches:
            head(model.base_model(input_ids=batch, use_cache=False)[0][:, -rows:]).logsumexp(-1)


def tokens_of(ours: "HFModel", questions: Sequence[ChoiceItem]) -> list[tuple[list[int], list[list[int]]]]:
    """Each question's prompt and choices as tokens, which are encoded apart."""
    pairs = (ours.tok_encode_pair(prompt, choices, pairwise=True) for prompt, choices in questions)
    return [(contexts[0], continuations) for contexts, continuations in pairs]


def text_limit(ours: "HFModel", questions: Sequence[ChoiceItem]) -> float:
    """Floating-point operations that scoring these questions needs at least."""
    return needed_flops(ours.loaded.model, needed_tokens(tokens_of(ours, questions)))


def stock_lighteval(ours: "HFModel", folder: Path, batch_size: int, temporary: Path) -> "TransformersModel":
    """LightEval's TransformersModel on the same weights."""
    from lighteval.models.transformers.transformers_model import TransformersModel, TransformersModelConfig

    device = str(ours.loaded.model.device)
    cache = str(temporary / "lighteval")
    config = TransformersModelConfig(
        model_name=str(folder), batch_size=batch_size, device=device, cache_dir=cache, override_chat_template=False
    )
    return TransformersModel.from_model(ours.loaded.model, config)


def stock_lm_eval(ours: "HFModel", batch_size: int) -> "HFLM | None":
    """lm-eval's HFLM on the same weights; None, which is said, if lm-eval is not installed."""
    try:
        from lm_eval.models.huggingface import HFLM
    except ImportError:
        print("lm-eval is not installed (pip install '.[lm-eval]' in cultureval's folder): left out.", file=sys.stderr)
        return None
    return HFLM(pretrained=ours.loaded.model, tokenizer=ours.tokenizer, batch_size=batch_size, add_bos_token=True)


def lighteval_runner(
    ours: "HFModel", folder: Path, questions: Sequence[ChoiceItem], batch_size: int, temporary: Path
) -> Callable[[], Scores]:
    """LightEval's scores, without its response cache."""
    stock = stock_lighteval(ours, folder, batch_size, temporary)
    parts = [
        (number, question._replace(choices=question.choices[start : start + STOCK_CHOICES]))
        for number, question in enumerate(questions)
        for start in range(0, len(question.choices), STOCK_CHOICES)
    ]

    score = inspect.unwrap(type(stock).loglikelihood)  # without LightEval's cache of answers

    def run() -> Scores:
        scores: Scores = [[] for _ in questions]
        responses = score(stock, [doc_of(part) for _, part in parts])
        for (number, _), response in zip(parts, responses, strict=True):
            scores[number] += response.logprobs
        return scores

    return run


def lm_eval_runner(ours: "HFModel", questions: Sequence[ChoiceItem], batch_size: int) -> Callable[[], Scores] | None:
    """lm-eval's scores; None if it is not installed.

    It encodes prompt and choice together, LightEval apart: the scores of choices whose tokens differ are NaN.
    """
    if (harness := stock_lm_eval(ours, batch_size)) is None:
        return None
    from lm_eval.api.instance import Instance

    pairs = [(prompt, choice) for prompt, choices in questions for choice in choices]
    instances = [
        Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=index) for index, pair in enumerate(pairs)
    ]

    apart = chain.from_iterable(
        zip(*ours.tok_encode_pair(*question, pairwise=True), strict=True) for question in questions
    )
    alike = [harness._encode_pair(*pair) == tokens for pair, tokens in zip(pairs, apart, strict=True)]

    def run() -> Scores:
        scores = harness.loglikelihood(instances, disable_tqdm=True)
        flat = iter(score if same else math.nan for (score, _), same in zip(scores, alike, strict=True))
        return [[next(flat) for _ in choices] for _, choices in questions]

    return run


def _vision_inputs(ours: "HFModel", doc: "Doc") -> tuple[dict[str, "Tensor"], list[list[int]]]:
    inputs = ours.with_images([ours.renderer.text(doc, scoring=True).rstrip()], [doc], ours.max_length)
    _, continuations = ours.tok_encode_pair(ours.renderer.text(doc, scoring=True), doc.choices, pairwise=True)
    return {name: value.to(ours.loaded.model.device) for name, value in inputs.items()}, continuations


def vision_pass(ours: "HFModel", doc: "Doc") -> None:
    """One causal pass over image, prompt and as many tokens as the choices' distinct ones, as `one_pass`."""
    import torch

    from cultureval.runtime.onednn_products import onednn_products

    inputs, continuations = _vision_inputs(ours, doc)
    prompt = inputs["input_ids"]
    needed = needed_tokens([(prompt[0].tolist(), continuations)])
    tokens = torch.tensor([list(chain.from_iterable(continuations))], device=prompt.device)
    inputs["input_ids"] = torch.cat([prompt, tokens], 1)[:, : needed.tokens]
    del inputs["attention_mask"]
    model = ours.loaded.model
    with torch.inference_mode(), onednn_products(model.device):
        hidden = model.base_model(**inputs, use_cache=False)[0][0, -needed.rows :]
        model.get_output_embeddings()(hidden).logsumexp(-1)


def vision_limit(ours: "HFModel", doc: "Doc") -> float:
    """Floating-point operations that scoring the choices after an image needs at least."""
    inputs, continuations = _vision_inputs(ours, doc)
    del inputs["attention_mask"]
    model, prompt = ours.loaded.model, inputs["input_ids"][0].tolist()
    return needed_flops(model, needed_tokens([(prompt, continuations)])) + image_flops(model, inputs)


def vision_naive(ours: "HFModel", doc: "Doc") -> list[float]:
    """The image, the prompt and one candidate per pass, log-softmax over every position."""
    import torch

    inputs, continuations = _vision_inputs(ours, doc)
    del inputs["attention_mask"]
    prompt, scores = inputs.pop("input_ids"), []
    with torch.inference_mode():
        for choice in continuations:
            tokens = torch.tensor([choice], device=prompt.device)
            logits = ours.loaded.model(input_ids=torch.cat([prompt, tokens], 1), **inputs, use_cache=False).logits
            rows = logits.log_softmax(-1)[0, prompt.shape[1] - 1 : -1]
            scores.append(rows.gather(1, tokens.T).sum().item())
    return scores
