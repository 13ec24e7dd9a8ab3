"""The LightEval metric of M2CQA: verdicts of single statements, and the metrics of the items that they make up.

Each statement's verdict, as each profile of `parse_verdict` reads it, stands in the details; the strict one is the
headline. The corpus part brings the statements of an item together.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import CorpusLevelMetricGrouping
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from cultureval.metrics.m2cqa.names import COUNTS, LAX, STATEMENTS, STRICT
from cultureval.metrics.m2cqa.statement_items import PROFILES, WORDS, Statement, cell_report, item_verdicts
from cultureval.metrics.verdicts import Prompt, parse_verdict
from cultureval.runtime.doc_specific import specific_of
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.lighteval_patches.group_averages import Rate

if TYPE_CHECKING:
    from cultureval.prompts.m2cqa.specific import StatementSpecific


def statement_metrics(prompt: Prompt) -> list[CorpusLevelMetricGrouping]:
    """The metric of one prompt's tasks: LightEval's corpus grouping, whose aggregators return a dict."""
    aggregators = {key: ItemMetrics(profile) for key, profile in PROFILES.items()}
    names = [name for aggregator in aggregators.values() for name in aggregator.names]
    return [
        CorpusLevelMetricGrouping(
            metric_name=names,
            higher_is_better={name: STATEMENTS[name].higher_is_better for name in names},
            category=SamplingMethod.GENERATIVE,
            sample_level_fn=StatementVerdicts(prompt),
            corpus_level_fn=aggregators,
        )
    ]


class Verdict(str):
    """A statement's verdict, "true", "false" or "invalid", that knows its statement; plain text to everything else."""

    item_id: str
    role: str
    rows_of_task: int

    @classmethod
    def of(cls, verdict: bool | None, doc: Doc) -> "Verdict":
        """The verdict on the statement of a document."""
        value = cls(WORDS[verdict])
        specific: StatementSpecific = specific_of(doc)
        value.item_id, value.role = specific["item_id"], specific["role"]
        value.rows_of_task = specific.get("rows_of_task", 0)
        return value


class StatementVerdicts(SampleLevelComputation):
    """Reads the verdict of one output in every profile."""

    def __init__(self, prompt: Prompt) -> None:
        self.prompt = prompt

    def compute(self, doc: Doc, model_response: ModelResponse, **kwargs: object) -> dict[str, Verdict]:
        """`verdict` (strict), `verdict_tolerant` and `verdict_lenient`.

        Raises:
            CulturevalError: The response holds no text at all, not even an empty one.
        """
        # LightEval's own vision backend gives a string instead of a list, which LightEval then takes for a list of
        # characters.
        whole = isinstance(model_response.text, str)
        texts = [model_response.text] if whole else model_response.final_text
        specific: StatementSpecific = specific_of(doc)
        if not texts:
            raise CulturevalError(f"{doc.task_name}, item {specific['item_id']}: the response holds no text.")
        language = specific["language"]
        return {
            key: Verdict.of(parse_verdict(texts[0], self.prompt, language, profile), doc)
            for key, profile in PROFILES.items()
        }

    def __str__(self) -> str:
        """What LightEval writes into the results as this metric's definition."""
        return f"verdicts(prompt={self.prompt}, profiles=strict+tolerant+lenient)"


class ItemMetrics(CorpusLevelComputation):
    """Metrics of the items of a task under one profile; the names of the two lax profiles end in theirs."""

    def __init__(self, profile: str) -> None:
        self.profile = profile
        suffix = "" if profile == "strict" else f"_{profile}"
        self.parts = {f"{name}{suffix}": name for name in (LAX if suffix else (*STRICT, *COUNTS))}

    @property
    def names(self) -> list[str]:
        """Names of the values, without their standard errors."""
        return list(self.parts)

    def compute_corpus(self, items: Sequence[Verdict]) -> dict[str, Rate]:
        """The values and their standard errors; nan where one is undefined.

        Raises:
            CulturevalError: Items lack statements, or hold one twice.
        """
        statements = [Statement(item.item_id, item.role, str(item)) for item in items]
        _, verdicts = item_verdicts(statements, max((item.rows_of_task for item in items), default=0))
        if not len(verdicts):
            return {f"{name}{end}": Rate.of(None) for name in self.parts for end in ("", "_stderr")}
        report = cell_report(verdicts)
        values = {name: Rate.of(report[part]) for name, part in self.parts.items()}
        return values | {f"{name}_stderr": Rate.of(report[f"{part}_stderr"]) for name, part in self.parts.items()}
