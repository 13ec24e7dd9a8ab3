"""Prompt functions of multiple-choice questions whose answer is generated: the task's question, and how to answer it.

The question is the row's prompt without the word that asks for the label to be continued (`الإجابة:`); the instruction
is a text in the task's language, in the folder `generated_choices`.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from cultureval.prompts.choices import ChoiceSpecific
from cultureval.prompts.templates import load_template
from cultureval.runtime.doc_fields import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lighteval.tasks.requests import Doc

_CUE = re.compile(r"\s*\n[^\S\n]*(?:الإجابة|الاجابة|الجواب|Answer|答案)(?: الصحيحة)?[^\S\n]*[:：]?\s*\Z")
SEPARATORS = {"ar": "، ", "zh": "、"}


class ChoiceReplySpecific(ChoiceSpecific):
    """A question whose answer is generated.

    Attributes:
        labels: The labels that the prompt shows, one an option.
        right: Positions of the right options, from 0.
    """

    labels: list[str]
    right: list[int]


def instruction_name(language: str, several: bool) -> str:
    """The template of the instruction in a language, for questions with one or with several right options."""
    return f"generated_choices/{language}_{'several' if several else 'one'}"


def choice_reply_prompt(language: str, several: bool) -> "Callable[..., Doc]":
    """The prompt function of a language with an instruction (ar, en or zh); `several`: several options may be right."""
    return partial(_reply_doc, instruction=instruction_name(language, several), language=language)


def _reply_doc(row: Mapping[str, Any], task_name: str | None = None, *, instruction: str, language: str) -> "Doc":
    """The Doc of a row; its one choice is the right last line, which few-shot examples show."""
    from lighteval.tasks.requests import Doc

    labels, separator = [label.strip() for label in row["labels"]], SEPARATORS.get(language, ", ")
    asked = load_template(instruction).render(labels=separator.join(labels)).strip()
    last_line = asked.rpartition("\n")[2]
    right = sorted(row["index"])
    answer = last_line.replace(re.search(r"<[^<>]*>", last_line)[0], separator.join(labels[place] for place in right))
    specific = ChoiceReplySpecific(
        **fields_of(row, ChoiceSpecific), options=list(row["choices"]), labels=labels, right=right
    )
    return Doc(
        task_name=task_name or "",
        query=f"{_CUE.sub('', row['prompt']).rstrip()}\n\n{asked}\n",
        choices=[answer],
        gold_index=0,
        specific=dict(specific),
    )
