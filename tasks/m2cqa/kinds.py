"""How M2CQA's and AynVQA's statements are asked and scored; M2CQA's paper states no length of generations."""

from functools import partial
from typing import TYPE_CHECKING

from cultureval.metrics.m2cqa.names import (
    LABELLED,
    LABELLED_PARTS,
    ORGANISERS,
    ORGANISERS_PARTS,
    ORGANISERS_VERDICT,
    STATEMENT_PARTS,
    STATEMENTS,
    STRICT_VERDICT,
)
from cultureval.prompts.m2cqa import rows
from cultureval.runtime.dotted_names import lazy_call
from cultureval.tasks.kinds import Instrument, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from lighteval.tasks.requests import Doc

    from cultureval.metrics.declared import Metrics
    from cultureval.metrics.m2cqa.lighteval import Parts
    from cultureval.metrics.m2cqa.statement_verdicts import Prompt

METRICS = "cultureval.metrics.m2cqa.lighteval"
# By the key of the headline's verdicts in the details.
VERDICTS = {
    STRICT_VERDICT: Instrument(name=lambda: "verdicts(strict)", check=lambda: None),
    ORGANISERS_VERDICT: Instrument(name=lambda: "verdicts(organisers)", check=lambda: None),
}


def _statements(
    name: "Prompt",
    prompt: "Callable[..., Doc]",
    size: int,
    parts: "Parts" = STATEMENT_PARTS,
    declared: "Metrics" = STATEMENTS,
    verdict: str = STRICT_VERDICT,
) -> Kind:
    return Kind(
        *(prompt, lazy_call(f"{METRICS}:statement_metrics", name, parts, declared), size),
        instrument=VERDICTS[verdict],
        rows_per_item=3,
    )


def _labelled(name: "Prompt", size: int) -> Kind:
    return _statements(name, partial(rows.labelled_prompt, prompt=name), size, LABELLED_PARTS, LABELLED)


KINDS: dict[str, Kind] = {
    "m2cqa_tf": _statements("tf", rows.true_or_false_prompt, 32),
    "m2cqa_answer_reason": _statements("answer_reason", rows.answer_then_reason_prompt, 256),
    "m2cqa_reason_first": _statements("reason_first", rows.reasoning_first_prompt, 1024),
    # The organisers' baseline stops after 10 tokens.
    "aynvqa_one_word": _statements(
        "one_word", rows.one_word_prompt, 10, ORGANISERS_PARTS, ORGANISERS, ORGANISERS_VERDICT
    ),
    "aynvqa_tf": _labelled("tf", 32),
    "aynvqa_answer_reason": _labelled("answer_reason", 256),
    "aynvqa_reason_first": _labelled("reason_first", 1024),
    "aynvqa_joint": Kind(
        *(rows.joint_prompt, lazy_call(f"{METRICS}:joint_metrics"), 10),
        instrument=Instrument(name=lambda: "choice(one of three)", check=lambda: None),
    ),
}
