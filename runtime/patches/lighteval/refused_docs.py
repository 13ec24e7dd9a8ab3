"""Docs without a usable answer, such as one whose image the processor refuses: left out of a run, and listed.

Before the first question, docs are taken out whose images have a size that the model's processor refuses, or for which
a metric cannot read the answer: they are unscored in any case, and never stop a run. A doc that a model or its server
refuses when it is asked is answered with a `RefusedResponse`; after the last answer, such docs and responses are taken
out, so that no metric sees them, with the other docs of the same item, where an item is several. Both are added to the
task's report: to its skipped rows with `--bad-rows skip`, else to its refused rows, which the bounds of the scores
count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lighteval.models.model_output import ModelResponse

from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.patches.table import expect, patched
from cultureval.runtime.settings import current_settings


@dataclass
class RefusedResponse(ModelResponse):
    """What stands for the answer to a doc that has none which can be used.

    Attributes:
        reason: A clause that says why ("the processor refuses ...").
        kind: One of `rows_report.KINDS`.
    """

    reason: str = ""
    kind: str = "server"


def name_of(doc: Any) -> str:
    """A doc in messages: its task, and its id in the source where it has one."""
    return f"{doc.task_name}, item {specific_of(doc).get('id', doc.id)}"


def image_of(doc: Any) -> str:
    """The image of a doc in messages: its path in the source where it has one, else its file."""
    given = (doc.images or [""])[0]
    return str(specific_of(doc).get("image_path") or (given if isinstance(given, str | Path) else "") or "its image")


def leave_out_unseen(pipeline: Any) -> None:
    """Takes the docs out of a pipeline whose images are refused for their size, and lists them as `leave_out_refused`.

    Metrics and models say so by a method `image_refused(doc)`, which returns a clause; "" where it is not.
    """
    refused = {}
    for doc in {id(doc): doc for docs in pipeline.sampling_docs.values() for doc in docs}.values():
        asked = [metric.sample_level_fn for metric in pipeline.tasks_dict[doc.task_name].metrics]
        checks = [check for one in (*asked, pipeline.model) if (check := getattr(one, "image_refused", None))]
        if reason := next((reason for check in checks if (reason := check(doc))), ""):
            refused[id(doc)] = (doc, RefusedResponse(reason=reason, kind="image"))
    _leave_out(pipeline, refused, {})


def leave_out_refused(pipeline: Any, outputs: Mapping[Any, list[ModelResponse]]) -> None:
    """Takes the docs that were not asked out of a pipeline, and lists them in the reports of their tasks.

    Tasks of which nothing is left are taken out too; `pipeline.unanswered` has each with the reason. `outputs` are the
    responses by method, in the order of `pipeline.sampling_docs`; changed in place.

    Raises:
        CulturevalError: Nothing is left of any task.
    """
    refused: dict[int, tuple[Any, RefusedResponse]] = {}
    for method, responses in outputs.items():
        for doc, response in zip(pipeline.sampling_docs[method], responses, strict=True):
            if isinstance(response, RefusedResponse):
                refused[id(doc)] = (doc, response)
    _leave_out(pipeline, refused, outputs)


def _leave_out(
    pipeline: Any, refused: Mapping[int, tuple[Any, RefusedResponse]], outputs: Mapping[Any, list[ModelResponse]]
) -> None:
    refused = {**refused, **_of_the_same_items(pipeline, refused)}
    for method, docs in pipeline.sampling_docs.items() if refused else ():
        kept = [place for place, doc in enumerate(docs) if id(doc) not in refused]
        pipeline.sampling_docs[method] = [docs[place] for place in kept]
        if method in outputs:
            outputs[method][:] = [outputs[method][place] for place in kept]
    empty = {}
    for task in dict.fromkeys(doc.task_name for doc, _ in refused.values()):
        own = [(doc, response) for doc, response in refused.values() if doc.task_name == task]
        if not any(doc.task_name == task for docs in pipeline.sampling_docs.values() for doc in docs):
            first, response = own[0]
            named = image_of(first) if first.images else name_of(first)
            empty[task] = f"{named}: {response.reason}"
        _list_in_report(pipeline.tasks_dict[task].config, own)
    if empty and not any(pipeline.sampling_docs.values()):
        named = "; ".join(f"{task} ({reason})" for task, reason in empty.items())
        raise CulturevalError(
            f"No row is left to score of {named}. The same command asks these rows again, once what it names is mended."
        )
    for task, reason in empty.items():
        left_out = pipeline.tasks_dict.pop(task), f"No row has an answer ({reason})."
        vars(pipeline).setdefault("unanswered", {})[task] = left_out


def _of_the_same_items(
    pipeline: Any, refused: Mapping[int, tuple[Any, RefusedResponse]]
) -> dict[int, tuple[Any, RefusedResponse]]:
    """The other docs of items that are several docs, such as M2CQA's of three statements: no score without each."""
    lacking = {(doc.task_name, _item_of(doc)): response.kind for doc, response in refused.values() if _item_of(doc)}
    reason = "another statement of its item has no answer"
    return {
        id(doc): (doc, RefusedResponse(reason=reason, kind=lacking[doc.task_name, _item_of(doc)]))
        for docs in (pipeline.sampling_docs.values() if lacking else ())
        for doc in docs
        if id(doc) not in refused and (doc.task_name, _item_of(doc)) in lacking
    }


def _item_of(doc: Any) -> str:
    """The item that a doc is a part of, where items are several docs (`rows_before_shuffle`); else ""."""
    specific = specific_of(doc)
    return specific["item_id"] if "rows_of_task" in specific else ""


def _list_in_report(config: Any, refused: list[tuple[Any, RefusedResponse]]) -> None:
    if not (report := getattr(config, "rows_report", None)):
        return  # a task of LightEval's own
    rows = []
    for doc, response in refused:
        file, _, number = str(specific_of(doc).get("source_row", "")).rpartition(":")
        place = {"file": file, "row": int(number) if number.isdigit() else number}
        column = {"column": "image", "value": shorten(image_of(doc))} if doc.images else {"item": name_of(doc)}
        rows.append(place | column | {"reason": response.reason, "kind": response.kind})
    moved, counts = len({(row["file"], row["row"]) for row in rows}), report["row_counts"]
    unscored = current_settings().on_refused == "unscored" or current_settings().bad_rows != "skip"
    kept, counted = ("refused_rows", "refused") if unscored else ("skipped_rows", "skipped")
    config.rows_report = {
        **report,
        kept: [*report.get(kept, ()), *rows],
        "row_counts": counts | {"scored": counts["scored"] - moved, counted: counts.get(counted, 0) + moved},
    }


@patched(
    "lighteval",
    "lighteval.pipeline.Pipeline.sampling_docs, _compute_metrics",
    "Docs that a model cannot be asked are left out of the metrics instead of stopping the run.",
)
def _docs_and_responses_are_lists_by_method() -> None:
    import inspect

    from lighteval.pipeline import Pipeline

    source = inspect.getsource(Pipeline._compute_metrics)
    pairs = "zip(self.sampling_docs[sampling_method], model_responses)"
    expect(pairs in source, "LightEval no longer pairs sampling_docs with the responses of each method")
