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

from cultureval.runs.files import details_files_of_run, read_details
from cultureval.runs.items import CLUSTERS, NAME_PATHS, details_columns, leaf, names_and_clusters, state_of
from cultureval.runs.judged import judges_of
from cultureval.runs.record import Run, TaskRecord
from cultureval.runtime.errors import counted, shorten

if TYPE_CHECKING:
    import pyarrow

Kind = Literal["items", "prompts", "scorers"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OF_THE_MODEL = ("model", "dtype", "chat", "server", "submission", "processes")  # fields of signatures: the model's own
# Of a whole group of tasks, which runs of some of its subsets have otherwise; the tasks' own records have them.
OF_THE_GROUP = ("subsets", "rows", "rows_hash", "data", "form", "prompt", "parity", "sources")
PROMPTS = ("refined_prompts", "asked_data")
ITEMS = ("limit", "manifest", "gold", "captions")  # fields of signatures that choose items
SCORERS = ("scorer", "options", "judge", "data_hash", "evalplus")
UNVERIFIED = "it has neither a signature nor details that say what was asked"
NOT_TOLD = "not told"
JUDGES = "judges"  # the field of a protocol that has a metric's judges
TEXTS = ("doc.query", "doc.choices", "doc.gold_index")
ASKED = (*TEXTS, *NAME_PATHS)  # the columns of details that say what was asked of which item
WORDS = {
    "rows_hash": "the fingerprint of the rows (texts, golds, images, order of examples)",
    "prompt": "what was asked (the kind of prompts, or a hash of their template)",
    "golds": "the hash of choices and golds",
    "prompts": "what was asked (a hash of the prompts)",
}


Differing = dict[str, tuple[Kind, str, str]]  # name of what differs -> its kind and both values
Asked = tuple[int, int, str | None]  # of a row, as of `_asked`
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
        JUDGES: ("scorers", judges_of(run, record.task, metric, str(fields.get(JUDGES) or ""))),
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
        The task and both runs' files, in either order -> what differs, as of `asked_otherwise`; without pairs that
        asked the same.
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
    """As of `asked_otherwise`, each with its kind and with both runs' values."""
    unlike = asked_otherwise(first.record.tasks[task], second.record.tasks[task], *files)
    values = dict.fromkeys(unlike, (first.asked[task], second.asked[task]))
    if "items" in unlike or "clusters" in unlike:
        one, other = (_asked(file, *state_of(file)) for file in files)
        shared = f" ({len(one.keys() & other.keys()) or 'none'} in both)"
        values |= {"items": (f"{counted(len(one), 'row')}{shared}", f"{counted(len(other), 'row')}{shared}")}
        values |= {"clusters": (counted(_clusters(one), "cluster"), counted(_clusters(other), "cluster"))}
    return {name: (_kind(name), *values[name]) for name in unlike}


def asked_otherwise(first: TaskRecord, second: TaskRecord, file: Path, other_file: Path) -> dict[str, list[str]]:
    """In what the details of two runs of a task differ, whatever other runs there are.

    A row that one of them lacks is no other item where its record says that it was refused: so many, and no more.

    Returns:
        What differs -> the items of which it does: "items", "golds" (with choices), "prompts", "clusters" (which items
        share one, where both tell it).

    Raises:
        CulturevalError: A file cannot be read.
    """
    one, other = (_asked(each, *state_of(each)) for each in (file, other_file))
    if one == other or is_content_alike(first, second, file, other_file):
        return {}
    found: dict[str, list[str]] = {}
    here, there = [key for key in one if key not in other], [key for key in other if key not in one]
    as_many = len(one) + first.refused == len(other) + second.refused
    if not as_many or len(there) > first.refused or len(here) > second.refused:
        found["items"] = [*here, *there]
    shared = [key for key in one if key in other]
    for place, name in ((1, "golds"), (0, "prompts")):
        if keys := [key for key in shared if one[key][place] != other[key][place]]:
            found[name] = keys
    if _clusters_differ((one[key], other[key]) for key in shared):
        found["clusters"] = shared
    return found


def _kind(name: str) -> Kind:
    return "prompts" if name == "prompts" else "items"


def hashes_of_rows(records: Sequence[TaskRecord]) -> list[str]:
    """The fingerprint of the rows of each record, one for all that hold the same content under other files' names."""
    first: dict[str, str] = {}
    known = {
        one.rows_hash: first.setdefault(one.content_hash, one.rows_hash)
        for one in records
        if one.rows_hash and one.content_hash
    }
    return [known.get(one.rows_hash, one.rows_hash) for one in records]


def in_no_details(records: Sequence[TaskRecord], known: int) -> int:
    """How many items all runs of the same data had refused, and none has in its details, which have so many of them."""
    return max(min(record.n - known if record.refused else 0 for record in records), 0)


def is_content_alike(one: TaskRecord, other: TaskRecord, first: Path, second: Path) -> bool:
    """Whether two runs of the same rows, whatever their files' names are, asked the same in the same order.

    Then the rows at the same places of their details, `first` and `second`, are one item: csv, jsonl and shards name it
    otherwise. Of runs whose details lack refused rows the places do not tell it.

    Raises:
        CulturevalError: A file cannot be read.
    """
    if not one.rows_hash or len(set(hashes_of_rows([one, other]))) > 1 or one.refused or other.refused:
        return False
    rows, others = (list(_asked(file, *state_of(file)).values()) for file in (first, second))
    texts, their_texts = ([texts for *texts, _ in asked] for asked in (rows, others))
    return texts == their_texts and not _clusters_differ(zip(rows, others, strict=True))


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


def reasons_in_details(
    records: tuple[TaskRecord, TaskRecord], files: tuple[Path, Path], task: str, names: tuple[str, str]
) -> list[Reason]:
    """The same by the details of two runs, as of `asked_otherwise`; it says where they differ.

    Raises:
        CulturevalError: A file cannot be read.
    """
    first, second = files
    if _digest_of_file(first, *state_of(first)) == _digest_of_file(second, *state_of(second)) != "":
        return []
    one, other = (_asked(file, *state_of(file)) for file in files)
    shared = len(one.keys() & other.keys())
    found = []
    for name, keys in asked_otherwise(*records, *files).items():
        such = shorten(keys[0], 60) if keys else ""
        if name == "items":
            parts = [
                f"{len(alone)} only in {side} (such as {shorten(alone[0], 60)})"
                for side, items in zip(names, (one, other), strict=True)
                if (alone := [key for key in keys if key in items])
            ]
            refused = [record.refused for record in records]
            less = f" ({refused[0]} and {refused[1]} refused)" if any(refused) else ""
            text = f"{len(one)} and {counted(len(other), 'row')}{less}; {', '.join(parts)}"
        elif name == "golds":
            text = f"gold answers or choices of {counted(len(keys), 'row')} differ, such as those of {such}"
        elif name == "clusters":
            numbers = " and ".join(counted(_clusters(each), "cluster") for each in (one, other))
            text = f"which items share a cluster differs: {numbers}"
        else:
            where = _where(*(_prompt_of(file, keys[0]) for file in files))
            text = f"{len(keys)} of {shared} prompts differ, such as that of {such}: {where}"
        found.append(Reason(_kind(name), f"{task}: {text}."))
    return found


def digest_of(table: "pyarrow.Table") -> str:
    """A hash of what details asked, of the columns `ASKED`: where it is the same, the same was asked in the same order.

    Where it is another, prompts and golds may be the same all the same: `asked_otherwise` looks at each item. "" of
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
    return {
        *KINDS,
        *signed,
        *OF_THE_MODEL,
        *OF_THE_GROUP,
        *ITEMS,
        "shots",
        "system prompt",
        "image placement",
        "golds",
        "clusters",
    }


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


@lru_cache(maxsize=4096)
def _digest_of_file(file: Path, *state: int) -> str:
    return digest_of(read_details(file, ASKED))


@lru_cache(maxsize=256)
def _asked(file: Path, *state: int) -> dict[str, Asked]:
    """Of each row hashes of the prompt and of choices with golds (texts of all runs would not fit into memory), and
    its cluster, which is itself where it shares none; None where the file does not tell clusters.
    """
    keys, clusters = names_and_clusters(file)
    columns = details_columns(file, [*TEXTS, *CLUSTERS])
    query, choices, gold = (columns[path] or [None] * len(keys) for path in TEXTS)
    known = any(columns[path] is not None for path in CLUSTERS)
    return {
        key: (hash(text or ""), hash((repr(options), repr(right))), (cluster or key) if known else None)
        for key, cluster, text, options, right in zip(keys, clusters, query, choices, gold, strict=True)
    }


def _clusters_differ(rows: Iterable[tuple[Asked, Asked]]) -> bool:
    """Whether two details tell that other rows share a cluster, whatever they call it."""
    pairs = {(here, there) for (*_, here), (*_, there) in rows if None not in (here, there)}
    return any(len(pairs) > len({pair[side] for pair in pairs}) for side in (0, 1))


def _clusters(asked: Mapping[str, Asked]) -> int:
    return len({cluster for _, _, cluster in asked.values()})


def _prompt_of(file: Path, key: str) -> str:
    prompts = details_columns(file, TEXTS[:1])[TEXTS[0]] or []
    return next(
        (text or "" for name, text in zip(names_and_clusters(file)[0], prompts, strict=False) if name == key), ""
    )


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
