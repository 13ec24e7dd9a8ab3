"""Step 7: a stratified sample for people, and what their labels say.

The paper (Appendix A.3): about 15 % of the items by country and category; two annotators label every statement for
Need-Image (Yes, No, Unsure) and Correctness (Correct, Incorrect, Unsure), a third resolves; Gwet's AC1 and the raw
agreement, of which the number of categories is 3 here, used or not.
"""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cultureval.audit.m2cqa.items import REPO, Item
from cultureval.audit.review import require_annotator
from cultureval.metrics.agreement import Coefficient, rater_agreement
from cultureval.prompts.m2cqa.rows import ROLES
from cultureval.runtime.csv_files import read_csv, write_csv
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import Decision

LABELS = {"need_image": ("Yes", "No", "Unsure"), "correctness": ("Correct", "Incorrect", "Unsure")}
SHEET = ("item", "image", "variety", "country", "category", "role", "statement", "gold", *LABELS)


@dataclass(frozen=True)
class SheetLabel:
    """One annotator's labels of one statement, of `LABELS`; None where the cell is empty.

    Attributes:
        statement: Which the annotator saw; "" where the sheet has lost its column.
    """

    need_image: str | None
    correctness: str | None
    statement: str = ""


@dataclass(frozen=True)
class Decided:
    """What annotators decide of an item, as words of a manifest, and their names."""

    decision: Decision
    reasons: tuple[str, ...]
    by: tuple[str, ...]


Key = tuple[str, str, str]  # item, variety, role


def stratified(items: Sequence[Item], share: float, seed: int) -> list[Item]:
    """A sample with each country and category in proportion.

    Every stratum gives its share rounded down; those with the largest remainders give one more until the sample has
    `share` of all, rounded up. The same seed draws the same items.
    """
    strata: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in items:
        strata[item.about["country"], item.about["category"]].append(item)
    wanted = math.ceil(share * len(items) - 1e-9)
    counts = {name: math.floor(share * len(some)) for name, some in strata.items()}
    chance = random.Random(seed)
    order = sorted(strata, key=lambda name: (-(share * len(strata[name]) % 1), chance.random()))
    for name in order[: wanted - sum(counts.values())]:
        counts[name] += 1
    drawn = {item.id for name, some in strata.items() for item in chance.sample(some, counts[name])}
    return [item for item in items if item.id in drawn]


def write_sheet(file: Path, items: Sequence[Item], varieties: Sequence[str], seed: int) -> None:
    """Writes a CSV table for one annotator: a row a statement, in random order; labels are to be filled in."""
    rows = []
    for item in items:
        for variety in varieties:
            for role in random.Random(f"{seed}/{item.id}/{variety}").sample(ROLES, len(ROLES)):
                about = (item.about["country"], item.about["category"], role, _text(item, variety, role))
                cells = (item.id, f"{REPO}/images/{item.image}", variety, *about, role == "q_plus", "", "")
                rows.append(dict(zip(SHEET, cells, strict=True)))
    write_csv(file, rows, SHEET, "utf-8-sig")


def _text(item: Item, variety: str, role: str) -> str:
    return item.statements[variety].texts[ROLES.index(role)]


def read_sheet(path: Path) -> dict[Key, SheetLabel]:
    """The labels of a filled sheet; statements without any label are left out.

    Raises:
        CulturevalError: A column or a label is none of those known, or a statement is there twice.
    """
    found: dict[Key, SheetLabel] = {}
    for line, row in read_csv(path, ("item", "variety", "role", *LABELS)):
        key = row["item"], row["variety"], row["role"]
        if key[2] not in ROLES or key in found:
            why = "is there twice" if key in found else f"is none of {', '.join(ROLES)}"
            raise CulturevalError(f"{path}, line {line}: {key[2]} of {key[0]} ({key[1]}) {why}.")
        given = {name: _label(row[name], name, f"{path}, line {line}") for name in LABELS}
        if any(given.values()):
            found[key] = SheetLabel(**given, statement=row.get("statement") or "")
    return found


def read_sheets(paths: Sequence[Path]) -> dict[str, dict[Key, SheetLabel]]:
    """Annotator -> the labels of the filled sheet of that name; errors as of `read_sheet`, or two have one name."""
    found = {require_annotator(path.stem, str(path)): read_sheet(path) for path in paths}
    if len(found) < len(paths):
        raise CulturevalError("Two sheets have the same name: name each after its annotator, as amal.csv.")
    return found


