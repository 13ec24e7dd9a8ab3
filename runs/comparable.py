"""Whether two runs, tasks or items may be compared: the only judgement of it, which every view asks.

Two scores are comparable where they are of the same items, asked in the same way, and scored by the same scorer. The
model's own settings (dtype, chat template, server) and versions of packages may differ; what differs of them is told.
Prompts and golds are those of the details, whatever a signature says of them; where a run has neither details nor a
signature (stock LightEval without our tasks), it is unverified: shown, not ranked.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from cultureval.metrics.judges.items import JUDGED
from cultureval.runs.files import details_files_of_run, read_details
from cultureval.runs.items import NAME_PATHS, details_columns, leaf, row_keys, state_of
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


Fields = Mapping[str, tuple[Kind, Any]]  # name -> kind and value; None: nothing is known


@dataclass(frozen=True)
class Protocol:
    """Everything that a score depends on besides the model.

    Attributes:
        fields: Kind, name and value of what must agree.
        told: Name and value of what may differ, and is told: the backend, its settings, versions.
        unverified: Why nothing can be said of it; "" where it can.
    """

    fields: tuple[tuple[Kind, str, str], ...]
    told: tuple[tuple[str, str], ...] = ()
    unverified: str = ""

    def without(self, allowed: Collection[str]) -> "Protocol":
        """The same without kinds, or single fields, that may differ."""
        kept = tuple(one for one in self.fields if one[0] not in allowed and one[1] not in allowed)
        return Protocol(kept, self.told, self.unverified)


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


def protocol_of(run: Run, record: TaskRecord, metric: str, asked: Fields) -> Protocol:
    """What a score of a task depends on besides the model.

    Args:
        run: A run.
        record: A task of it.
        metric: The score.
        asked: Which prompts and golds: of `what_was_asked`, or `recorded` where the texts were compared.
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
    found |= asked
    must = tuple((kind, name, str(value)) for name, (kind, value) in sorted(found.items()) if value is not None)
    names = {*found, *OF_THE_MODEL, *OF_THE_GROUP}
    told = tuple((name, str(value)) for name, value in sorted(fields.items()) if name not in names)
    return Protocol(must, told, "" if asked or is_signed(run, record) else UNVERIFIED)


def recorded(record: TaskRecord) -> Fields:
    """What a task's record says of its rows and prompts."""
    return {"rows_hash": ("items", record.rows_hash or None), "prompt": ("prompts", record.prompt_hash or None)}


def what_was_asked(runs: Sequence[Run]) -> dict[tuple[Path, str], Fields]:
    """Which prompts and golds the tasks of runs had, as fields of their protocols.

    A signed run has what its record says, and what its details say where those of one record differ: whatever other
    runs there are. An unsigned run whose details ask the same as those of a record has that record's; others, what
    their details say. Runs without details have the prompts of most others of their record.

    Args:
        runs: As `load` gives them.

    Returns:
        By the run's file and the task; {} of a run that says nothing.
    """
    members: dict[str, list[Run]] = {}
    for run in runs:
        for task in run.record.tasks:
            members.setdefault(task, []).append(run)
    found: dict[tuple[Path, str], Fields] = {}
    for task, some in members.items():
        groups = _alike(some, task)
        told = _by_details(groups, task)
        for lender, group in groups:
            lent = recorded(lender) if lender else {}
            found |= {(run.file, task): {**lent, **told.get(run.file, {})} for run in group}
    return found


def _alike(runs: Sequence[Run], task: str) -> list[tuple[TaskRecord | None, list[Run]]]:
    """Runs of each record of a task, with unsigned ones that ask the same; those of no record together, behind None."""
    signed: dict[tuple[Any, ...], list[Run]] = {}
    unsigned = []
    for run, rows in zip(runs, hashes_of_rows([run.record.tasks[task] for run in runs]), strict=True):
        record = run.record.tasks[task]
        if is_signed(run, record):
            signed.setdefault((rows, record.prompt_hash, record.limit), []).append(run)
        else:
            unsigned.append(run)
    alone = []
    records = sorted(signed.values(), key=len, reverse=True)
    known = [{one.asked[task]: one for one in group if task in one.asked} for group in records]
    for run in unsigned:
        home = next((at for at, texts in enumerate(known) if _asks_the_same(run, task, texts)), None)
        (alone if home is None else records[home]).append(run)
    groups: list[tuple[TaskRecord | None, list[Run]]] = [(group[0].record.tasks[task], group) for group in records]
    return [*groups, (None, alone)]


def _asks_the_same(run: Run, task: str, texts: Mapping[str, Run]) -> bool:
    """Whether a run's details have the prompts and golds of one of some runs, by the digests of these."""
    if task not in run.asked or run.asked[task] in texts:
        return run.asked.get(task) in texts
    return any(not _reasons_of_details(other, run, task) for other in texts.values())


def _by_details(groups: Sequence[tuple[TaskRecord | None, list[Run]]], task: str) -> dict[Path, Fields]:
    """Run's file -> a name of its prompts and one of its golds; nothing where the records tell all apart."""
    if all(lender or not any(task in run.asked for run in group) for lender, group in groups):
        if all(len({tuple(names.values()) for names in _names(group, task).values()}) < 2 for _, group in groups):
            return {}
    names = _names([run for _, group in groups for run in group], task)
    found = {}
    for lender, group in groups:
        most = Counter(run.asked[task] for run in group if task in run.asked).most_common(1)
        usual = names[most[0][0]] if lender and most else {}
        found |= {run.file: names[run.asked[task]] if task in run.asked else usual for run in group}
    return found


