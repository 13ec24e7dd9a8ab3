"""Outputs and times of the canonical solutions: computed once in a sandbox of their own, cached by content."""

import gzip
import hashlib
import io
import itertools
import json
import marshal
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cultureval.metrics.code.rules import TEST_SUITES, Dataset, asks_for_any_value, compares_sets, plain
from cultureval.runtime.data.user_cache import user_cache, write_atomically
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.sandbox import codec
from cultureval.runtime.sandbox.jail import SandboxLimits, shown_packages
from cultureval.runtime.sandbox.sandbox import DiskFull, OutputSize, Sandbox, is_full

# Limits are in CPU time, so that solutions do not fail on a busy machine. A call may take this many times its limit in
# wall time: IDLE_FACTOR while it waits, WALL_FACTOR while it computes.
IDLE_FACTOR = 3.0
WALL_FACTOR = 10.0
# EvalPlus's limits: four times the canonical solution's time per call, at least a second.
_LEAST_SECONDS = 1.0
_TIME_FACTOR = 4.0
_SUITE_SECONDS = 60.0
# CPU time of writing or reading an output, for each byte of the expected one: an item that a solution returns as a
# number of another library takes 1e-5 s.
SECONDS_OF_A_BYTE = 4e-6
_VERSION = 5
_SECONDS = 300
_DIGEST_BYTES = hashlib.sha256().digest_size


class TruthInterrupted(CulturevalError):
    """A signal or a limit ended the canonical solution, which may be this machine's fault: nothing is kept of it."""


@dataclass(frozen=True)
class SuiteTruth:
    """What is known of the canonical solution on one suite of inputs, without its outputs.

    Args:
        seconds: Wall time of each call.
        defect: Why the last inputs have no output, or "".
        sizes: Bytes of each encoded output, one per input up to the defect.
        plain: Whether equal bytes mean equal values in all of them.
    """

    seconds: list[float]
    defect: str
    sizes: list[int]
    plain: bool

    def limits(self, calls: int) -> list[float]:
        """EvalPlus's time limit of each call; one minute for those that the canonical solution did not come to."""
        limits = [max(_LEAST_SECONDS, _TIME_FACTOR * seconds) for seconds in self.seconds]
        return limits + [60.0] * (calls - len(limits))

    def seconds_of_suite(self, calls: int) -> float:
        """EvalPlus's time limit of all calls together."""
        return min(_SUITE_SECONDS, sum(self.limits(calls)))

    def seconds_of_outputs(self) -> float:
        """CPU time that equal outputs can take to be written or read."""
        return SECONDS_OF_A_BYTE * sum(self.sizes)

    def most_bytes(self, call: int) -> int:
        """Bytes of a call's output beyond which it cannot be right; it need not be read to its end."""
        return codec.most_bytes_of_equals(self.sizes[call] if call < len(self.sizes) else 0)

    def size(self) -> OutputSize:
        """How much a solution may send: EvalPlus has no limit, and an equal output seldom takes five times the room."""
        needed = 6 * (sum(self.sizes) + codec.FRAME.size * len(self.sizes))
        return OutputSize(max(OutputSize.most, needed), (16 << 20) + needed)


