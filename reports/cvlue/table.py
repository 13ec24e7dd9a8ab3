"""CVLUE's tables, as the paper's Table 10: a row for each task, a table for each language, the macro-average.

The macro-average is that of CVLUE's contest: eleven numbers of the four Chinese tasks with equal weights.
Ours: generative models retrieve from small galleries; a note below the table gives their size.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cultureval.metrics.cvlue.grounding import FAMILIES, RESIZED, iou, parse_boxes
from cultureval.metrics.cvlue.names import KS, MACRO
from cultureval.runs.files import read_details
from cultureval.runs.loading import Run
from cultureval.runs.rows import saved_reply
from cultureval.runs.table import Mean, Numbers, Place, ScoreNames, Table, equal, published_model, published_rows
from cultureval.runtime.doc_fields import specific_of

SUITE = "cvlue"
PUBLISHED = Path(__file__).with_name("published.csv")
DIGITS = 1  # as in the paper
DUAL_ENCODER = "dual encoder"  # the backend in records of dual encoders
RECALLS = {direction: {f"{direction}@{k}": f"@{k}" for k in KS} for direction in ("TR", "IR", "R")}
MACRO_PARTS = equal((f"cvlue_{task}", metric) for task, metrics in MACRO.items() for metric in metrics)
MAIN = ("Macro", "score")
# Row -> (the group's name after `cvlue_` or `cvlue_en_`, its metrics with their columns), as the paper's table.
Shown = Mapping[str, tuple[str, Mapping[str, str]]]
ROWS: Shown = {
    "VQA, accuracy": ("vqa", {"accuracy_loose": "score"}),
    "VG, mean IoU": ("vg", {"iou": "score"}),
    "VD, recall": ("vd", RECALLS["R"]),
    "TR, recall": ("itr", RECALLS["TR"]),
    "IR, recall": ("itr", RECALLS["IR"]),
}
ENGLISH_ROWS: Shown = {**ROWS, "VQA, accuracy": ("vqa", {"vqa_accuracy": "score"})}
OTHER_SPLITS = {
    "cvlue": "The paper's numbers are of a test split that was not released.",
    "cvlue_en": "The paper's numbers for VQA v2 and VisDial are of their test splits.",
}
MOST_ROWS = 500  # of a grounding task that are read in other formats
TRIED = [name for name, family in FAMILIES.items() if family.scale != RESIZED and family.syntax != "patches"]
NEEDED = ("size", "box", "box_format")  # fields of `doc.specific` with which boxes can be read again
BETTER = 0.15  # the gain in mean IoU from which a note names another format


def tables(score_names: ScoreNames) -> list[Table]:
    """The Chinese tasks with their macro-average, and their English counterparts."""
    numbers = published_numbers()
    chinese = _cells("cvlue", ROWS) | {MAIN: Mean(MACRO_PARTS, 100, DIGITS, ours=True)}
    english, unit = _cells("cvlue_en", ENGLISH_ROWS), "percent; VQA v2 val, RefCOCOg, VisDial 1.0 val, COCO 5K"
    notes: dict[str, Callable[[Run, int], list[str]]] = {name: partial(_notes, prefix=name) for name in OTHER_SPLITS}
    return [
        Table("CVLUE, Chinese", chinese, "percent", MAIN, published=numbers, notes=notes["cvlue"]),
        Table("CVLUE, English counterparts", english, unit, published=numbers, notes=notes["cvlue_en"]),
    ]


def published_numbers() -> dict[str, Numbers]:
    """Model -> its numbers in Table 10, by task and metric."""
    return {
        row.pop("model"): {tuple(key.split(":")): float(cell) for key, cell in row.items() if cell}  # type: ignore[misc]
        for row in map(dict, published_rows(PUBLISHED))
    }


def _cells(prefix: str, shown: Shown) -> dict[Place, Mean]:
    return {
        (label, column): Mean({(f"{prefix}_{part}", metric): 1.0}, 100, DIGITS)
        for label, (part, metrics) in shown.items()
        for metric, column in metrics.items()
    }


def _notes(run: Run, shots: int, prefix: str) -> list[str]:
    """Notes on gallery sizes, box formats, and the split of the paper's numbers."""
    notes: list[str] = []
    images = run.scores.get(f"{prefix}_itr|{shots}", {}).get("gallery_images")
    if images is not None and run.record.model.backend != DUAL_ENCODER:
        notes = [f"TR, IR: retrieval in galleries of {images.value:.3g} images; the paper's is the whole test split."]
    if details := run.details.get(f"{prefix}_vg|{shots}"):
        rows = read_details(details, ["doc.specific", "model_response", "metric.iou"]).slice(0, MOST_ROWS).to_pylist()
        notes += [f"VG: {hint}" for hint in box_hints(rows)]
    model = published_model(run.model, published_numbers())
    quoted = model and any(task.startswith(f"{prefix}_v") for task, _ in published_numbers()[model])
    return [*notes, OTHER_SPLITS[prefix]] if quoted else notes


def box_hints(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence if boxes overlap far more with the gold boxes when read in another format.

    Formats in pixels of a resized image are not tried: loading their sizes takes seconds.

    Args:
        rows: Rows of the details of a grounding task; rows of a submission have no boxes to read.
    """
    rows = [row for row in rows if all(specific_of(row.get("doc") or {}).get(name) for name in NEEDED)]
    rows = [row for row in rows if (row.get("metric") or {}).get("iou") is not None]
    if not rows:
        return []
    overlap = sum(row["metric"]["iou"] for row in rows) / len(rows)
    overlaps = {family: _mean_iou(rows, family) for family in TRIED} if overlap < 1 - BETTER else {}
    best = max(overlaps, key=lambda family: overlaps[family], default="")
    if not best or overlaps[best] < overlap + BETTER:
        return []
    used = specific_of(rows[0]["doc"])["box_format"]
    found = f"Mean IoU is {overlap:.2f} with boxes read as {used}, and {overlaps[best]:.2f} with boxes read as {best}"
    return [f"{found}: run again with --task-args box_format={best}."]


def _mean_iou(rows: Sequence[Mapping[str, Any]], family: str) -> float:
    total = 0.0
    for row in rows:
        specific = specific_of(row["doc"])
        width, height = specific["size"]
        try:
            boxes = parse_boxes(saved_reply(row["model_response"]), family, (width, height))
        except ValueError:  # numbers that are no box
            continue
        total += iou(boxes[0], specific["box"]) if boxes else 0.0
    return total / len(rows)
