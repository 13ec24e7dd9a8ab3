"""Verdicts of people on items: their form, files that survive a kill, majority, agreement, and the manifest they make.

A verdicts file belongs to one annotator. Each verdict is one JSON line that is on the disk before the annotator is told
so; the last one on an item counts. A line that a kill cut short is the last, and is left out.
"""

import fcntl
import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError

from cultureval.audit.items import AuditItem
from cultureval.metrics.agreement import gwet_ac1, krippendorff_alpha
from cultureval.runtime.errors import CulturevalError
from cultureval.tasks.manifest import Decision, Manifest, ManifestRow, misfit

Choice = Literal["keep", "discard", "unsure"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
ANNOTATOR = re.compile(r"[A-Za-z0-9_.@+-]{1,60}")
LONGEST_NOTE = 2000
MOST_BYTES = 1 << 28
Reviewable = Sequence[tuple[AuditItem, tuple[str, ...]]]  # items with a manifest's reasons


@dataclass(frozen=True)
class Verdict:
    """What one person says of one item.

    Attributes:
        item: Source and row (`AuditItem.id`).
        hash: Of the row's cells when the person saw them.
        annotator: Who; letters, digits and `_.@+-`.
        verdict: "unsure" is no vote.
        note: Free text; never in a manifest.
        time: Seconds since 1970 by the clock of that machine, for people; nothing is decided by it.
    """

    item: str
    hash: str
    annotator: str
    verdict: Choice
    note: str = ""
    time: int = 0


_VERDICT = TypeAdapter(Verdict)


def checked(values: Mapping[str, Any], where: str) -> Verdict:
    """The verdict of a record, whose other fields are left out; `where` is its file and line.

    Raises:
        CulturevalError: It breaks the form.
    """
    known = {name: values[name] for name in Verdict.__dataclass_fields__ if values.get(name) is not None}
    known["verdict"] = str(known.get("verdict", "")).strip().lower()
    try:
        verdict = _VERDICT.validate_python(known)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise CulturevalError(f"{where}: {name}: {first['msg']}; a verdict is {', '.join(CHOICES)}.") from None
    require_annotator(verdict.annotator, where)
    if not re.fullmatch("[0-9a-f]{64}", verdict.hash) or not verdict.item:
        raise CulturevalError(f"{where}: no item with its hash: keep the columns `item` and `hash` of the export.")
    return verdict


def require_annotator(name: str, where: str) -> str:
    """The name of an annotator, as manifests and files may hold it; CulturevalError if it holds other letters."""
    if not ANNOTATOR.fullmatch(name) or name.startswith("."):
        raise CulturevalError(f"{where}: an annotator is named by 1 to 60 letters, digits and _.@+-, not {name!r}.")
    return name


class VerdictsFile:
    """The file of one annotator, open for appending by one process at a time."""

    def __init__(self, folder: Path, annotator: str) -> None:
        """Open the file and read what it holds.

        Raises:
            CulturevalError: Another process has it open, or it is no file of this annotator's verdicts.
        """
        self.annotator = require_annotator(annotator, "--annotator")
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"verdicts-{annotator}.jsonl"
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise CulturevalError(f"{self.path} is open in another `audit review`: end that one first.") from error
        found = read_lines(self.path)
        if strange := {one.annotator for one in found} - {annotator}:
            raise CulturevalError(f"{self.path} holds verdicts of {', '.join(sorted(strange))}, not of {annotator}.")
        self.last = {one.item: one for one in found}
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # after a line that a kill cut short

    def add(self, item: str, content_hash: str, verdict: Choice, note: str) -> Verdict:
        """Writes a verdict; it is on the disk when this returns."""
        one = Verdict(item, content_hash, self.annotator, verdict, note[:LONGEST_NOTE], int(time.time()))
        line = json.dumps(asdict(one), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        if os.write(self._file, line) != len(line):
            raise CulturevalError(f"{self.path} cannot be written: the disk is full.")
        os.fsync(self._file)
        self.last[item] = one
        return one

    def close(self) -> None:
        """Ends the file's lock."""
        os.close(self._file)


def read_lines(path: Path) -> list[Verdict]:
    """The verdicts of a file of JSON lines, in order; what a kill left of a last line is left out.

    Raises:
        CulturevalError: A line breaks the form.
    """
    if path.stat().st_size > MOST_BYTES:
        raise CulturevalError(f"{path} is larger than a file of verdicts may be (256 MiB).")
    verdicts = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # cut short by a kill: it was never acknowledged
        if not isinstance(record, dict):
            raise CulturevalError(f"{path}, line {number} is no verdict.")
        verdicts.append(checked(record, f"{path}, line {number}"))
    return verdicts


@dataclass(frozen=True)
class Reviewed:
    """What came of the verdicts.

    Attributes:
        manifest: Rows of the new manifest.
        verdicts: Number of verdicts that count, the last of each annotator on an item.
        kept: Number of items that most keep.
        discarded: Number of items that most discard.
        tied: Number of items with as many votes for either, which stay open.
        waiting: Number of items to review with too few votes.
        annotators: Annotator -> number of verdicts.
        pairs: Number of items with two votes or more.
        agreement: "ac1" and "alpha" over these; nan without any.
    """

    manifest: list[ManifestRow]
    verdicts: int
    kept: int
    discarded: int
    tied: int
    waiting: int
    annotators: Mapping[str, int]
    pairs: int
    agreement: Mapping[str, float]


def decide(manifest: Manifest, verdicts: Iterable[Verdict], fewest: int = 1) -> Reviewed:
    """The manifest with what most people say of its items.

    Args:
        manifest: The manifest that asked for the review.
        verdicts: Of all annotators, each one's in the order in which they were given.
        fewest: Votes (keep or discard) that an item needs; with fewer it stays to be reviewed.

    Raises:
        CulturevalError: A verdict is on an item that the manifest does not hold, or on another content of it; or people
            whose verdicts are not given have decided an item of these.
    """
    votes = _votes(manifest, verdicts)
    _check_earlier_people(manifest, votes)
    counts = dict.fromkeys(("kept", "discarded", "tied", "waiting"), 0)
    rows = []
    for row in manifest.rows:
        own = votes.get((row.source, row.row), {})
        decided, outcome = _decided(row, own, fewest)
        if outcome:
            counts[outcome] += 1
        rows.append(decided)
    annotators = Counter(name for own in votes.values() for name in own)
    names = sorted(annotators)
    table = [[{"keep": 0, "discard": 1}.get(own.get(name, "")) for name in names] for own in votes.values()]
    paired = [row for row in table if sum(vote is not None for vote in row) > 1]
    agreement = {"ac1": float("nan"), "alpha": float("nan")}
    if paired:
        agreement = {"ac1": gwet_ac1(paired, [0, 1]), "alpha": krippendorff_alpha(paired, [0, 1])}
    return Reviewed(rows, annotators.total(), **counts, annotators=annotators, pairs=len(paired), agreement=agreement)


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


def _check_earlier_people(manifest: Manifest, votes: Mapping[tuple[str, str], Mapping[str, Choice]]) -> None:
    """Else one new vote would outweigh all earlier ones, which a manifest does not count."""
    for row in manifest.rows:
        own = votes.get((row.source, row.row), {})
        absent = sorted({one.removeprefix("person:") for one in row.by if one.startswith("person:")} - own.keys())
        if own and absent:
            raise CulturevalError(
                f"{manifest.name} has {row.source}/{row.row} as decided also by {', '.join(absent)}, whose verdicts "
                "are not among those given: give the files of all annotators together."
            )


def _decided(row: ManifestRow, own: Mapping[str, Choice], fewest: int) -> tuple[ManifestRow, str]:
    keep, discard = (list(own.values()).count(name) for name in ("keep", "discard"))
    decision: Decision = "review"
    if keep + discard < fewest or not own:
        return (row, "waiting") if row.decision == "review" else (row, "")
    if keep != discard:
        decision = "keep" if keep > discard else "discard"
    said = [f"person:{name}" for name in CHOICES if name in own.values()] + (["person:tie"] if keep == discard else [])
    earlier = [one for one in row.reasons if not one.startswith("person:")]
    by = [one for one in row.by if not one.startswith("person:")] + [f"person:{name}" for name in sorted(own)]
    outcome = {"keep": "kept", "discard": "discarded", "review": "tied"}[decision]
    return row.model_copy(update={"decision": decision, "reasons": [*earlier, *said], "by": by}), outcome


def items_to_review(
    items: Sequence[AuditItem], manifest: Manifest, decisions: Sequence[Decision] = ("review",)
) -> list[tuple[AuditItem, tuple[str, ...]]]:
    """The items that people are asked about, with the manifest's reasons: rows with these decisions.

    Raises:
        CulturevalError: A row is not among the items, has other content, or there is none.
    """
    by_id = {item.id: item for item in items if item.split == "test"}
    found = []
    for row in manifest.rows:
        if row.decision not in decisions:
            continue
        item = by_id.get(f"{row.source}/{row.row}")
        if item is None:
            raise CulturevalError(f"{manifest.name}: {row.source} {row.row} is not in these sources: name them all.")
        if item.hash != row.hash:
            raise misfit(manifest, row.source, [row.row], [])
        found.append((item, tuple(row.reasons)))
    if not found:
        raise CulturevalError(f"{manifest.name} has no row to {' or '.join(decisions)}: there is nothing to look at.")
    return found
