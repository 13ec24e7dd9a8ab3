"""Items for people in a CSV file and a Label Studio project, their verdicts, and the manifest that these decide.

People fill in `review.csv` with a spreadsheet, or make a project of Label Studio from `tasks.json` and `labelling.xml`
and export it as JSON. Images are copied beside these files under the names of our store, never under paths of the data.
"""

import json
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from cultureval.audit.items import AuditItem
from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha
from cultureval.runtime.csv_files import read_csv, write_csv
from cultureval.runtime.data.row_files import utf8_text
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import Decision, Manifest, ManifestRow

Choice = Literal["keep", "discard", "unsure"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
COLUMNS = ("item", "hash", "reasons", "context", "image", "question", "options", "annotator", "verdict", "note")
REVIEW, TASKS, INTERFACE = "review.csv", "tasks.json", "labelling.xml"
IMAGES = "images"  # folder beside the files
LOCAL_FILES = "/data/local-files/?d="  # where Label Studio serves the files below its document root
LABELLING = """<View>
  <Style>.lsf-main-view * { unicode-bidi: plaintext; }</Style>
  <Text name="reasons" value="$reasons"/>
  <Text name="context" value="$context"/>IMAGE
  <Text name="question" value="$question"/>
  <Text name="options" value="$options"/>
  <Choices name="verdict" toName="question" choice="single" required="true">
    <Choice value="keep" hotkey="k" hint="صالح / keep"/>
    <Choice value="discard" hotkey="d" hint="غير صالح / discard"/>
    <Choice value="unsure" hotkey="u" hint="لا أدري / unsure"/>
  </Choices>
  <TextArea name="note" toName="question" rows="2"/>
</View>
"""


@dataclass(frozen=True)
class Verdict:
    """A person's verdict on an item; "unsure" is no vote. The hash is that of the row that the person saw."""

    item: str
    hash: str
    annotator: str
    verdict: Choice


def require_annotator(name: str, where: str) -> str:
    """The name of an annotator in NFC, with letters of any script; CulturevalError if it holds other signs."""
    name = unicodedata.normalize("NFC", name)
    letters = "_" + re.sub("[.@+-]", "_", name)
    if not letters.isidentifier() or not 1 < len(letters) <= 61 or name.startswith("."):
        raise CulturevalError(f"{where}: an annotator is named by 1 to 60 letters, digits and _.@+-, not {name!r}.")
    return name


def require_distinct_names(files: Sequence[Path]) -> None:
    """Refuses two files of annotators with one name, which would count as one annotator."""
    if len({unicodedata.normalize("NFC", file.stem) for file in files}) < len(files):
        raise CulturevalError("Two files have the same name: name each after its annotator, as amal.csv.")


def write_review(items: Sequence[AuditItem], rows: Sequence[ManifestRow], folder: Path) -> int:
    """Writes the items that a manifest's rows want reviewed, for people; returns their number. Old files go."""
    by_id = {item.id: item for item in items}
    waiting = [(by_id[f"{row.source}/{row.row}"], row.reasons) for row in rows if row.decision == "review"]
    for name in (REVIEW, TASKS, INTERFACE):
        (folder / name).unlink(missing_ok=True)
    if not waiting:
        return 0
    records = [_record(item, reasons) for item, reasons in waiting]
    for file in {item.image_file for item, _ in waiting} - {None}:
        (folder / IMAGES).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / IMAGES / file.name)
    write_csv(folder / REVIEW, records, COLUMNS, "utf-8-sig")
    tasks = [{"data": one | ({"image": f"{LOCAL_FILES}{one['image']}"} if one["image"] else {})} for one in records]
    text = json.dumps(tasks, ensure_ascii=False, indent=1)
    write_atomically(folder / TASKS, text.encode("utf-8", "backslashreplace"))
    image = '\n  <Image name="image" value="$image"/>' if any(one["image"] for one in records) else ""
    write_atomically(folder / INTERFACE, LABELLING.replace("IMAGE", image).encode())
    return len(waiting)


def _record(item: AuditItem, reasons: Sequence[str]) -> dict[str, str]:
    options = item.options or item.answers
    gold = set(item.gold) if item.form == "mcq" else set(range(len(options)))
    listed = [f"{'*' if place in gold else ' '} {place + 1}. {text}" for place, text in enumerate(options)]
    image = item.image_file
    return {
        "item": item.id,
        "hash": item.hash,
        "reasons": ", ".join(reasons),
        "context": item.context,
        "image": f"{IMAGES}/{image.name}" if image else "",
        "question": item.question,
        "options": "\n".join(listed),
    }


def read_verdicts(files: Sequence[Path]) -> list[Verdict]:
    """The verdicts of filled-in CSV files (.csv) and JSON exports of Label Studio.

    The annotator of a CSV row is in its column `annotator`; where it is empty, the file's name says it (amal.csv).

    Raises:
        CulturevalError: Two files have one name, one cannot be read, a verdict breaks the form, or there are none.
    """
    require_distinct_names(files)
    found: list[Verdict] = []
    for file in files:
        found += _of_csv(file) if file.suffix.lower() == ".csv" else _of_label_studio(file)
    if not found:
        raise CulturevalError(f"{', '.join(map(str, files))}: there are no verdicts.")
    return found


