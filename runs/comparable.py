"""Whether two runs, tasks or items may be compared: the only judgement of it, which every view asks.

Two scores are comparable where they are of the same items, asked in the same way, and scored by the same scorer. The
model's own settings (dtype, chat template, server) and versions of packages may differ; what differs of them is told.
Prompts and golds are those of the details, whatever a signature says of them; where a run has neither details nor a
signature (stock LightEval without our tasks), it is unverified: shown, not ranked.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from cultureval.metrics.judges.items import JUDGED
from cultureval.runs.files import details_files_of_run, read_details
from cultureval.runs.items import NAME_PATHS, details_columns, leaf, row_keys, state_of
from cultureval.runs.judged import signs
from cultureval.runs.record import Run, TaskRecord
from cultureval.runtime.errors import shorten

if TYPE_CHECKING:
    import pyarrow

Kind = Literal["items", "prompts", "scorers"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OF_THE_MODEL = ("model", "dtype", "chat", "server", "submission", "processes")  # fields of signatures: the model's own
# Of a whole group of tasks, which runs of some of its subsets have otherwise; the tasks' own records have them.
OF_THE_GROUP = ("subsets", "rows", "rows_hash", "data", "form", "prompt", "parity", "sources")
PROMPTS = ("refined_prompts",)
ITEMS = ("limit", "manifest", "gold", "captions")  # fields of signatures that choose items
SCORERS = ("scorer", "options", "judge", "data_hash", "evalplus")
UNVERIFIED = "it has neither a signature nor details that say what was asked"
NOT_TOLD = "not told"
TEXTS = ("doc.query", "doc.choices", "doc.gold_index")
ASKED = (*TEXTS, *NAME_PATHS)  # the columns of details that say what was asked of which item
WORDS = {
    "rows_hash": "the fingerprint of the rows (texts, golds, images, order of examples)",
    "prompt": "the hash of the prompts",
    "golds": "the hash of choices and golds",
    "prompts": "the hash of the prompts",
}


Differing = dict[str, tuple[Kind, str, str]]  # name of what differs -> its kind and both values
Texts = Mapping[tuple[str, Path, Path], Differing]  # as of `texts_that_differ`


@dataclass(frozen=True)
class Protocol:
    """Everything that a score depends on besides the model.

    Attributes:
        fields: Kind, name and value of what must agree.
        told: Name and value of what may differ, and is told: the backend, its settings, versions.
        asked: Which rows and prompts, by the task's record: their fingerprint, that whatever the files' names are, and
            the hash of the prompts; None of a run that is not signed.
        digest: As of `digest_of`; "" without details.
        place: The task with `|k`, and the run's file.
        allowed: Kinds and single fields that may differ.
    """

    fields: tuple[tuple[Kind, str, str], ...]
    told: tuple[tuple[str, str], ...] = ()
    asked: tuple[str, str, str] | None = None
    digest: str = ""
    place: tuple[str, Path] = field(default=("", Path()), compare=False)
    allowed: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def unverified(self) -> str:
        """Why nothing can be said of it; "" where it can."""
        return UNVERIFIED if self.asked is None and not self.digest else ""


@dataclass(frozen=True)
class Reason:
    """One thing that keeps two scores from being compared.

    Attributes:
        kind: What `--allow` calls it.
        text: A sentence that says what and where.
    """

    kind: Kind
    text: str


def is_signed(run: Run, record: TaskRecord) -> bool:
    """Whether a run says what a task's scores depend on: a signature, or at least the hash of its rows."""
    return bool(run.signature_of(record.task) or record.rows_hash)


