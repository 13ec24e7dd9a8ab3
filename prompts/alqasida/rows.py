"""AL-QASIDA: from the rows of its sets to prepared rows with features, and to LightEval Docs.

Few-shot examples are the published five. Plain prompts have the form of the paper's prefix (`Q: ...`, a line break,
`A: ...`); LightEval joins examples with blank lines, which gives the paper's prefix. For chat models
`specific["chat_query"]` is the request alone, and the examples become turns.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cultureval.prompts.cells import is_empty, optional_text, readable, text_cell
from cultureval.prompts.preparation import Preparation, PreparedRow, make_doc
from cultureval.prompts.templates import render
from cultureval.runtime.doc_fields import DocSpecific, JudgeRequest, fields_of
from cultureval.runtime.errors import BadRow

if TYPE_CHECKING:
    from lighteval.tasks.requests import Doc


# English names of the languages of answers.
LANGUAGES = {
    "dza": "Algerian Arabic",
    "egy": "Egyptian Arabic",
    "kwt": "Kuwaiti Arabic",
    "mar": "Moroccan Arabic",
    "pse": "Palestinian Arabic",
    "sau": "Saudi Arabic",
    "sdn": "Sudanese Arabic",
    "syr": "Syrian Arabic",
    "msa": "Modern Standard Arabic",
    "eng": "English",
}
_TRANSLATION = re.compile(r"Translate from [^\n]+\n(?P<source>.*)\nTranslation:", re.DOTALL)


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
        prompt: The request alone; copies of it are detected in replies.
        template: The request's template, if any.
        location: The position of the dialect's name in the template.
        phrasing: The wording of the template.
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


def prepare_request(row: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    """A request, or a few-shot example with `answer`.

    Args:
        row: `prompt`, and the fields of `tasks.alqasida.sets`: `dialect`, `genre`, `cluster`, `template`, `location`,
            `phrasing`.
    """
    features = ("dialect", "genre", "cluster", "template", "location", "phrasing")
    if "<UNAVAILABLE>" in str(row.get("prompt")):  # the repository's program writes this for a deleted tweet
        raise BadRow("prompt", row["prompt"], "asks about a tweet that is not available")
    texts = {"prompt": _unstripped(row, "prompt"), "answer": optional_text(row, "answer") or ""}
    return texts | {name: str(row.get(name) or "") for name in features}


def prepare_translation(row: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    """A sentence to be translated. Ready-made files have prompts; for sentences of a corpus the prompt is made here.

    Args:
        row: `completion`, the reference; `prompt` or `sentence`; the languages' codes, `dialect` and `from`; `genre`
            and `cluster`.
    """
    if "sentence" in row:
        source = text_cell(row, "sentence")
        names = {"source": LANGUAGES[row["from"]], "target": LANGUAGES[row["dialect"]]}
        prompt = render(preparation.template, text=source, **names)
    else:
        prompt = _unstripped(row, "prompt")
        found = _TRANSLATION.fullmatch(prompt)
        if not found:
            raise BadRow("prompt", prompt, "is not a request for a translation")
        source = found["source"]
    features = {name: str(row.get(name) or "") for name in ("dialect", "genre", "cluster")}
    return {"prompt": prompt, "answer": text_cell(row, "completion"), "source": source} | features


def _unstripped(row: Mapping[str, Any], column: str) -> str:
    """The cell's text, unchanged, so that prompts equal the published ones."""
    if is_empty(row.get(column)):
        raise BadRow(column, row.get(column), "is null or empty")
    readable(row[column], column)
    return str(row[column])


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
    """The fields of a request, with those for judges, who may replace the paper's human raters."""
    templates = ["alqasida_adherence", "alqasida_fulfilment", "alqasida_fluency", "alqasida_dialectal_fidelity"]
    slots = {"dialect": LANGUAGES[row["dialect"]], "prompt": row["prompt"]}
    judge: JudgeRequest = {"templates": templates, "slots": slots}
    return RequestSpecific(**fields_of(row, RequestSpecific), **_length(row), judge=judge)


def _length(row: Mapping[str, Any]) -> dict[str, int]:
    return {"prompt_length": len(row["prompt"])}
