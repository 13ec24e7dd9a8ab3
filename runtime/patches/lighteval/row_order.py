"""The order of rows where several of them are one item, so that a limit on rows cuts between items.

LightEval shuffles a task's rows and then takes the first `--limit` or `--max-samples` of them
(`LightevalTask.get_docs`, seed 42): hardly any item of three statements would be complete. Rows are therefore written
in the order that this shuffle turns back into the original one. If LightEval changes its shuffle, incomplete items
are an error, never a wrong number.
"""

import random
from typing import Any, TypeVar

from cultureval.runtime.patches.table import expect, patched

Entry = TypeVar("Entry")
LIGHTEVAL_SEED = 42


def rows_before_shuffle(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Prepared rows in the order that LightEval's shuffle undoes; each row holds the number of rows (`rows_of_task`).

    With that number a metric can tell whether a limit has cut the last item.
    """
    return before_shuffle([row | {"rows_of_task": len(rows)} for row in rows])


def before_shuffle(entries: list[Entry]) -> list[Entry]:
    """The order that LightEval's shuffle turns into the given one."""
    places = list(range(len(entries)))
    random.Random(LIGHTEVAL_SEED).shuffle(places)
    return [entry for _, entry in sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])]


@patched(
    "lighteval",
    "lighteval.tasks.lighteval_task.LightevalTask.get_docs",
    "It shuffles rows before it applies a limit, which would cut items: our rows are written pre-permuted.",
)
def _shuffle_is_undone() -> None:
    plain = list(range(30))
    expect(_order_of_docs(plain) != plain, "LightEval no longer shuffles a task's rows: write them as they are")
    kept = _order_of_docs(before_shuffle(plain))
    expect(kept == plain, "LightEval shuffles a task's rows in another way: read LightevalTask.get_docs")


def _order_of_docs(numbers: list[int]) -> list[int]:
    """The order in which LightEval runs documents that its data set holds in this order."""
    from types import SimpleNamespace

    from lighteval.tasks.lighteval_task import LightevalTask

    task = object.__new__(LightevalTask)
    vars(task).update(
        name="canary",
        full_name="canary|0",
        _docs=[SimpleNamespace(number=number, sampling_methods=[], use_logits=None) for number in numbers],
        dataset_config=SimpleNamespace(num_fewshots=0),
        fewshot_sampler=SimpleNamespace(sample_fewshot_examples=lambda *_, **__: []),
        sampling_methods=[],
        generation_size=None,
        stop_sequence=[],
        num_samples=[1],
    )
    return [doc.number for doc in task.get_docs()]
