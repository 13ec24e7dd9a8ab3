"""Docs without a usable answer, such as one whose image the processor refuses: left out of a run, and listed.

Some are known before the first question, by the sizes of their images; others a model or its server refuses when it is
asked, and answers with a `RefusedResponse`. No metric sees them, nor the other docs of the same item. The report of the
task lists them: among its skipped rows with `--bad-rows skip`, else among its refused rows, which are in the details
without scores, and `doc.specific.unscored` is "refused" or "failed".
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
    """What stands for the answer to a doc that has none which can be used."""

    reason: str = ""  # a clause that says why ("the processor refuses ...")
    kind: str = "server"  # one of `rows_report.KINDS`


FAILED = ("no_answer", "undecided")  # kinds of which nobody refused anything
Refused = tuple[Any, RefusedResponse]  # a doc, and what stands for its answer


def name_of(doc: Any) -> str:
    """A doc in messages: its task, and its id in the source where it has one."""
    return f"{doc.task_name}, item {specific_of(doc).get('id', doc.id)}"


def image_of(doc: Any) -> str:
    """The image of a doc in messages: its path in the source where it has one, else its file."""
    given = (doc.images or [""])[0]
    return str(specific_of(doc).get("image_path") or (given if isinstance(given, str | Path) else "") or "its image")


def unseen(tasks: Mapping[str, Any], model: Any, docs: Sequence[Any]) -> list[Refused]:
    """The docs whose images the model or a metric refuses, by a method `image_refused(doc)` (a clause, or "")."""
    refused = []
    for doc in docs:
        asked = [metric.sample_level_fn for metric in tasks[doc.task_name].metrics]
        checks = [check for one in (*asked, model) if (check := getattr(one, "image_refused", None))]
        if reason := next((reason for check in checks if (reason := check(doc))), ""):
            refused.append((doc, RefusedResponse(reason=reason, kind="image")))
    return refused


def leave_out(
    tasks: dict[str, Any], docs: Sequence[Any], refused: Sequence[Refused]
) -> tuple[list[Any], dict[str, tuple[Any, str]]]:
    """Lists refused docs, and the others of their items, in the reports of their tasks, and marks them as unscored.

    Returns the docs that are left, and the tasks (taken out of `tasks`) that have none, each with the reason; raises a
    CulturevalError where no doc is left at all.
    """
    lacking = {(doc.task_name, item): response.kind for doc, response in refused if (item := _item_of(doc))}
    known, reason = {id(doc) for doc, _ in refused}, "another statement of its item has no answer"
    others = [(doc, lacking.get((doc.task_name, _item_of(doc)))) for doc in docs if id(doc) not in known]
    refused = [*refused, *((doc, RefusedResponse(reason=reason, kind=kind)) for doc, kind in others if kind)]
    gone = {id(doc) for doc, _ in refused}
    kept = [doc for doc in docs if id(doc) not in gone]
    left, empty = {doc.task_name for doc in kept}, {}
    for name in dict.fromkeys(doc.task_name for doc, _ in refused):
        own = [(doc, response) for doc, response in refused if doc.task_name == name]
        if name not in left:
            first, response = own[0]
            empty[name] = f"{image_of(first) if first.images else name_of(first)}: {response.reason}"
        _list_in_report(tasks[name].config, own)
        for doc, response in own:
            doc.specific = {**specific_of(doc), "unscored": "failed" if response.kind in FAILED else "refused"}
    if empty and not kept:
        named = "; ".join(f"{name} ({reason})" for name, reason in empty.items())
        raise CulturevalError(
            f"No row is left to score of {named}. The same command asks these rows again, once what it names is mended."
        )
    return kept, {name: (tasks.pop(name), f"No row has an answer ({reason}).") for name, reason in empty.items()}


def values_of_unscored(metrics: Sequence[Any], doc: Any) -> dict[str, float | None]:
    """What the details have of a doc without scores: None of each metric, and how often it counts in it."""
    values: dict[str, float | None] = {}
    for metric in metrics:
        names = [metric.metric_name] if isinstance(metric.metric_name, str) else metric.metric_name
        weight = getattr(metric.sample_level_fn, "weight", None)
        values |= dict.fromkeys(names, weight(doc) if weight else None)
    return values


def _item_of(doc: Any) -> str:
    """The item that a doc is a part of, where items are several docs (`rows_before_shuffle`); else ""."""
    specific = specific_of(doc)
    return specific["item_id"] if "rows_of_task" in specific else ""


def _list_in_report(config: Any, refused: Sequence[Refused]) -> None:
    if not (report := getattr(config, "rows_report", None)):
        return  # a task of LightEval's own
    rows = []
    for doc, response in refused:
        file, _, number = str(specific_of(doc).get("source_row", "")).rpartition(":")
        place = {"file": file, "row": int(number) if number.isdigit() else number}
        column = {"column": "image", "value": shorten(image_of(doc))} if doc.images else {"item": name_of(doc)}
        rows.append(place | column | {"reason": response.reason, "kind": response.kind})
    moved, counts = len({(row["file"], row["row"]) for row in rows}), report["row_counts"]
    kept, counted = "refused_rows", "refused"
    config.rows_report = {
        **report,
        kept: [*report.get(kept, ()), *rows],
        "row_counts": counts | {"scored": counts["scored"] - moved, counted: counts.get(counted, 0) + moved},
    }
