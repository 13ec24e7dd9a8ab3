"""Docs without a usable answer, for example an image that the processor refuses: left out of the scores, and listed.

The sizes of images show some of them before the run. A model or its server refuses others when it is asked, and answers
with a `RefusedResponse`. No metric sees them or the other docs of their item. The task's report lists them as refused
rows; the details have them without scores, with "refused" or "failed" in `doc.specific.unscored`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lighteval.models.model_output import ModelResponse

from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, shorten


@dataclass
class RefusedResponse(ModelResponse):
    """In place of the answer, for a doc without a usable one."""

    reason: str = ""  # a clause ("the processor refuses ...")
    kind: str = "server"  # one of `rows_report.KINDS`


FAILED = ("no_answer", "undecided")  # kinds without a refusal
Refused = tuple[Any, RefusedResponse]  # a doc, and the response in place of its answer


def name_of(doc: Any) -> str:
    """A doc in messages: its task and its id in the source, else its id in LightEval."""
    return f"{doc.task_name}, item {specific_of(doc).get('id', doc.id)}"


def image_of(doc: Any) -> str:
    """The image of a doc in messages: its path in the source, else its file."""
    image = (doc.images or [""])[0]
    return str(specific_of(doc).get("image_path") or (image if isinstance(image, str | Path) else "") or "its image")


def refused_images(tasks: Mapping[str, Any], model: Any, docs: Sequence[Any]) -> list[Refused]:
    """The docs with images that the model or a metric refuses by its method `image_refused(doc)` (a clause, or "")."""
    refused = []
    for doc in docs:
        scorers = [metric.sample_level_fn for metric in tasks[doc.task_name].metrics]
        checks = [check for part in (*scorers, model) if (check := getattr(part, "image_refused", None))]
        if reason := next((reason for check in checks if (reason := check(doc))), ""):
            refused.append((doc, RefusedResponse(reason=reason, kind="image")))
    return refused


def leave_out(
    tasks: dict[str, Any], docs: Sequence[Any], refused: Sequence[Refused]
) -> tuple[list[Any], dict[str, tuple[Any, str]]]:
    """Marks refused docs and the other docs of their items as unscored, and lists them in their tasks' reports.

    Returns the remaining docs, and the tasks without any, removed from `tasks`, each with the reason. Raises a
    CulturevalError where no doc remains.
    """
    kinds = {(doc.task_name, item): response.kind for doc, response in refused if (item := _item_of(doc))}
    known, reason = {id(doc) for doc, _ in refused}, "another statement of its item has no answer"
    remaining = [(doc, kinds.get((doc.task_name, _item_of(doc)))) for doc in docs if id(doc) not in known]
    refused = [*refused, *((doc, RefusedResponse(reason=reason, kind=kind)) for doc, kind in remaining if kind)]
    gone = {id(doc) for doc, _ in refused}
    kept = [doc for doc in docs if id(doc) not in gone]
    left, empty = {doc.task_name for doc in kept}, {}
    for name in dict.fromkeys(doc.task_name for doc, _ in refused):
        of_task = [(doc, response) for doc, response in refused if doc.task_name == name]
        if name not in left:
            first, response = of_task[0]
            empty[name] = f"{image_of(first) if first.images else name_of(first)}: {response.reason}"
        _list_in_report(tasks[name].config, of_task)
        for doc, response in of_task:
            doc.specific = {**specific_of(doc), "unscored": "failed" if response.kind in FAILED else "refused"}
    if empty and not kept:
        named = "; ".join(f"{name} ({reason})" for name, reason in empty.items())
        raise CulturevalError(
            f"No row of {named} can be scored. Mend the cause, then run the same command: it asks these rows again."
        )
    return kept, {name: (tasks.pop(name), f"No row has an answer ({reason}).") for name, reason in empty.items()}


def values_of_unscored(metrics: Sequence[Any], doc: Any) -> dict[str, float | None]:
    """The metrics of a doc without scores, for its details: None, or its weight in the metric."""
    values: dict[str, float | None] = {}
    for metric in metrics:
        names = [metric.metric_name] if isinstance(metric.metric_name, str) else metric.metric_name
        weight = getattr(metric.sample_level_fn, "weight", None)
        values |= dict.fromkeys(names, weight(doc) if weight else None)
    return values


def _item_of(doc: Any) -> str:
    """The item of a doc, where items consist of several docs (`rows_before_shuffle`); else ""."""
    specific = specific_of(doc)
    return specific["item_id"] if "rows_of_task" in specific else ""


def _list_in_report(config: Any, refused: Sequence[Refused]) -> None:
    if not (report := getattr(config, "rows_report", None)):
        return  # a built-in task of LightEval
    rows = []
    for doc, response in refused:
        file, _, number = str(specific_of(doc).get("source_row", "")).rpartition(":")
        place = {"file": file, "row": int(number) if number.isdigit() else number}
        column = {"column": "image", "value": shorten(image_of(doc))} if doc.images else {"item": name_of(doc)}
        rows.append(place | column | {"reason": response.reason, "kind": response.kind})
    moved, counts = len({(row["file"], row["row"]) for row in rows}), report["row_counts"]
    config.rows_report = {
        **report,
        "refused_rows": [*report.get("refused_rows", ()), *rows],
        "row_counts": counts | {"scored": counts["scored"] - moved, "refused": counts.get("refused", 0) + moved},
    }
