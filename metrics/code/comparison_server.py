"""Comparison of solutions' outputs with the expected ones, in a process with limits, since the outputs are hostile.

`Comparer` starts a small server, this module as a program, which never runs generated code. For each suite of a
solution the server forks a process that gives itself limits of memory and time, reads the outputs and the ground truth,
applies EvalPlus's rules, and tells what it found in a few numbers and names. The outputs come as files that the
solution's sandbox has finished, so that nothing here can have an effect on the solution. The limits follow the size of
the canonical solution's outputs, so that right ones in another form do not meet them: outputs that do are wrong.
"""

import gc
import json
import math
import mmap
import os
import pickle
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal

from cultureval.metrics.code.ground_truth import GroundTruth, SuiteTruth, digest, frames
from cultureval.metrics.code.rules import Dataset, OutputRule, bytes_suffice, needs_arguments
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.sandbox import codec

MEMORY_BYTES = 224 << 20  # more than the server's own,
MEMORY_FACTOR = 640  # and for each byte of the largest expected output; an array for a truth value takes 560 for one
CPU_SECONDS = 20  # to read outputs, more than the expected ones take; then EvalPlus's limit of a suite, to compare them
SPARE_SECONDS = 2  # which EvalPlus adds to it
WALL_FACTOR = 6.0  # of the CPU time
LARGE_BYTES = 1 << 20  # of outputs; reading more can take all of MEMORY_BYTES
_ANSWER_BYTES = 1 << 20
_LONGEST_NAME = 81
_OUT_OF_MEMORY = 3  # exit status, where a process has taken what it may,
_REFUSED = 4  # and where the machine has less, before any output is read
_SIZE = struct.Struct("<Q")
_PROGRESS = struct.Struct("<Q?")  # of a comparison: right outputs, and whether EvalPlus would ask one of those so far
_LOADED = struct.Struct(f"{codec.FRAME.format}1s")  # the first frame of a program that could be loaded


_one_large = threading.Lock()  # so that several workers do not take that memory at once


class ComparerBroken(CulturevalError):
    """The comparing process failed, which says nothing about the solution."""


class ComparisonInterrupted(CulturevalError):
    """The machine ended a comparison, or had no time or memory for it, which says nothing about the solution."""


@dataclass(frozen=True)
class ComparisonLimits:
    """What one comparison may take: memory in bytes, CPU time and wall time in seconds."""

    memory: int
    cpu: int
    wall: float

    @classmethod
    def of(cls, truth: SuiteTruth, calls: int) -> "ComparisonLimits":
        """Those that follow from what the canonical solution returns for a suite of so many calls."""
        reading = CPU_SECONDS + truth.seconds_of_outputs()
        cpu = math.ceil(reading + truth.seconds_of_suite(calls) + SPARE_SECONDS)
        return cls(MEMORY_BYTES + MEMORY_FACTOR * max(truth.sizes, default=0), cpu, WALL_FACTOR * cpu)


@dataclass(frozen=True)
class SuiteResult:
    """What the outputs of one suite show.

    Args:
        loaded: Whether the solution's code was executed to its end.
        right: Number of calls with a right output, up to the first that has none.
        wrong: Whether the next output is there, and wrong.
        error: Name of the exception that the next call, or loading, raised; or "".
        type_name: Name of the type of an object in the wrong output that is not plain data, or "".
        beyond: What the comparison of the next output takes more of than a right one can, or "".
        asks: Whether EvalPlus would have asked an object in the outputs so far what it equals.
    """

    loaded: bool
    right: int
    wrong: bool
    error: str
    type_name: str
    beyond: Literal["", "memory", "time"] = ""
    asks: bool = False


