"""What `cultureval audit import` and `cultureval audit review` print."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cultureval.runtime.errors import counted
from cultureval.runtime.printed_numbers import printed_or_na

if TYPE_CHECKING:
    from cultureval.audit.review.verdicts import Reviewed


def reviewed_text(reviewed: "Reviewed") -> str:
    """Who gave how many verdicts, what came of them, and how far people agree."""
    people = ", ".join(f"{name} {count:,}" for name, count in sorted(reviewed.annotators.items()))
    lines = [
        f"{counted(reviewed.verdicts, 'verdict')} of {counted(len(reviewed.annotators), 'annotator')} ({people}).",
        f"{counted(reviewed.kept, 'item')} kept, {reviewed.discarded:,} discarded, {reviewed.tied:,} tied, which stay "
        f"open, {reviewed.waiting:,} still without enough votes.",
    ]
    if reviewed.pairs:
        named = (("AC1", "ac1"), ("alpha", "alpha"))
        values = ", ".join(f"{name} {printed_or_na(reviewed.agreement[key])}" for name, key in named)
        lines.append(f"Agreement on {counted(reviewed.pairs, 'item')} with two votes or more: {values}.")
    return "\n".join(lines)


def desks_text(addresses: Mapping[str, str], done: Mapping[str, tuple[int, int]]) -> str:
    """The address of each annotator's page, which nobody else may know, and how far each is."""
    return "\n".join(
        f"{name} ({done[name][0]:,} of {done[name][1]:,} done): {address}" for name, address in addresses.items()
    )
