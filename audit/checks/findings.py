"""The types of the table of checks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cultureval.audit.items import AuditItem

Severity = Literal["error", "warning", "notice"]


@dataclass(frozen=True)
class Found:
    """What a check found in one item, or in a subset.

    Attributes:
        item: The item; the first one of the subset where the finding is about all of it.
        detail: The clause that completes the check's sentence; it may quote the item.
        of_subset: Whether it is about the whole subset.
        other: The id of the other item of a pair; "" without one.
    """

    item: AuditItem
    detail: str
    of_subset: bool = False
    other: str = ""


Look = Callable[[Sequence[AuditItem]], Iterator[Found]]


@dataclass(frozen=True)
class Check:
    """One check: from all items to what it finds.

    Attributes:
        severity: "error": the item cannot be scored fairly; "warning": a person should look; "notice": worth knowing.
        reason: Why it matters, one sentence.
    """

    name: str
    severity: Severity
    reason: str
    look: Look


@dataclass(frozen=True)
class Finding:
    """A finding with the check that made it; `task`, `row` and `hash` are "" for a whole subset."""

    check: str
    severity: Severity
    source: str
    subset: str
    task: str
    row: str
    hash: str
    detail: str
    other: str = ""


def check_each(severity: Severity, reason: str) -> Callable[[Callable[[AuditItem], str]], Check]:
    """A decorator: a function that looks at an item and returns a clause ("" where nothing is wrong) is a check."""

    def checked(look: Callable[[AuditItem], str]) -> Check:
        def all_items(items: Sequence[AuditItem]) -> Iterator[Found]:
            return (Found(item, detail) for item in items if (detail := look(item)))

        return Check(look.__name__, severity, reason, all_items)

    return checked


def check_all(severity: Severity, reason: str) -> Callable[[Look], Check]:
    """A decorator: a function that looks at all items together is a check."""
    return lambda look: Check(look.__name__, severity, reason, look)
