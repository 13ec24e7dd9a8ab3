"""`cultureval show --fooled`: items that CFHR counts: the true statement accepted, a false one not rejected."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cultureval.metrics.m2cqa.counterfactual import ROLES
from cultureval.metrics.m2cqa.names import headline_verdict
from cultureval.reports.item_view import shown_text
from cultureval.runs.rows import find_task, rows_of, saved_reply
from cultureval.runtime.data.image_store import stored_image
from cultureval.runtime.doc_fields import specific_of
from cultureval.runtime.errors import CulturevalError, counted

VERDICTS = {"true": "accepted", "invalid": "no readable verdict"}
Item = dict[str, Any]


def find_fooled(results: Path, task: str) -> tuple[list[Item], str]:
    """The items that fooled the model, from the newest details of a task.

    Returns:
        (items, title): each item has `item`, `image`, `country`, `category`, `true` (the statement) and `fooled_by`, a
        list of `statement`, `verdict` and `reply`. The title has the names of task, run and date.

    Raises:
        CulturevalError: There are no such details, or they have no verdicts on single statements.
    """
    run, name = find_task(results, task)
    verdict = headline_verdict(name)
    items: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows_of(run.details[name]):
        specific = specific_of(row["doc"])
        if verdict not in row["metric"] or "role" not in specific:
            raise CulturevalError(f"{task} has no verdicts on single statements: --fooled is for m2cqa and aynvqa.")
        items.setdefault(specific["item_id"], {})[specific["role"]] = row
    found = []
    for item, rows in items.items():
        accepted = len(rows) == len(ROLES) and rows[ROLES[0]]["metric"][verdict] == "true"
        wrong = [rows[role] for role in ROLES[1:] if accepted and rows[role]["metric"][verdict] != "false"]
        if wrong:
            found.append(
                {"item": item, **_about(rows[ROLES[0]]), "fooled_by": [_statement(row, verdict) for row in wrong]}
            )
    return found, f"{name}, {run.name}, {run.date}"


def _about(row: Mapping[str, Any]) -> Item:
    """Image, country, category and true statement of an item, from the row of its true statement."""
    specific = specific_of(row["doc"])
    image = specific.get("image") or ""
    try:
        image = str(stored_image(image))
    except CulturevalError:  # it is not in this machine's store
        pass
    about = {name: specific.get(name) or "" for name in ("country", "category")}
    return {"image": image, **about, "true": specific["statement"]}


def _statement(row: Mapping[str, Any], verdict: str) -> dict[str, str]:
    statement, reply = specific_of(row["doc"])["statement"], saved_reply(row["model_response"])
    return {"statement": statement, "verdict": row["metric"][verdict], "reply": reply}


def fooled_text(results: Path, task: str, limit: int, as_json: bool = False) -> str:
    """The first items that fooled the model as text, with control characters as escapes; or all as JSON.

    Raises:
        CulturevalError: As of `find_fooled`.
    """
    items, named = find_fooled(results, task)
    if as_json:
        return json.dumps({"run": named, "fooled": items}, ensure_ascii=False, indent=2)
    lines = [f"{named}: {counted(len(items), 'item')} right on Q+ and fooled on Q-"]
    for item in items[:limit]:
        place = ", ".join(filter(None, (item["country"], item["category"])))
        lines += [f"{item['item']}{f' ({place})' if place else ''}: {item['image']}", f"  true      {item['true']}"]
        for one in item["fooled_by"]:
            reply = " ".join(one["reply"].split())[:200]
            lines.append(f"  not true  {one['statement']}  [{VERDICTS[one['verdict']]}: {reply}]")
    lines += [f"{len(items) - limit} more items: --limit N, or --json"] if len(items) > limit else []
    return "\n".join(shown_text(line, sys.stdout.isatty()) for line in lines)
