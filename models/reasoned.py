"""Choices after reasoning (`scoring: reasoned`): the model reasons first, then its labels are scored after that text.

The form is ours; lm-eval refuses to score choices of thinking models. Reasoning is generated from the task's own
prompt, by the settings of generation. The context of the choices is the prompt, the reasoning between its tags, and an
empty line. A text without tags ends at its `Final answer:`, else it stands between the tags too. Servers without
log-probabilities of prompts generate the label.
"""

import copy
import re
from collections.abc import Sequence
from typing import Any

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

from cultureval.models.generation.rendering import Renderer
from cultureval.runtime.doc_fields import REASONED, specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.refused_docs import RefusedResponse
from cultureval.runtime.reasoning import Tags

MOST_TOKENS = 4096  # of reasoning, where `max_new_tokens` is not set
NOT_NAMED = -100.0  # the log-probability of a label that the reply does not name; that of the named one is 0
ANNOUNCED = re.compile(r"(?i)(?:final answer|ال[إا]جابة النهائية|最终答案)(?: is| هي|是)?[\s*]*[:：][\s*]*")


def reasoned(model: Any, docs: Sequence[Doc], form: str = REASONED) -> list[tuple[Doc, ModelResponse]]:
    """Lets a model reason on docs; returns for each the doc that was asked, and its response.

    The docs' `finish_reasons` get "length" where the reasoning was cut at the limit of tokens.

    Args:
        model: With `greedy_until`, and the dict `scored_by`.
        docs: With choices.
        form: What their tasks' parity says.

    Raises:
        CulturevalError: The choices of a doc have prompts of their own.
    """
    if apart := next((doc for doc in docs if specific_of(doc).get("contexts")), None):
        raise CulturevalError(f"{apart.task_name}: each choice has its own prompt; leave out scoring=reasoned.")
    asked = [_thinking(doc) for doc in docs]
    found = list(zip(asked, model.greedy_until(asked), strict=True))
    for doc, (question, response) in zip(docs, found, strict=True):
        model.scored_by[doc.task_name] = form
        if not isinstance(response, RefusedResponse):
            reason = "length" if _is_cut(question, response) else "stop"
            doc.specific = {**specific_of(doc), "finish_reasons": [reason]}
    return found


def _thinking(doc: Doc) -> Doc:
    """A doc whose answer is generated with reasoning, to the end of the text."""
    asked = copy.copy(doc)
    asked.generation_size, asked.stop_sequences, asked.num_samples = MOST_TOKENS, [], 1
    asked.specific = {**specific_of(doc), "thinking": True, "answer_prefix": ""}
    return asked


def _is_cut(asked: Doc, response: ModelResponse) -> bool:
    """Whether the limit of tokens ended the reasoning."""
    (text,), (reasoning,) = response.text, response.reasonings
    ended = bool(text.strip()) if reasoning else bool(ANNOUNCED.search(text))
    return specific_of(asked)["finish_reasons"] == ["length"] and not ended


def contexts(
    renderer: Renderer, tags: Tags, docs: Sequence[Doc], found: Sequence[tuple[Doc, ModelResponse]]
) -> dict[int, str]:
    """The prompts with reasoning by `id` of each doc, without refused docs; choices follow them directly."""
    return {
        id(doc): _context(renderer.text(asked), tags, doc, response)
        for doc, (asked, response) in zip(docs, found, strict=True)
        if not isinstance(response, RefusedResponse)
    }


def _context(prompt: str, tags: Tags, doc: Doc, response: ModelResponse) -> str:
    (text,), (reasoning,) = response.text, response.reasonings
    if not reasoning and (end := ANNOUNCED.search(text)):
        return prompt + text[: end.end()].rstrip("* \n") + ("" if doc.choices[0][:1].isspace() else " ")
    opened = next((pair for pair in tags if prompt.rstrip().endswith(pair[0])), None)
    start, end_tag = opened or tags[0]
    before = prompt.rstrip().removesuffix(start) if opened else prompt
    return f"{before}{start}\n{(reasoning or text).strip()}\n{end_tag}\n\n"


def label_response(doc: Doc, response: ModelResponse) -> ModelResponse:
    """The response of a doc whose label was generated; a `RefusedResponse` where the reply names none, or several."""
    if isinstance(response, RefusedResponse):
        return response
    answer, labels = ANNOUNCED.split(response.text[0])[-1], [choice.strip() for choice in doc.choices]
    named = [label for label in labels if re.search(rf"(?<!\w){re.escape(label)}(?!\w)", answer)]
    if len(named) != 1:
        return RefusedResponse(reason=f"its reply names {len(named)} labels, not one", kind="undecided")
    return ModelResponse(
        input=response.input,
        reasonings=response.reasonings,
        logprobs=[0.0 if label == named[0] else NOT_NAMED for label in labels],
        argmax_logits_eq_gold=[label == named[0] for label in labels],
    )