def _label(value: str, name: str, where: str) -> str | None:
    text = value.strip()
    if not text:
        return None
    known = next((label for label in LABELS[name] if label.casefold() == text.casefold()), None)
    if known is None:
        raise CulturevalError(f"{where}: {name} is {text[:40]!r}, none of {', '.join(LABELS[name])}.")
    return known


def agreement(sheets: Sequence[Mapping[Key, SheetLabel]]) -> dict[tuple[str, str], Mapping[str, Coefficient]]:
    """(question, role) -> the coefficients of `rater_agreement` over statements with two labels or more.

    Raises:
        CulturevalError: There are fewer than two sheets, or they have no statement in common.
    """
    if len(sheets) < 2:
        raise CulturevalError("Agreement needs the sheets of two annotators or more.")
    found = {}
    for question, categories in LABELS.items():
        for role in ROLES:
            keys = sorted({key for one in sheets for key in one if key[2] == role})
            ratings = [[getattr(one.get(key), question, None) for one in sheets] for key in keys]
            both = [place for place, some in enumerate(ratings) if sum(label is not None for label in some) > 1]
            if both:
                kept = [ratings[place] for place in both]
                found[question, role] = rater_agreement(kept, categories, [keys[place][0] for place in both])
    if not found:
        raise CulturevalError("The sheets have no statement in common that two annotators labelled.")
    return found


def disputed(sheets: Sequence[Mapping[Key, SheetLabel]]) -> list[Key]:
    """Statements on which no majority of annotators agrees in both questions: a further annotator resolves them."""
    keys = sorted({key for one in sheets for key in one})
    return [key for key in keys if any(_majority(sheets, key, question) is None for question in LABELS)]


def wrong_items(sheets: Sequence[Mapping[Key, SheetLabel]]) -> dict[str, str]:
    """Item -> why people reject it, as a word of a manifest.

    It is `person:incorrect:en:q_plus` of the first statement that most call Incorrect, or `person:no_image_needed:...`
    of one that most can judge without the image.
    """
    found: dict[str, str] = {}
    for key in sorted({key for one in sheets for key in one}):
        item, variety, role = key
        if _majority(sheets, key, "correctness") == "Incorrect":
            found.setdefault(item, f"person:incorrect:{variety}:{role}")
        elif _majority(sheets, key, "need_image") == "No":
            found.setdefault(item, f"person:no_image_needed:{variety}:{role}")
    return found


def decisions(sheets: Mapping[str, Mapping[Key, SheetLabel]], items: Sequence[Item]) -> dict[str, Decided]:
    """Item -> what most annotators decide, of those that somebody labelled.

    An item is discarded if most reject one of its statements (`wrong_items`), else to be reviewed where some statement
    has no majority or most are unsure, else kept.

    Raises:
        CulturevalError: A label is of an item or a statement that the curation does not hold.
    """
    known = {item.id: item for item in items}
    for name, labels in sheets.items():
        for (item, variety, role), label in labels.items():
            here = _text(known[item], variety, role) if item in known and variety in known[item].statements else None
            if here is None or (label.statement and label.statement.strip() != here.strip()):
                raise CulturevalError(
                    f"{name} labelled another {role} of {item} ({variety}) than this curation holds: fill its sheet."
                )
    labelled = list(sheets.values())
    wrong, tied = wrong_items(labelled), {key[0] for key in disputed(labelled)}
    unsure = {key[0] for one in labelled for key in one if "Unsure" in (_majority(labelled, key, q) for q in LABELS)}
    found: dict[str, Decided] = {}
    labelled_by = {name: {key[0] for key in labels} for name, labels in sheets.items()}
    for item in known:
        by = tuple(name for name, some in labelled_by.items() if item in some)
        if item in wrong:
            found[item] = Decided("discard", (wrong[item],), by)
        elif item in tied or item in unsure:
            found[item] = Decided("review", ("person:tie" if item in tied else "person:unsure",), by)
        elif by:
            found[item] = Decided("keep", ("person:keep",), by)
    return found


def _majority(sheets: Sequence[Mapping[Key, SheetLabel]], key: Key, question: str) -> str | None:
    given = [getattr(one[key], question) for one in sheets if key in one and getattr(one[key], question)]
    (label, count), *_ = Counter(given).most_common(1) or [(None, 0)]
    return label if count * 2 > len(given) else None
