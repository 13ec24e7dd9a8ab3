"""Items that people judge: a CSV file and a Label Studio project, their verdicts back, and the manifest they make.

`review.csv` is filled in with a spreadsheet. `tasks.json` and `labelling.xml` make a project of Label Studio; its JSON
export comes back. Images are copied beside these files under the names of our store; no path of the data is written.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from cultureval.audit.items import RIGHT_TO_LEFT, AuditItem
from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha
from cultureval.runtime.csv_files import read_csv, write_csv
from cultureval.runtime.data.row_files import utf8_text
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import Decision, Manifest, ManifestRow

Choice = Literal["keep", "discard", "unsure"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
COLUMNS = ("item", "hash", "reasons", "context", "image", "question", "options", "annotator", "verdict", "note")
ANNOTATOR = re.compile(r"[A-Za-z0-9_@+-][A-Za-z0-9_.@+-]{0,59}")
IMAGES = "images"  # folder beside the files
LOCAL_FILES = "/data/local-files/?d="  # where Label Studio serves the files below its document root
LABELLING = """<View>
  <Style>.lsf-main-view { direction: DIRECTION; }</Style>
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
    """What one person says of one item.

    Attributes:
        item: Source and row (`AuditItem.id`).
        hash: Of the row's cells when the person saw them.
        annotator: Who; letters, digits and `_.@+-`.
        verdict: "unsure" is no vote.
    """

    item: str
    hash: str
    annotator: str
    verdict: Choice


def require_annotator(name: str, where: str) -> str:
    """The name of an annotator, as manifests and files may hold it; CulturevalError if it holds other letters."""
    if not ANNOTATOR.fullmatch(name):
        raise CulturevalError(f"{where}: an annotator is named by 1 to 60 letters, digits and _.@+-, not {name!r}.")
    return name


def write_review(items: Sequence[AuditItem], rows: Sequence[ManifestRow], folder: Path) -> int:
    """Writes the items that a manifest's rows want reviewed, with their texts, for people; returns their number."""
    by_id = {item.id: item for item in items}
    asked = [(by_id[f"{row.source}/{row.row}"], row.reasons) for row in rows if row.decision == "review"]
    if not asked:
        return 0
    records = [_record(item, reasons) for item, reasons in asked]
    for file in {item.image_file for item, _ in asked} - {None}:
        (folder / IMAGES).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / IMAGES / file.name)
    write_csv(folder / "review.csv", records, COLUMNS, "utf-8-sig")
    served = [one | ({"image": f"{LOCAL_FILES}{one['image']}"} if one["image"] else {}) for one in records]
    tasks = json.dumps([{"data": one} for one in served], ensure_ascii=False, indent=1)
    write_atomically(folder / "tasks.json", tasks.encode("utf-8", "backslashreplace"))
    usual = Counter(item.written_in for item, _ in asked).most_common(1)[0][0]
    image = '\n  <Image name="image" value="$image"/>' if any(one["image"] for one in records) else ""
    labelling = LABELLING.replace("DIRECTION", "rtl" if usual in RIGHT_TO_LEFT else "ltr").replace("IMAGE", image)
    write_atomically(folder / "labelling.xml", labelling.encode())
    return len(asked)


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


def read_verdicts(files: Sequence[Path], annotator: str | None = None) -> list[Verdict]:
    """The verdicts of filled-in CSV files (.csv) and JSON exports of Label Studio.

    Args:
        annotator: Who filled in CSV files whose column `annotator` is empty.

    Raises:
        CulturevalError: A file cannot be read, a verdict breaks the form, or there are none.
    """
    found = [
        one
        for file in files
        for one in (_of_csv(file, annotator) if file.suffix.lower() == ".csv" else _of_label_studio(file))
    ]
    if not found:
        raise CulturevalError(f"{', '.join(map(str, files))}: there are no verdicts.")
    return found


def _of_csv(file: Path, annotator: str | None) -> Iterator[Verdict]:
    for line, row in read_csv(file, ("item", "hash", "verdict")):
        if row["verdict"].strip():
            who = row.get("annotator", "").strip() or annotator or ""
            yield _verdict(row["item"], row["hash"], who, row["verdict"], f"{file}, line {line}")


def _of_label_studio(file: Path) -> Iterator[Verdict]:
    try:
        for number, task in enumerate(json.loads(utf8_text(file)), start=1):
            for annotation in sorted(task["annotations"], key=lambda one: one.get("updated_at", "").rstrip("Z")):
                who = annotation["completed_by"]
                who = who["email"] if isinstance(who, dict) else f"label-studio-{who}"
                chosen = [one["value"]["choices"][0] for one in annotation["result"] if one["from_name"] == "verdict"]
                if chosen and not annotation.get("was_cancelled"):
                    data = task["data"]
                    yield _verdict(data["item"], data["hash"], who, chosen[0], f"{file}, task {number}")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise CulturevalError(f"{file} is no JSON export of Label Studio of our tasks ({error!r}).") from error


