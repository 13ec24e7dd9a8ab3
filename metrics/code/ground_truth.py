"""Outputs and times of the canonical solutions: computed once in jails, and cached by a hash of the problem."""

import hashlib
import marshal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.sandbox import worker
from cultureval.runtime.sandbox.codec import FRAME, LONGEST_NAME
from cultureval.runtime.sandbox.jail import TEST_SUITES, Jail, JailPlan, SandboxBroken, packages_and_versions

MOST_BYTES = 256 << 20  # of the outputs of a suite
# EvalPlus's limits: four times the canonical solution's time of each call, at least a second; of a suite a minute.
LEAST_SECONDS, TIME_FACTOR, SUITE_SECONDS = 1.0, 4.0, 60.0
TRUTH_SECONDS = 300.0
SPARE_SECONDS, SECONDS_OF_A_BYTE = 10.0, 4e-6  # of CPU time to load a program, and to write or read its outputs
_VERSION = 8


@dataclass(frozen=True)
class SuiteTruth:
    """The canonical solution's results on one suite of inputs.

    Attributes:
        seconds: Wall time of each call.
        outputs: The encoded output of each input, up to a defect.
        defect: Why the next input has no output, or "".
    """

    seconds: list[float]
    outputs: list[bytes]
    defect: str

    @property
    def size(self) -> int:
        """Bytes of all outputs."""
        return sum(map(len, self.outputs))

    def job(self, problem: Mapping[str, Any], suite: str, code: str, form: str) -> dict[str, Any]:
        """The job of a solution, with EvalPlus's limit for each call (a minute for a call without an output).

        The arguments are those of `job_of`.
        """
        limits = [max(LEAST_SECONDS, TIME_FACTOR * seconds) for seconds in self.seconds]
        limits += [SUITE_SECONDS] * (len(problem[f"{suite}_input"]) - len(limits))
        return job_of(problem, suite, code, form, limits, SUITE_SECONDS, SPARE_SECONDS + SECONDS_OF_A_BYTE * self.size)


def job_of(
    problem: Mapping[str, Any], suite: str, code: str, form: str, limits: list[float], most: float, spare: float
) -> dict[str, Any]:
    """A job for `Jail.start`: a jail gets code, entry point and inputs, never an expected output.

    Args:
        problem: The problem, in EvalPlus's form.
        suite: Which of `TEST_SUITES`.
        code: The program.
        form: Of the outputs (`rules.output_form`).
        limits: Seconds of CPU time of each call.
        most: Seconds of all calls together.
        spare: Seconds of all other work.
    """
    every = min(most, sum(limits))
    cpu = int(every + spare) + 1
    job = {"code": code, "entry_point": problem["entry_point"], "inputs": problem[f"{suite}_input"], "form": form}
    return job | {"limits": limits, "all": every, "cpu": cpu, "wall": float(min(worker.WALL_FACTOR * cpu, cpu + 120))}


def canonical_code(problem: Mapping[str, Any]) -> str:
    """The canonical solution as a complete program, as EvalPlus builds it."""
    return problem["prompt"] + problem["canonical_solution"]


def content_key(problem: Mapping[str, Any], dataset: str) -> str:
    """A hash of all that a problem's ground truth depends on."""
    parts = [_VERSION, *sys.version_info[:2], dataset, canonical_code(problem), problem["entry_point"]]
    parts += [problem["base_input"], problem["plus_input"], float(problem["atol"]), packages_and_versions()]
    return hashlib.sha256(marshal.dumps(parts, 2)).hexdigest()


def known_truth(key: str) -> dict[str, SuiteTruth] | None:
    """Suite -> ground truth of the problem with this `content_key`; None if it is not computed yet."""
    if not truth_file(key).exists():
        return None
    return {suite: SuiteTruth(*fields) for suite, fields in marshal.loads(truth_file(key).read_bytes()).items()}


def compute_truth(problem: Mapping[str, Any], key: str, form: str, plan: JailPlan) -> str:
    """Runs the canonical solution of a problem, and caches its outputs.

    Args:
        problem: The problem, in EvalPlus's form.
        key: Its `content_key`.
        form: Of the outputs (`rules.output_form`).
        plan: Of the jails.

    Returns:
        Why nothing is cached, or "". A signal or a limit may be this machine's fault, so such results are not cached.
    """
    found = {}
    for suite in TEST_SUITES:
        limits = [SUITE_SECONDS] * len(problem[f"{suite}_input"])
        job = job_of(problem, suite, canonical_code(problem), form, limits, TRUTH_SECONDS, TRUTH_SECONDS)
        try:
            with Jail(plan) as jail, jail.start(job) as frames:
                seconds, outputs, defect = found[suite] = _read(frames, len(limits))
                if not defect and len(outputs) < len(limits):
                    return f"of the canonical solution, {jail.end()}"
        except SandboxBroken as error:
            return str(error)
    try:
        write_atomically(truth_file(key), marshal.dumps(found))
    except OSError as error:
        return f"it cannot be written to {truth_file(key)} ({error.strerror})"
    return ""


def _read(frames: IO[bytes], calls: int) -> tuple[list[float], list[bytes], str]:
    """The fields of a `SuiteTruth`."""
    seconds: list[float] = []
    outputs: list[bytes] = []
    left = MOST_BYTES
    while len(outputs) < calls:
        kind, spent, content = next_frame(frames, left)
        if kind == worker.RAISED:
            name = (content or b"").decode("ascii", "replace")
            return seconds, outputs, f"it raises {name} at input {len(outputs)}"
        if kind and content is None:
            return seconds, outputs, f"its outputs take more than {MOST_BYTES} bytes at input {len(outputs)}"
        if content is None:
            break
        if kind == worker.VALUE:
            seconds.append(spent)
            outputs.append(content)
            left -= len(content)
    return seconds, outputs, ""


def next_frame(frames: IO[bytes], most: int = LONGEST_NAME) -> tuple[bytes, float, bytes | None]:
    """The next message of a job, untrusted: kind, seconds of the call, content (None of more than `most` bytes).

    Returns:
        Kind `b""` if no complete message follows.
    """
    header = frames.read(FRAME.size)
    if len(header) < FRAME.size:
        return b"", 0.0, None
    kind, seconds, size = FRAME.unpack(header)
    if size > most:
        return kind, seconds, None
    content = frames.read(size)
    return (kind, seconds, content) if len(content) == size else (b"", 0.0, None)


def truth_file(key: str) -> Path:
    """The cache file of the ground truth with this `content_key`."""
    return user_cache() / "code_ground_truth" / f"{key}.bin"
