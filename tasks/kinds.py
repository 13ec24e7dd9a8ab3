"""How tasks are asked and scored: the types of which each suite's `kinds.py` makes its table `KINDS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lighteval.metrics.utils.metric_utils import Metric
    from lighteval.tasks.requests import Doc


@dataclass(frozen=True)
class Instrument:
    """What scores answers besides the answers: a model, a judge, a sandbox.

    Attributes:
        name: Names it for the signature of the scores.
        check: Raises CulturevalError where it is missing, before any answer is asked for.
        before_generation: Whether stock LightEval, which checks no instrument, must be stopped as well before it
            generates for hours what could not be scored.
    """

    name: Callable[[], str]
    check: Callable[[], None]
    before_generation: bool = False


@dataclass(frozen=True)
class Kind:
    """How the tasks of one metric set are asked and scored.

    Attributes:
        prompt: From a prepared row to a Doc.
        metrics: Makes the LightEval metrics.
        generation_size: New tokens at most; -1 where nothing is generated.
        stop_sequence: What ends a generation.
        instrument: What the metrics need besides the answers.
        rows_per_item: Rows that are scored together as one item, of which a limit must not take a part.
        few_shot_prompt: As `prompt`, where a task is asked otherwise after examples.
        judge_templates: How judges are asked about the answers, where CULTUREVAL_JUDGE names judges.
    """

    prompt: "Callable[..., Doc]"
    metrics: "Callable[[], Sequence[Metric]]"
    generation_size: int = -1
    stop_sequence: tuple[str, ...] = ()
    instrument: Instrument | None = None
    rows_per_item: int = 1
    few_shot_prompt: "Callable[..., Doc] | None" = None
    judge_templates: tuple[str, ...] = ()
