"""The generative form of multiple-choice benchmarks, for models without log-probabilities.

The same rows, subsets and questions; the model is told to reason as it likes and to end with the label. It is a suite
of its own, with its own groups, metrics and signatures, so that no average, table or comparison holds both forms.
"""

from collections.abc import Iterable
from dataclasses import replace

from cultureval.metrics.choice_names import CHOICE_REPLIES
from cultureval.prompts.choices import choice_reply_prompt, instruction_name
from cultureval.runtime.dotted_names import lazy_call
from cultureval.tasks.kinds import Instrument, Kind
from cultureval.tasks.suite import Benchmark, MetricSet

SEVERAL = {"multiple_choice": False, "multi_select": True}  # kinds with such a form -> whether several may be right
NEW_TOKENS = 2048  # reasoning included
METRICS = "cultureval.metrics.lighteval.multiple_choice:choice_reply_metrics"
PARSER = Instrument(name=lambda: "labels(strict, v5)", check=lambda: None)


def in_generative_form(benchmarks: Iterable[Benchmark], suite: str) -> tuple[Benchmark, ...]:
    """The multiple-choice benchmarks of a suite with generated answers: `qimma_gat:Algebra` is `qimma_gen_gat:Algebra`.

    Those of other kinds are left out; the suite's name begins its groups.
    """
    return tuple(
        replace(
            one,
            group=f"{suite}_gen_{one.group.removeprefix(f'{suite}_')}",
            metric_set=_metric_set(one.metric_set, one.language),
        )
        for one in benchmarks
        if one.metric_set.key in SEVERAL
    )


def _metric_set(scored: MetricSet, language: str) -> MetricSet:
    several = SEVERAL[scored.key]
    key, kind = f"{scored.key}_reply_{language}", f"{scored.task_type}, generated"
    return MetricSet(key, kind, CHOICE_REPLIES, instruction=instruction_name(language, several))


def generative_kinds(*languages: str) -> dict[str, Kind]:
    """How such benchmarks are asked and scored, in each of the languages (ar, en, zh)."""
    return {
        f"{key}_reply_{language}": Kind(
            *(choice_reply_prompt(language, several), lazy_call(METRICS, several), NEW_TOKENS),
            instrument=PARSER,
        )
        for language in languages
        for key, several in SEVERAL.items()
    }
