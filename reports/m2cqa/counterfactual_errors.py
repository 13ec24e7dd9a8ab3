"""The items that fooled a model: right on the true statement, wrong on a false one, as CFHR counts them."""

from collections.abc import Mapping, Sequence
from typing import Any

from cultureval.metrics.m2cqa.names import headline_verdict
from cultureval.metrics.m2cqa.statement_items import ROLES
from cultureval.reports.counterfactual_errors import FooledItem, FooledStatement
from cultureval.runs.rows import saved_reply
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError


def fooled_items(rows: Sequence[Mapping[str, Any]], task: str) -> list[FooledItem]:
    """The items whose true statement was accepted and a false one not rejected, in the order of the details.

    Raises:
        CulturevalError: The task has no verdicts on single statements.
    """
    verdict = headline_verdict(task)
    items: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        specific = specific_of(row["doc"])
        if verdict not in row["metric"] or "role" not in specific:
            raise CulturevalError(f"{task} has no verdicts on single statements, so that none of them can fool.")
        items.setdefault(specific["item_id"], {})[specific["role"]] = row
    found = []
    for item, by_role in items.items():
        if len(by_role) < len(ROLES) or by_role[ROLES[0]]["metric"][verdict] != "true":
            continue
        wrong = [by_role[role] for role in ROLES[1:] if by_role[role]["metric"][verdict] != "false"]
        if wrong:
            found.append(_item(item, by_role[ROLES[0]], wrong, verdict))
    return found


def _item(item: str, true: Mapping[str, Any], wrong: Sequence[Mapping[str, Any]], verdict: str) -> FooledItem:
    specific = specific_of(true["doc"])
    return FooledItem(
        item=item,
        image=_image_file(specific.get("image") or ""),
        country=specific.get("country") or "",
        category=specific.get("category") or "",
        true=specific["statement"],
        fooled_by=[
            FooledStatement(
                statement=specific_of(row["doc"])["statement"],
                verdict=row["metric"][verdict],
                reply=saved_reply(row["model_response"]),
            )
            for row in wrong
        ],
    )


def _image_file(name: str) -> str:
    """The file of a stored image; its name, where the store of this machine does not hold it."""
    try:
        return str(stored_image(name))
    except CulturevalError:
        return name
