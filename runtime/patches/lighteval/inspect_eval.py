"""`lighteval eval` with the Inspect of today: options that it has renamed, and a table that shows every task's score.

LightEval 0.13 passes options under names that Inspect refuses, whether they are given or not, so that no task runs. Its
table shows a metric called `accuracy`, and `-` for all tasks without one.
"""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.patches.table import expect, patched, source_of

RENAMED = {"frequence_penalty": "frequency_penalty", "log_probs": "logprobs"}
GONE = {"response_format": "--response-format"}


def mend_inspect_eval(module: ModuleType) -> None:
    """Changes the loaded module `lighteval.main_inspect`."""
    stock_cell = module._format_metric_cell

    def cell(data: Mapping[str, Mapping[str, Any]], column: str, metric: str, stderr_metric: str) -> str:
        found = data.get(column) or {}
        if metric in found or not found:
            return stock_cell(data, column, metric, stderr_metric)
        first = next(iter(found))  # the headline
        return f"{stock_cell(data, column, first, stderr_metric)} {first}"

    module.inspect_ai_eval_set = _eval_set  # type: ignore[attr-defined]
    module._format_metric_cell = cell  # type: ignore[attr-defined]


def _eval_set(tasks: Any, **given: Any) -> Any:
    """Inspect's `eval_set`, with the options that were given, which it must have."""
    from inspect_ai import eval_set

    wanted = {RENAMED.get(name, name): value for name, value in given.items() if value is not None}
    for name, option in GONE.items():
        if name in wanted:
            raise CulturevalError(f"Inspect no longer has {option}: leave it out, or run `inspect eval`.")
    return eval_set(tasks, **wanted)


@patched(
    "lighteval",
    "lighteval.main_inspect.inspect_ai_eval_set",
    "It passes options that Inspect refuses, so that `lighteval eval` runs nothing.",
)
def _options_are_refused() -> None:
    from inspect_ai.model import GenerateConfig

    for name in (*RENAMED, *GONE):
        expect(name not in GenerateConfig.model_fields, f"Inspect takes {name} again: remove it from this patch")
        expect(f"{name}=" in source_of("lighteval.main_inspect"), f"LightEval no longer passes {name}")
    for name in RENAMED.values():
        expect(name in GenerateConfig.model_fields, f"Inspect no longer has {name}")


@patched(
    "lighteval",
    "lighteval.main_inspect._format_metric_cell",
    "Its table leaves out all metrics but one called accuracy.",
)
def _the_table_shows_accuracy() -> None:
    source = source_of("lighteval.main_inspect")
    expect('metric: str = "accuracy"' in source, "LightEval's table of `eval` no longer shows accuracy alone")
    expect("_format_metric_cell(data, col, metric, stderr_metric)" in source, "LightEval's table is made otherwise now")
