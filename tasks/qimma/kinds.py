"""How QIMMA's tasks are asked and scored.

QIMMA's task code: 512 new tokens up to a newline for QA; unpublished for FannOrFlop (ours: 4,096, no stop).
"""

from dataclasses import replace

from cultureval.metrics.code.report import check_sandbox, judge_name
from cultureval.metrics.semantic import bertscore_model, try_bertscore
from cultureval.prompts.choices import choice_prompt, multi_select_prompt
from cultureval.prompts.qimma import code_problems, rows
from cultureval.runtime.data.scorers import versioned_name
from cultureval.runtime.dotted_names import lazy_call
from cultureval.runtime.extras import require_camel_tools
from cultureval.tasks.choice_replies import generative_kinds
from cultureval.tasks.kinds import Instrument, Kind

CHOICES = "cultureval.metrics.lighteval.multiple_choice"
METRICS = "cultureval.metrics.qimma.lighteval"
CODE_METRICS = lazy_call("cultureval.metrics.code.lighteval:code_metrics")
BERTSCORE = Instrument(
    name=lambda: f"BERTScore({versioned_name(bertscore_model())},last layer,no idf,no rescaling)",
    check=lambda: try_bertscore(bertscore_model()),
    sources=lambda: (bertscore_model(),),
    needs="BERTScore model",
)


def _check_words() -> None:
    require_camel_tools()
    BERTSCORE.check()


WORDS = replace(BERTSCORE, check=_check_words)  # of poems: words are split before they are compared
SANDBOX = Instrument(name=judge_name, check=check_sandbox, before_generation=True, needs="bubblewrap")


def _code(dataset: str) -> Kind:
    stops = code_problems.CONTINUATION_STOPS[dataset]
    return Kind(code_problems.code_prompt, CODE_METRICS, code_problems.NEW_TOKENS, stops, SANDBOX)


KINDS: dict[str, Kind] = {
    "multiple_choice": Kind(choice_prompt, lazy_call(f"{CHOICES}:multiple_choice_metrics")),
    "multi_select": Kind(multi_select_prompt, lazy_call(f"{CHOICES}:multi_select_metrics")),
    "bertscore": Kind(rows.answer_prompt, lazy_call(f"{METRICS}:bertscore_metrics"), 512, ("\n",), BERTSCORE),
    "fannorflop": Kind(
        *(rows.poem_prompt, lazy_call(f"{METRICS}:fannorflop_metrics"), 4096, (), WORDS),
    ),
    "code_humaneval": _code("humaneval"),
    "code_mbpp": _code("mbpp"),
}
GENERATIVE_KINDS = generative_kinds("ar")
