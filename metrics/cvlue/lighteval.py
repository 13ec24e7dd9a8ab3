"""The LightEval metrics of CVLUE and its English counterparts, which call pure functions of metrics/."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.cvlue import names
from cultureval.metrics.cvlue.grounding import image_refused, iou, predicted_boxes
from cultureval.metrics.cvlue.names import CANDIDATE_SCORES, KS, OF_CAPTIONS, RANKING, VQA_MODES
from cultureval.metrics.cvlue.ranking import gold_ranks, gold_ties, ndcg
from cultureval.metrics.cvlue.vqa import cvlue_correct, soft_accuracy
from cultureval.metrics.declared import DEN, SUMS
from cultureval.metrics.lighteval.row_scores import Columns, ScoreColumn, final_text, pass_metrics
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError

if TYPE_CHECKING:
    from cultureval.prompts.cvlue.rows import BoxSpecific, DialogueSpecific, GallerySpecific

Scores = dict[str, float]
TIES = [f"gold_ties{suffix}" for suffix in CANDIDATE_SCORES]  # their score is a number of items
ScoreRow = Callable[[Doc, ModelResponse], Mapping[str, Any]]


def cvlue_vqa_metrics() -> list[SampleLevelMetric]:
    """`accuracy_loose` (the released scorer's default, the headline), `accuracy_strict`, `accuracy_exact`."""
    return pass_metrics(names.VQA, partial(_rows, _vqa_scores), "answers")


def vqa_v2_metrics() -> list[SampleLevelMetric]:
    """`vqa_accuracy`: VQA v2's soft accuracy over ten answers."""
    return pass_metrics(names.VQA_V2, partial(_rows, _soft_scores), "answers")


def grounding_metrics() -> list[SampleLevelMetric]:
    """`iou` (official, the headline), `iou_continuous`, accuracies at IoU 0.5, and the share without a readable box.

    `acc@0.5` counts official IoU above 0.5 (CVLUE's readme), `acc@0.5_continuous` continuous IoU of at least 0.5 (as
    usual for RefCOCOg). The first of several boxes counts. Items are unscored if the format's processor refuses their
    images; our runs do not send them, other harnesses may.
    """
    return pass_metrics(names.GROUNDING, partial(_rows, _box_scores), "boxes", score_column=BoxColumn)


def dialogue_metrics(dense: bool = False) -> list[SampleLevelMetric]:
    """Rank of the gold answer among the candidates: `R@1` (the headline), `R@5`, `R@10`, `MRR`, `mean_rank`.

    Candidates are ranked by mean log-probability per token; `_sum` ranks by their sum, `_end` includes the end-of-text
    token after the candidate. `gold_ties` counts items in which another candidate has the same score as the gold one.

    Args:
        dense: Also `NDCG`, over the items with relevance scores.
    """
    gains = [f"NDCG{suffix}" for suffix in CANDIDATE_SCORES] if dense else []
    return pass_metrics(
        names.DENSE_DIALOGUE if dense else names.DIALOGUE,
        partial(_rows, _dense_dialogue_scores if dense else _dialogue_scores),
        "ranks of candidates",
        gains,
        lambda doc: dict.fromkeys(gains, float(any(specific_of(doc)["relevance"]))),
        SamplingMethod.LOGPROBS,
    )


def gallery_metrics() -> list[SampleLevelMetric]:
    """Retrieval within galleries: `TR@1`, ... (image queries), `IR@1`, ... (caption queries), and the galleries' sizes.

    Both are ranked by the mean log-probability per token of the caption after the image. The score of a row is the
    share of hits among its queries: the image, or its captions.
    """
    return pass_metrics(
        names.GALLERIES,
        gallery_columns,
        "within galleries, by mean log-probability a token",
        [name for name in names.GALLERIES if name.startswith(OF_CAPTIONS)],
        lambda doc: dict.fromkeys(names.GALLERIES, float(len(np.atleast_1d(doc.gold_index)))),
        SamplingMethod.LOGPROBS,
    )


class BoxColumn(ScoreColumn):
    """The scores of boxes."""

    def image_refused(self, doc: Doc) -> str:
        """Why the box format's processor refuses the item's image; "" if it does not."""
        return image_refused(specific_of(doc))


def _rows(score: ScoreRow, docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    """The columns of a function that scores one row; an error names the item."""
    rows = []
    for doc, response in zip(docs, responses, strict=True):
        try:
            rows.append(score(doc, response))
        except ValueError as error:
            raise CulturevalError(f"{doc.task_name}, item {specific_of(doc).get('id')}: {error}.") from error
    columns: Columns = {name: [row[name] for row in rows] for name in rows[0]}
    return columns | {f"{name}{SUMS}": [[count] for count in columns[name]] for name in columns if name in TIES}


def candidate_scores(doc: Doc, response: ModelResponse) -> dict[str, np.ndarray]:
    """Metric suffix -> scores of a Doc's candidates: mean and sum of log-probabilities.

    Scores with the end-of-text token are added if the backend scores it (servers do not).
    """
    sums, counts = _sums_and_counts(doc, response)
    scores = {"": sums / counts, "_sum": sums}
    if response.logits and len(response.logits) == len(sums):
        ends = np.array([end[0] for end in response.logits], dtype=np.float64)
        scores |= {"_mean_end": (sums + ends) / (counts + 1), "_sum_end": sums + ends}
    return scores


def gallery_columns(docs: list[Doc], responses: list[ModelResponse]) -> Columns:
    """For each image and metric the share of hits among its queries, and the number of caption queries.

    Raises:
        CulturevalError: Log-probabilities or tokens are missing in a response.
    """
    galleries: dict[int, list[int]] = {}
    for place, doc in enumerate(docs):
        specific: GallerySpecific = specific_of(doc)
        galleries.setdefault(specific["gallery"], []).append(place)
    means = _rows(_mean_scores, docs, responses)["means"]
    weights = [f"{OF_CAPTIONS}@{k}{DEN}" for k in KS]
    columns: Columns = {name: [float("nan")] * len(docs) for name in (*names.GALLERIES, *weights)}
    for places in galleries.values():
        table = np.stack([means[place] for place in places])
        correct = np.zeros(table.shape, dtype=bool)
        for row, place in enumerate(places):
            correct[row, docs[place].gold_index] = True
        for row, place in enumerate(places):
            for name, value in _gallery_scores(table, correct, row).items():
                columns[name][place] = value
    return columns


def _gallery_scores(table: np.ndarray, correct: np.ndarray, row: int) -> Scores:
    """The scores of an image in its gallery, from scores and right pairs [images, captions]."""
    rank = _best_rank(table[row], correct[row])
    # A caption of several images is one query, as in the released scorer; it belongs to the first of them.
    owned = np.flatnonzero(correct[row] & (correct.argmax(0) == row))
    image_ranks = [_best_rank(table[:, caption], correct[:, caption]) for caption in owned]
    scores = {"gallery_images": float(len(table)), "gallery_captions": float(table.shape[1])}
    for k in KS:
        scores[f"TR@{k}"] = float(rank <= k)
        scores[f"IR@{k}"] = sum(rank <= k for rank in image_ranks) / len(owned) if len(owned) else float("nan")
        scores[f"IR@{k}{DEN}"] = float(len(owned))
    return scores


def _mean_scores(doc: Doc, response: ModelResponse) -> dict[str, Any]:
    sums, counts = _sums_and_counts(doc, response)
    return {"means": sums / counts}


def _vqa_scores(doc: Doc, response: ModelResponse) -> Scores:
    gold = doc.choices[0]
    return {f"accuracy_{mode}": float(cvlue_correct(_reply(response), gold, mode)) for mode in VQA_MODES}


def _dialogue_scores(doc: Doc, response: ModelResponse) -> Scores:
    # Scores that a backend does not support are undefined.
    scores: Scores = dict.fromkeys((f"{name}{suffix}" for name in RANKING for suffix in CANDIDATE_SCORES), float("nan"))
    for suffix, values in candidate_scores(doc, response).items():
        rank = int(gold_ranks([values], [doc.gold_index])[0])
        scores |= {f"R@{k}{suffix}": float(rank <= k) for k in KS}
        scores |= {f"MRR{suffix}": 1 / rank, f"mean_rank{suffix}": float(rank)}
        scores[f"gold_ties{suffix}"] = float(gold_ties([values], [doc.gold_index])[0])
    return scores


def _dense_dialogue_scores(doc: Doc, response: ModelResponse) -> Scores:
    specific: DialogueSpecific = specific_of(doc)
    relevance = specific["relevance"]
    gains = dict.fromkeys((f"NDCG{suffix}" for suffix in CANDIDATE_SCORES), float("nan"))
    for suffix, values in candidate_scores(doc, response).items() if any(relevance) else ():
        gains[f"NDCG{suffix}"] = ndcg([values], [relevance])
    counts = {f"{name}{DEN}": float(any(relevance)) for name in gains}
    return _dialogue_scores(doc, response) | gains | counts


def _soft_scores(doc: Doc, response: ModelResponse) -> Scores:
    return {"vqa_accuracy": soft_accuracy(_reply(response), doc.choices)}


def _box_scores(doc: Doc, response: ModelResponse) -> Scores:
    specific: BoxSpecific = specific_of(doc)
    if image_refused(specific):
        return dict.fromkeys(names.GROUNDING, float("nan"))
    boxes = predicted_boxes(_reply(response), specific)
    first = boxes[0] if boxes else None
    official, continuous = (iou(first, specific["box"], convention) for convention in ("official", "continuous"))
    return {
        "iou": official,
        "iou_continuous": continuous,
        "acc@0.5": float(official > 0.5),
        "acc@0.5_continuous": float(continuous >= 0.5),
        "unparsable": float(not boxes),
    }


def _reply(response: ModelResponse) -> str:
    text = final_text(response)
    if text is None:
        raise ValueError("the model's response has no text")
    return text


def _sums_and_counts(doc: Doc, response: ModelResponse) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of a doc's choices, and their numbers of tokens."""
    tokens = response.output_tokens
    if len(response.logprobs) != len(doc.choices) or len(tokens) != len(doc.choices):
        raise ValueError(
            f"the model's backend returns {len(response.logprobs)} log-probabilities and the tokens of {len(tokens)} "
            f"of {len(doc.choices)} choices; use `cultureval eval` with a transformers model"
        )
    counts = np.array([len(choice) for choice in tokens], dtype=np.float64)
    if not counts.all():
        raise ValueError(f"choice {int(np.flatnonzero(counts == 0)[0])} has no token")
    return np.array(response.logprobs, dtype=np.float64), counts


def _best_rank(scores: np.ndarray, correct: np.ndarray) -> int:
    """Rank of the best-ranked correct item; ties keep their order."""
    order = np.argsort(-scores, kind="stable")
    return 1 + int(np.flatnonzero(correct[order])[0])
