"""What of a plan is finished: a small file for each run, and a lock while it runs."""

import fcntl
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from cultureval.reports.plans.plan_file import PlannedRun
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import counted, escaped

FOLDER = ".plan"
FINISHED, FAILED, RUNNING, CHANGED, LOST, OPEN = (
    *("finished", "failed", "running", "changed since", "results are gone", "not run"),
)
LARGEST = 1_000_000  # bytes of a state
WIDEST = 80


@dataclass(frozen=True)
class RunState:
    """What is kept of the last try of a run.

    Attributes:
        signature: Of the run as it was (`PlannedRun.signature`).
        finished: Whether it ended well.
        message: Why not.
        results: Its results files.
        date: In UTC.
        log: The file with all that it printed.
    """

    signature: str
    finished: bool
    message: str
    results: tuple[str, ...]
    date: str
    log: str


def state_file(run: PlannedRun) -> Path:
    """Where the state of a run is kept."""
    return run.folder / FOLDER / f"{_plain(run.suite)}.json"


def log_file(run: PlannedRun) -> Path:
    """Where the output of a run is kept."""
    return run.folder / FOLDER / f"{_plain(run.suite)}.log"


def read_state(run: PlannedRun) -> RunState | None:
    """The state of a run; None where it never ended, or where the file cannot be read."""
    file = state_file(run)
    try:
        if file.stat().st_size > LARGEST:
            return None
        content = json.loads(file.read_text(encoding="utf-8"))
        state = RunState(**content | {"results": tuple(map(str, content["results"]))})
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return state if isinstance(state.signature, str) and isinstance(state.message, str) else None


def write_state(run: PlannedRun, signature: str, finished: bool, message: str, results: Sequence[str]) -> None:
    """Writes the state of a run that has ended, whole or not at all."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    state = RunState(signature, finished, message, tuple(results), now, str(log_file(run)))
    write_atomically(state_file(run), f"{json.dumps(asdict(state), indent=2)}\n".encode("ascii"))


@contextmanager
def taken(run: PlannedRun) -> Iterator[IO[str] | None]:
    """A context with the lock of a run if it is ours; None where another process runs it, until which ends.

    A process that inherits the lock keeps it: a run whose `cultureval run` was killed is still running.
    """
    file = state_file(run).with_suffix(".lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield stream


def standing(run: PlannedRun) -> tuple[str, RunState | None]:
    """How a run stands, one of the words above, and its state."""
    state = read_state(run)
    if state_file(run).with_suffix(".lock").exists():
        with taken(run) as lock:
            if not lock:
                return RUNNING, state
    if state is None:
        return OPEN, None
    if not state.finished:
        return FAILED, state
    if state.signature != run.signature():
        return CHANGED, state
    return (FINISHED if all(Path(file).is_file() for file in state.results) else LOST), state


def status_table(runs: Sequence[PlannedRun]) -> str:
    """How all runs of a plan stand, as text."""
    rows = []
    counts: dict[str, int] = {}
    for run in runs:
        word, state = standing(run)
        counts[word] = counts.get(word, 0) + 1
        last = "" if state is None else state.date.replace("+00:00", "").replace("T", " ")
        about = "" if state is None or word != FAILED else " ".join(state.message.split())[:WIDEST]
        rows.append([str(run.number), run.label, run.suite, word, last, about])
    table = terminal_table(("run", "model", "suite", "state", "last ended (UTC)", "why"), rows, "rlllll")
    total = ", ".join(f"{count} {word}" for word, count in counts.items())
    return escaped(f"{table}\n{counted(len(runs), 'run')}: {total}", keep="\n")


def _plain(suite: str) -> str:
    """A file's name for a suite or task; what else differs has the suite's hash."""
    name = re.sub(r"[^\w.-]+", "_", suite)[:80].lstrip(".") or "run"
    return name if name == suite else f"{name}-{hashlib.sha256(suite.encode()).hexdigest()[:8]}"
