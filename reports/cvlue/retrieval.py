"""Retrieval by dual encoders over the full gallery: LightEval's files, submission files, and the summary."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cultureval.metrics.cvlue.names import GALLERY_SIZES, KS, RECALLS
from cultureval.metrics.cvlue.retrieval import Direction, pairs_at_the_top, rank_both_ways, recalls, reranked
from cultureval.reports.cvlue.table import DUAL_ENCODER
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.record import ModelRecord, RunRecord, SignatureRecord
from cultureval.runs.recording import run_record
from cultureval.runs.signature import signature_record
from cultureval.runs.task_records import task_records
from cultureval.runs.writing import (
    content_of_tasks,
    date_of_now,
    write_details,
    write_results,
    write_summary,
)
from cultureval.runtime.errors import counted
from cultureval.runtime.rounding import printed
from cultureval.runtime.signatures import installed_versions
from cultureval.tasks.cvlue.gallery import Gallery, match_docs

if TYPE_CHECKING:
    import numpy as np

SUBMITTED = 10  # length of ranked lists in a submission file, as required by the contest


class GalleryEncoder(Protocol):
    """A dual encoder, as retrieval needs it.

    Attributes:
        identity: Everything that its embeddings depend on: name, version, dtype, ...
        truncated: Number of truncated texts so far.
    """

    identity: Mapping[str, Any]
    truncated: int

    def encode_images(self, paths: Sequence[str]) -> "np.ndarray":
        """[images, dimensions], of length 1."""

    def encode_texts(self, texts: Sequence[str]) -> "np.ndarray":
        """[texts, dimensions], of length 1."""


class Reranking(NamedTuple):
    """Reranking of the first items.

    Attributes:
        model: The vision-language model, as for `cultureval eval`.
        top_k: Number of items to rerank.
        load: Loads the model, which has LightEval's `loglikelihood`.
    """

    model: str
    top_k: int
    load: Callable[[str], Any]


def evaluate_retrieval(
    galleries: Mapping[str, Gallery], encoder: GalleryEncoder, output_dir: Path, reranking: Reranking | None
) -> tuple[str, Path]:
    """Encodes and ranks galleries in both directions and writes results, details and submission files.

    Args:
        galleries: By task name.
        reranking: Adds metrics named `_reranked`; None keeps the encoder's ranking.

    Returns:
        (text, path): the recalls with their standard errors, notes, and the signature of each task; and the file that
        holds the text, beside the last results file.
    """
    lines: list[str] = []
    path, started = output_dir, time.time()
    for name, gallery in galleries.items():
        images, texts = encoder.encode_images(gallery.images), encoder.encode_texts(gallery.texts)
        kept = max(SUBMITTED, reranking.top_k if reranking else 0)
        directions = rank_both_ways(images, texts, gallery.of_images, gallery.of_texts, kept)
        scores = recalls(directions)
        if reranking:
            pairs = pairs_at_the_top(directions, reranking.top_k)
            directions = reranked(directions, reranking.top_k, pairs, match_probabilities(gallery, pairs, reranking))
            scores |= recalls(directions, "_reranked")
        scores |= {"gallery_images": float(len(gallery.images)), "gallery_captions": float(len(gallery.texts))}
        write_submissions(name, gallery, directions, output_dir)
        model, date = str(encoder.identity["name"]), date_of_now()
        write_details(output_dir, model, date, f"{name}|0", details_rows(name, gallery, directions))
        record = retrieval_record(name, gallery, encoder, reranking, started)
        model_config = {"model_name": model, **encoder.identity, "rerank": reranking and reranking.model}
        config = {"name": name, "rows_report": gallery.report, "truncated_texts": encoder.truncated}
        content = content_of_tasks({f"{name}|0": scores}, model_config, {f"{name}|0": config})
        path = write_results(output_dir, model, date, content, record)
        lines += [retrieval_summary(name, gallery, encoder, scores), f"Signature: {record.signatures[0].text}"]
        lines.append(f"Results: {path.resolve()}")
    text = "\n".join(lines)
    return text, write_summary(path, text)


def match_probabilities(gallery: Gallery, pairs: Sequence[tuple[int, int]], reranking: Reranking) -> list[float]:
    """The probability of yes against no, of each pair of image and caption, by a vision-language model.

    Args:
        pairs: Their indices; pairs of one image should be adjacent.
    """
    import numpy as np

    model, docs = reranking.load(reranking.model), match_docs(gallery, pairs)
    logprobs = np.array([response.logprobs for response in model.loglikelihood(docs)])
    return (1 / (1 + np.exp(logprobs[:, 1] - logprobs[:, 0]))).tolist()


def write_submissions(name: str, gallery: Gallery, directions: Mapping[str, Direction], output_dir: Path) -> None:
    """Ranked lists of ten in the official format, for `cultureval score cvlue-itr` or the data's authors."""
    folder = output_dir / "submissions" / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, queries, items, top in (
        ("i2t_submit.json", gallery.names, gallery.texts, directions["TR"].top),
        ("t2i_submit.json", gallery.texts, gallery.names, directions["IR"].top),
    ):
        ranked = {query: [items[place] for place in row[:SUBMITTED]] for query, row in zip(queries, top, strict=True)}
        (folder / file).write_text(json.dumps(ranked, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def details_rows(name: str, gallery: Gallery, directions: Mapping[str, Direction]) -> Any:
    """Rows of LightEval's details, one per query: the query, its first ten items, its hits."""
    import pyarrow

    rows = []
    for direction, queries, items in (("TR", gallery.names, gallery.texts), ("IR", gallery.texts, gallery.names)):
        found = directions[direction]
        for place, query in enumerate(queries):
            image = query if direction == "TR" else gallery.names[found.correct[place][0]]  # with its captions
            shown = [int(item) for item in found.top[place, :SUBMITTED]]
            doc = {
                "query": query,
                "task_name": f"{name}|0",
                "choices": [items[item] for item in shown],
                "gold_index": [rank for rank, item in enumerate(shown) if item in set(found.correct[place])],
                "specific": {"id": query, "direction": direction, "cluster": image},
            }
            rank = int(found.ranks[place])
            metric = dict.fromkeys(RECALLS) | {f"{direction}@{k}": float(rank <= k) for k in KS} | {"rank": rank}
            rows.append({"doc": doc, "metric": metric, "model_response": {"text": [items[shown[0]]]}})
    return pyarrow.Table.from_pylist(rows)


def retrieval_record(
    name: str, gallery: Gallery, encoder: GalleryEncoder, reranking: Reranking | None, started: float
) -> RunRecord:
    """The record of the run, for the results file; its items are images, its rows the queries of both directions."""
    queries = {"TR": len(gallery.images), "IR": len(gallery.texts)}
    counts = {"rows": sum(queries.values()), "items": len(gallery.images)}
    suffixes = ("", "_reranked") if reranking else ("",)
    of_metric = {f"{metric}{suffix}": queries[metric[:2]] for metric in RECALLS for suffix in suffixes}
    of_metric |= dict(zip(GALLERY_SIZES, queries.values(), strict=True))
    records = task_records({f"{name}|0": {"rows_report": gallery.report}}, None)
    made = encoder.identity
    settings = {"rerank": reranking.model, "top_k": reranking.top_k} if reranking else {}
    return run_record(
        started,
        {task: one.model_copy(update=counts | {"counted": of_metric}) for task, one in records.items()},
        [retrieval_signature(name, gallery, encoder, reranking)],
        ModelRecord(backend=DUAL_ENCODER, version=made["version"], dtype=made["dtype"], settings=settings),
    )


def retrieval_signature(
    name: str, gallery: Gallery, encoder: GalleryEncoder, reranking: Reranking | None
) -> SignatureRecord:
    """Everything that the recalls depend on."""
    return signature_record(
        f"{name}|0",
        task=f"{name}/full gallery",
        captions="by index" if gallery.by_index else None,
        rows=len(gallery.images),
        rows_hash=gallery.report["fingerprint"],
        model=f"{encoder.identity['name']}@{str(encoder.identity['version'])[:8]}",
        dtype=encoder.identity["dtype"],
        rerank=f"{reranking.model}, first {reranking.top_k}" if reranking else None,
        **installed_versions(),
    )


def retrieval_summary(name: str, gallery: Gallery, encoder: GalleryEncoder, scores: Mapping[str, float]) -> str:
    """The table, and notes."""
    kind = "captions" if gallery.by_index else "distinct captions"
    title = f"\n{name}: {counted(len(gallery.images), 'image')}, {len(gallery.texts)} {kind}"
    rows = [
        [metric, f"{printed(value, 4)} ± {printed(scores[f'{metric}_stderr'], 4)}"]
        for metric, value in scores.items()
        if "gallery" not in metric and not metric.endswith("_stderr")
    ]
    lines = [terminal_table((), rows, "lr", title, indent=2)]
    lines += [f"{name}: {note}" for note in gallery.report["notes"]]
    if encoder.truncated:
        lines.append(f"{counted(encoder.truncated, 'caption')} longer than the text encoder's limit, truncated.")
    return "\n".join(lines)