def protocol_of(run: Run, record: TaskRecord, metric: str, allowed: Collection[str] = ()) -> Protocol:
    """What a score of a task depends on besides the model.

    Args:
        allowed: Kinds and single fields that may differ.
    """
    signature = run.signature_of(record.task)
    fields = dict(signature.fields) if signature else {}
    found: dict[str, tuple[Kind, Any]] = {
        "limit": ("items", "none" if record.limit is None else record.limit),
        "shots": ("prompts", record.shots),
        "parity": ("prompts", record.parity or None),
        "system prompt": ("prompts", run.record.model.system_prompt_hash or None),
        "image placement": ("prompts", run.record.model.settings.get("image_placement")),
        "task": ("scorers", _version(run, record, fields)),
        "judges": ("scorers", _judges(run, fields, metric)),
    }
    found |= {name: ("items", fields.get(name)) for name in ITEMS if name != "limit"}
    found |= {name: ("prompts", fields.get(name)) for name in PROMPTS}
    found |= {name: ("scorers", fields.get(name)) for name in SCORERS}
    must = [(kind, name, str(value)) for name, (kind, value) in sorted(found.items()) if value is not None]
    names = {*found, *OF_THE_MODEL, *OF_THE_GROUP}
    return Protocol(
        tuple(one for one in must if one[0] not in allowed and one[1] not in allowed),
        tuple((name, str(value)) for name, value in sorted(fields.items()) if name not in names),
        (record.rows_hash, record.content_hash, record.prompt_hash) if is_signed(run, record) else None,
        run.asked.get(record.task, ""),
        (record.task, run.file),
        frozenset(allowed),
    )


def texts_that_differ(runs: Iterable[Run]) -> Texts:
    """Which two runs asked a task otherwise, by prompts, choices and golds in their details.

    Args:
        runs: As `load` gives them.

    Returns:
        The task and both runs' files, in either order -> what differs: "items" where one lacks some of the other's,
        "golds", "prompts"; without pairs that asked the same.
    """
    members: dict[str, list[Run]] = {}
    for run in runs:
        for task in run.asked:
            members.setdefault(task, []).append(run)
    files: dict[Path, Mapping[str, Path]] = {}
    found = {}
    for task, some in members.items():
        for one, other in combinations(some, 2):
            if one.asked[task] == other.asked[task]:
                continue
            for run in (one, other):
                if run.file not in files:
                    files[run.file] = details_files_of_run(run)
            if differing := _differing_texts(one, other, task, (files[one.file][task], files[other.file][task])):
                found[task, one.file, other.file] = differing
                turned = {name: (kind, there, here) for name, (kind, here, there) in differing.items()}
                found[task, other.file, one.file] = turned
    return found


def _differing_texts(first: Run, second: Run, task: str, files: tuple[Path, Path]) -> Differing:
    """In which items, golds (with choices) and prompts the details of two runs of a task differ."""
    records = [run.record.tasks[task] for run in (first, second)]
    one, other = (_hashes(file, *state_of(file)) for file in files)
    if one == other or is_content_alike(*records, *files):
        return {}
    found: Differing = {}
    shared = one.keys() & other.keys()
    if not rows_are_the_same(*records) and not len(shared) == len(one) == len(other):
        here, there = (f"{len(items):,} items, {len(shared):,} of them in both" for items in (one, other))
        found["items"] = "items", here, there
    for place, name, kind in ((1, "golds", KINDS[0]), (0, "prompts", KINDS[1])):
        if any(one[key][place] != other[key][place] for key in shared):
            found[name] = kind, first.asked[task], second.asked[task]
    return found


def rows_are_the_same(one: TaskRecord, other: TaskRecord) -> bool:
    """Whether two runs asked the same rows, of which one's model refused some: these are unscored, not other items."""
    return one.rows_hash == other.rows_hash != "" and bool(one.refused or other.refused)


def hashes_of_rows(records: Sequence[TaskRecord]) -> list[str]:
    """The fingerprint of the rows of each record, one for all that hold the same content under other files' names."""
    first: dict[str, str] = {}
    known = {
        one.rows_hash: first.setdefault(one.content_hash, one.rows_hash)
        for one in records
        if one.rows_hash and one.content_hash
    }
    return [known.get(one.rows_hash, one.rows_hash) for one in records]


def is_content_alike(one: TaskRecord, other: TaskRecord, first: Path, second: Path) -> bool:
    """Whether two runs of one content under other files' names asked the same in the same order.

    Then the rows at the same places of their details, `first` and `second`, are one item: csv, jsonl and shards name it
    otherwise. Of runs whose details lack refused rows the places do not tell it.

    Raises:
        CulturevalError: A file cannot be read.
    """
    other_rows = one.rows_hash == other.rows_hash or len(set(hashes_of_rows([one, other]))) > 1
    if other_rows or one.refused or other.refused:
        return False
    asked = [list(_hashes(file, *state_of(file)).values()) for file in (first, second)]
    return asked[0] == asked[1]


