"""Docs that a model cannot be asked, such as one whose image its processor refuses: left out of a run, and listed.

A model answers such a doc with a `RefusedResponse`. After the last answer, docs and responses of that kind are taken
out, so that no metric sees them, and are added to the skipped rows of the task's report; with `--on-refused unscored`
to its refused rows, which the bounds of the scores count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lighteval.models.model_output import ModelResponse

from cultureval.runtime.doc_specific import specific_of
from cultureval.runtime.errors import CulturevalError, shorten
from cultureval.runtime.patches import Patch, expect
from cultureval.runtime.settings import current_settings


@dataclass
class RefusedResponse(ModelResponse):
    """What stands for the answer to a doc that was not asked.

    Attributes:
        reason: A clause that says why ("the processor refuses ...").
        kind: Who refused: "server" (prompt or images), "filter" (a provider's), or "refusal" (the model).
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


def leave_out_refused(pipeline: Any, outputs: Mapping[Any, list[ModelResponse]]) -> None:
    """Takes the docs that were not asked out of a pipeline, and lists them in the reports of their tasks.

    Args:
        pipeline: LightEval's, between answers and metrics.
        outputs: The responses by method, in the order of `pipeline.sampling_docs`; changed in place.

    Raises:
        CulturevalError: Nothing is left of a task.
    """
    refused: dict[int, tuple[Any, RefusedResponse]] = {}
    for method, responses in outputs.items():
        for doc, response in zip(pipeline.sampling_docs[method], responses, strict=True):
            if isinstance(response, RefusedResponse):
                refused[id(doc)] = (doc, response)
    if not refused:
        return
    for method, responses in outputs.items():
        pairs = zip(pipeline.sampling_docs[method], responses, strict=True)
        kept = [(doc, response) for doc, response in pairs if id(doc) not in refused]
        pipeline.sampling_docs[method] = [doc for doc, _ in kept]
        responses[:] = [response for _, response in kept]
    for task in dict.fromkeys(doc.task_name for doc, _ in refused.values()):
        own = [(doc, response) for doc, response in refused.values() if doc.task_name == task]
        if not any(doc.task_name == task for docs in pipeline.sampling_docs.values() for doc in docs):
            first, response = own[0]
            named = image_of(first) if first.images else name_of(first)
            raise CulturevalError(f"{task}: no row is left to score; {named}: {response.reason}.")
        _list_in_report(pipeline.tasks_dict[task].config, own)


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
    unscored = current_settings().on_refused == "unscored"
    kept, counted = ("refused_rows", "refused") if unscored else ("skipped_rows", "skipped")
    config.rows_report = {
        **report,
        kept: [*report.get(kept, ()), *rows],
        "row_counts": counts | {"scored": counts["scored"] - moved, counted: counts.get(counted, 0) + moved},
    }


def _docs_and_responses_are_lists_by_method() -> None:
    import inspect

    from lighteval.pipeline import Pipeline

    source = inspect.getsource(Pipeline._compute_metrics)
    pairs = "zip(self.sampling_docs[sampling_method], model_responses)"
    expect(pairs in source, "LightEval no longer pairs sampling_docs with the responses of each method")


PATCHES = (
    Patch(
        "lighteval",
        "lighteval.pipeline.Pipeline.sampling_docs, _compute_metrics",
        "Docs that a model cannot be asked are left out of the metrics instead of stopping the run.",
        ("0.13.0",),
        _docs_and_responses_are_lists_by_method,
    ),
)