def _verdict(item: Any, content_hash: Any, annotator: Any, verdict: Any, where: str) -> Verdict:
    item, content_hash, annotator = (str(one).strip() for one in (item, content_hash, annotator))
    choice = next((one for one in CHOICES if one == str(verdict).strip().lower()), None)
    if choice is None:
        raise CulturevalError(f"{where}: a verdict is {', '.join(CHOICES)}, not {str(verdict)[:40]!r}.")
    return Verdict(item, content_hash, require_annotator(annotator, where), choice)


@dataclass(frozen=True)
class Reviewed:
    """What came of the verdicts.

    Attributes:
        manifest: Rows of the new manifest.
        kept: Number of items that most keep.
        discarded: Number of items that most discard.
        tied: Number of items with as many votes for either, which stay open.
        waiting: Number of items to review with too few votes.
        annotators: Annotator -> number of verdicts, the last of each on an item.
        pairs: Number of items with two votes or more.
        ac1: Gwet's AC1 over these; nan without any.
        alpha: Krippendorff's alpha over these.
    """

    manifest: list[ManifestRow]
    kept: int
    discarded: int
    tied: int
    waiting: int
    annotators: Mapping[str, int]
    pairs: int
    ac1: float = float("nan")
    alpha: float = float("nan")


def decide(manifest: Manifest, verdicts: Iterable[Verdict], fewest: int = 1) -> Reviewed:
    """The manifest with what most people say of its items.

    Args:
        manifest: The manifest that asked for the review; it holds no decision of a person yet.
        verdicts: Of all annotators; the last of each on an item counts.
        fewest: Votes (keep or discard) that an item needs; with fewer it stays to be reviewed.

    Raises:
        CulturevalError: A verdict is on an item that the manifest does not hold, or on another content of it; or the
            manifest holds decisions of people already.
    """
    if any(by.startswith("person:") for row in manifest.rows for by in row.by):
        raise CulturevalError(
            f"{manifest.name} holds decisions of people: import all verdicts together into the manifest of the audit."
        )
    votes = _votes(manifest, verdicts)
    counts = dict.fromkeys(("kept", "discarded", "tied", "waiting"), 0)
    rows = []
    for row in manifest.rows:
        decided, outcome = _decided(row, votes.get((row.source, row.row), {}), fewest)
        rows.append(decided)
        if outcome:
            counts[outcome] += 1
    annotators = Counter(name for own in votes.values() for name in own)
    table = [
        [{"keep": 0, "discard": 1}.get(own.get(name, "")) for name in sorted(annotators)] for own in votes.values()
    ]
    paired = [row for row in table if sum(vote is not None for vote in row) > 1]
    agreement = {"ac1": gwet_ac1(paired, [0, 1]), "alpha": krippendorff_alpha(paired, [0, 1])} if paired else {}
    return Reviewed(rows, **counts, annotators=annotators, pairs=len(paired), **agreement)


def _votes(manifest: Manifest, verdicts: Iterable[Verdict]) -> dict[tuple[str, str], dict[str, Choice]]:
    """(source, row) -> annotator -> the last verdict."""
    known = {f"{row.source}/{row.row}": row for row in manifest.rows}
    votes: dict[tuple[str, str], dict[str, Choice]] = {}
    for one in verdicts:
        row = known.get(one.item)
        if row is None:
            raise CulturevalError(f"{one.annotator} has a verdict on {one.item}, which {manifest.name} does not hold.")
        if row.hash != one.hash:
            raise CulturevalError(
                f"{one.annotator} saw another content of {one.item} than {manifest.name} decides on: review it again."
            )
        votes.setdefault((row.source, row.row), {})[one.annotator] = one.verdict
    return votes


def _decided(row: ManifestRow, own: Mapping[str, Choice], fewest: int) -> tuple[ManifestRow, str]:
    """A row with what people decide on it, and the name of the count that it belongs to; "" for none."""
    keep, discard = (list(own.values()).count(name) for name in ("keep", "discard"))
    if keep + discard < fewest or not own:
        return (row, "waiting") if row.decision == "review" else (row, "")
    decision: Decision = "review" if keep == discard else "keep" if keep > discard else "discard"
    said = [f"person:{name}" for name in CHOICES if name in own.values()] + (["person:tie"] if keep == discard else [])
    by = [*row.by, *(f"person:{name}" for name in sorted(own))]
    outcome = {"keep": "kept", "discard": "discarded", "review": "tied"}[decision]
    return row.model_copy(update={"decision": decision, "reasons": [*row.reasons, *said], "by": by}), outcome