def reasons(first: Protocol, second: Protocol, task: str, records: bool = True) -> list[Reason]:
    """Why two scores of a task are not comparable; [] where they are.

    What the records say of rows and prompts is compared only with `records`.
    """
    differing = _differing(first, second) | (_recorded_differences(first, second) if records else {})
    return [
        Reason(kind, f"{task}: {WORDS.get(name, name)} differs: {shorten(one, 90)} / {shorten(other, 90)}.")
        for name, (kind, one, other) in differing.items()
    ]


def fields_that_differ(first: Protocol, second: Protocol, texts: Texts) -> dict[str, tuple[str, str]]:
    """Names of what keeps two scores of a task apart, with both values: whatever other runs there are.

    Prompts and golds are compared where both have details, rows' fingerprints where both are signed. Where only one
    says what was asked, or each says it otherwise, nothing says that they were asked the same.
    """
    if first == second:
        return {}
    found = _differing(first, second) | _recorded_differences(first, second)
    if first.digest and second.digest:
        found |= texts.get((first.place[0], first.place[1], second.place[1]), {})
    elif not (first.asked and second.asked) and not (first.unverified and second.unverified):
        found["prompts"] = "prompts", first.digest or NOT_TOLD, second.digest or NOT_TOLD
    return {
        name: (one, other)
        for name, (kind, one, other) in found.items()
        if kind not in first.allowed and name not in first.allowed
    }


def _recorded_differences(first: Protocol, second: Protocol) -> Differing:
    """In which rows and prompts two scores differ by their records, where both have one."""
    if first.asked is None or second.asked is None or first.asked == second.asked:
        return {}
    (rows, content, prompt), (other_rows, other_content, other_prompt) = first.asked, second.asked
    found: Differing = {}
    if rows != other_rows and not content == other_content != "":
        found["rows_hash"] = "items", rows or NOT_TOLD, other_rows or NOT_TOLD
    if prompt != other_prompt:
        found["prompt"] = "prompts", prompt or NOT_TOLD, other_prompt or NOT_TOLD
    return found


def settings_that_differ(protocols: Iterable[Protocol]) -> dict[str, list[str]]:
    """What comparable scores do not have in common although it may matter (settings, versions): name -> its values."""
    values: dict[str, dict[str, None]] = {}
    for protocol in protocols:
        for name, value in protocol.told:
            values.setdefault(name, {})[value] = None
    return {name: list(found) for name, found in values.items() if len(found) > 1}


def reasons_in_texts(
    first: Path, second: Path, task: str, names: tuple[str, str], same_rows: bool = False
) -> list[Reason]:
    """The same by the prompts and golds of two runs' details, item by item; it says where they differ.

    With `same_rows` both were asked the same rows: items that one lacks are refused or unscored ones.

    Raises:
        CulturevalError: A file cannot be read.
    """
    if _digest_of_file(first, *state_of(first)) == _digest_of_file(second, *state_of(second)) != "":
        return []
    one, other = (_hashes(file, *state_of(file)) for file in (first, second))
    found, shared = [], [key for key in one if key in other]
    alone = [key for key in one if key not in other], [key for key in other if key not in one]
    if any(alone) and not same_rows:
        parts = [
            f"{len(keys)} only in {name} (such as {shorten(keys[0], 60)})"
            for keys, name in zip(alone, names, strict=True)
            if keys
        ]
        found.append(Reason("items", f"{task}: {len(one)} and {len(other)} items; {', '.join(parts)}."))
    if golds := [key for key in shared if one[key][1] != other[key][1]]:
        reason = f"gold answers or choices of {len(golds)} items differ, such as those of {shorten(golds[0], 60)}"
        found.append(Reason("items", f"{task}: {reason}."))
    if prompts := [key for key in shared if one[key][0] != other[key][0]]:
        reason = f"{len(prompts)} of {len(shared)} prompts differ, such as that of {shorten(prompts[0], 60)}"
        where = _where(*(_prompt_of(file, prompts[0]) for file in (first, second)))
        found.append(Reason("prompts", f"{task}: {reason}: {where}."))
    return found