class GroundTruth:
    """The ground truth of one problem, on disk; its outputs are read on demand, since some are large.

    The file holds a line of JSON, the digests of the outputs, and the outputs, compressed.

    Attributes:
        path: The file.
        suites: By suite, what is known without the outputs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._hash = file.readline().decode().strip()
            header = json.loads(file.readline())
            self._body = file.tell()
        self.suites = {name: SuiteTruth(**header[name]) for name in TEST_SUITES}

    def is_whole(self) -> bool:
        """Whether the file holds what was written, by its hash."""
        with self.path.open("rb") as file:
            file.readline()
            return hashlib.file_digest(file, "sha256").hexdigest() == self._hash

    def digests(self, suite: str) -> list[bytes]:
        """The digest of each encoded output of a suite."""
        first = 0 if suite == TEST_SUITES[0] else len(self.suites[TEST_SUITES[0]].sizes)
        with self.path.open("rb") as file:
            file.seek(self._body + _DIGEST_BYTES * first)
            return [file.read(_DIGEST_BYTES) for _ in self.suites[suite].sizes]

    @contextmanager
    def answers(self, suite: str) -> Iterator[Callable[[int, bytes], bytes | None]]:
        """A context with a function from a call's index and an output to the expected output.

        It gives the output itself where that has the digest of the expected one, so that right ones need no reading,
        and None where no output is known. Indexes come in ascending order.
        """
        own, digests = self.suites[suite].sizes, self.digests(suite)
        base = self.suites[TEST_SUITES[0]].sizes
        starts = list(itertools.accumulate(own, initial=0 if suite == TEST_SUITES[0] else sum(base)))
        with self.path.open("rb") as file:
            file.seek(self._body + _DIGEST_BYTES * sum(len(known.sizes) for known in self.suites.values()))
            with gzip.GzipFile(fileobj=file) as body:

                def answer(index: int, output: bytes) -> bytes | None:
                    if index >= len(own):
                        return None
                    if len(output) == own[index] and digest(output) == digests[index]:
                        return output
                    body.seek(starts[index])
                    return body.read(own[index])

                yield answer


def truth_folder() -> Path:
    """Where ground truths are kept, for all runs."""
    return user_cache() / "code_ground_truth"


def known_truth(key: str) -> GroundTruth | None:
    """The ground truth of the problem with a `content_key` if an earlier run has computed it."""
    try:
        truth = GroundTruth(_path(key))
        return truth if truth.is_whole() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def compute_truth(problem: Mapping[str, Any], dataset: Dataset, key: str, sandbox: Sandbox) -> GroundTruth:
    """Run the canonical solution of a problem in a sandbox in which no other code runs, and keep its outputs by `key`.

    Raises:
        CulturevalError: The ground truth cannot be written.
        DiskFull: Its outputs cannot be stored.
        SandboxBroken: The sandbox failed.
        SandboxUnavailable: It cannot be started.
        TruthInterrupted: A signal or a limit ended the canonical solution.
    """
    body, digests, header = io.BytesIO(), bytearray(), {}
    with gzip.GzipFile(fileobj=body, mode="wb", compresslevel=1, mtime=0) as file:
        for name in TEST_SUITES:
            try:
                header[name] = _compute(problem, dataset, name, sandbox, file, digests)
            except OSError as error:  # also of closing a file that could not be written
                if not is_full(error):
                    raise
                raise DiskFull(error) from error
    path = _path(key)
    content = bytes(digests) + body.getvalue()
    content = json.dumps(header).encode() + b"\n" + content
    try:
        write_atomically(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    except OSError as error:
        raise CulturevalError(
            f"The ground truth cannot be written to {path} ({error.strerror}): make room for it, remove what is there, "
            "or set CULTUREVAL_CACHE to another folder."
        ) from error
    return GroundTruth(path)


def canonical_code(problem: Mapping[str, Any]) -> str:
    """Return the canonical solution as a complete program, as EvalPlus builds it."""
    return problem["prompt"] + problem["canonical_solution"]


def content_key(problem: Mapping[str, Any], dataset: Dataset) -> str:
    """A hash of everything that the ground truth of a problem depends on; of many inputs it takes a while."""
    inputs = [problem["base_input"], problem["plus_input"]]
    parts = [_VERSION, *sys.version_info[:2], dataset, canonical_code(problem), problem["entry_point"], inputs]
    parts += [float(problem["atol"]), repr(SandboxLimits()), list(shown_packages())]
    return hashlib.sha256(marshal.dumps(parts, 2)).hexdigest()  # which writes all of plain data, or raises


def call_payload(
    problem: Mapping[str, Any],
    dataset: Dataset,
    suite: str,
    code: str,
    seconds: list[float] | None,
    all_seconds: float = _SECONDS,
) -> bytes:
    """What a job of the sandbox is given: code, inputs and the times that calls may take, never expected outputs.

    Without times it is the canonical solution's, whose outputs stay as they are also where sets are compared.
    """
    return pickle.dumps(
        {
            "code": code,
            "entry_point": problem["entry_point"],
            "inputs": problem[f"{suite}_input"],
            "seconds": seconds,
            "idle_factor": IDLE_FACTOR,
            "wall_factor": WALL_FACTOR,
            "all_seconds": all_seconds,
            "as_set": bool(seconds) and compares_sets(dataset, problem["entry_point"]),
        }
    )


def digest(output: bytes) -> bytes:
    """The digest of an encoded output."""
    return hashlib.sha256(output).digest()


def frames(outputs: IO[bytes]) -> Iterator[tuple[float, int]]:
    """What a job has sent, untrusted: of each frame, a call's seconds and the size of the content, where the file is.

    An incomplete last one is dropped.
    """
    end, position = os.fstat(outputs.fileno()).st_size, outputs.tell()
    while len(header := outputs.read(codec.FRAME.size)) == codec.FRAME.size:
        seconds, size = codec.FRAME.unpack(header)
        position += codec.FRAME.size + size
        if position > end:
            return
        yield seconds, size
        outputs.seek(position)


def _path(key: str) -> Path:
    return truth_folder() / f"{key}.bin"


def _compute(
    problem: Mapping[str, Any],
    dataset: Dataset,
    suite: str,
    sandbox: Sandbox,
    body: gzip.GzipFile,
    digests: bytearray,
) -> dict[str, Any]:
    """Writes the encoded outputs of one suite, and their digests; returns the header's part on it."""
    payload = call_payload(problem, dataset, suite, canonical_code(problem), None)
    any_value, nothing = asks_for_any_value(dataset, problem["entry_point"]), codec.encode(None)
    seconds: list[float] = []
    sizes: list[int] = []
    defect, all_plain = "", True
    with tempfile.TemporaryFile() as file:
        end = sandbox.run(payload, 2 * _SECONDS, _SECONDS, file)
        file.seek(0)
        for spent, size in frames(file):
            content = file.read(size)
            if content[:1] == b"E":
                defect = f"it raises {content[1:].decode('utf-8', 'replace')} at input {len(sizes)}"
                if content == b"EMemoryError":
                    raise TruthInterrupted(defect)
            elif content[:1] != b"L":
                output = codec.encode(content != nothing) if any_value else content
                seconds.append(spent)
                sizes.append(body.write(output))
                digests += digest(output)
                all_plain = all_plain and plain(output)
    if not defect and len(sizes) < len(problem[f"{suite}_input"]):
        defect = f"{end.describe()} at input {len(sizes)}"
        if end.is_interruption:
            raise TruthInterrupted(defect)
    return {"seconds": seconds, "defect": defect, "sizes": sizes, "plain": all_plain}
