"""LightEval metrics of multiple-choice and multi-select questions whose answers are generated."""

from typing import TYPE_CHECKING

import numpy as np
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.requests import Doc

from cultureval.metrics.choice_names import CHOICE_REPLIES
from cultureval.metrics.choice_replies import parse_labels
from cultureval.metrics.lighteval.batched import batched_metric
from cultureval.metrics.lighteval.clustered_means import ClusteredMean
from cultureval.metrics.lighteval.shared_pass import Columns, SharedScore, pass_over_replies
from cultureval.runtime.doc_fields import specific_of

if TYPE_CHECKING:
    from cultureval.prompts.choice_replies import ChoiceReplySpecific


def choice_reply_metrics(several: bool = False) -> list[SampleLevelMetric]:
    """`acc_strict`, the headline, and `acc_lenient`: the shares of right answers under each profile of `parse_labels`.

    A reply that cannot be read is wrong, and is counted apart: `invalid_strict` and `invalid_lenient`.

    Args:
        several: Whether several options may be right; a right answer is then exactly these.
    """

    def score(docs: list[Doc], replies: list[str]) -> Columns:
        columns: dict[str, list[float]] = {name: [] for name in CHOICE_REPLIES}
        for doc, reply in zip(docs, replies, strict=True):
            asked: ChoiceReplySpecific = specific_of(doc)
            for profile in ("strict", "lenient"):
                found = parse_labels(reply, asked["labels"], asked["options"], profile, several)
                columns[f"acc_{profile}"].append(float(found == tuple(asked["right"])))
                columns[f"invalid_{profile}"].append(float(found is None))
        return {name: np.array(values) for name, values in columns.items()}

    shared = pass_over_replies(score)
    return [
        batched_metric(
            name, SharedScore(name, name, shared, "labels of replies"), ClusteredMean(name), declared.higher_is_better
        )
        for name, declared in CHOICE_REPLIES.items()
    ]
