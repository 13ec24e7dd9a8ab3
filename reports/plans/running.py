"""Running a plan: every run that is not finished, each in a process of its own, or by an array job of Slurm."""

import fcntl
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from cultureval.reports.plans.plan_file import PlanFile, PlannedRun
from cultureval.reports.terminal_tables import terminal_table
from cultureval.runs.files import results_below
from cultureval.runtime.data.user_cache import write_atomically
from cultureval.runtime.errors import counted, escaped
from cultureval.runtime.settings import current_settings, variable_of

TAIL = 4000  # bytes of a log in which the reason of a failure is looked for
PATIENCE = 15  # seconds
COMMAND = "cultureval: "  # how our own messages begin
ARRAY_JOB = "array_job.sh"
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


def run_plan(runs: Sequence[PlannedRun], say: Callable[[str], None]) -> list[PlannedRun]:
    """Runs what is not finished under the same signature.

    A run that fails is told and the next one starts; one that another process runs is left to it. Answers that an
    interrupted run has got are kept by `cultureval eval` itself, and are used by the next one.

    Args:
        say: Called with a sentence on each run.

    Returns:
        The runs that failed.
    """
    failed = []
    for run in runs:
        word, _ = standing(run)
        if word in (FINISHED, RUNNING):
            say(f"{run.name}: {word}, left out.")
            continue
        with taken(run) as lock:
            if not lock:
                say(f"{run.name}: running elsewhere, left out.")
                continue
            say(f"{run.name}: starts; its output is in {log_file(run)}")
            problem = _run(run, lock.fileno())
        say(f"{run.name}: {'finished' if problem is None else f'failed: {problem}'}")
        if problem is not None:
            failed.append(run)
    return failed


def command_of(run: PlannedRun) -> list[str]:
    """The command of a run as a list of words, which no shell reads."""
    words = [sys.executable, "-m", "cultureval", "eval", *run.arguments]
    return [*words, f"--output-dir={run.folder}", "--", run.model, run.suite]


def _run(run: PlannedRun, lock: int) -> str | None:
    """Runs one, which inherits its lock, keeps its state, and returns why it failed; None where it did not."""
    signature, before, log = run.signature(), results_below(run.folder), log_file(run)
    environment = dict(os.environ)
    if run.settings:
        settings = dict(current_settings().model_settings) | dict(run.settings)
        environment[variable_of("model_settings")] = json.dumps(settings)
    if suites := ",".join(current_settings().custom_suites):  # --custom-suites of this command
        environment[variable_of("custom_suites")] = suites
    status = _status(command_of(run), environment, log, lock)
    written = sorted(results_below(run.folder) - before)
    problem = None
    if status < 0:
        problem = f"it was ended by signal {-status}"
    elif status:
        problem = _last_message(log) or f"exit status {status}"
    elif not written:
        problem = "it wrote no results file"
    write_state(run, signature, problem is None, problem or "", [str(file) for file in written])
    return problem


def _status(command: Sequence[str], environment: Mapping[str, str], log: Path, lock: int) -> int:
    """Runs a command with its output in a file; where we are interrupted, it gets time to save what it has."""
    with (
        log.open("wb") as stream,
        subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, pass_fds=(lock,)
        ) as process,
    ):
        try:
            return process.wait()
        except BaseException:
            for end in (lambda: None, process.terminate, process.kill):  # a terminal has interrupted both
                end()
                try:
                    process.wait(PATIENCE)
                    break
                except subprocess.TimeoutExpired:
                    continue
            raise


def _last_message(log: Path) -> str:
    """The last message of ours in a log, with the first problem of a list, else its last line."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - TAIL))
        lines = [line.strip() for line in stream.read().decode("utf-8", "replace").splitlines() if line.strip()]
    ours = [place for place, line in enumerate(lines) if line.startswith(COMMAND)]
    if not ours:
        return escaped((lines or [""])[-1])
    message, following = lines[ours[-1]].removeprefix(COMMAND), lines[ours[-1] + 1 :]
    return escaped(f"{message} {following[0]}" if message.endswith(":") and following else message)


def write_array_job(plan: PlanFile, runs: Sequence[PlannedRun], file: Path) -> Path:
    """Writes the script of an array job beside the plan's results, and returns it.

    Each job of the array calls `cultureval run PLAN --only NUMBER`, which leaves out what is finished. Names from the
    plan are quoted; options of sbatch are single words (`plan_file.Word`).
    """
    folder = Path(plan.output_dir).expanduser().absolute()
    at_once = f"%{plan.at_once}" if plan.at_once else ""
    options = {"job-name": "cultureval", "array": f"0-{len(runs) - 1}{at_once}"}
    options |= {name.replace("_", "-"): value for name, value in plan.slurm.items()}
    words = [sys.executable, "-m", "cultureval", "run", str(file.absolute())]
    command = " ".join(map(shlex.quote, words))
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH --{name}={value}" for name, value in options.items()),
        "# One job a run of the plan; those that are finished end at once. Submit it again to go on.",
        "set -euo pipefail",
        f"cd -- {shlex.quote(str(Path.cwd()))}",
        f'exec {command} --only "${{SLURM_ARRAY_TASK_ID:?submit this script with sbatch}}"',
    ]
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / ARRAY_JOB
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    script.chmod(0o755)
    return script


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
