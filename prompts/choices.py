"""Questions with options, or with free answers: prepared rows, and their LightEval Docs.

The query is the row's `prompt`, the scored continuations are the options' labels. There is no instruction and no system
prompt. For generated answers the query also has an instruction in the task's language (a text of the folder
`templates/generated_choices`).
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cultureval.prompts.preparation import PreparedRow, make_doc
from cultureval.prompts.templates import load_template
from cultureval.runtime.doc_fields import DocSpecific, fields_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from lighteval.tasks.requests import Doc


# The last word of a prompt before a scored label; prompts for generated answers do not have it.
_CUE = re.compile(r"\s*\n[^\S\n]*(?:الإجابة|الاجابة|الجواب|Answer|答案)(?: الصحيحة)?[^\S\n]*[:：]?\s*\Z")
SEPARATORS = {"ar": "، ", "zh": "、"}


class ChoiceSpecific(DocSpecific, total=False):
    """A multiple-choice or multi-select question.

    Attributes:
        permutation: The order of the source's options, if they are shuffled.
        options: The options' texts; the Doc's choices are their labels.
    """

    permutation: list[int]
    options: list[str]


def choice_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a multiple-choice row; the gold is one position."""
    (gold,) = row["index"]
    return _labelled_doc(row, task_name, gold)


def multi_select_prompt(row: Mapping[str, Any], task_name: str | None = None) -> "Doc":
    """Doc of a multi-select row; the gold is always a list of positions, since a details column has one type."""
    return _labelled_doc(row, task_name, list(row["index"]))


def _labelled_doc(row: Mapping[str, Any], task_name: str | None, gold: int | list[int]) -> "Doc":
    specific = ChoiceSpecific(**fields_of(row, ChoiceSpecific), options=list(row["choices"]))
    return make_doc(row, task_name, list(row["labels"]), gold, specific)


class ChoiceReplySpecific(ChoiceSpecific):
    """A question with a generated answer.

    Attributes:
        labels: The labels in the prompt, one for each option.
        right: Positions of the right options, from 0.
    """

    labels: list[str]
    right: list[int]


def instruction_name(language: str, several: bool) -> str:
    """The name of the instruction's template, for questions with one or with several right options."""
    return f"generated_choices/{language}_{'several' if several else 'one'}"


def choice_reply_prompt(language: str, several: bool) -> "Callable[..., Doc]":
    """The prompt function for a language (ar, en or zh); `several`: several options may be right."""
    return partial(_reply_doc, instruction=instruction_name(language, several), language=language)


def _reply_doc(row: Mapping[str, Any], task_name: str | None = None, *, instruction: str, language: str) -> "Doc":
    """The Doc of a row; its only choice is the right last line, for few-shot examples."""
    labels, separator = [label.strip() for label in row["labels"]], SEPARATORS.get(language, ", ")
    asked = load_template(instruction).render(labels=separator.join(labels)).strip()
    last_line = asked.rpartition("\n")[2]
    right = sorted(row["index"])
    answer = last_line.replace(re.search(r"<[^<>]*>", last_line)[0], separator.join(labels[place] for place in right))
    specific = ChoiceReplySpecific(
        **fields_of(row, ChoiceSpecific), options=list(row["choices"]), labels=labels, right=right
    )
    query = f"{_CUE.sub('', row['prompt']).rstrip()}\n\n{asked}\n"
    return make_doc(row, task_name, [answer], 0, specific, query)


def answer_prompt(row: Mapping[str, Any], task_name: str | None = None, judge: str = "") -> "Doc":
    """Doc of a question; its choices, all gold, are the right answers.

    Args:
        row: `prompt`, `answers` and, with a judge, `slots` of the judge's template.
        judge: Name of the judge's template; "": none.
    """
    specific = DocSpecific(**fields_of(row, DocSpecific))
    if judge:
        specific["judge"] = {"templates": [judge], "slots": dict(row["slots"])}
    answers = list(row["answers"])
    return make_doc(row, task_name, answers, list(range(len(answers))), specific)


def choice_row(
    template: str,
    question: str,
    options: Sequence[str],
    index: Sequence[int],
    context: str | None = None,
    **slots: str,
) -> PreparedRow:
    """A prepared row of a question with labelled options.

    Args:
        template: Name of a template with labels and the slots `$question` and `$options`.
        options: The options' texts, without labels.
        index: Positions of the right options, from 0.
        context: The passage of the question; rows with one passage are one cluster. The template has a slot `$context`,
            or a template for passages in `also: {passage: FILE}`.

    Raises:
        CulturevalError: The template has no labels, no template for passages, or an unknown slot.
        BadRow: It has fewer labels than there are options.
    """
    used = load_template(template)
    if context and not used.has_slot("context"):
        used = used.also("passage")
    texts = {"question": question, "options": used.options(options), "context": context or ""} | slots
    labels = used.scored_labels(len(options))
    return {
        "prompt": used.render(**texts),
        "choices": list(options),
        "labels": labels,
        "index": list(index),
        "cluster": cluster_of(context),
    }


def cluster_of(context: str | None) -> str:
    """The cluster of rows that share a passage; "" makes each row its own cluster."""
    return hashlib.sha256(context.encode("utf-8")).hexdigest()[:12] if context else ""
