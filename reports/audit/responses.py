"""What `cultureval audit responses` prints and writes."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cultureval.reports.audit.answers import AnsweredItem, Answers
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.rounding import printed_or_na

if TYPE_CHECKING:
    from cultureval.audit.responses import ItemReport

COLUMNS = ("", "item", "models", "right", "strong", "weak", "r", "H", "evidence", "reason")
FEW_MODELS = 8


def responses_text(answers: Answers, reports: "Sequence[ItemReport]", reasons: Mapping[str, str], limit: int) -> str:
    """The ranked list.

    Args:
        answers: The answers.
        reports: Of `audit.responses.rank_items`.
        reasons: Name of a reason -> what it means.
        limit: At most this many items are listed.
    """
    suspicious = [one for one in reports if one.reasons]
    rows = [_cells(number, answers, one, reasons) for number, one in enumerate(suspicious[:limit], start=1)]
    parts = [terminal_table(COLUMNS, rows, align="rlrrrrrrrl")] if rows else []
    counts = Counter(reason for one in suspicious for reason in one.reasons)
    parts += ["\n".join(f"{count:,} {name}: {reasons[name]}" for name, count in counts.most_common())] if counts else []
    easy = sum(one.share_right == 1 for one in reports)
    tail = [
        f"{len(reports):,} items by {len(answers.models)} models: {len(suspicious):,} with a reason to look, of which "
        f"{min(limit, len(suspicious)):,} are listed; {easy:,} that all models have right tell nothing."
    ]
    if len(answers.models) < FEW_MODELS:
        tail.append(
            f"With {len(answers.models)} models many of these are chance: docs/audit.md says how many to expect."
        )
    return "\n\n".join([*parts, "\n".join([*answers.left_out, *tail])])


def _cells(number: int, answers: Answers, one: "ItemReport", reasons: Mapping[str, str]) -> list[str]:
    item = answers.items[one.place]
    shares = [_percent(value) for value in (one.share_right, one.strong_right, one.weak_right)]
    return [
        *(str(number), f"{item.task} {item.name}", str(one.models), *shares),
        *(
            printed_or_na(one.correlation),
            printed_or_na(one.scalability),
            f"{one.evidence:.1f}",
            _why(item, one, reasons),
        ),
    ]


def _why(item: AnsweredItem, one: "ItemReport", reasons: Mapping[str, str]) -> str:
    first = one.reasons[0]
    if first != "wrong_key" or one.rival < 0:
        return reasons[first]
    gold = "/".join(item.options[place] for place in item.gold)
    return (
        f"{_percent(one.strong_rival)} of the strong choose {item.options[one.rival]}, {_percent(one.strong_gold)} the "
        f"gold {gold}"
    )


def _percent(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.0%}"


def report_records(answers: Answers, reports: "Sequence[ItemReport]") -> list[dict[str, Any]]:
    """The ranked items as data for JSON, without their texts; undefined numbers are null."""
    records = []
    for one in reports:
        item = answers.items[one.place]
        numbers = {name: None if value != value else value for name, value in asdict(one).items() if name != "place"}
        rival = item.options[one.rival] if one.rival >= 0 else None
        named = {"task": item.task, "item": item.name, "row": item.row, "options": list(item.options)}
        records.append(named | {"gold": [item.options[place] for place in item.gold]} | numbers | {"rival": rival})
    return records
