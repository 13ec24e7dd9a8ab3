"""Whether two runs, tasks or items may be compared: the only judgement of it, which every view asks.

Two scores are comparable where they are of the same items, asked in the same way, and scored by the same scorer. The
model's own settings (dtype, chat template, server) and versions of packages may differ; what differs of them is told.
Where a run has no signature (stock LightEval without our tasks), the prompts and golds of the details are compared;
where there are no details either, the run is unverified: shown, not ranked.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from cultureval.metrics.judges.items import JUDGED
from cultureval.runs.files import details_files_of_run
from cultureval.runs.items import details_columns, row_keys
from cultureval.runs.record import Run, SignatureRecord, TaskRecord
from cultureval.runtime.errors import CulturevalError, shorten

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
WORDS = {
    "rows_hash": "the fingerprint of the rows (texts, golds, images, order of examples)",
    "prompt": "the hash of the prompts",
    "golds": "the hash of choices and golds",
    "prompts": "the hash of the prompts",
}


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
    return bool(_signature(run, record) or record.rows_hash)


def protocol_of(run: Run, record: TaskRecord, metric: str, texts: bool = False) -> Protocol:
    """What a score of a task depends on besides the model.

    Args:
        run: A run.
        record: A task of it.
        metric: The score.
        texts: Whether prompts and golds are read from the details instead of believing the record: needed where the
            other run has no signature.
    """
    signature = _signature(run, record)
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
    unverified = ""
    if texts or not is_signed(run, record):
        digests = _digests(run, record)
        unverified = "" if digests or is_signed(run, record) else UNVERIFIED
        prompts, golds = digests or (None, None)
        found |= {"golds": ("items", golds), "prompts": ("prompts", prompts)}
    else:
        found |= {"rows_hash": ("items", record.rows_hash or None), "prompt": ("prompts", record.prompt_hash or None)}
    must = tuple((kind, name, str(value)) for name, (kind, value) in sorted(found.items()) if value is not None)
    names = {*found, *OF_THE_MODEL, *OF_THE_GROUP}
    told = tuple((name, str(value)) for name, value in sorted(fields.items()) if name not in names)
    return Protocol(must, told, unverified)


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
    return list(_in_texts(_texts(first), _texts(second), task, names, same_rows))


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


def _signature(run: Run, record: TaskRecord) -> SignatureRecord | None:
    wanted = f"{record.group}|{record.task.partition('|')[2] or record.shots}"
    return next((one for one in run.record.signatures if one.group == wanted), None)


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


def _digests(run: Run, record: TaskRecord) -> tuple[str, str] | None:
    """Hashes of the prompts, and of the choices and golds, of a task's details, in any order; None without details."""
    try:
        file = details_files_of_run(run).get(record.task)
        texts = _texts(file) if file else {}
    except CulturevalError:  # what cannot be read is told where it is opened
        return None
    if not texts:
        return None
    prompts = sorted(prompt for prompt, _ in texts.values())
    golds = sorted(json.dumps(pair, ensure_ascii=False) for pair in texts.values())
    return _hash(prompts), _hash(golds)


def _hash(texts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:8]


def _texts(file: Path) -> dict[str, tuple[str, Any]]:
    """Prompt, and choices with gold, of each row."""
    keys = row_keys(file)
    columns = details_columns(file, ["doc.query", "doc.choices", "doc.gold_index"])
    query, choices, gold = (found or [None] * len(keys) for found in columns.values())
    return {
        key: (text or "", rest) for key, text, rest in zip(keys, query, zip(choices, gold, strict=True), strict=True)
    }


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
    one: Mapping[str, tuple[str, Any]],
    other: Mapping[str, tuple[str, Any]],
    task: str,
    names: tuple[str, str],
    same_rows: bool,
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
        yield Reason("prompts", f"{task}: {reason}: {_where(one[prompts[0]][0], other[prompts[0]][0])}.")


def _where(first: str, second: str) -> str:
    """The first place at which two texts differ."""
    place = next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    start = max(0, place - 15)
    return f"{shorten(first[start : place + 25], 60)} / {shorten(second[start : place + 25], 60)}"
