"""Comparison of a solution's outputs with the expected ones, in a process with limits that runs no generated code.

The outputs are hostile: small ones can be slow or large to read. The limits follow the size of the expected outputs, so
that right ones in another form do not meet them. An output that is much longer than the expected one cannot equal it,
and is not read.
"""

import json
import os
import resource
import select
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any, Literal

from cultureval.metrics.code.ground_truth import SuiteTruth, next_frame
from cultureval.metrics.code.rules import Dataset, OutputRule
from cultureval.runtime.errors import CulturevalError
from cultureval.runtime.hostile_work import end_with_parent
from cultureval.runtime.sandbox import worker

BYTES_FACTOR, SPARE_BYTES = 20, 100_000  # of an output: a truth value takes 1 byte, an equal complex number 17
MEMORY_BYTES, MEMORY_FACTOR = 256 << 20, 200
CPU_SECONDS = 20
_OUT_OF_MEMORY = 3  # exit status


class ComparisonInterrupted(CulturevalError):
    """The machine ended a comparison, or the jail gave nothing to compare, which says nothing about the solution."""


@dataclass(frozen=True)
class Comparison:
    """What the outputs of a suite show.

    Attributes:
        right: Number of right outputs, up to the first that is none.
        what: `passed`: all are right; `wrong`: the next one is wrong; `raised`: loading or the next call raised an
            exception; `ended`: there is no next one; `beyond`: comparing takes more than right outputs can.
        loaded: Whether the code was executed to its end.
        name: Name of the exception.
    """

    right: int
    what: Literal["passed", "wrong", "raised", "ended", "beyond"]
    loaded: bool = True
    name: str = ""


def compare_suite(
    problem: Mapping[str, Any], dataset: Dataset, suite: str, truth: SuiteTruth, outputs: IO[bytes]
) -> Comparison | None:
    """Compares the outputs of one suite as they come, up to the first that is wrong or missing.

    Args:
        problem: The problem, in EvalPlus's form.
        dataset: Its data set.
        suite: Which of `TEST_SUITES`.
        truth: What the canonical solution gave.
        outputs: The frames of the solution's process; untrusted.

    Returns:
        None where the process did not come to run any code.
    """
    rule, calls = OutputRule(dataset, problem["entry_point"], problem["atol"]), problem[f"{suite}_input"]
    if next_frame(outputs)[0] != worker.CONFINED:
        return None
    kind, _, content = next_frame(outputs)
    if kind != worker.LOADED:
        return Comparison(0, "raised" if kind == worker.RAISED else "ended", False, _name(content))
    with truth.outputs() as expected_outputs:
        for right, arguments in enumerate(calls):
            expected = next(expected_outputs, b"")
            kind, _, content = next_frame(outputs, BYTES_FACTOR * len(expected) + SPARE_BYTES)
            if kind == worker.RAISED:
                return Comparison(right, "raised", name=_name(content))
            if kind != worker.VALUE:
                return Comparison(right, "ended")
            if not expected or content is None or not rule.agrees(arguments, content, expected):
                return Comparison(right, "wrong")
    return Comparison(len(calls), "passed")


def _name(content: bytes | None) -> str:
    """An exception's name; it is untrusted, so that only an identifier is taken."""
    name = (content or b"")[:80].decode("ascii", "replace")
    return name if name.isidentifier() else "an exception"


def compare_apart(
    problem: Mapping[str, Any], dataset: Dataset, suite: str, truth: SuiteTruth, stream: int, seconds: float
) -> Comparison:
    """`compare_suite` in a forked process with limits of memory and CPU time; this one may have one thread only.

    Args:
        problem: The problem; `dataset`, `suite` and `truth` are as for `compare_suite`.
        stream: The pipe from the solution's jail; it is read as the outputs come.
        seconds: Wall time that the solution may take.

    Raises:
        ComparisonInterrupted: The machine ended the process, or there is nothing to compare.
    """
    cpu = int(CPU_SECONDS + truth.seconds_of_outputs())
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(receiver)
            _limit(MEMORY_BYTES + MEMORY_FACTOR * max(truth.sizes, default=0), cpu)
            with os.fdopen(stream, "rb", 1 << 16) as outputs:
                found = compare_suite(problem, dataset, suite, truth, outputs)
            os.write(sender, json.dumps(vars(found) if found else {}).encode())
            os._exit(0)
        except MemoryError:
            os._exit(_OUT_OF_MEMORY)
        finally:
            os._exit(1)
    os.close(sender)
    with os.fdopen(receiver, "rb", buffering=0) as file:
        on_time = select.select([file], [], [], seconds + worker.WALL_FACTOR * cpu)[0]
        if not on_time:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        answer = json.loads(file.read(1 << 16) or "{}")
    if answer:
        return Comparison(**answer)
    if on_time and status in (_OUT_OF_MEMORY, -signal.SIGXCPU, -signal.SIGSEGV):
        return Comparison(0, "beyond")
    raise ComparisonInterrupted(
        "the sandbox could not confine a program"
        if status == 0
        else "its outputs could not be compared: the machine has too little time or memory"
    )


def _limit(memory: int, cpu: int) -> None:
    end_with_parent()
    with open("/proc/self/statm", encoding="ascii") as file:
        space = int(file.read().split()[0]) * resource.getpagesize() + memory
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    space = space if hard == resource.RLIM_INFINITY else min(space, hard)
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