def _of_csv(file: Path) -> Iterator[Verdict]:
    for line, row in read_csv(file, ("item", "hash", "verdict")):
        if row["verdict"].strip():
            annotator = row.get("annotator", "").strip() or file.stem
            yield _verdict(row["item"], row["hash"], annotator, row["verdict"], f"{file}, line {line}")


def _of_label_studio(file: Path) -> Iterator[Verdict]:
    try:
        for number, task in enumerate(json.loads(utf8_text(file)), start=1):
            for annotation in sorted(task["annotations"], key=lambda one: one.get("updated_at", "").rstrip("Z")):
                by = annotation["completed_by"]
                annotator = by["email"] if isinstance(by, dict) else f"label-studio-{by}"
                chosen = [one["value"]["choices"][0] for one in annotation["result"] if one["from_name"] == "verdict"]
                if chosen and not annotation.get("was_cancelled"):
                    item, content_hash = task["data"]["item"], task["data"]["hash"]
                    yield _verdict(item, content_hash, annotator, chosen[0], f"{file}, task {number}")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise CulturevalError(f"{file} is no JSON export of Label Studio of our tasks ({error!r}).") from error


def _verdict(item: Any, content_hash: Any, annotator: Any, verdict: Any, where: str) -> Verdict:
    choice = next((choice for choice in CHOICES if choice == str(verdict).strip().lower()), None)
    if choice is None:
        raise CulturevalError(f"{where}: a verdict is {', '.join(CHOICES)}, not {str(verdict)[:40]!r}.")
    name = require_annotator(str(annotator).strip(), where)
    return Verdict(str(item).strip(), str(content_hash).strip(), name, choice)


@dataclass(frozen=True)
class Reviewed:
    """What people decided.

    Attributes:
        rows: Rows of the new manifest.
        counts: "kept", "discarded", "tied" (as many votes for either) and "waiting" (too few votes) -> items.
        annotators: Annotator -> number of verdicts, the last of each on an item.
        pairs: Number of items with two votes or more.
        ac1: Gwet's AC1 over these; nan without any.
        alpha: Krippendorff's alpha over these.
    """

    rows: list[ManifestRow]
    counts: Mapping[str, int]
    annotators: Mapping[str, int]
    pairs: int
    ac1: float
    alpha: float


def decide(manifest: Manifest, verdicts: Iterable[Verdict], min_verdicts: int = 1) -> Reviewed:
    """The manifest with what most people decide on its items.

    Args:
        manifest: The manifest that asked for the review, without decisions of people.
        verdicts: Of all annotators; the last of each on an item counts.
        min_verdicts: Votes (keep or discard) that an item needs; with fewer it stays to be reviewed.

    Raises:
        CulturevalError: The manifest does not hold the item of a verdict or holds another content of it, or it holds
            decisions of people.
    """
    if any(row.by_people for row in manifest.rows):
        raise CulturevalError(f"{manifest.name} holds decisions of people: apply all verdicts to the audit's manifest.")
    votes = _votes(manifest, verdicts)
    decided = [_decided(row, votes.get(f"{row.source}/{row.row}", {}), min_verdicts) for row in manifest.rows]
    counts = Counter(outcome for _, outcome in decided if outcome)
    annotators = Counter(name for own in votes.values() for name in own)
    table = [[{"keep": 0, "discard": 1}.get(own.get(name, "")) for name in annotators] for own in votes.values()]
    pairs = [ratings for ratings in table if sum(vote is not None for vote in ratings) > 1]
    ac1, alpha = (of(pairs, [0, 1]) if pairs else float("nan") for of in (gwet_ac1, krippendorff_alpha))
    return Reviewed([row for row, _ in decided], counts, annotators, len(pairs), ac1, alpha)


def _votes(manifest: Manifest, verdicts: Iterable[Verdict]) -> dict[str, dict[str, Choice]]:
    """Item -> annotator -> the last verdict."""
    hashes = {f"{row.source}/{row.row}": row.hash for row in manifest.rows}
    votes: dict[str, dict[str, Choice]] = {}
    for verdict in verdicts:
        if verdict.item not in hashes:
            raise CulturevalError(
                f"{verdict.annotator} has a verdict on {verdict.item}, which {manifest.name} does not hold."
            )
        if hashes[verdict.item] != verdict.hash:
            raise CulturevalError(
                f"{verdict.annotator} saw another content of {verdict.item} than {manifest.name} decides on: review it "
                "again."
            )
        votes.setdefault(verdict.item, {})[verdict.annotator] = verdict.verdict
    return votes


def _decided(row: ManifestRow, votes: Mapping[str, Choice], min_verdicts: int) -> tuple[ManifestRow, str]:
    """A row with what people decide on it, and the count of `Reviewed` that it belongs to; "" for none."""
    keep, discard = (list(votes.values()).count(choice) for choice in ("keep", "discard"))
    if keep + discard < min_verdicts or not votes:
        return row, "waiting" if row.decision == "review" else ""
    decision: Decision = "review" if keep == discard else "keep" if keep > discard else "discard"
    reasons = [f"person:{choice}" for choice in CHOICES if choice in votes.values()]
    reasons += ["person:tie"] if keep == discard else []
    by = [*row.by, *(f"person:{name}" for name in sorted(votes))]
    outcome = {"keep": "kept", "discard": "discarded", "review": "tied"}[decision]
    return row.model_copy(update={"decision": decision, "reasons": [*row.reasons, *reasons], "by": by}), outcome
