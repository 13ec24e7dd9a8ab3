"""The order of rows where several of them are one item, so that a limit on rows cuts between items.

LightEval shuffles a task's rows and then takes the first `--limit` or `--max-samples` of them
(`LightevalTask.get_docs`, seed 42). Of items of three statements hardly one would be left whole. Rows are therefore
written in the one order that this shuffle turns back into the items' own; `tests/unit/test_m2cqa_rows.py` shuffles with
LightEval itself. Should LightEval change its shuffle, incomplete items are an error, never a wrong number.
"""

import random
from typing import TypeVar

from cultureval.prompts.preparation import PreparedRow

Entry = TypeVar("Entry")
LIGHTEVAL_SEED = 42


def items_behind_shuffle(rows: list[PreparedRow]) -> list[PreparedRow]:
    """The rows in the order that LightEval's shuffle undoes; each says how many there are (`rows_of_task`).

    With that number a metric knows whether a limit has cut the last item.
    """
    return before_shuffle([row | {"rows_of_task": len(rows)} for row in rows])


def before_shuffle(entries: list[Entry]) -> list[Entry]:
    """The order that LightEval's shuffle turns into the given one."""
    places = list(range(len(entries)))
    random.Random(LIGHTEVAL_SEED).shuffle(places)
    return [entry for _, entry in sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])]
