"""Prepared rows of multiple-choice questions: the prompt from a template, and the labels that are scored."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from cultureval.prompts.option_labels import check_not_others, check_shown
from cultureval.prompts.preparation import PreparedRow
from cultureval.prompts.templates import load_template
from cultureval.runtime.errors import BadRow


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
        template: Name of the template, which names the labels and has the slots `$question` and `$options`.
        options: The options' texts, without labels.
        index: Positions of the right options, from 0.
        context: The passage that the question is about; rows with the same passage are one cluster. The template has a
            slot `$context`, or names the template of such rows in `also: {passage: FILE}`.

    Raises:
        CulturevalError: The template names no labels, or none for passages, or lacks a slot or has an unknown one.
        BadRow: It names fewer labels than there are options.
    """
    used = load_template(template)
    if context and not used.has_slot("context"):
        used = used.also("passage")
    texts = {"question": question, "options": used.options(options), "context": context or ""} | slots
    labels = used.scored_labels(len(options))
    used.check_slots("question", *(["context"] if context else []))
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


def check_labels(row: Mapping[str, Any], template: str, ready_made: bool) -> None:
    """Checks that the labels of a prepared row, if any, are those that its prompt shows.

    Where the prompt is the source's own (`ready_made`), they are checked only if they can be parsed.
    """
    if "labels" not in row:
        return
    if len(row["labels"]) != len(row["choices"]):
        raise BadRow("labels", row["labels"], f"does not label the {len(row['choices'])} options")
    if ready_made:
        check_not_others(row["prompt"], row["labels"], row["choices"])
    else:
        check_shown(row["prompt"], row["labels"], row["choices"], template)
