"""The LightEval metrics of CVLUE and its English counterparts, which call pure functions of metrics/."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric, SampleLevelMetricGrouping
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.cvlue import names
from cultureval.metrics.cvlue.grounding import image_refused, iou, predicted_boxes
from cultureval.metrics.cvlue.names import CANDIDATE_SCORES, KS, RANKING, VQA_MODES
from cultureval.metrics.cvlue.ranking import gold_ranks, gold_ties, ndcg
from cultureval.metrics.cvlue.vqa import cvlue_correct, soft_accuracy
from cultureval.metrics.declared import Metrics
from cultureval.metrics.lighteval.clustered_means import ClusteredMean, ClusteredScore, MeanOfScored
from cultureval.metrics.lighteval.shared_pass import SharedPass, batched_metric, final_text
from cultureval.metrics.proportions import wilson_error
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.lighteval.group_averages import StandardError

if TYPE_CHECKING:
    from cultureval.prompts.cvlue.rows import BoxSpecific, DialogueSpecific, GallerySpecific

Scores = dict[str, float]


def cvlue_vqa_metrics() -> list[SampleLevelMetric]:
    """`accuracy_loose` (the released scorer's default, the headline), `accuracy_strict`, `accuracy_exact`."""
    return [_grouping(_vqa_scores, names.VQA, SamplingMethod.GENERATIVE)]


def vqa_v2_metrics() -> list[SampleLevelMetric]:
    """`vqa_accuracy`: VQA v2's soft accuracy over ten answers."""
    return [_grouping(_soft_scores, names.VQA_V2, SamplingMethod.GENERATIVE)]


def grounding_metrics() -> list[SampleLevelMetric]:
    """`iou` (official, the headline), `iou_continuous`, accuracies at IoU 0.5, and the share without a readable box.

    `acc@0.5` counts official IoU above 0.5 (CVLUE's readme), `acc@0.5_continuous` continuous IoU of at least 0.5 (as
    usual for RefCOCOg). Of several boxes the first one is used. An item whose image the format's processor refuses is
    unscored: a run of ours does not ask about it, other harnesses may.
    """
    means = {name: MeanOfScored(name) for name in names.GROUNDING}
    return [_grouping(BoxScores(_box_scores), names.GROUNDING, SamplingMethod.GENERATIVE, means)]


def dialogue_metrics(dense: bool = False) -> list[SampleLevelMetric]:
    """Rank of the gold answer among the candidates: `R@1` (the headline), `R@5`, `R@10`, `MRR`, `mean_rank`.

    Candidates are ranked by mean log-probability per token; `_sum` ranks by their sum, `_end` includes the end-of-text
    token after the candidate. `gold_ties` counts items in which another candidate has the same score as the gold one.

    Args:
        dense: Also `NDCG`, over the items with relevance scores.
    """
    declared = names.DENSE_DIALOGUE if dense else names.DIALOGUE
    means: dict[str, CorpusLevelComputation] = {
        name: CountOfItems(name)
        if row.role == "count"
        else MeanOfScored(name, highest=None if name.startswith("mean_rank") else 1.0)
        for name, row in declared.items()
    }
    score = _dense_dialogue_scores if dense else _dialogue_scores
    return [_grouping(score, declared, SamplingMethod.LOGPROBS, means)]


def gallery_metrics() -> list[SampleLevelMetric]:
    """Retrieval within galleries: `TR@1`, ... (image queries), `IR@1`, ... (caption queries), and the galleries' sizes.

    Both are ranked by the mean log-probability per token of the caption after the image.
    """
    shared = SharedPass(gallery_items)
    return [
        batched_metric(
            name, GalleryScore(name, shared), WeightedMean(name), declared.higher_is_better, SamplingMethod.LOGPROBS
        )
        for name, declared in names.GALLERIES.items()
    ]


class ScoresOfItems(SampleLevelComputation):
    """Several scores of one item; `score` returns them by name."""

    def __init__(self, score: Callable[[Doc, ModelResponse], Scores]) -> None:
        self.score = score

    def compute(self, doc: Doc, model_response: ModelResponse, **kwargs: object) -> dict[str, ClusteredScore]:
        """The item's scores by metric; an error names the item."""
        try:
            scores = self.score(doc, model_response)
        except ValueError as error:
            raise CulturevalError(f"{doc.task_name}, item {specific_of(doc).get('id')}: {error}.") from error
        return {name: ClusteredScore.of(value, doc) for name, value in scores.items()}


class BoxScores(ScoresOfItems):
    """The scores of one box."""

    def image_refused(self, doc: Doc) -> str:
        """Why the item's image cannot be shown to the models of its box format; "" where it can."""
        return image_refused(specific_of(doc))


def candidate_scores(doc: Doc, response: ModelResponse) -> dict[str, np.ndarray]:
    """Scores of a Doc's candidates: mean and sum of log-probabilities, without and with the end-of-text token.

    By metric suffix; those with the end-of-text token only if the backend scores it (not servers).
    """
    sums, counts = _sums_and_counts(doc, response)
    scores = {"": sums / counts, "_sum": sums}
    if response.logits and len(response.logits) == len(sums):
        ends = np.array([end[0] for end in response.logits], dtype=np.float64)
        scores |= {"_mean_end": (sums + ends) / (counts + 1), "_sum_end": sums + ends}
    return scores


GalleryItem = dict[str, tuple[float, int]]


def gallery_items(docs: list[Doc], responses: list[ModelResponse]) -> list[GalleryItem]:
    """For each image and metric the number of hits and of queries.

    Raises:
        CulturevalError: A response lacks log-probabilities or tokens.
    """
    items: list[GalleryItem] = [{} for _ in docs]
    galleries: dict[int, list[int]] = {}
    for place, doc in enumerate(docs):
        specific: GallerySpecific = specific_of(doc)
        galleries.setdefault(specific["gallery"], []).append(place)
    for places in galleries.values():
        scored = _gallery([docs[place] for place in places], [responses[place] for place in places])
        for place, item in zip(places, scored, strict=True):
            items[place] = item
    return items


def _gallery(docs: list[Doc], responses: list[ModelResponse]) -> list[GalleryItem]:
    """`gallery_items` of the images of one gallery."""
    table = np.stack([_means(doc, response) for doc, response in zip(docs, responses, strict=True)])
    correct = np.zeros(table.shape, dtype=bool)
    for row, doc in enumerate(docs):
        correct[row, doc.gold_index] = True
    items = []
    for row in range(len(docs)):
        rank = _best_rank(table[row], correct[row])
        # A caption of several images is one query, as in the released scorer; it belongs to the first of them.
        owned = np.flatnonzero(correct[row] & (correct.argmax(0) == row))
        image_ranks = [_best_rank(table[:, caption], correct[:, caption]) for caption in owned]
        item: GalleryItem = {"gallery_images": (float(len(docs)), 1), "gallery_captions": (float(table.shape[1]), 1)}
        for k in KS:
            item[f"TR@{k}"] = (float(rank <= k), 1)
            item[f"IR@{k}"] = (float(sum(rank <= k for rank in image_ranks)), len(owned))
        items.append(item)
    return items


def _means(doc: Doc, response: ModelResponse) -> np.ndarray:
    try:
        sums, counts = _sums_and_counts(doc, response)
    except ValueError as error:
        raise CulturevalError(f"{doc.task_name}, image {specific_of(doc)['id']}: {error}.") from error
    return sums / counts


class WeightedScore(float):
    """A share of hits, with the numbers of hits and queries."""

    hits: float = 0.0
    queries: int = 1


class GalleryScore(SampleLevelComputation):
    """One metric of a shared pass; batched: gets all Docs and responses of a task."""

    def __init__(self, name: str, shared: SharedPass[list[GalleryItem]]) -> None:
        self.name = name
        self.shared = shared.joined()

    def compute(self, docs: list[Doc], responses: list[ModelResponse], **kwargs: object) -> list[WeightedScore]:
        """For each image the share of hits among its queries: the image, or its captions."""
        scores = []
        for item in self.shared.result(docs, responses):
            hits, queries = item[self.name]
            score = WeightedScore(hits / queries if queries else "nan")
            score.hits, score.queries = hits, queries
            scores.append(score)
        return scores

    def __str__(self) -> str:
        return f"{self.name}(within galleries, by mean log-probability a token)"


class WeightedMean(CorpusLevelComputation):
    """Hits divided by queries, with the standard error of that ratio over images; at 0 and 1 Wilson's."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute_corpus(self, items: list[WeightedScore]) -> dict[str, float]:
        """The ratio and its standard error, which is nan for fewer than two images."""
        hits = np.array([item.hits for item in items])
        queries = np.array([item.queries for item in items], dtype=float)
        mean, count = hits.sum() / queries.sum(), len(items)
        residuals = hits - mean * queries
        error = np.sqrt(count / (count - 1) * np.square(residuals).sum()) / queries.sum() if count > 1 else np.nan
        error = wilson_error(0, count) if mean in (0, 1) and count > 1 else error
        return {self.name: float(mean), f"{self.name}_stderr": StandardError(error, count)}


class CountOfItems(CorpusLevelComputation):
    """The number of items with a property, as a value of LightEval's results."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute_corpus(self, items: list[float]) -> dict[str, float]:
        """The sum."""
        return {self.name: float(np.sum(items))}


def _grouping(
    score: Callable[[Doc, ModelResponse], Scores] | ScoresOfItems,
    declared: Metrics,
    category: SamplingMethod,
    means: dict[str, CorpusLevelComputation] | None = None,
) -> SampleLevelMetricGrouping:
    return SampleLevelMetricGrouping(
        metric_name=list(declared),
        higher_is_better={name: row.higher_is_better for name, row in declared.items()},
        category=category,
        sample_level_fn=score if isinstance(score, ScoresOfItems) else ScoresOfItems(score),
        corpus_level_fn={name: (means or {}).get(name) or ClusteredMean(name) for name in declared},
    )


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
    return _dialogue_scores(doc, response) | gains


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