class Comparer:
    """A server that compares, started at first use; used by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._starting = threading.Lock()
        self._ended = False

    def _start(self) -> socket.socket:
        with self._starting:
            if self._ended:
                raise OSError("it was ended")
            if self._connection is None:
                self._connection, theirs = socket.socketpair()
                with theirs:
                    command = [sys.executable, "-P", "-m", "cultureval.metrics.code.comparison_server"]
                    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
                    ends: dict[str, Any] = {"stdin": theirs.fileno(), "stdout": subprocess.DEVNULL}
                    self._process = subprocess.Popen(command, **ends, env=environment, start_new_session=True)
            return self._connection

    def _ask(self, body: bytes, descriptor: int, wall: float) -> dict[str, Any]:
        try:
            connection = self._start()
            connection.settimeout(wall + 60)
            socket.send_fds(connection, [_SIZE.pack(len(body))], [descriptor])
            connection.sendall(body)
            return json.loads(_read_message(connection))
        except (OSError, ValueError) as error:
            self._stop()
            raise ComparerBroken(f"the comparing process failed ({error})") from error

    def close(self) -> None:
        """End the server for good, also from another thread and in the middle of a comparison."""
        with self._starting:
            self._ended = True
        self._stop()

    def _stop(self) -> None:
        with self._starting:
            if self._connection is not None and self._process is not None:
                if self._process.poll() is None:
                    os.killpg(self._process.pid, signal.SIGKILL)  # with what compares just now
                    self._process.wait()
                self._connection.close()
            self._process = self._connection = None

    def compare(
        self, problem: Mapping[str, Any], dataset: Dataset, truth: GroundTruth, suite: str, outputs: IO[bytes]
    ) -> SuiteResult:
        """Compare what a solution returned on a suite with the ground truth.

        Args:
            problem: The problem.
            dataset: Its data set.
            truth: Its ground truth.
            suite: Which of `TEST_SUITES`.
            outputs: The file of the solution's job; untrusted.

        Raises:
            ComparisonInterrupted: The machine ended the comparison, or has too little memory.
            ComparerBroken: The server failed.
        """
        calls = problem[f"{suite}_input"]
        request = {"truth": str(truth.path), "suite": suite, "dataset": dataset, "atol": problem["atol"]}
        request |= {"entry_point": problem["entry_point"], "calls": [[]] * len(calls)}
        if needs_arguments(dataset, problem["entry_point"]):
            request["calls"] = calls
        size, wall = outputs.seek(0, os.SEEK_END), ComparisonLimits.of(truth.suites[suite], len(calls)).wall
        outputs.seek(0)
        with _one_large if size > LARGE_BYTES else nullcontext():
            answer = self._ask(pickle.dumps(request), outputs.fileno(), wall)
        if "problem" in answer:
            raise ComparisonInterrupted(answer["problem"])
        if "failure" in answer:
            raise ComparerBroken(f"the comparing process failed ({answer['failure']})")
        return SuiteResult(**answer)


def _read_message(connection: socket.socket) -> bytes:
    size = _SIZE.unpack(_read(connection, _SIZE.size))[0]
    return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(1 << 20, size - len(data)))
        if not part:
            raise OSError("it ended")
        data += part
    return bytes(data)


def main() -> None:
    """Serve requests until the other end of standard input is closed."""
    import numpy  # noqa: F401
    from evalplus import eval as rules_of_evalplus  # noqa: F401

    gc.collect()
    gc.freeze()  # else the forked processes would copy what they look through
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = socket.socket(fileno=os.dup(0))
    while True:
        header, descriptors, _, _ = socket.recv_fds(connection, _SIZE.size, 1)
        if not header:
            return
        header += _read(connection, _SIZE.size - len(header))
        request = pickle.loads(_read(connection, _SIZE.unpack(header)[0]))  # noqa: S301  # written by the judge
        with os.fdopen(descriptors[0], "rb") as outputs:
            answer = _in_a_process(request, outputs, connection)
        if answer is None:
            return
        connection.sendall(_SIZE.pack(len(answer)) + answer)


def _in_a_process(request: dict[str, Any], outputs: IO[bytes], judge: socket.socket) -> bytes | None:
    """The answer of a forked process, or why there is none, as JSON; None where the judge has ended meanwhile."""
    truth = GroundTruth(Path(request["truth"]))
    limits = ComparisonLimits.of(truth.suites[request["suite"]], len(request["calls"]))
    receiver, sender = os.pipe()
    with mmap.mmap(-1, _PROGRESS.size) as progress:
        pid = os.fork()
        if pid == 0:
            try:
                os.close(receiver)
                os._exit(_compare(request, truth, outputs, limits, sender, progress))
            finally:
                os._exit(1)
        os.close(sender)
        answer = _received(receiver, judge, time.monotonic() + limits.wall)
        late = answer is None
        if late:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if late and select.select([judge], [], [], 0)[0]:
            return None
        reached = _PROGRESS.unpack_from(progress)
    return answer or json.dumps(_why_not(os.waitstatus_to_exitcode(status), limits, late, *reached)).encode()


def _received(receiver: int, judge: socket.socket, deadline: float) -> bytes | None:
    """What a process wrote until it closed the pipe; None if it did not in time, or before the judge ended."""
    answer = b""
    with os.fdopen(receiver, "rb", buffering=0) as file:
        sources: list[Any] = [file, judge]
        while file in select.select(sources, [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = file.read(1 << 16)
            if not part:
                return answer
            answer += part
            if len(answer) > _ANSWER_BYTES:
                break
    return None


def _why_not(code: int, limits: ComparisonLimits, late: bool, right: int, asks: bool) -> dict[str, Any]:
    if late:
        return {"problem": f"its outputs cannot be compared in {limits.wall:.0f} s"}
    if code == -signal.SIGXCPU:
        return asdict(SuiteResult(True, right, True, "", "", "time", asks))
    if code in (_OUT_OF_MEMORY, -signal.SIGSEGV) and _gives(limits.memory):
        return asdict(SuiteResult(True, right, True, "", "", "memory", asks))
    if code == -signal.SIGKILL:
        return {"problem": "the kernel ended their comparison, as where the machine has too little memory"}
    if code in (_REFUSED, _OUT_OF_MEMORY, -signal.SIGSEGV):
        return {"problem": f"the machine gives their comparison less than {limits.memory >> 20} MiB"}
    return {"failure": f"it ended with {code}"}


def _compare(
    request: dict[str, Any],
    truth: GroundTruth,
    outputs: IO[bytes],
    limits: ComparisonLimits,
    sender: int,
    progress: mmap.mmap,
) -> int:
    """Write the answer, in the forked process; the exit status."""
    _limit(limits)
    if not _gives(limits.memory):
        return _REFUSED
    gc.disable()  # outputs hold no cycles, and looking for some takes longer than reading them
    rule, suite = OutputRule(request["dataset"], request["entry_point"], request["atol"]), request["suite"]
    try:
        with truth.answers(suite) as expected:
            result = compare_suite(rule, request["calls"], truth.suites[suite], expected, outputs, progress)
        with os.fdopen(sender, "wb") as file:
            file.write(json.dumps(asdict(result)).encode())
        return 0
    except MemoryError:
        return _OUT_OF_MEMORY


def _gives(memory: int) -> bool:
    """Whether the machine has nearly so many bytes now, before an output has taken any of them, or after its end."""
    try:
        mmap.mmap(-1, memory - memory // 16, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return False
    return True


def _limit(limits: ComparisonLimits) -> None:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    space, (_, hard) = pages * resource.getpagesize() + limits.memory, resource.getrlimit(resource.RLIMIT_AS)
    space = space if hard == resource.RLIM_INFINITY else min(space, hard)
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu, limits.cpu + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def compare_suite(
    rule: OutputRule,
    calls: list[list[Any]],
    truth: SuiteTruth,
    expected: Callable[[int, bytes], bytes | None],
    outputs: IO[bytes],
    progress: mmap.mmap,
) -> SuiteResult:
    """Compare the outputs of one suite, up to the first that is wrong or missing.

    Args:
        rule: The rule of the problem, new for each suite.
        calls: The arguments of each call; [] for each where the rule needs none.
        truth: What the canonical solution gave, of which a right output's size follows.
        expected: Its outputs, encoded, as `GroundTruth.answers` gives them.
        outputs: The file of the solution's job; untrusted.
        progress: Where it is written how far the comparison is, in case that a limit ends the process.
    """
    found = frames(outputs)
    _, size = next(found, (0.0, 0))
    first = outputs.read(min(size, _LONGEST_NAME))
    if first != b"L":
        return SuiteResult(False, 0, False, _type_name(first), "")
    right, asks = 0, False
    for _, size in found:
        if right == len(calls):
            break
        content = outputs.read(min(size, truth.most_bytes(right)))
        if content[:1] == b"E":
            return SuiteResult(True, right, False, _type_name(content), "", asks=asks)
        asks = asks or content[:1] == codec.ASKS
        _PROGRESS.pack_into(progress, 0, right, asks)
        answer = expected(right, content)
        if answer is None or not rule.agrees(calls[right], content, answer):
            return SuiteResult(True, right, True, "", rule.opaque, asks=asks)
        right += 1
    return SuiteResult(True, right, False, "", "", asks=asks)


def suite_of_equal_bytes(
    problem: Mapping[str, Any], dataset: Dataset, suite: str, truth: GroundTruth, outputs: IO[bytes]
) -> SuiteResult | None:
    """What a suite shows whose outputs have the digests of the expected ones; None where they must be read.

    It needs no process with limits: nothing is decoded, and the first other size or byte ends it, so that hostile
    outputs cost no more than right ones.
    """
    own, calls = truth.suites[suite], len(problem[f"{suite}_input"])
    if not (own.plain and len(own.sizes) == calls and bytes_suffice(dataset, problem["entry_point"])):
        return None
    outputs.seek(0)
    if outputs.read(_LOADED.size) != _LOADED.pack(0.0, 1, b"L"):
        return None
    digests = truth.digests(suite)
    for index, expected in enumerate(own.sizes):
        header = outputs.read(codec.FRAME.size)
        if len(header) < codec.FRAME.size:
            return None
        _, size = codec.FRAME.unpack(header)
        if size != expected or digest(outputs.read(size)) != digests[index]:
            return None
    return SuiteResult(True, calls, False, "", "")


def _type_name(content: bytes) -> str:
    """The type in an exception's frame; it is untrusted, so only an identifier is accepted."""
    if content[:1] != b"E":
        return ""
    name = content[1:_LONGEST_NAME].decode("utf-8", "replace")
    return name if name.isidentifier() else "something"


if __name__ == "__main__":
    main()
