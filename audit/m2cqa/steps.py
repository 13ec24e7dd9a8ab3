"""Step files: what a step kept and rejected, reused as long as nothing that it depends on has changed.

A file is JSON lines: a head with the step's key and the SHA-256 of all other lines, then `{"kept": item}` and
`{"rejected": {id, reason, detail}}`. The key is a hash of the step's settings (models, prompts, seed) and of the whole
file of the step before, so that a change anywhere redoes what follows and nothing else. Files are written whole: a step
that is killed leaves none, and finds the replies that it paid for in the journal.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from cultureval.audit.m2cqa.items import Item, Outcome, Rejected
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.printing import print_note
from cultureval.runtime.settings import current_settings

FORMAT = 1
_ITEM = TypeAdapter(Item)


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        name: Of its file, such as `2_questions`.
        inputs: All that its outcome depends on, besides the step before; JSON.
        run: From the items that the step before kept to what becomes of them.
    """

    name: str
    inputs: Mapping[str, Any]
    run: Callable[[Sequence[Item]], Outcome]


def run_steps(steps: Sequence[Step], folder: Path) -> dict[str, Outcome]:
    """Runs the steps, in order, whose files are missing or out of date; all of them where nothing shall be resumed.

    Returns:
        Name of a step -> its outcome.

    Raises:
        CulturevalError: A step could not ask all its questions; its model's replies so far are kept.
    """
    found: dict[str, Outcome] = {}
    items: tuple[Item, ...] = ()
    before = ""
    for step in steps:
        file = folder / f"{step.name}.jsonl"
        key = _key(step, before)
        outcome = read_step(file, key) if current_settings().resume else None
        if outcome and any(one.reason.endswith("no_answer") for one in outcome.rejected):
            outcome = None  # a server failed with some questions, which are asked again; the journal has the others
        if outcome is None:
            print_note(f"{step.name}: {len(items):,} items" if items else step.name)
            outcome = step.run(items)
            if outcome.waiting:
                raise CulturevalError(
                    f"{step.name}: {outcome.waiting}. All replies so far are kept: run the same command to continue."
                )
            _write(file, step.name, key, outcome)
        found[step.name], items = outcome, outcome.kept
        before = hashlib.sha256(file.read_bytes()).hexdigest()
        if not items:
            why = Counter(one.reason for one in outcome.rejected).most_common()
            told = ", ".join(f"{count} {reason}" for reason, count in why)
            raise CulturevalError(f"{step.name} keeps no item ({told}): {file} has the details.")
    return found


def read_step(file: Path, key: str | None = None) -> Outcome | None:
    """The outcome in a step's file; None where it is missing, of another key (None takes any), or was changed."""
    try:
        head, _, body = file.read_bytes().partition(b"\n")
        told = json.loads(head)
        same = told["format"] == FORMAT and key in (None, told["key"]) and told["content"] == _hash(body)
        lines = [json.loads(line) for line in body.decode("utf-8").splitlines()] if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if lines is None:
        return None
    kept = tuple(_ITEM.validate_python(line["kept"]) for line in lines if "kept" in line)
    return Outcome(kept, tuple(Rejected(**line["rejected"]) for line in lines if "rejected" in line))


def _key(step: Step, before: str) -> str:
    parts = {"format": FORMAT, "name": step.name, "inputs": step.inputs, "before": before}
    return _hash(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode("utf-8"))


def _write(file: Path, name: str, key: str, outcome: Outcome) -> None:
    lines = [{"kept": asdict(item)} for item in outcome.kept]
    lines += [{"rejected": asdict(one)} for one in outcome.rejected]
    body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8")
    head = {"format": FORMAT, "step": name, "key": key, "content": _hash(body)}
    head |= {"kept": len(outcome.kept), "rejected": len(outcome.rejected)}
    write_atomically(file, json.dumps(head).encode("ascii") + b"\n" + body)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
