"""How tasks are asked and scored: the types of the table `KINDS` in each suite's `kinds.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lighteval.metrics.utils.metric_utils import Metric
    from lighteval.tasks.requests import Doc


@dataclass(frozen=True)
class Instrument:
    """What scoring needs besides the answers: a model, a judge, a sandbox.

    Attributes:
        name: Returns its name for the signature of the scores.
        check: Tries it, before any answer is generated; raises CulturevalError where it cannot be used.
        before_generation: Whether the check also runs under stock LightEval, which would otherwise generate for hours
            answers that cannot be scored.
        sources: Returns hub ids of the models, and addresses of the files, that `cultureval mirror` fetches.
        lacking: Returns why some of the metrics cannot be computed, so that only they are left out; "" where all can.
        without: The settings, by name, under which these metrics are left out.
        needs: What a machine needs for it, as `cultureval tasks` lists it: "BERTScore model"; "" for nothing.
    """

    name: Callable[[], str]
    check: Callable[[], None]
    before_generation: bool = False
    sources: Callable[[], tuple[str, ...]] = tuple
    lacking: Callable[[], str] | None = None
    without: Mapping[str, Any] = field(default_factory=dict, hash=False)
    needs: str = ""


@dataclass(frozen=True)
class Kind:
    """How the tasks of one metric set are asked and scored.

    Attributes:
        prompt: From a prepared row to a Doc.
        metrics: Makes the LightEval metrics.
        generation_size: New tokens at most; -1 where nothing is generated.
        stop_sequence: Stop strings of the generation.
        instrument: The instrument of the metrics, if any.
        rows_per_item: Rows that are scored together as one item, which a limit must not cut.
        few_shot_prompt: As `prompt`, where the prompt differs after few-shot examples.
        judge_templates: Templates for judges of the answers, where CULTUREVAL_JUDGE names judges.
        not_generated: Of tasks whose choices are scored and that have no generative form: why.
    """

    prompt: "Callable[..., Doc]"
    metrics: "Callable[[], Sequence[Metric]]"
    generation_size: int = -1
    stop_sequence: tuple[str, ...] = ()
    instrument: Instrument | None = None
    rows_per_item: int = 1
    few_shot_prompt: "Callable[..., Doc] | None" = None
    judge_templates: tuple[str, ...] = ()
    not_generated: str = ""
