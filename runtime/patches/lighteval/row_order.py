"""The order of rows where an item has several rows, so that a limit on rows cuts between items.

LightEval shuffles a task's rows and takes the first `--limit` or `--max-samples` (`LightevalTask.get_docs`, seed 42).
Hardly any item of three statements would be complete. So rows are written in an order that this shuffle turns back into
the original one. If LightEval changes its shuffle, incomplete items are an error, never a wrong number.
"""

import random
from typing import Any, TypeVar

Entry = TypeVar("Entry")
LIGHTEVAL_SEED = 42


def rows_before_shuffle(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Prepared rows in the order that LightEval's shuffle undoes.

    Each row gets the number of rows (`rows_of_task`), by which a metric sees whether a limit has cut the last item.
    """
    return before_shuffle([row | {"rows_of_task": len(rows)} for row in rows])


def before_shuffle(entries: list[Entry]) -> list[Entry]:
    """The entries in the order that LightEval's shuffle turns into the order of `entries`."""
    places = list(range(len(entries)))
    random.Random(LIGHTEVAL_SEED).shuffle(places)
    return [entry for _, entry in sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])]
