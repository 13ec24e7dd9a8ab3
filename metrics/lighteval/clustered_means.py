"""Means of sample scores with standard errors, clustered if items share a passage, image or poem.

Each writes `<name>` and `<name>_stderr`; the cluster is `doc.specific["cluster"]`. Where all scores are 0, or all are
the highest, the error is not 0 but Wilson's (`metrics/standard_errors.py`). LightEval's own bootstrap, whose errors are
too small by the square root of its number of draws, does not run, since our aggregators return a dict.
"""

import numpy as np
from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.tasks.requests import Doc

from cultureval.metrics.standard_errors import error_that_adds
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.patches.lighteval.group_averages import (
    NotApplicable,
    NotApplicableStandardError,
    StandardError,
)


class ClusteredScore(float):
    """A sample's score with its cluster; otherwise a plain float."""

    cluster: str = ""

    @classmethod
    def of(cls, score: float, doc: Doc) -> "ClusteredScore":
        """The score of an item, in the cluster of its Doc ('' is a separate cluster)."""
        value = cls(score)
        value.cluster = specific_of(doc).get("cluster") or ""
        return value


class ClusteredMean(CorpusLevelComputation):
    """Mean of the samples' scores and its standard error, as two values of LightEval's results.

    Args:
        highest: The highest score that there can be, the lowest being 0; None: scores have no such bounds.
    """

    def __init__(self, name: str, highest: float | None = 1.0) -> None:
        self.name = name
        self.bounds = None if highest is None else (0.0, highest)

    def compute_corpus(self, items: list[float]) -> dict[str, float]:
        """The mean and its `error_that_adds`, always present: LightEval expects the same keys of all subsets."""
        clusters = [getattr(item, "cluster", "") or index for index, item in enumerate(items)]
        error = error_that_adds(items, clusters, self.bounds)
        return {self.name: float(np.mean(items)), f"{self.name}_stderr": error}


class MeanOfScored(ClusteredMean):
    """As `ClusteredMean`, over the samples with a score (not nan)."""

    def compute_corpus(self, items: list[float]) -> dict[str, float]:
        """The mean and its standard error; both nan if no sample has a score."""
        scored = [item for item in items if not np.isnan(item)]
        if scored:
            return super().compute_corpus(scored)
        return {self.name: float("nan"), f"{self.name}_stderr": StandardError("nan")}


class MeanWhereItApplies(MeanOfScored):
    """As `MeanOfScored`, for a metric that does not apply to some subsets: these have no score and enter no average."""

    def compute_corpus(self, items: list[float]) -> dict[str, float]:
        """The mean and its standard error; not applicable if no sample has a score."""
        if all(np.isnan(item) for item in items):
            return {self.name: NotApplicable(), f"{self.name}_stderr": NotApplicableStandardError()}
        return super().compute_corpus(items)
