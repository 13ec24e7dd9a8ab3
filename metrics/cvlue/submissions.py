"""Score CVLUE's submission files against its gold files: one record of scores per item.

Both official formats are read: the 2024 contest's and the current one; they differ in visual dialogue only (the gold as
a plain list or under `data`; the ranking as `answer_sort` of the record or of its dialogue's last round). The official
scorers pair gold and prediction by position; here they are joined by id. All problems of a file are told together.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cultureval.metrics.cvlue.grounding import iou
from cultureval.metrics.cvlue.names import KS, MACRO, VQA_MODES
from cultureval.metrics.cvlue.retrieval import list_ranks
from cultureval.metrics.cvlue.vqa import cvlue_correct
from cultureval.runtime.errors import CulturevalError, ProblemList, did_you_mean, shorten

Record = Mapping[str, Any]
Key = Callable[[Record], Any]


@dataclass(frozen=True)
class ScoredItem:
    """The scores of one item by metric, and the path of its image, which determines its category."""

    image: str
    scores: dict[str, float]


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        CulturevalError: No such file, not JSON, or an object with a duplicated key.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            names = [name for name, _ in pairs]
            duplicate = next(name for place, name in enumerate(names) if name in names[:place])
            raise ValueError(f"the name {duplicate!r} is duplicated in one object")
        return content

    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=unique)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, FileNotFoundError):
            raise CulturevalError(f"{path} does not exist.") from error
        raise CulturevalError(f"{path} cannot be read as JSON: {error}") from error


def vqa_items(gold: Any, pred: Any) -> list[ScoredItem]:
    """Scores of visual question answering: `accuracy_loose`, `accuracy_strict`, `accuracy_exact`.

    Args:
        gold: The list of `image`, `question_id`, `question`, `answer`.
        pred: The same list with the predicted answers, in any order; null is a wrong answer.
    """
    problems = ProblemList()
    items = []
    for right, mine in _joined(gold, pred, _field("question_id"), "question_id", "answer", problems):
        with problems.collecting():
            answer = mine.get("answer")
            if answer is not None and not isinstance(answer, str):
                raise _bad("pred", "answer", answer, f"is not text (question_id {right['question_id']})")
            expected = _text(right, "answer")
            scores = {f"accuracy_{mode}": float(cvlue_correct(answer, expected, mode)) for mode in VQA_MODES}
            items.append(ScoredItem(_text(right, "image"), scores))
    problems.raise_if_any(_MOST_PROBLEMS)
    return items


def vg_items(gold: Any, pred: Any) -> list[ScoredItem]:
    """Scores of visual grounding: `iou` (the released scorer's), `iou_continuous`, `acc@0.5`, `unpredicted`.

    Args:
        gold: The list of `ref_id`, `image`, `text`, `bbox`.
        pred: The same list with the predicted boxes, in any order; [] or null if there is none.
    """
    problems = ProblemList()
    items = []
    for right, mine in _joined(gold, pred, _field("ref_id"), "ref_id", "bbox", problems):
        with problems.collecting():
            try:
                scores = box_scores(mine.get("bbox"), right.get("bbox"))
            except (ValueError, TypeError) as error:
                raise CulturevalError(f"ref_id {right['ref_id']!r}: {error}.") from error
            items.append(ScoredItem(_text(right, "image"), scores | {"unpredicted": float(not mine.get("bbox"))}))
    problems.raise_if_any(_MOST_PROBLEMS)
    return items


def box_warnings(gold: Any, pred: Any) -> list[str]:
    """Sentences on submitted boxes that overlap far more with the gold ones when they are read in another way.

    Args:
        gold: As in `vg_items`; records without `width` and `height` are left out.
        pred: As in `vg_items`; it was scored without a problem.
    """
    boxes = {_field("ref_id")(record): record.get("bbox") for record in pred}
    sums = dict.fromkeys(_READINGS, 0.0)
    for record in gold:
        box, width, height = boxes[record["ref_id"]], record.get("width"), record.get("height")
        if box and width and height:
            for name, read in _READINGS.items():
                sums[name] += iou(read([float(number) for number in box], width, height), record["bbox"])
    submitted, best = next(iter(sums)), max(sums, key=lambda name: sums[name])
    mine, other = sums[submitted] / len(gold), sums[best] / len(gold)
    if other < mine + _BETTER:
        return []
    found = f"read so, their mean IoU is {other:.2f} instead of {mine:.2f}"
    return [f"The boxes look like {best}: {found}. The official format is {submitted}."]


def _scaled(box: Sequence[float], width: float, height: float, full: float) -> list[float]:
    return [box[0] * width / full, box[1] * height / full, box[2] * width / full, box[3] * height / full]


def _from_corners(box: Sequence[float]) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


_READINGS: Mapping[str, Callable[[list[float], float, float], list[float]]] = {
    "x, y, width, height in pixels": lambda box, width, height: box,
    "x1, y1, x2, y2 in pixels": lambda box, width, height: _from_corners(box),
    "x, y, width, height as shares of the sides": lambda box, width, height: _scaled(box, width, height, 1),
    "x1, y1, x2, y2 as shares of the sides": lambda box, width, height: _from_corners(_scaled(box, width, height, 1)),
    "x1, y1, x2, y2 in thousandths": lambda box, width, height: _from_corners(_scaled(box, width, height, 1000)),
}
_BETTER = 0.15  # of mean IoU


def box_scores(pred: Sequence[float] | None, gold: Sequence[float]) -> dict[str, float]:
    """The values of one box: `iou`, `iou_continuous`, `acc@0.5` (as in the released readme: official IoU above 0.5)."""
    official = iou(pred, gold)
    return {"iou": official, "iou_continuous": iou(pred, gold, "continuous"), "acc@0.5": float(official > 0.5)}


def vd_items(gold: Any, pred: Any) -> list[ScoredItem]:
    """Scores of visual dialogue: `R@1`, `R@5`, `R@10`, `MRR`, `mean_rank` of the gold answer in the given order.

    Args:
        gold: The list of `image_id`, `question`, `answer_options`, `answer`, as a plain list or under `data`.
        pred: Records with `image_id`, `dialog_id` or `question`, and `answer_sort`, or with a `dialog` whose last round
            has both.
    """
    rounds = gold.get("data") if isinstance(gold, Mapping) else gold
    records, flat = _records(rounds, "gold"), [_last_round(record) for record in _records(pred, "pred")]
    # The contest's records have no dialog_id: there the question identifies a round.
    numbered = all("dialog_id" in record for record in (*records, *flat))
    key, name = _round_key("dialog_id" if numbered else "question")
    problems = ProblemList()
    items = []
    for right, mine in _joined(records, flat, key, name, "answer_sort", problems):
        with problems.collecting():
            rank = _rank_of_answer(right, mine, f"{name} {key(right)}")
            scores = {f"R@{k}": float(rank <= k) for k in KS} | {"MRR": 1 / rank, "mean_rank": float(rank)}
            items.append(ScoredItem(_text(right, "image"), scores))
    problems.raise_if_any(_MOST_PROBLEMS)
    return items


def _rank_of_answer(right: Record, mine: Record, where: str) -> int:
    order, options = mine.get("answer_sort"), right.get("answer_options")
    if mine.get("question", right.get("question")) != right.get("question"):
        raise CulturevalError(f"{where}: the prediction answers another question, {mine['question']!r}.")
    if not isinstance(order, list) or not isinstance(options, list):
        raise CulturevalError(f"{where}: answer_sort and answer_options must be lists.")
    if len(set(map(repr, order))) < len(order) or set(map(repr, order)) != set(map(repr, options)):
        repeated = len(order) - len(set(map(repr, order)))
        unknown = len(set(map(repr, order)) - set(map(repr, options)))
        raise CulturevalError(
            f"{where}: answer_sort must have each of the {len(options)} answer_options once, ids as integers; it has "
            f"{len(order)} entries, {repeated} of them repeated and {unknown} unknown."
        )
    if right.get("answer") not in order:
        raise _bad("gold", "answer", right.get("answer"), f"is not among the options of {where}")
    return order.index(right["answer"]) + 1


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
    for record in _records(gold, "gold"):
        image, own = _text(record, "image"), record.get("caption")
        if image in captions or not isinstance(own, list) or not own or not all(isinstance(text, str) for text in own):
            raise _bad("gold", "caption", own, f"of image {image!r} is not a list of texts, or the image is duplicated")
        captions[image] = own
    images: dict[str, list[str]] = {}
    for image, own in captions.items():
        for text in dict.fromkeys(own):
            images.setdefault(text, []).append(image)
    by_direction: dict[str, dict[str, list[str]]] = {}
    problems = ProblemList()
    for rankings in pred:
        with problems.collecting():
            direction, ranked = _direction(rankings, captions, images)
            if direction in by_direction:
                twice = f"Two of the prediction files rank for {direction}"
                raise CulturevalError(f"{twice}; give one for TR and one for IR.")
            by_direction[direction] = ranked
    problems.raise_if_any(_MOST_PROBLEMS)
    items = []
    for direction, ranked in by_direction.items():
        for query, rank in list_ranks(ranked, captions if direction == "TR" else images).items():
            scores = {f"{direction}@{k}": float(rank is not None and rank <= k) for k in KS}
            items.append(ScoredItem(query if direction == "TR" else images[query][0], scores))
    return items


def ranking_warnings(gold: Any, pred: Sequence[Any]) -> list[str]:
    """Sentences on ranked lists with repeated or unknown entries, which cost ranks, or with fewer than ten.

    Args:
        gold: As in `itr_items`.
        pred: As in `itr_items`; it was scored without a problem.
    """
    images = {record["image"] for record in gold}
    captions = {text for record in gold for text in record["caption"]}
    sentences = []
    for rankings in pred:
        way, known = ("TR", captions) if images & rankings.keys() else ("IR", images)
        repeated = sum(len(ranked) > len(set(map(str, ranked))) for ranked in rankings.values())
        unknown = sum(any(item not in known for item in ranked) for ranked in rankings.values())
        short = sum(len(ranked) < min(max(KS), len(known)) for ranked in rankings.values())
        found = {"with repeated entries": repeated, "with entries that the gold file does not have": unknown}
        found |= {f"of fewer than {max(KS)} entries": short}
        sentences += [
            f"{way}: {count} of {len(rankings)} ranked lists {what}." for what, count in found.items() if count
        ]
    return sentences


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


_MOST_PROBLEMS = 10  # of a file that are told


def _records(content: Any, which: str) -> list[Record]:
    if not isinstance(content, list) or not content or not all(isinstance(record, Mapping) for record in content):
        raise CulturevalError(f"The {which} file must be a non-empty list of objects.")
    return content


def _field(name: str) -> Key:
    def read(record: Record) -> Any:
        value = record.get(name)
        if value is None:
            near = did_you_mean(name, map(str, record))
            raise CulturevalError(f"A record has no {name}: {shorten(dict(record))}.{near}")
        if not isinstance(value, int | str):
            told = f"is {shorten(value)}, neither a whole number nor text"
            raise CulturevalError(f"A record's {name} {told}: {shorten(dict(record))}.")
        return value

    return read


def _round_key(number: str) -> tuple[Key, str]:
    """The key of a dialogue's round: image and `number` (dialog_id or question); and the key's name."""
    return (lambda record: (_field("image_id")(record), _field(number)(record))), f"(image_id, {number})"


def _last_round(record: Record) -> Record:
    """A record of the contest's format, flattened to the current one."""
    rounds = record.get("dialog")
    if "answer_sort" in record or not isinstance(rounds, list) or not rounds or not isinstance(rounds[-1], Mapping):
        return record
    return {**record, **rounds[-1]}


def _joined(
    gold: Any, pred: Any, key: Key, name: str, answer: str, problems: ProblemList
) -> list[tuple[Record, Record]]:
    """Pairs of gold and prediction, in the gold's order; what does not fit is added to the problems.

    Args:
        key: The id of a record.
        name: What that id is called.
        answer: The field of a prediction that holds the answer.
    """
    records = _records(pred, "pred")
    tables = [_by_key(content, which, key, name, problems) for which, content in (("gold", gold), ("pred", records))]
    with problems.collecting():
        _require_same(tables[0], tables[1], name)
    if lacking := [record for record in records if answer not in record]:
        near = did_you_mean(answer, map(str, lacking[0]))
        problems.add(CulturevalError(f"{len(lacking)} of {len(records)} predictions have no {answer!r}.{near}"))
    pairs = [(record, tables[1][number]) for number, record in tables[0].items() if number in tables[1]]
    for right, mine in pairs:
        if mine.get("image", right.get("image")) != right.get("image"):
            problems.add(
                CulturevalError(
                    f"{name} {key(right)!r} is of image {right.get('image')!r} in the gold file "
                    f"but of {mine.get('image')!r} in the prediction."
                )
            )
    return [(right, mine) for right, mine in pairs if answer in mine]


def _by_key(content: Any, which: str, key: Key, name: str, problems: ProblemList) -> dict[Any, Record]:
    table: dict[Any, Record] = {}
    for record in _records(content, which):
        with problems.collecting():
            if key(record) in table:
                raise CulturevalError(f"{name} {key(record)!r} is duplicated in the {which} file.")
            table[key(record)] = record
    return table


def _require_same(gold: Mapping[Any, Any], pred: Mapping[Any, Any], name: str) -> None:
    missing = [number for number in gold if number not in pred]
    extra = [number for number in pred if number not in gold]
    if missing or extra:
        found = [(missing, "missing from the predictions"), (extra, "in the predictions but not in the gold file")]
        parts = [f"{len(ids)} {what} (such as {ids[0]!r})" for ids, what in found if ids]
        raise CulturevalError(f"The files do not have the same {name}s: {' and '.join(parts)}.")


def _direction(
    rankings: Any, captions: Mapping[str, Any], images: Mapping[str, Any]
) -> tuple[str, dict[str, list[str]]]:
    """The direction of an object of rankings, and its rankings by gold query."""
    if not isinstance(rankings, Mapping) or not all(isinstance(ranked, list) for ranked in rankings.values()):
        raise CulturevalError("A prediction file of retrieval must be an object of ranked lists.")
    if any(query in captions for query in rankings):
        _require_same(captions, rankings, "image")
        return "TR", dict(rankings)
    repaired: dict[str, list[str]] = {}
    for query, ranked in rankings.items():
        name = query if query in images else ",".join(query.split())
        if name in repaired:
            raise CulturevalError(f"caption {name!r} is duplicated in the prediction file.")
        repaired[name if name in images else query] = ranked
    _require_same(images, repaired, "caption")
    return "IR", repaired


def _text(record: Record, name: str) -> str:
    if not isinstance(record.get(name), str):
        raise _bad("gold", name, record.get(name), "is not text")
    return record[name]


def _bad(which: str, name: str, value: object, reason: str) -> CulturevalError:
    return CulturevalError(f"The {which} file's {name} {reason} (value: {shorten(value)}).")
