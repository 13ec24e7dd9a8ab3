"""Retrieval by dual encoders over the full gallery: LightEval's files, submission files, and the summary."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cultureval.metrics.cvlue.names import GALLERY_SIZES, KS
from cultureval.metrics.cvlue.retrieval import Direction, rank_both_ways
from cultureval.reports.cvlue.table import DUAL_ENCODER
from cultureval.reports.submissions import same_metrics
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.record import ModelRecord, RunRecord, task_records
from cultureval.runs.recording import run_record
from cultureval.runs.scores import Score
from cultureval.runs.signature import signature_record
from cultureval.runs.writing import save_run, write_summary
from cultureval.runtime.errors import counted
from cultureval.runtime.rounding import printed
from cultureval.runtime.signatures import installed_versions
from cultureval.tasks.cvlue.gallery import Gallery

if TYPE_CHECKING:
    import numpy as np

SUBMITTED = 10  # length of ranked lists in a submission file, as required by the contest


class GalleryEncoder(Protocol):
    """A dual encoder, as retrieval needs it.

    Attributes:
        identity: All settings that its embeddings depend on: name, version, dtype, ...
        truncated: Number of truncated texts so far.
    """

    identity: Mapping[str, Any]
    truncated: int

    def encode_images(self, paths: Sequence[str]) -> "np.ndarray":
        """[images, dimensions], of length 1."""

    def encode_texts(self, texts: Sequence[str]) -> "np.ndarray":
        """[texts, dimensions], of length 1."""


def evaluate_retrieval(galleries: Mapping[str, Gallery], encoder: GalleryEncoder, output_dir: Path) -> tuple[str, Path]:
    """Encodes and ranks galleries in both directions and writes results, details and submission files.

    Args:
        galleries: By task name.

    Returns:
        (text, path): the recalls with standard errors, notes and signature of each task; and the file with this text,
        beside the last results file.
    """
    lines: list[str] = []
    path, started = output_dir, time.time()
    for name, gallery in galleries.items():
        images, texts = encoder.encode_images(gallery.images), encoder.encode_texts(gallery.texts)
        directions = rank_both_ways(images, texts, gallery.of_images, gallery.of_texts, SUBMITTED)
        write_submissions(name, gallery, directions, output_dir)
        record = retrieval_record(name, gallery, encoder, started)
        details = {f"{name}|0": details_rows(name, gallery, directions)}
        path, found = save_run(output_dir, str(encoder.identity["name"]), details, record)
        lines += [retrieval_summary(name, gallery, encoder, found[f"{name}|0"])]
        lines += [f"Signature: {record.signatures[0].text}", f"Results: {path.resolve()}"]
    text = "\n".join(lines)
    return text, write_summary(path, text)


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


def details_rows(name: str, gallery: Gallery, directions: Mapping[str, Direction]) -> list[dict[str, Any]]:
    """Rows of LightEval's details, one for each query: the query, its first ten items, its hits."""
    sizes = dict(zip(GALLERY_SIZES, (float(len(gallery.names)), float(len(gallery.texts))), strict=True))
    rows, metrics = [], []
    for direction, queries, items in (("TR", gallery.names, gallery.texts), ("IR", gallery.texts, gallery.names)):
        found = directions[direction]
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
            metrics.append({f"{direction}@{k}": float(found.ranks[place] <= k) for k in KS} | sizes)
    return [row | {"metric": metric} for row, metric in zip(rows, same_metrics(metrics), strict=True)]


def retrieval_record(name: str, gallery: Gallery, encoder: GalleryEncoder, started: float) -> RunRecord:
    """The record of the results file; its rows are the queries of both directions."""
    config = {"rows_report": gallery.report, "effective_num_docs": len(gallery.images) + len(gallery.texts)}
    made = encoder.identity
    signature = signature_record(  # everything that the recalls depend on
        f"{name}|0",
        task=f"{name}/full gallery",
        rows=len(gallery.images),
        rows_hash=gallery.report["fingerprint"],
        model=f"{made['name']}@{str(made['version'])[:8]}",
        dtype=made["dtype"],
        **installed_versions(),
    )
    model = ModelRecord(backend=DUAL_ENCODER, version=made["version"], dtype=made["dtype"])
    return run_record(started, task_records({f"{name}|0": config}, None), [signature], model)


def retrieval_summary(name: str, gallery: Gallery, encoder: GalleryEncoder, scores: Mapping[str, Score]) -> str:
    """The table of recalls, with notes."""
    title = f"\n{name}: {counted(len(gallery.images), 'image')}, {len(gallery.texts)} distinct captions"
    rows = [
        [metric, printed(score.value, 4) + ("" if score.error is None else f" ± {printed(score.error, 4)}")]
        for metric, score in scores.items()
        if metric not in GALLERY_SIZES
    ]
    lines = [terminal_table((), rows, "lr", title, indent=2)]
    lines += [f"{name}: {note}" for note in gallery.report["notes"]]
    if encoder.truncated:
        lines.append(f"{counted(encoder.truncated, 'caption')} longer than the text encoder's limit, truncated.")
    return "\n".join(lines)
