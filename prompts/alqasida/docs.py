"""AL-QASIDA's prompt functions: from a prepared row to a LightEval Doc.

Few-shot examples are the published five. For plain prompts query and answer are written as the paper's prefix writes
them (`Q: ...`, a line break, `A: ...`), so that LightEval, which joins examples with blank lines, reproduces that
prefix; for chat models `specific["chat_query"]` is the bare request, so that the examples become turns.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.alqasida.rows import LANGUAGES
from cultureval.prompts.preparation import make_doc
from cultureval.runtime.doc_fields import DocSpecific, JudgeRequest, fields_of

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


class PromptFeatures(DocSpecific):
    """Fields of all of AL-QASIDA's items.

    Attributes:
        dialect: Three-letter code of the requested dialect's country; "msa" or "eng" in translations.
        prompt_length: Characters of the request.
    """

    dialect: str
    genre: str
    prompt_length: int


class RequestSpecific(PromptFeatures, total=False):
    """A request for an answer in a dialect.

    Attributes:
        prompt: The bare request, copies of which are detected in replies.
        template: The request's template, if any.
        location: Where the template names the dialect.
        phrasing: How the template asks.
    """

    prompt: str
    template: str
    location: str
    phrasing: str


class TranslationSpecific(PromptFeatures, total=False):
    """A sentence to be translated; the template's fields are as in `RequestSpecific`."""

    source: str
    template: str
    location: str
    phrasing: str


def request_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a request in a dialect, or in English for an answer in a dialect; there is no gold answer."""
    return make_doc(row, task_name, [row["answer"]], 0, _request(row))


def request_prompt_few_shot(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """As `request_prompt`, after few-shot examples; an example's answer is the Doc's choice."""
    query, specific = f"Q: {row['prompt']}\nA:", {**_request(row), "chat_query": row["prompt"]}
    return make_doc(row, task_name, [row["answer"]], 0, specific, query)


def translation_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a sentence to be translated; its choice is the reference.

    `specific["dialect"]` is the target. It has no `prompt`: copies of the prompt are not removed from translations.
    """
    target = row["dialect"]
    templates = ["alqasida_adequacy", "alqasida_fluency"]
    templates += ["alqasida_dialectal_fidelity"] if target not in ("eng", "msa") else []
    slots = {"dialect": LANGUAGES[target], "source": row["source"], "reference": row["answer"]}
    judge: JudgeRequest = {"templates": templates, "slots": slots}
    specific = TranslationSpecific(**fields_of(row, TranslationSpecific), **_length(row), judge=judge)
    return make_doc(row, task_name, [row["answer"]], 0, specific)


def _request(row: Mapping[str, Any]) -> RequestSpecific:
    """With the fields of `cultureval judge`: a judge may replace the people who rate AL-QASIDA's replies."""
    templates = ["alqasida_adherence", "alqasida_fulfilment", "alqasida_fluency", "alqasida_dialectal_fidelity"]
    slots = {"dialect": LANGUAGES[row["dialect"]], "prompt": row["prompt"]}
    judge: JudgeRequest = {"templates": templates, "slots": slots}
    return RequestSpecific(**fields_of(row, RequestSpecific), **_length(row), judge=judge)


def _length(row: Mapping[str, Any]) -> dict[str, int]:
    return {"prompt_length": len(row["prompt"])}
