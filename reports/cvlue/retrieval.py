"""Retrieval by dual encoders over the full gallery: LightEval's files, submission files, and the summary."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cultureval.metrics.cvlue.names import GALLERY_SIZES, KS
from cultureval.metrics.cvlue.retrieval import Direction, pairs_at_the_top, rank_both_ways, reranked
from cultureval.reports.cvlue.table import DUAL_ENCODER
from cultureval.reports.submissions import same_metrics
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.record import ModelRecord, RunRecord, SignatureRecord, task_records
from cultureval.runs.recording import run_record
from cultureval.runs.scores import Score
from cultureval.runs.signature import signature_record
from cultureval.runs.writing import save_run, write_summary
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
        found = {"": directions}
        if reranking:
            pairs = pairs_at_the_top(directions, reranking.top_k)
            directions = reranked(directions, reranking.top_k, pairs, match_probabilities(gallery, pairs, reranking))
            found["_reranked"] = directions
        write_submissions(name, gallery, directions, output_dir)
        record = retrieval_record(name, gallery, encoder, reranking, started)
        details = {f"{name}|0": details_rows(name, gallery, found)}
        path, found_scores = save_run(output_dir, str(encoder.identity["name"]), details, record)
        scores = found_scores[f"{name}|0"]
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


def details_rows(name: str, gallery: Gallery, ranked: Mapping[str, Mapping[str, Direction]]) -> list[dict[str, Any]]:
    """Rows of LightEval's details, one per query: the query, its first ten items, its hits.

    Args:
        ranked: Suffix of the metrics ("" and "_reranked") -> directions; the last has the items that are shown.
    """
    shown = list(ranked.values())[-1]
    rows, metrics = [], []
    for direction, queries, items in (("TR", gallery.names, gallery.texts), ("IR", gallery.texts, gallery.names)):
        found = shown[direction]
        for place, query in enumerate(queries):
            image = query if direction == "TR" else gallery.names[found.correct[place][0]]  # with its captions
            first = [int(item) for item in found.top[place, :SUBMITTED]]
            doc = {
                "query": query,
                "task_name": f"{name}|0",
                "choices": [items[item] for item in first],
                "gold_index": [rank for rank, item in enumerate(first) if item in set(found.correct[place])],
                "specific": {"id": query, "direction": direction, "cluster": image},
            }
            rows.append({"doc": doc, "model_response": {"text": [items[first[0]]]}})
            ranks = {suffix: int(of_one[direction].ranks[place]) for suffix, of_one in ranked.items()}
            metric = {f"{direction}@{k}{end}": float(rank <= k) for end, rank in ranks.items() for k in KS}
            sizes = (len(gallery.names), len(gallery.texts))
            metrics.append(metric | dict(zip(GALLERY_SIZES, map(float, sizes), strict=True)))
    return [row | {"metric": metric} for row, metric in zip(rows, same_metrics(metrics), strict=True)]


def retrieval_record(
    name: str, gallery: Gallery, encoder: GalleryEncoder, reranking: Reranking | None, started: float
) -> RunRecord:
    """The record of the run, for the results file; its rows are the queries of both directions."""
    config = {"rows_report": gallery.report, "effective_num_docs": len(gallery.images) + len(gallery.texts)}
    made = encoder.identity
    settings = {"rerank": reranking.model, "top_k": reranking.top_k} if reranking else {}
    return run_record(
        started,
        task_records({f"{name}|0": config}, None),
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


def retrieval_summary(name: str, gallery: Gallery, encoder: GalleryEncoder, scores: Mapping[str, Score]) -> str:
    """The table, and notes."""
    kind = "captions" if gallery.by_index else "distinct captions"
    title = f"\n{name}: {counted(len(gallery.images), 'image')}, {len(gallery.texts)} {kind}"
    rows = [
        [metric, printed(one.value, 4) + ("" if one.error is None else f" ± {printed(one.error, 4)}")]
        for metric, one in scores.items()
        if metric not in GALLERY_SIZES
    ]
    lines = [terminal_table((), rows, "lr", title, indent=2)]
    lines += [f"{name}: {note}" for note in gallery.report["notes"]]
    if encoder.truncated:
        lines.append(f"{counted(encoder.truncated, 'caption')} longer than the text encoder's limit, truncated.")
    return "\n".join(lines)
