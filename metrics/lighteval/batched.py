"""LightEval metrics that get all responses of a task at once."""

from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.tasks.requests import SamplingMethod


def batched_metric(
    name: str,
    sample: SampleLevelComputation,
    corpus: CorpusLevelComputation,
    higher_is_better: bool = True,
    category: SamplingMethod = SamplingMethod.GENERATIVE,
) -> SampleLevelMetric:
    """A batched metric with one name; `sample` scores all responses of a task, one value per item."""
    return SampleLevelMetric(
        metric_name=name,
        higher_is_better=higher_is_better,
        category=category,
        sample_level_fn=sample,
        corpus_level_fn=corpus,
        batched_compute=True,
    )
