"""From the rows of AL-QASIDA's sets to prepared rows: `prompt`, `answer`, `source` and the features of its analysis."""

import re
from collections.abc import Mapping
from typing import Any

from cultureval.prompts.cells import is_empty, optional_text, readable, text_cell
from cultureval.prompts.preparation import Preparation, PreparedRow
from cultureval.prompts.templates import render
from cultureval.runtime.errors import BadRow

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


def prepare_request(row: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    """A request, or a few-shot example, which also has `answer`; the prompts are those of the set.

    Args:
        row: `prompt`, and what `tasks.alqasida.sets` adds: `dialect`, `genre`, `cluster`, `template`, `location`,
            `phrasing`.
    """
    features = ("dialect", "genre", "cluster", "template", "location", "phrasing")
    texts = {"prompt": _unstripped(row, "prompt"), "answer": optional_text(row, "answer") or ""}
    return texts | {name: str(row.get(name) or "") for name in features}


def prepare_translation(row: Mapping[str, Any], preparation: Preparation) -> PreparedRow:
    """A sentence to be translated: of a ready-made file with its prompt, or of a corpus, whose prompt is made here.

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
    """The cell's text as it is: the published prompts are reproduced to the character."""
    if is_empty(row.get(column)):
        raise BadRow(column, row.get(column), "is null or empty")
    readable(row[column], column)
    return str(row[column])
