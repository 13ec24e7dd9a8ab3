"""Score CVLUE's submission files against its gold files: one record of scores per item.

Two official formats are read: the 2024 contest's and the current one. They differ only in visual dialogue: the gold
is a plain list or under `data`; the ranking is `answer_sort` of the record or of its dialogue's last round. The
official scorers pair gold and prediction by position. Here they are joined by id, and the first mismatch is an
error.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.metrics.cvlue.grounding import iou
from cultureval.metrics.cvlue.names import KS, MACRO, VQA_MODES
from cultureval.metrics.cvlue.retrieval import list_ranks
from cultureval.metrics.cvlue.vqa import cvlue_correct
from cultureval.runtime.errors import CulturevalError, shorten

Record = Mapping[str, Any]


@dataclass(frozen=True)
class ScoredItem:
    """The scores of one item by metric, and the path of its image, which determines its category."""

    image: str
    scores: dict[str, float]


def read_json(path: Path) -> Any:
    """The content of a JSON file; CulturevalError if it cannot be read."""
    if not path.is_file():
        raise CulturevalError(f"{path} does not exist.")
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise CulturevalError(f"{path} cannot be read as JSON: {error}") from error


def vqa_items(gold: Any, pred: Any) -> list[ScoredItem]:
    """Scores of visual question answering: `accuracy_loose`, `accuracy_strict`, `accuracy_exact`.

    Args:
        gold: The list of `image`, `question_id`, `question`, `answer`.
        pred: The same list with the predicted answers, in any order; null is a wrong answer.

    Raises:
        CulturevalError: Records that are missing, extra, duplicated or not in the format; likewise of the others.
    """
    items = []
    for number, right, predicted in _joined(gold, pred, ("question_id",), "answer"):
        answer, expected = predicted["answer"], right.get("answer")
        if not isinstance(expected, str) or not isinstance(answer, str | None):
            raise CulturevalError(f"question_id {number}: the answer {shorten(answer)} or its gold is not text.")
        scores = {f"accuracy_{mode}": float(cvlue_correct(answer, expected, mode)) for mode in VQA_MODES}
        items.append(ScoredItem(_image(right), scores))
    return items


def vg_items(gold: Any, pred: Any) -> list[ScoredItem]:
    """Scores of visual grounding: `iou` (the released scorer's), `iou_continuous`, `acc@0.5`, `unpredicted`.

    Args:
        gold: The list of `ref_id`, `image`, `text`, `bbox`.
        pred: The same list with the predicted boxes, in any order; [] or null if there is none.
    """
    items = []
    for number, right, predicted in _joined(gold, pred, ("ref_id",), "bbox"):
        box, expected = predicted["bbox"], right.get("bbox")
        try:
            official, continuous = iou(box, expected), iou(box, expected, "continuous")  # type: ignore[arg-type]
        except (ValueError, TypeError) as error:
            raise CulturevalError(f"ref_id {number}: {error}.") from error
        # As in the released readme: official IoU above 0.5.
        scores = {"iou": official, "iou_continuous": continuous, "acc@0.5": float(official > 0.5)}
        items.append(ScoredItem(_image(right), scores | {"unpredicted": float(not box)}))
    return items


def vd_items(gold: Any, pred: Any) -> list[ScoredItem]:
    """Scores of visual dialogue: `R@1`, `R@5`, `R@10`, `MRR`, `mean_rank` of the gold answer in the given order.

    Args:
        gold: The list of `image_id`, `question`, `answer_options`, `answer`, as a plain list or under `data`.
        pred: Records with `image_id`, `dialog_id` or `question`, and `answer_sort`; the last two may be in the last
            round of `dialog`.
    """
    records = _records(gold.get("data") if isinstance(gold, Mapping) else gold, "gold")
    flat = [_last_round(record) for record in _records(pred, "prediction")]
    # The contest's records have no dialog_id: there the question identifies a round.
    numbered = all("dialog_id" in record for record in (*records, *flat))
    key = ("image_id", "dialog_id" if numbered else "question")
    items = []
    for number, right, predicted in _joined(records, flat, key, "answer_sort"):
        order, options = predicted["answer_sort"], right.get("answer_options")
        if predicted.get("question", right.get("question")) != right.get("question"):
            raise CulturevalError(
                f"{', '.join(key)} {number}: the prediction answers another question, {predicted['question']!r}."
            )
        if not isinstance(order, list) or not isinstance(options, list) or sorted(order) != sorted(options):
            raise CulturevalError(
                f"{', '.join(key)} {number}: answer_sort must have each of the answer_options once, as integers."
            )
        if right.get("answer") not in order:
            raise CulturevalError(
                f"{', '.join(key)} {number}: the gold answer {right.get('answer')!r} is not among the options."
            )
        rank = order.index(right["answer"]) + 1
        scores = {f"R@{k}": float(rank <= k) for k in KS} | {"MRR": 1 / rank, "mean_rank": float(rank)}
        items.append(ScoredItem(_image(right), scores))
    return items


def _last_round(record: Record) -> Record:
    """A record of the contest's format, flattened to the current one."""
    rounds = record.get("dialog")
    if "answer_sort" in record or not isinstance(rounds, list) or not rounds or not isinstance(rounds[-1], Mapping):
        return record
    return {**record, **rounds[-1]}


def itr_items(gold: Any, pred: Sequence[Any]) -> list[ScoredItem]:
    """Scores of image-text retrieval: `TR@1` ... for image queries, `IR@1` ... for caption queries.

    A caption belongs to the category of its first gold image (the released scorer takes the majority of the predicted
    images' categories).

    Args:
        gold: The list of `image` and its `caption` strings.
        pred: One or two objects, distinguished by their keys: image path to ranked captions, caption to ranked image
            paths. An unknown caption is also tried with commas in place of whitespace, as in the official scorer.

    Raises:
        CulturevalError: Queries that are missing, extra or duplicated, or two objects of the same direction.
    """
    captions: dict[str, list[str]] = {}
    images: dict[str, list[str]] = {}
    for record in _records(gold, "gold"):
        image, texts = _image(record), record.get("caption")
        if (
            image in captions
            or not isinstance(texts, list)
            or not texts
            or not all(isinstance(text, str) for text in texts)
        ):
            raise CulturevalError(f"The gold file's image {image!r} is duplicated, or its caption is no list of texts.")
        captions[image] = texts
        for text in dict.fromkeys(texts):
            images.setdefault(text, []).append(image)
    items, directions = [], set()
    for rankings in pred:
        direction, ranked = _direction(rankings, captions, images)
        if direction in directions:
            raise CulturevalError(f"Two of the prediction files rank for {direction}; give one for TR and one for IR.")
        directions.add(direction)
        for query, rank in list_ranks(ranked, captions if direction == "TR" else images).items():
            scores = {f"{direction}@{k}": float(rank is not None and rank <= k) for k in KS}
            items.append(ScoredItem(query if direction == "TR" else images[query][0], scores))
    return items


def _direction(
    rankings: Any, captions: Mapping[str, Any], images: Mapping[str, Any]
) -> tuple[str, dict[str, list[str]]]:
    """The direction of an object of rankings, and its rankings by gold query."""
    if not isinstance(rankings, Mapping) or not all(isinstance(ranked, list) for ranked in rankings.values()):
        raise CulturevalError("A prediction file of retrieval must be an object of ranked lists.")
    if any(query in captions for query in rankings):
        _require_same(captions, rankings, "image")
        return "TR", dict(rankings)
    pairs = [(query if query in images else ",".join(query.split()), ranked) for query, ranked in rankings.items()]
    repaired = dict(pairs)
    if len(repaired) < len(pairs):
        raise CulturevalError("A caption is duplicated in the prediction file, with commas or with spaces.")
    _require_same(images, repaired, "caption")
    return "IR", repaired


def macro_average(scores: Mapping[str, Mapping[str, float]], numbers: Mapping[str, Sequence[str]] = MACRO) -> float:
    """The contest's macro-average: the mean of eleven numbers with equal weights, 0 to 1.

    Args:
        scores: By task (`itr`, `vqa`, `vg`, `vd`) the means by metric.
        numbers: The metrics: `MACRO` (the released scorers') or `CONTEST` (exact answers, continuous IoU).
    """
    if not scores:
        raise ValueError("there is no score")
    values = [scores[task][name] for task, names in numbers.items() for name in names]
    return sum(values) / len(values)


def _records(content: Any, which: str) -> list[Record]:
    if not isinstance(content, list) or not content or not all(isinstance(record, Mapping) for record in content):
        raise CulturevalError(f"The {which} file must be a non-empty list of objects.")
    return content


def _joined(gold: Any, pred: Any, key: Sequence[str], answer: str) -> Iterator[tuple[Any, Record, Record]]:
    """(id, gold, prediction) in the gold's order.

    Args:
        key: The fields of a record's id.
        answer: The field of a prediction with the answer.
    """
    golds, preds = (
        _by_key(_records(content, which), which, key) for content, which in ((gold, "gold"), (pred, "prediction"))
    )
    _require_same(golds, preds, ", ".join(key))
    for number, right in golds.items():
        predicted = preds[number]
        if answer not in predicted:
            raise CulturevalError(f"The prediction of {', '.join(key)} {number!r} has no {answer!r}.")
        if predicted.get("image", right.get("image")) != right.get("image"):
            raise CulturevalError(f"{', '.join(key)} {number!r} is of another image in the prediction.")
        yield number, right, predicted


def _by_key(records: Sequence[Record], which: str, key: Sequence[str]) -> dict[Any, Record]:
    table: dict[Any, Record] = {}
    for record in records:
        if not all(isinstance(record.get(name), int | str) for name in key):
            problem = f"has no {', '.join(key)} as integer or text"
            raise CulturevalError(f"A record of the {which} file {problem}: {shorten(dict(record))}.")
        number = record[key[0]] if len(key) == 1 else tuple(record[name] for name in key)
        if number in table:
            raise CulturevalError(f"{', '.join(key)} {number!r} is duplicated in the {which} file.")
        table[number] = record
    return table


def _require_same(gold: Mapping[Any, Any], pred: Mapping[Any, Any], name: str) -> None:
    missing = [number for number in gold if number not in pred]
    extra = [number for number in pred if number not in gold]
    if missing or extra:
        found = [(missing, "missing from the predictions"), (extra, "in the predictions but not in the gold file")]
        parts = [f"{len(ids)} {problem} (such as {ids[0]!r})" for ids, problem in found if ids]
        raise CulturevalError(f"The files do not have the same {name}s: {' and '.join(parts)}.")


def _image(record: Record) -> str:
    if not isinstance(record.get("image"), str):
        raise CulturevalError(f"The image of a gold record is not text: {shorten(dict(record))}.")
    return record["image"]