def _names(runs: Sequence[Run], task: str) -> dict[str, Fields]:
    """Digest of what details asked -> a name of the prompts and one of the golds, the same where these are the same."""
    known: dict[str, tuple[Run, Fields]] = {}
    for digest, _ in Counter(run.asked[task] for run in runs if task in run.asked).most_common():
        run = next(run for run in runs if run.asked.get(task) == digest)
        names: dict[str, tuple[Kind, Any]] = {"golds": ("items", digest), "prompts": ("prompts", digest)}
        for other, theirs in reversed(known.values()):  # the name of most runs last
            kinds = {one.kind for one in _reasons_of_details(other, run, task)}
            names |= {name: value for name, value in theirs.items() if value[0] not in kinds}
        known[digest] = run, names
    return {digest: names for digest, (_, names) in known.items()}


def _reasons_of_details(first: Run, second: Run, task: str) -> list[Reason]:
    """`reasons_in_texts` of a task of two runs, whose details were read before."""
    files = [details_files_of_run(run)[task] for run in (first, second)]
    records = [run.record.tasks[task] for run in (first, second)]
    if is_content_alike(records[0], records[1], files[0], files[1]):
        return []
    return reasons_in_texts(files[0], files[1], task, (first.model, second.model), rows_are_the_same(*records))


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


def reasons(first: Protocol, second: Protocol, task: str) -> list[Reason]:
    """Why two scores of a task are not comparable; [] where they are."""
    found = []
    for name, (kind, one, other) in _differing(first, second).items():
        found.append(
            Reason(kind, f"{task}: {WORDS.get(name, name)} differs: {shorten(one, 90)} / {shorten(other, 90)}.")
        )
    return found


def fields_that_differ(first: Protocol, second: Protocol) -> dict[str, tuple[str, str]]:
    """Names of what keeps two scores apart, with both values."""
    return {name: (one, other) for name, (_, one, other) in _differing(first, second).items()}


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
    """The same judged by the prompts and golds of two details files, item by item; it says where they differ.

    Args:
        first: Details of one run.
        second: Of the other.
        task: Their task.
        names: Of the runs.
        same_rows: Whether both were asked the same rows, so that items that one lacks are refused or unscored ones.

    Raises:
        CulturevalError: A file cannot be read.
    """
    if _digest_of_file(first, *state_of(first)) == _digest_of_file(second, *state_of(second)) != "":
        return []
    one, other = (_hashes(file, *state_of(file)) for file in (first, second))
    return list(_in_texts(one, other, task, names, same_rows, (first, second)))


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
    """What a run says of a task; of one that no catalogue knows what its name says.

    Args:
        run: A run.
        task: With `|k`.
    """
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
    later = [
        one.text
        for one in run.record.signatures
        if "/" in one.group and metric.startswith(f"{JUDGED}{one.group.partition('/')[0]}_")
    ]
    return "; ".join(sorted(later)) or fields.get("judges")


@lru_cache(maxsize=4096)
def _digest_of_file(file: Path, *state: int) -> str:
    return digest_of(read_details(file, ASKED))


@lru_cache(maxsize=64)
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


def _differing(first: Protocol, second: Protocol) -> dict[str, tuple[Kind, str, str]]:
    one, other = ({name: (kind, value) for kind, name, value in each.fields} for each in (first, second))
    found: dict[str, tuple[Kind, str, str]] = {}
    for name, (kind, value) in one.items():
        if other.get(name, (kind, NOT_TOLD))[1] != value:
            found[name] = kind, value, other.get(name, (kind, NOT_TOLD))[1]
    for name, (kind, value) in other.items():
        if name not in one:
            found[name] = kind, NOT_TOLD, value
    return found


def _in_texts(
    one: Mapping[str, tuple[int, int]],
    other: Mapping[str, tuple[int, int]],
    task: str,
    names: tuple[str, str],
    same_rows: bool,
    files: tuple[Path, Path],
) -> Iterator[Reason]:
    alone = [key for key in one if key not in other], [key for key in other if key not in one]
    if any(alone) and not same_rows:
        parts = [
            f"{len(keys)} only in {name} (such as {shorten(keys[0], 60)})"
            for keys, name in zip(alone, names, strict=True)
            if keys
        ]
        yield Reason("items", f"{task}: {len(one)} and {len(other)} items; {', '.join(parts)}.")
    shared = [key for key in one if key in other]
    if golds := [key for key in shared if one[key][1] != other[key][1]]:
        reason = f"gold answers or choices of {len(golds)} items differ, such as those of {shorten(golds[0], 60)}"
        yield Reason("items", f"{task}: {reason}.")
    if prompts := [key for key in shared if one[key][0] != other[key][0]]:
        reason = f"{len(prompts)} of {len(shared)} prompts differ, such as that of {shorten(prompts[0], 60)}"
        first, second = (_prompt_of(file, prompts[0]) for file in files)
        yield Reason("prompts", f"{task}: {reason}: {_where(first, second)}.")


def _where(first: str, second: str) -> str:
    """The first place at which two texts differ."""
    place = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    start = max(0, place - 15)
    return f"{shorten(first[start : place + 25], 60)} / {shorten(second[start : place + 25], 60)}"