def digest_of(table: "pyarrow.Table") -> str:
    """A hash of what details asked, of the columns `ASKED`: where it is the same, the same was asked in the same order.

    Where it is another, prompts and golds may be the same all the same: `reasons_in_texts` looks at each item. "" of
    details without rows or prompts.
    """
    if not table.num_rows or leaf(table, "doc.query") is None:
        return ""
    digest = hashlib.blake2b(digest_size=4)
    for path in ASKED:
        column = leaf(table, path)
        for chunk in column.chunks if column is not None else ():
            digest.update(f"{path} {chunk.type} {chunk.offset} {len(chunk)}".encode())
            for buffer in chunk.buffers():
                digest.update(b"" if buffer is None else buffer)
    return digest.hexdigest()


def field_names(runs: Iterable[Run]) -> set[str]:
    """All that `--allow` may name: kinds, and fields in which some runs may differ."""
    signed = {name for run in runs for signature in run.record.signatures for name in signature.fields}
    return {*KINDS, *signed, *OF_THE_MODEL, *OF_THE_GROUP, *ITEMS, "shots", "system prompt", "image placement", "golds"}


def record_of(run: Run, task: str) -> TaskRecord:
    """What a run says of a task (with `|k`); of one that no catalogue knows what its name says."""
    bare, _, shots = task.partition("|")
    group, _, subset = bare.partition(":")
    unknown = TaskRecord(task=task, suite="", benchmark=group, group=group, subset=subset)
    return run.record.tasks.get(task) or unknown.model_copy(update={"shots": int(shots) if shots.isdigit() else 0})


def _version(run: Run, record: TaskRecord, fields: Mapping[str, Any]) -> str | None:
    """The task's version: of the signature behind the number of examples, else as LightEval writes it."""
    if fields.get("task"):
        return str(fields["task"]).rpartition("/")[2]
    versions = run.content.get("versions")
    version = versions.get(record.task) if isinstance(versions, Mapping) else None
    return None if version is None else f"v{version}"


def _judges(run: Run, fields: Mapping[str, Any], metric: str) -> str | None:
    """The signatures of the judges that a judge's metric is of; None of other metrics."""
    if not metric.startswith(JUDGED):
        return None
    later = [one.text for one in run.record.signatures if signs(one, metric)]
    return "; ".join(sorted(later)) or fields.get("judges")


@lru_cache(maxsize=4096)
def _digest_of_file(file: Path, *state: int) -> str:
    return digest_of(read_details(file, ASKED))


@lru_cache(maxsize=256)
def _hashes(file: Path, *state: int) -> dict[str, tuple[int, int]]:
    """Hashes of the prompt, and of choices with golds, of each row: texts of all runs would not fit into memory."""
    keys = row_keys(file)
    columns = details_columns(file, TEXTS)
    query, choices, gold = (found or [None] * len(keys) for found in columns.values())
    return {
        key: (hash(text or ""), hash((repr(options), repr(right))))
        for key, text, options, right in zip(keys, query, choices, gold, strict=True)
    }


def _prompt_of(file: Path, key: str) -> str:
    prompts = details_columns(file, TEXTS[:1])[TEXTS[0]] or []
    return next((text or "" for name, text in zip(row_keys(file), prompts, strict=False) if name == key), "")


def _differing(first: Protocol, second: Protocol) -> Differing:
    one, other = ({name: (kind, value) for kind, name, value in each.fields} for each in (first, second))
    found: Differing = {}
    for name, (kind, _) in (one | other).items():
        here, there = (each[name][1] if name in each else NOT_TOLD for each in (one, other))
        if here != there:
            found[name] = kind, here, there
    return found


def _where(first: str, second: str) -> str:
    """The first place at which two texts differ."""
    place = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    start = max(0, place - 15)
    return f"{shorten(first[start : place + 25], 60)} / {shorten(second[start : place + 25], 60)}"
