"""A stratified sample for people, and what their labels say.

The paper (Appendix A.3) samples about 15 % of the items by country and category. Two annotators label every statement
for Need-Image (Yes, No, Unsure) and Correctness (Correct, Incorrect, Unsure); a third resolves disagreement. It reports
Gwet's AC1 and raw agreement over the three categories.
"""

import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cultureval.audit.m2cqa.items import REPO, Item
from cultureval.audit.review import require_annotator, require_distinct_names
from cultureval.metrics.agreement import Coefficient, rater_agreement
from cultureval.prompts.m2cqa.rows import ROLES
from cultureval.runtime.csv_files import read_csv, write_csv
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import Decision

if TYPE_CHECKING:
    import pandas

LABELS = {"need_image": ("Yes", "No", "Unsure"), "correctness": ("Correct", "Incorrect", "Unsure")}
SHEET = ("item", "image", "variety", "country", "category", "role", "statement", "gold", *LABELS)
STATEMENT = ["item", "variety", "role"]  # the columns that name a statement


def stratified(items: Sequence[Item], share: float) -> list[Item]:
    """A systematic sample: every 1 / share-th of the shuffled items sorted by country and category.

    It holds `share` of all items, rounded up, and each country and category in proportion. The same items give the
    same sample.
    """
    shuffled = random.Random(0).sample(items, len(items))
    ordered = sorted(shuffled, key=lambda item: (item.about["country"], item.about["category"]))
    count = math.ceil(share * len(items) - 1e-9)
    drawn = {ordered[place * len(items) // count].id for place in range(count)}
    return [item for item in items if item.id in drawn]


def write_sheet(file: Path, items: Sequence[Item], varieties: Sequence[str]) -> None:
    """Writes a CSV table for annotators: a row a statement, in random order, with empty labels."""
    rows = []
    for item in items:
        for variety in varieties:
            for role in random.Random(f"0/{item.id}/{variety}").sample(ROLES, len(ROLES)):
                text = item.statements[variety].texts[ROLES.index(role)]
                about = (item.about["country"], item.about["category"], role, text)
                cells = (item.id, f"{REPO}/images/{item.image}", variety, *about, role == "q_plus", "", "")
                rows.append(dict(zip(SHEET, cells, strict=True)))
    write_csv(file, rows, SHEET, "utf-8-sig")


def read_sheets(paths: Sequence[Path], items: Sequence[Item]) -> "pandas.DataFrame":
    """The labels in filled sheets, which are named after their annotators.

    Args:
        items: The items of the curation that the sheets are about.

    Returns:
        A row a statement and annotator: item, variety, role, annotator, need_image, correctness ("": not labelled).

    Raises:
        CulturevalError: A label is unknown, a statement is not the curation's, or two sheets have one name.
    """
    import pandas

    texts = {
        (item.id, variety, role): text
        for item in items
        for variety, statements in item.statements.items()
        for role, text in zip(ROLES, statements.texts, strict=True)
    }
    require_distinct_names(paths)
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for path in paths:
        annotator = require_annotator(path.stem, str(path))
        for line, row in read_csv(path, (*STATEMENT, "statement", *LABELS)):
            where, statement = f"{path}, line {line}", (row["item"], row["variety"], row["role"])
            if texts.get(statement, "").strip() != row["statement"].strip():
                raise CulturevalError(f"{where}: the curation holds another statement: fill in its own sheet.")
            labels = {name: _label(row[name], name, where) for name in LABELS}
            if any(labels.values()):
                rows[annotator, *statement] = dict(zip(STATEMENT, statement, strict=True)) | labels
                rows[annotator, *statement]["annotator"] = annotator
    return pandas.DataFrame(list(rows.values()), columns=[*STATEMENT, "annotator", *LABELS])


def _label(value: str, name: str, where: str) -> str:
    known = {label.casefold(): label for label in ("", *LABELS[name])}
    label = known.get(value.strip().casefold())
    if label is None:
        raise CulturevalError(f"{where}: {name} is {value.strip()[:40]!r}, none of {', '.join(LABELS[name])}.")
    return label


def agreement(labels: "pandas.DataFrame") -> dict[tuple[str, str], Mapping[str, Coefficient]]:
    """(question, role) -> the coefficients of `rater_agreement` over statements with two labels or more."""
    found = {}
    for question, categories in LABELS.items():
        for role in ROLES:
            own = labels[labels["role"].eq(role) & labels[question].ne("")]
            table = own.pivot(index=STATEMENT, columns="annotator", values=question).dropna(thresh=2)
            if len(table):
                ratings = table.astype(object).where(table.notna(), None).to_numpy().tolist()
                found[question, role] = rater_agreement(ratings, categories, [item for item, *_ in table.index])
    return found


def majorities(labels: "pandas.DataFrame") -> "pandas.DataFrame":
    """The label of more than half of the annotators, by statement and question; "" without a majority."""

    def majority(votes: "pandas.Series") -> str:
        counts = votes[votes.ne("")].value_counts()
        return str(counts.index[0]) if len(counts) and counts.iloc[0] * 2 > counts.sum() else ""

    return labels.groupby(STATEMENT)[list(LABELS)].agg(majority)


def decisions(majority: "pandas.DataFrame") -> dict[str, tuple[Decision, str]]:
    """Item -> the decision, and its reason as a word of a manifest, from the majorities of its statements.

    An item is discarded if most annotators call a statement Incorrect or judge it without the image. It stays to be
    reviewed if a statement has no majority, or most annotators are unsure. Else it is kept.
    """
    found: dict[str, tuple[Decision, str]] = {}
    for item, some in majority.groupby(level="item"):
        reasons = []
        for (_, variety, role), need_image, correctness in some.itertuples():
            if correctness == "Incorrect":
                reasons.append(f"person:incorrect:{variety}:{role}")
            elif need_image == "No":
                reasons.append(f"person:no_image_needed:{variety}:{role}")
        if reasons:
            found[str(item)] = "discard", reasons[0]
        elif some.eq("").to_numpy().any():
            found[str(item)] = "review", "person:tie"
        else:
            unsure = some.eq("Unsure").to_numpy().any()
            found[str(item)] = ("review", "person:unsure") if unsure else ("keep", "person:keep")
    return found
